"""Summarises a conversation by extraction, for compaction.

A history that is too large for one request arrives as a transcript. The headings of the transcript show the role of
each message. The summary quotes the question, the findings, the calls and the most important lines. The loop measures
importance in the same way when it checks a summary. A line is omitted if shortening would cut a name in it, because an
incomplete name would look like another name.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from holmes.core.truncation.entity_check import survey, with_distinct_lines
from holmes.core.truncation.summary_request import REPAIR_PROMPT
from holmes.evidence import written_ledger
from holmes.triage.markdown import one_line
from holmes.values.expressions import expression
from holmes.values.findings_json import report_from_json
from holmes.values.first_look import FIRST_LOOK_TOOL, look_from_yaml
from holmes.values.messages import (
    AssistantMessage,
    SystemMessage,
    Text,
    ToolCallId,
    ToolMessage,
    UserMessage,
    user_text,
)
from holmes.values.tools import label_of, output_text
from holmes.values.verdicts import VERDICT_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.core.truncation.entity_check import SourceSurvey
    from holmes.values.messages import Message
    from holmes.values.model import ModelRequest

_DIAGNOSE_TOOL: Final = "kubernetes_diagnose"
_PARTS_BEFORE = expression(r"\ASummary of the earlier parts:\n(.*?)\n\nTranscript, part \d+ of \d+:\n\n", re.DOTALL)
_FIRST = expression(r"\ATranscript, part \d+ of \d+:\n\n")
_HEADING = expression(
    r"^## (instructions|assistant|result of ([\w.-]{1,120}) \(|user \((\w+))[^\n]{0,300}$", re.MULTILINE
)
_CAP = expression(r"Write at most ([\d,]{1,12}) tokens\.\s*\Z")
_REPAIR_CAP = expression(r"at most ([\d,]{1,12}) tokens\.\s*\Z")
_REPAIR_START: Final = REPAIR_PROMPT.partition("{cap_tokens")[0]
_LEFT_OUT: Final = "\n\nLeft out:\n"
_BYTES_PER_TOKEN: Final = 2.6
_QUESTION_SHARE: Final = 0.25
_FINDINGS_SHARE: Final = 0.30
_CHECKED_SHARE: Final = 0.15
_MOST_INCIDENTS: Final = 12
_MOST_CALLS: Final = 30
_LINE_CHARACTERS: Final = 240


def messages_of_transcript(text: str) -> tuple[Message, ...]:
    """Parse the messages of a transcript. Text without headings becomes one request."""
    before = _PARTS_BEFORE.match(text)
    start = before or _FIRST.match(text)
    body = text[start.end() :] if start is not None else text
    found: list[Message] = [user_text(before[1], kind="summary")] if before is not None else []
    headings = list(_HEADING.finditer(body))
    if not headings:
        return (*found, user_text(body))
    ends = [*(match.start() for match in headings[1:]), len(body)]
    for match, end in zip(headings, ends, strict=True):
        message = _message(match, body[match.end() : end].strip("\n"))
        if message is not None:
            found.append(message)
    return tuple(found)


def _message(heading: re.Match[str], text: str) -> Message | None:
    kind = heading[1]
    if kind == "instructions":
        return None
    if kind == "assistant":
        return AssistantMessage(text=text)
    if heading[2]:
        parts = (Text(text=heading[0]), Text(text=text))
        return ToolMessage(call_id=ToolCallId("transcript"), tool_name=heading[2], status="success", parts=parts)
    return user_text(text, kind="summary" if heading[3] == "summary" else "request")


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """A request for a summary of `messages`, or for lines about names that an earlier summary omitted."""

    kind: Literal["summary", "repair"]
    cap_tokens: int
    messages: tuple[Message, ...]


def summary_request_of(request: ModelRequest) -> SummaryRequest | None:
    """Return the summary that `request` asks for, or None if it asks for a step of an investigation."""
    messages = tuple(request.messages)
    if request.tool_choice != "none" or not messages:
        return None
    first, last = messages[0], messages[-1]
    if isinstance(last, UserMessage) and last.kind == "note" and (cap := _CAP.search(last.text)):
        return SummaryRequest(kind="summary", cap_tokens=_number(cap[1]), messages=messages[:-1])
    if not isinstance(first, SystemMessage) or not isinstance(last, UserMessage) or len(messages) != 2:
        return None
    if first.text.startswith(_REPAIR_START) and (cap := _REPAIR_CAP.search(first.text)):
        return SummaryRequest(kind="repair", cap_tokens=_number(cap[1]), messages=messages[1:])
    if cap := _CAP.search(first.text):
        kept = messages_of_transcript(last.text)
        return SummaryRequest(kind="summary", cap_tokens=_number(cap[1]), messages=kept)
    return None


def _number(written: str) -> int:
    return int(written.replace(",", "") or "0")


def summarise(request: SummaryRequest) -> str:
    """Write a summary of about `cap_tokens` tokens.

    Call this function in a thread, because its CPU time grows with the conversation.
    """
    room = int(request.cap_tokens * _BYTES_PER_TOKEN)
    if request.kind == "repair":
        return _added_lines(request.messages[0], room)
    messages = tuple(each for each in request.messages if not isinstance(each, SystemMessage))
    found = survey(messages, (), messages)
    sections = [
        _section("## Question", _questions(messages), int(room * _QUESTION_SHARE), found),
        _section("## Resources and their state", _findings(messages), int(room * _FINDINGS_SHARE), found),
        _section("## Checked", _calls(messages), int(room * _CHECKED_SHARE), found),
    ]
    left = room - sum(len(section) for section in sections)
    sections.insert(2, _section("## Evidence", _evidence(messages, found), left, found))
    text = "\n\n".join(section for section in sections if section)
    return text or "## Question\nNo messages yet."


def _section(heading: str, lines: Iterable[str], room: int, found: SourceSurvey) -> str:
    """Write a section with as many different lines as fit into `room` bytes.

    Lines with names that are not in the source are omitted.
    """
    kept: list[str] = []
    left = room - len(heading)
    for line in dict.fromkeys(lines):
        needed = len(line.encode("utf-8", "replace")) + 1
        if needed > left or found.invented_in(line):
            continue
        kept.append(line)
        left -= needed
    return "\n".join((heading, *kept)) if kept else ""


def _questions(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the questions of the user: the first question, then the other questions from newest to oldest."""
    asked = [each.text for each in messages if isinstance(each, UserMessage) and each.kind == "request"]
    for text in (*asked[:1], *reversed(asked[1:])):
        yield f"- {whole_words(text, 1_200)}"


