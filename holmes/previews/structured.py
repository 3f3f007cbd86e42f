"""The preview of a text by what it is: the one entry point of this package for structured previews.

Called by the spill. What was taken for one kind and cannot be read as that falls back to plain text, never to an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.previews.model import PreviewKind, StructuredPreview
    from holmes.tokens import TokenCounter


def structured_preview(text: str, cap_tokens: int, counter: TokenCounter) -> StructuredPreview:
    """A view of `text` of at most `cap_tokens` real tokens.

    CPU work, about 60 ms per MB, in small steps: for large texts call it off the event loop.
    """
    from holmes.previews.detect import detect
    from holmes.previews.plain import text_preview

    read = _reader(detect(text))
    return read(text, cap_tokens, counter) or text_preview(text, cap_tokens, counter)


def _reader(  # noqa: PLR0911  one return per kind
    kind: PreviewKind,
) -> Callable[[str, int, TokenCounter], StructuredPreview | None]:
    """The function that knows `kind`. Loads only what it needs."""
    match kind:
        case "logs":
            from holmes.previews.logs import log_preview

            return log_preview
        case "table":
            from holmes.previews.tables import table_preview

            return table_preview
        case "events":
            from holmes.previews.events import event_preview

            return event_preview
        case "json":
            from holmes.previews.outlines import json_preview

            return json_preview
        case "yaml":
            from holmes.previews.outlines import yaml_preview

            return yaml_preview
        case "binary":
            from holmes.previews.plain import binary_preview

            return binary_preview
        case "text":
            from holmes.previews.plain import text_preview

            return text_preview
