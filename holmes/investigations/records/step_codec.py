"""Results of steps as JSON, so that another replica, also of another version, can read them.

Called by `journal`. Fields go by name: one that a newer version added takes its default when it is missing, one that is
not known any more is left out. Knows the values that steps return and refuses everything else.
"""

from __future__ import annotations

import base64
import json
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from holmes.core.tools_utils.tool_context_window_limiter import SpillOutcome, ToolOutcome
from holmes.values.messages import AssistantMessage, Image, Reasoning, StoredResult, Text, ToolCall, ToolMessage
from holmes.values.model import ModelReply
from holmes.values.stats import RequestStats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.json_types import JsonValue

_TYPES: Final[Mapping[str, type]] = {
    each.__name__: each
    for each in (
        AssistantMessage,
        Image,
        ModelReply,
        Reasoning,
        RequestStats,
        SpillOutcome,
        StoredResult,
        Text,
        ToolCall,
        ToolMessage,
        ToolOutcome,
    )
}
_TYPE: Final = "$type"
_BYTES: Final = "$bytes"


class UnreadableStep(ValueError):
    """A recorded result that this version cannot read; the step is run again."""


def step_to_bytes(result: object) -> bytes:
    """The JSON of a result. Raises `TypeError` for a value that no step returns."""
    return json.dumps(_encoded(result), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def step_from_bytes(content: bytes) -> object:
    """The result again; equal to what was recorded. Raises `UnreadableStep`."""
    try:
        return _decoded(json.loads(content.decode("utf-8", "surrogatepass")))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UnreadableStep(f"{type(error).__name__}: {error}") from error


def cost_of(result: object) -> float:
    """US dollars that a step was charged for: replies of models cost, nothing else does."""
    return result.stats.cost if isinstance(result, ModelReply) else 0.0


def _encoded(value: object) -> JsonValue:
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    name = type(value).__name__
    if _TYPES.get(name) is not type(value) or not is_dataclass(value):
        raise TypeError(f"a step returned a {name!r}, which no journal can keep")
    return {_TYPE: name, **{field.name: _encoded(getattr(value, field.name)) for field in fields(value)}}


def _decoded(value: JsonValue) -> object:
    if isinstance(value, list):
        return tuple(_decoded(item) for item in value)
    if not isinstance(value, dict):
        return value
    if _BYTES in value:
        return base64.b64decode(str(value[_BYTES]), validate=True)
    kind = _TYPES[str(value[_TYPE])]
    known = {field.name: field for field in fields(kind)}
    given: dict[str, Any] = {name: _decoded(item) for name, item in value.items() if name in known}
    missing = [
        name
        for name, field in known.items()
        if name not in given and field.default is MISSING and field.default_factory is MISSING
    ]
    if missing:
        raise UnreadableStep(f"{kind.__name__} has no {missing[0]!r}")
    return kind(**given)