def _findings(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the incidents of the newest diagnosis, and the checks that were not possible."""
    for message in reversed(messages):
        if not isinstance(message, ToolMessage) or message.status != "success":
            continue
        if message.tool_name == FIRST_LOOK_TOOL:
            yield from _first_look(message)
            continue
        if message.tool_name != _DIAGNOSE_TOOL:
            continue
        try:
            report = report_from_json(output_text(message))
        except ValueError:
            continue
        where = _where(message)
        for incident in report.incidents[:_MOST_INCIDENTS]:
            since = f", since {incident.since}" if incident.since else ""
            yield f"- {incident.severity}: {whole_words(incident.cause or incident.title, 400)}{since}{where}"
        for gap in report.not_checked[:4]:
            yield f"- not checked: {whole_words(f'{gap.what}: {gap.why}', 160)}"
        return


def _first_look(message: ToolMessage) -> Iterator[str]:
    try:
        look = look_from_yaml(output_text(message))
    except ValueError:
        return
    subject = f"{look.subject[0]}: " if look.subject else ""
    yield f"- {subject}{look.heading or VERDICT_WORDS[look.verdict]}: {whole_words(look.summary, 400)}{_where(message)}"


def _where(message: ToolMessage) -> str:
    label = label_of(message)
    return f" {label}" if label else ""


def _evidence(messages: Sequence[Message], found: SourceSurvey) -> Iterator[str]:
    """Yield checked claims with their citations, then the lines with the most important names."""
    for entry in written_ledger(messages).entries:
        yield entry.line()
    for item in with_distinct_lines(found.ranked):
        line = whole_words(item.line, _LINE_CHARACTERS).lstrip("-*#> ")
        if line:
            yield f"- {line}{_label_of_line(item.line, messages)}"
        if item.entity.value not in line:
            yield f"- {item.entity.kind} {item.entity.value}"


def _label_of_line(line: str, messages: Sequence[Message]) -> str:
    """Return the label of the newest result that contains `line`."""
    for message in reversed(messages):
        if isinstance(message, ToolMessage) and line in message.text:
            return _where(message)
    return ""


def _calls(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the tool calls with their status, newest first."""
    status: dict[str, str] = {each.call_id: each.status for each in messages if isinstance(each, ToolMessage)}
    calls = [call for each in messages if isinstance(each, AssistantMessage) for call in each.tool_calls]
    for call in reversed(calls[-_MOST_CALLS:]):
        yield f"- {call.name} {whole_words(_arguments(call.arguments), 200)}: {status.get(call.id, 'no result')}"


def _arguments(written: str) -> str:
    try:
        values = json.loads(written or "{}")
    except (ValueError, RecursionError):
        return written
    return " ".join(f"{key}={value}" for key, value in values.items()) if isinstance(values, dict) else written


def whole_words(text: str, most_characters: int) -> str:
    """Return `text` on one line, shortened at a space so that no name is cut."""
    line = one_line(text)
    if len(line) <= most_characters:
        return line
    return f"{line[:most_characters].rpartition(' ')[0]} …"


def _added_lines(message: Message, room: int) -> str:
    """Return one line of the source for each name that a summary omitted."""
    text = message.text if isinstance(message, UserMessage) else ""
    lines: list[str] = []
    left = room
    for line in text.rpartition(_LEFT_OUT)[2].split("\n"):
        shown = f"- {whole_words(line.removeprefix('- '), _LINE_CHARACTERS)}"
        if len(shown) + 1 > left:
            break
        lines.append(shown)
        left -= len(shown) + 1
    return "\n".join(dict.fromkeys(lines)) or "- nothing to add"
