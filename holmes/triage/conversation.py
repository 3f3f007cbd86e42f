"""Reads a conversation: the question, earlier messages, tool results, and the source of each quoted line.

The messages are the only input, so the model needs no memory. Compaction may have replaced turns, tool results may be
pointers, and another model may have made the calls. A quoted line is cited as `[[<result id>:<lines>]]`. It is not
cited if the result has no id. If a line was read back from a stored result, the answer cites line 1, and the loop
corrects the line number.

A plan restarts for every request. `Lookups.ask` returns a result from the conversation, or adds a pending call and ends
the plan with `Waiting`. `Lookups.want` adds a call early, so that independent calls run together.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.core.tools_utils.tool_executor import IDENTICAL_CALL
from holmes.previews import readable_json
from holmes.values.messages import (
    AssistantMessage,
    SystemMessage,
    ToolCall,
    ToolCallId,
    ToolMessage,
    UserMessage,
    is_user_message,
)
from holmes.values.texts import shortened
from holmes.values.tools import LINES_TOOL, QUERY_TOOL, label_of, output_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holmes.values.findings import Evidence
    from holmes.values.json_types import JsonValue
    from holmes.values.messages import Message, ToolStatus
    from holmes.values.model import ModelRequest


CALL_PREFIX: Final = "triage"
_OWN_CALL = re.compile(rf"{CALL_PREFIX}-(\d{{1,4}})-")
_DEFAULT_NAMESPACE = re.compile(r"^Default namespace: ([a-z0-9][a-z0-9-]{0,62})\.", re.MULTILINE)
_ERROR_HEAD = re.compile(r"^(?:Error(?: \(exit code \d+\))?: |exit code \d+: |error: ){1,4}")
_REFUSED = re.compile(r'User "([^"\n]{1,200})" cannot (\w{1,20}) resource "([\w./-]{1,100})"')
_FENCED = re.compile(r"^```.*?^```[^\S\n]*$", re.MULTILINE | re.DOTALL)
_REPEATED = re.compile(r"(Unchanged|Changed) since step \d+\b")
DIAGNOSE_TOOL: Final = "kubernetes_diagnose"
MAX_TURNS: Final = 6
"""Maximum number of turns with tool calls for one question. Four are typical. Further turns read stored results."""
_READ_BACK_LINES = 200
_NUMBERED = re.compile(r"^ *\d+: ?", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one tool call.

    `text` is the result without its label. `result_id` is the id that answers can cite, or empty. `stored_id` is the id
    of the stored result. `partial` means that `text` is a pointer, a mask or a diff.
    """

    tool: str
    status: ToolStatus
    text: str
    result_id: str = ""
    stored_id: str = ""
    partial: bool = False

    @property
    def failed(self) -> bool:
        """Whether the call failed or requires approval."""
        return self.status in ("error", "approval_required")

    @property
    def reason(self) -> str:
        """The error message of a failed call, on one line and without the prefixes that the tool adds."""
        refused = tuple(dict.fromkeys(_REFUSED.findall(self.text))) if self.is_forbidden else ()
        if len(refused) > 1:  # kubectl repeats this sentence for each kind
            return f"Forbidden: user {refused[0][0]!r} cannot {refused[0][1]} {', '.join(each[2] for each in refused)}"
        first = self.text.strip().split("\n", 1)[0]
        return shortened(_ERROR_HEAD.sub("", " ".join(first.split())), 400)

    @property
    def is_forbidden(self) -> bool:
        """Whether the API server denied the call."""
        return self.failed and "forbidden" in self.text.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation with its last question and the tool results for this question.

    `attachments` were sent with the question. `fenced` contains the fenced blocks of the question. `earlier` contains
    the messages before the question. `call_key` creates the keys of `outcomes`. `turns` is the number of turns in
    which this model called tools.
    """

    question: str
    attachments: tuple[str, ...]
    fenced: tuple[str, ...]
    earlier: tuple[Message, ...]
    outcomes: Mapping[str, Outcome]
    turns: int
    default_namespace: str = ""


def call_key(tool: str, arguments: Mapping[str, JsonValue]) -> str:
    """Return a key that is equal for two calls with the same tool and arguments."""
    return f"{tool} {json.dumps(arguments, sort_keys=True, ensure_ascii=False)}"


def read_conversation(request: ModelRequest) -> Conversation:
    """Read the last question of `request` with its tool results. Never fails."""
    messages = tuple(request.messages)
    start = _question_position(messages)
    question = messages[start] if 0 <= start < len(messages) else None
    first_attachment = start
    while first_attachment > 0 and is_user_message(messages[first_attachment - 1], "attachment"):
        first_attachment -= 1
    own_turns = [
        int(match[1]) for call in _calls_of(messages[start + 1 :]) if (match := _OWN_CALL.match(call.id)) is not None
    ]
    asked, fenced = _apart(question.text if isinstance(question, UserMessage) else "")
    attached = (message.text for message in messages[first_attachment:start] if isinstance(message, UserMessage))
    return Conversation(
        question=asked,
        attachments=tuple(attached),
        fenced=fenced,
        earlier=tuple(each for each in messages[:first_attachment] if not isinstance(each, SystemMessage)),
        outcomes=_outcomes(messages, start + 1),
        turns=max(own_turns, default=0),
        default_namespace=_default_namespace(messages),
    )


def _apart(text: str) -> tuple[str, tuple[str, ...]]:
    """Split a message into the question and its fenced blocks, for example a log or an alert."""
    asked = _FENCED.sub("\n", text)
    return (asked, tuple(_FENCED.findall(text))) if asked.strip() else (text, ())


def _question_position(messages: Sequence[Message]) -> int:
    """Return the index of the last question, or of the last user message if no message is a question."""
    for kind in ("request", "attachment", "summary"):
        for index in range(len(messages) - 1, -1, -1):
            if is_user_message(messages[index], kind):
                return index
    return -1


def _calls_of(messages: Iterable[Message]) -> Iterable[ToolCall]:
    return (call for message in messages if isinstance(message, AssistantMessage) for call in message.tool_calls)


def _default_namespace(messages: Sequence[Message]) -> str:
    first = messages[0] if messages else None
    match = _DEFAULT_NAMESPACE.search(first.text) if isinstance(first, SystemMessage) else None
    return match[1] if match else ""


def _outcomes(messages: Sequence[Message], start: int) -> dict[str, Outcome]:
    """Return the outcomes of the tool calls from message `start` on. The keys identify the calls.

    A result that reports only "unchanged" is replaced by the earlier result.
    """
    found: dict[str, Outcome] = {}
    whole: dict[str, Outcome] = {}
    waiting: dict[str, str] = {}
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            waiting.update((call.id, _key_of(call)) for call in message.tool_calls)
        elif isinstance(message, ToolMessage) and (key := waiting.pop(message.call_id, None)) is not None:
            if message.text.startswith(IDENTICAL_CALL):
                continue
            outcome = _outcome(message)
            if outcome.partial and _says_unchanged(outcome.text) and key in whole:
                outcome = whole[key]
            if not outcome.partial:
                whole[key] = outcome
            if index >= start:
                found[key] = outcome
    return found


def _says_unchanged(text: str) -> bool:
    """Return whether the text reports that a repeated call returned the same result.

    "Unchanged except ..." means that the results differ.
    """
    match = _REPEATED.match(text)
    return match is not None and match[1] == "Unchanged" and not text[match.end() :].startswith(" except")


def _key_of(call: ToolCall) -> str:
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return f"{call.name} {call.arguments}"
    return call_key(call.name, arguments) if isinstance(arguments, dict) else f"{call.name} {call.arguments}"


def _outcome(message: ToolMessage) -> Outcome:
    text, label = output_text(message), label_of(message)
    stored = next((each.id for each in message.stored if not each.media_type.startswith("image/")), "")
    return Outcome(
        tool=message.tool_name,
        status=message.status,
        text=text,
        result_id=(label or "").removeprefix("[result ").removesuffix("]") or (stored if message.spilled else ""),
        stored_id=stored,
        partial=message.spilled or message.masked or _REPEATED.match(text) is not None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A result that can be cited. `lines` is empty if only parts of the result were read back."""

    result_id: str = ""
    lines: tuple[str, ...] = ()

    def marker(self, first: int, last: int | None = None) -> str:
        """Return the citation of these lines with a leading space, or an empty string if the result has no id.

        Line numbers start at 1.
        """
        if not self.result_id:
            return ""
        span = f"{first}-{last}" if last is not None and last != first else str(first)
        return f" [[{self.result_id}:{span}]]"

    def of_value(self, key: str, value: str) -> str:
        """Return the citation of `"key": "value"` in a JSON result."""
        if not self.lines:
            return self.marker(1)
        wanted = f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        position = self._line_that_starts(wanted)
        return self.marker(position) if position else ""

    def of_evidence(self, evidence: Evidence) -> str:
        """Return the citation of an evidence entry in a diagnosis: its object, path and value."""
        if not self.lines:
            return self.marker(1)
        path = f'"path": {json.dumps(evidence.path, ensure_ascii=False)}'
        value = f'"value": {json.dumps(evidence.value, ensure_ascii=False)}'
        for index, line in enumerate(self.lines[:-1]):
            if line.lstrip().startswith(path) and self.lines[index + 1].lstrip().startswith(value):
                has_object = index > 0 and '"object"' in self.lines[index - 1]
                return self.marker(index if has_object else index + 1, index + 2)
        return ""

    def _line_that_starts(self, wanted: str) -> int:
        return next((number for number, line in enumerate(self.lines, 1) if line.lstrip().startswith(wanted)), 0)


