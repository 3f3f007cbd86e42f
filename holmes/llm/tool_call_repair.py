"""Repairs tool calls of small and local models.

Arguments that are almost valid JSON are repaired to an object. A tool call written as text is extracted if it contains
the name of an available tool, unless an answer quotes the call. Arguments that the token limit truncated are not
repaired, because the repaired arguments could be a different command.
"""

from __future__ import annotations

import json
import re
import uuid
from typing import TYPE_CHECKING, Any

from holmes.core.hooks import hook_of
from holmes.values.expressions import expression
from holmes.values.messages import ToolCall, ToolCallId
from holmes.values.texts import whole_characters

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from holmes.llm.reply_assembler import RawToolCall

_BLOCK = expression(
    r"```(?:json|tool_call|tool|tool_code)?[ \t]*\n(?P<fenced>.*?)```"
    r"|<tool_call>(?P<tagged>.*?)(?P<end></tool_call>|\Z)",
    re.DOTALL,
)
# Matches text that may precede a call, for example "Let me look at the pods."
# A reply with more text, or with text after the last call, is an answer.
# If text begins with a Markdown quotation, list or heading mark, a block after it is not a call.
_ASIDE = expression(r"(?![>*+#-])[^\n.!?]{0,200}[.!?:]?")
_AFTER_OBJECT = expression(r"[\s},;\])`]*")
_NO_PART_OF_A_NAME = expression(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_ESCAPED_HALF = expression(r"\\u[dD][89a-fA-F]")
_BRACKET = expression(r"[\[\]{}]")
_REPAIR_LIMIT_CHARACTERS = 200_000  # the total for all tool calls of one reply
_MAX_DEPTH = 100  # far above the depth of any schema, and within the limits of later parsers


def repaired_calls(raw_calls: Sequence[RawToolCall], *, known_ids: Collection[str], cut_off: bool) -> list[ToolCall]:
    """Give each call a valid name, valid arguments and a unique id that is not the id of a hook.

    `known_ids` are the ids that the conversation already uses. If `cut_off` is true, the token limit ended the reply,
    and the last call is not repaired. Arguments after the first 200,000 characters are not repaired either.
    """
    used = set(known_ids)
    calls = [raw for raw in raw_calls if raw.name or raw.arguments]
    result: list[ToolCall] = []
    characters = 0
    for position, raw in enumerate(calls):
        usable = raw.id and raw.id.isprintable() and raw.id not in used and hook_of(raw.id) is None
        call_id = raw.id if usable else _fresh_call_id()
        used.add(call_id)
        arguments = whole_characters(raw.arguments_text)
        characters += len(arguments)
        few = characters <= _REPAIR_LIMIT_CHARACTERS or not arguments.strip()
        repairable = few and not (cut_off and position == len(calls) - 1)
        result.append(_call(call_id, _valid_name(raw.name), arguments, repairable=repairable))
    return result


def calls_in_text(text: str, tool_names: Collection[str]) -> tuple[str, list[ToolCall]]:
    """Extract the tool calls that a reply contains as text. Returns the remaining text and the calls.

    If a block does not contain the name of an available tool, the reply is returned unchanged. The same applies if text
    follows the last call, or if more than a short sentence precedes a call. In these cases, the reply is an answer that
    quotes calls.
    """
    if len(text) > _REPAIR_LIMIT_CHARACTERS:
        return text, []
    asides, calls, position = list[str](), list[ToolCall](), 0
    for match in _BLOCK.finditer(text):
        block = match["tagged"] if match["fenced"] is None else match["fenced"]
        found = _written_call(block, tool_names, repairable=match["end"] != "")  # an unclosed block may be incomplete
        if found is None:
            return text, []
        asides.append(text[position : match.start()].strip())
        calls.append(found)
        position = match.end()
    quoted = text[position:].strip() or not all(map(_ASIDE.fullmatch, asides))
    if not calls or quoted:
        return text, []
    return "\n".join(filter(None, asides)), calls


def _fresh_call_id() -> ToolCallId:
    """Create a call id that no provider has sent."""
    return ToolCallId(f"call_{uuid.uuid4().hex[:24]}")


def _valid_name(written: str) -> str:
    """Return a name that providers accept, because one invalid name makes them reject the whole conversation."""
    return _NO_PART_OF_A_NAME.sub("_", written.strip())[:_LONGEST_NAME] or "no_name"


def _call(call_id: str, name: str, arguments: str, *, repairable: bool) -> ToolCall:
    valid = _object_text(arguments, repairable=repairable)
    return ToolCall(
        id=ToolCallId(call_id),
        name=name,
        arguments="{}" if valid is None else valid,
        malformed=arguments if valid is None else None,
    )


def _object_text(arguments: str, *, repairable: bool) -> str | None:
    """Return `arguments` as the JSON of an object, repaired if necessary, or None if the repair fails."""
    if not arguments.strip():
        return "{}" if repairable else None
    try:
        value: Any = json.loads(arguments)
    except ValueError:
        value = _repaired(arguments) if repairable else None
    except RecursionError:
        return None
    else:
        if isinstance(value, dict):
            return None if _is_too_deep(value) else _whole(arguments, value)
    if isinstance(value, str):  # an object that was encoded twice
        value = _repaired(value)
    if not isinstance(value, dict) or not value or _is_too_deep(value):
        return None
    return whole_characters(json.dumps(value, ensure_ascii=False))


def _whole(arguments: str, value: dict[str, Any]) -> str:
    """Remove unpaired surrogates from `arguments`, the JSON of `value`, because a request cannot contain them."""
    if _ESCAPED_HALF.search(arguments) is None:
        return arguments
    return whole_characters(json.dumps(value, ensure_ascii=False))


def _is_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            item
            for container in level
            if isinstance(container, dict | list)
            for item in (container.values() if isinstance(container, dict) else container)
        ]
        if not level:
            return False
    return True


def _repaired(text: str) -> Any:  # noqa: ANN401  any JSON
    """Parse `text` with json_repair, or return None if it has no brace, is too long or is nested too deeply."""
    if "{" not in text or len(text) > _REPAIR_LIMIT_CHARACTERS or _opens_too_deep(text):
        return None
    import json_repair

    try:
        return json_repair.loads(text)
    except (RecursionError, ValueError):
        return None


def _opens_too_deep(text: str) -> bool:
    """Return whether brackets, including brackets in strings, are nested deeper than in any schema."""
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > _MAX_DEPTH:
            return True
    return False


def _written_call(block: str, tool_names: Collection[str], *, repairable: bool) -> ToolCall | None:
    try:
        value: Any = json.loads(block)
    except ValueError:
        value = _repaired(block) if repairable and _is_one_object(block) else None
    except RecursionError:
        return None
    if not isinstance(value, dict) or _is_too_deep(value):
        return None
    function = value["function"] if isinstance(value.get("function"), dict) else value
    name = function.get("name")
    if not isinstance(name, str) or name not in tool_names:
        return None
    if not function.keys() & {"arguments", "parameters"} and len(function) > 1:
        return None  # an object that has the name of a tool but is not a call
    arguments = function.get("arguments", function.get("parameters", {}))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return _call(_fresh_call_id(), name, text, repairable=True)


def _is_one_object(block: str) -> bool:
    """Return whether `block` is a single object. It may be malformed, but its last value must be complete."""
    return block.lstrip().startswith("{") and "}" in block and bool(_AFTER_OBJECT.fullmatch(block.rpartition("}")[2]))
