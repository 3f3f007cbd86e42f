"""Short views of long texts.

Pure functions of text; every result is bounded by real tokens. `structured_preview` knows logs, tables, events, JSON
and YAML (context.md, N1 and T14); the other functions cut without looking at the content. Nothing here invents: what a
preview leaves out is counted.
"""

from __future__ import annotations

from holmes.previews.budget import PreviewKind, StructuredPreview
from holmes.previews.excerpts import (
    HeadAndTail,
    clip_line,
    first_that_fits,
    head_and_tail,
    line_end,
    prefix_that_fits,
    suffix_that_fits,
)
from holmes.previews.json_view import is_json, readable_json
from holmes.previews.structured import structured_preview

__all__ = [
    "HeadAndTail",
    "PreviewKind",
    "StructuredPreview",
    "clip_line",
    "first_that_fits",
    "head_and_tail",
    "is_json",
    "line_end",
    "prefix_that_fits",
    "readable_json",
    "structured_preview",
    "suffix_that_fits",
]