def source_of(outcome: Outcome) -> Source:
    """Convert an outcome into a source for citations."""
    if outcome.partial:
        return Source(result_id=outcome.stored_id)
    return Source(result_id=outcome.result_id, lines=tuple(readable_json(outcome.text).split("\n")))


class Waiting(Exception):
    """Raised when the plan cannot continue without the results of `Lookups.pending`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    tool: str
    arguments: Mapping[str, JsonValue]


class Lookups:
    """Looks up tool results in the conversation and collects the calls to make next."""

    def __init__(self, request: ModelRequest) -> None:
        self.conversation = read_conversation(request)
        self._tools = {tool.name: frozenset(each.name for each in tool.parameters) for tool in request.tools}
        self._may_call = request.tool_choice == "auto" and self.conversation.turns < MAX_TURNS
        self._pending: dict[str, _Pending] = {}
        self._seed = f"{len(request.messages)} {self.conversation.question[:200]}"

    def has(self, tool: str) -> bool:
        """Return whether the request offers `tool`."""
        return tool in self._tools

    def want(self, tool: str, **arguments: JsonValue) -> None:
        """Add this call to the next turn, unless its result is already known."""
        self._find(tool, arguments)

    def ask(self, tool: str, **arguments: JsonValue) -> Outcome:
        """Return the result of the call. Raises `Waiting` if the call must be made first.

        Empty arguments are omitted. The status is `error` if the tool is not available or if no more calls are allowed.
        """
        found = self._find(tool, arguments)
        if found is None:
            raise Waiting
        return self._whole(found)

    def _find(self, tool: str, arguments: Mapping[str, JsonValue]) -> Outcome | None:
        given = {name: value for name, value in arguments.items() if value not in ("", None)}
        key = call_key(tool, given)
        found = self.conversation.outcomes.get(key)
        if found is not None:
            return found
        if tool not in self._tools:
            return Outcome(tool=tool, status="error", text=f"tool {tool!r} is not available")
        unknown = given.keys() - self._tools[tool]
        if unknown:
            return Outcome(tool=tool, status="error", text=f"{tool} does not accept {', '.join(sorted(unknown))}")
        if not self._may_call:
            return Outcome(tool=tool, status="error", text="not looked up: this answer has reached the tool call limit")
        self._pending[key] = _Pending(tool=tool, arguments=given)
        return None

    def query(self, outcome: Outcome, expression: str) -> Outcome:
        """Run a jq expression on a stored result, and return one value per line without the tool's heading."""
        found = self.ask(QUERY_TOOL, result_id=outcome.stored_id, expression=expression)
        if found.failed:
            return found
        return replace(found, text=found.text.partition("\n")[2], result_id=outcome.stored_id)

    def _whole(self, outcome: Outcome) -> Outcome:
        """Replace a pointer in `outcome` with the text of the stored result, if the lines can be read back."""
        if not outcome.partial or not outcome.stored_id or outcome.tool in (QUERY_TOOL, LINES_TOOL):
            return outcome
        if outcome.tool == DIAGNOSE_TOOL:  # truncated JSON is not valid
            return outcome
        lines = self.ask(LINES_TOOL, result_id=outcome.stored_id, first_line=1, last_line=_READ_BACK_LINES)
        if lines.failed:
            return outcome
        text = _NUMBERED.sub("", lines.text.partition("\n")[2])
        return replace(outcome, text=text, result_id=outcome.stored_id)

    @property
    def pending(self) -> tuple[ToolCall, ...]:
        """The calls to make next, in the order in which the plan requested them."""
        calls: list[ToolCall] = []
        for index, (key, call) in enumerate(self._pending.items()):
            digest = hashlib.sha256(f"{self._seed} {key}".encode("utf-8", "replace")).hexdigest()[:10]
            call_id = ToolCallId(f"{CALL_PREFIX}-{self.conversation.turns + 1}-{index}-{digest}")
            arguments = json.dumps(call.arguments, ensure_ascii=False)
            calls.append(ToolCall(id=call_id, name=call.tool, arguments=arguments))
        return tuple(calls)
