"""Previews of long texts, each within a token limit.

`structured_preview` understands logs, tables, events, JSON and YAML. The other functions cut texts regardless of their
content. A preview quotes only the source, and states how much it omits.
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
