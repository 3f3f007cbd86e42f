"""What a preview is. Produced by the modules that know a kind of text, read by the spill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

PreviewKind: TypeAlias = Literal["logs", "table", "json", "yaml", "events", "text", "binary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredPreview:
    """What the pointer shows: the preview, and one clause that says how much of the whole it is."""

    kind: PreviewKind
    text: str
    shown: str
