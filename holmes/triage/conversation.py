"""Reads a conversation: the question, the alerts in it, and the first looks that the conversation already contains.

The messages are the only input, so the model needs no memory.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from holmes.core.tools_utils.pointers import Pointer
from holmes.kubernetes.kinds import KINDS
from holmes.triage.metric_readings import (
    SeenMetrics,
    SeenReading,
    called_arguments,
    has_arguments,
    related_arguments,
    signal_arguments,
    weighed,
)
from holmes.triage.pasted_texts import asked_text
from holmes.values.expressions import expression
from holmes.values.first_look import ALERT_TOOL, FIRST_LOOK_TOOL, RELATED_TOOL, SIGNALS_TOOL, look_from_yaml
from holmes.values.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage, is_user_message
from holmes.values.on_demand import called
from holmes.values.tools import label_of, output_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holmes.values.first_look import FirstLook
    from holmes.values.messages import Message, ToolCall, ToolCallId

_DEFAULT_NAMESPACE: Final = expression(r"^Default namespace: ([a-z0-9][a-z0-9-]{0,62})\.", re.MULTILINE)
_ALERT: Final = expression(r"^alert \d+ of \d+\n((?:  .*\n?)+)", re.MULTILINE)
_NAME: Final = expression(r"^  name: (\".*\")$", re.MULTILINE)
_LABELS: Final = expression(r"^  labels: (.*)$", re.MULTILINE)
_FIRING: Final = expression(r"^  firing since: (\S+)$", re.MULTILINE)
_PAIR: Final = expression(r"(\w{1,100}|\"(?:[^\"\\]|\\.)*\")=(\"(?:[^\"\\]|\\.)*\")")
_ANNOTATION: Final = expression(r"^  (summary|description|message): (\".*\")$", re.MULTILINE)
_VERDICT: Final = expression(r"^verdict: ", re.MULTILINE)
_RESULT_ID: Final = expression(r"\[result ([\w.-]{1,120})\]")
FIRST_LOOK_NOTE: Final = "first_look"
SECOND_LOOK_NOTE: Final = "second_look"
SHOWN: Final = "\nCited lines show: "
"""Begins each line of a claim that repeats what cited lines show."""
_NOTED: Final = expression(
    rf"\[Hook '(?P<name>\w+)' called (?P<tool>{FIRST_LOOK_TOOL}|{ALERT_TOOL}|{SIGNALS_TOOL})\]\n"
    r"(?P<text>.*?)\n?(?P<label>\[result [\w.-]{1,120}\])?\s*\Z",
    re.DOTALL,
)
_KIND_NAMES: Final = "|".join(kind.name for kind in KINDS if kind.namespaced)
_OBJECT: Final = expression(rf"\b(?:{_KIND_NAMES}) [a-z0-9][a-z0-9-]{{0,62}}/[a-z0-9][a-z0-9.-]{{0,252}}")
_DETAILS: Final = ("details", "/details", "show details", "more details", "show me the details")
_MOST_EARLIER: Final = 4
_MOST_EARLIER_CHARACTERS: Final = 300
_MOST_ALERTS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenLook:
    """A first look in the conversation. `text` is its YAML. `result_id` is the id for citations, or empty."""

    look: FirstLook
    text: str
    result_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The last question of a conversation.

    `alerts` contains the labels of the alerts in the question, with the annotations `summary` and `description`.
    `firing` contains for each of them when it began, or an empty string. `metrics` is what was read about them and the
    subject.
    `failure` is the error message of a first look that failed. `subject` contains the objects of the last answer.
    `earlier` contains the last questions before, the oldest first.
    `details` means that the user wants all details of the last answer. Then `question` is the earlier question.
    `repetitions` is the number of earlier first looks.
    """

    question: str
    alerts: tuple[Mapping[str, str], ...] = ()
    firing: tuple[str, ...] = ()
    metrics: SeenMetrics = field(default_factory=SeenMetrics)
    look: SeenLook | None = None
    failure: str = ""
    subject: tuple[str, ...] = ()
    namespace: str = ""
    earlier: tuple[str, ...] = ()
    details: bool = False
    repetitions: int = 0

    def arguments(self) -> dict[str, object]:
        """Return the arguments of the first look for this question. Empty arguments are omitted."""
        given = {
            # A repeated call would be answered with a reference to its earlier result, which may be compacted.
            "question": self.question + " " * self.repetitions,
            "alerts": json.dumps(list(self.alerts), ensure_ascii=False) if self.alerts else "",
            "about": ", ".join(self.subject),
            "earlier": "\n".join(self.earlier),
            "namespace": self.namespace,
        }
        return {name: value for name, value in given.items() if value}


def read_conversation(messages: Sequence[Message]) -> Conversation:
    """Read the last question of `messages`. Never fails."""
    start = _question_position(messages)
    details = False
    while start > 0 and _wants_details(messages[start]):
        details, start = True, _question_position(messages[:start])
    message = messages[start] if 0 <= start < len(messages) else None
    text = message.text if isinstance(message, UserMessage) else ""
    words = Pointer.parse(text).preview or text  # a long message is stored, and a notice with its ends replaces it
    looks = list(_looks(messages[:start])) if start > 0 else []
    own = list(_outcomes(messages[start + 1 :]))
    look = next((each for each in reversed(own) if isinstance(each, SeenLook)), None)
    metrics = _metrics(messages[start + 1 :], look.look if look is not None else None)
    subject = next((look.look.subject for look in reversed(looks) if look.look.subject), ())
    subject = subject or (_mentioned(messages[:start]) if start > 0 else ())
    return Conversation(
        question=asked_text(words),
        alerts=tuple(_alerts(text))[:_MOST_ALERTS],
        firing=tuple(_began(each[1]) for each in _ALERT.finditer(text))[:_MOST_ALERTS],
        metrics=metrics,
        look=look and replace(look, look=weighed(look.look, metrics)),
        failure=next((each for each in reversed(own) if isinstance(each, str)), ""),
        subject=subject,
        namespace=_default_namespace(messages),
        earlier=tuple(_questions(messages[:start])) if start > 0 else (),
        details=details,
        repetitions=sum(isinstance(each, (SeenLook, str)) for each in _outcomes(messages[:start])) if start > 0 else 0,
    )


def _questions(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the last questions, the oldest first. Longer texts are alerts or pasted logs, which nothing continues."""
    asked = [each for each in messages if is_user_message(each, "request") and not _wants_details(each)]
    for message in asked[-_MOST_EARLIER:]:
        text = " ".join(message.text.split()) if isinstance(message, UserMessage) else ""
        if 0 < len(text) <= _MOST_EARLIER_CHARACTERS:
            yield text


def _wants_details(message: Message) -> bool:
    return isinstance(message, UserMessage) and message.text.strip().lower() in _DETAILS


def _mentioned(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the first object that the last answer or summary mentions, for example after a compaction."""
    for message in reversed(messages):
        if isinstance(message, AssistantMessage) or is_user_message(message, "summary"):
            match = _OBJECT.search(message.text)
            if match is not None:
                return (match[0],)
    return ()


def _question_position(messages: Sequence[Message]) -> int:
    """Return the index of the last question, or of the last user message if no message is a question."""
    for kind in ("request", "attachment", "summary"):
        for index in range(len(messages) - 1, -1, -1):
            if is_user_message(messages[index], kind):
                return index
    return -1


def _default_namespace(messages: Sequence[Message]) -> str:
    first = messages[0] if messages else None
    match = _DEFAULT_NAMESPACE.search(first.text) if isinstance(first, SystemMessage) else None
    return match[1] if match else ""


def _alerts(text: str) -> Iterator[Mapping[str, str]]:
    for match in _ALERT.finditer(text):
        name, labels = _NAME.search(match[1]), _LABELS.search(match[1])
        found = (
            {_text(key) if key.startswith('"') else key: _text(value) for key, value in _PAIR.findall(labels[1])}
            if labels
            else {}
        )
        notes = {key: _text(value)[:400] for key, value in _ANNOTATION.findall(match[1])}
        yield {**found, **({"alertname": _text(name[1])} if name else {}), **notes}


def _began(alert: str) -> str:
    found = _FIRING.search(alert)
    return found[1] if found else ""


def _metrics(messages: Sequence[Message], look: FirstLook | None) -> SeenMetrics:
    """Return the metrics of the alerts, of the workload that the look is about, and of the workloads that it calls.

    A model may also have read those of others.
    """
    alerts = tuple(_readings(messages, ALERT_TOOL))
    if look is None:
        return SeenMetrics(alerts=alerts)
    signals = next(_made(messages, SIGNALS_TOOL, signal_arguments(look)), None)
    related = next(_made(messages, RELATED_TOOL, related_arguments(look, signals)), None)
    asked = called_arguments(related) if related is not None and not related.failed else ()
    return SeenMetrics(
        alerts=alerts, signals=signals, related=related, called=tuple(_made(messages, SIGNALS_TOOL, *asked))
    )


def _made(messages: Sequence[Message], tool: str, *given: Mapping[str, str] | None) -> Iterator[SeenReading]:
    """Yield the results of calls with one of these arguments, and notes about them."""
    made = _calls(messages, tool, lambda call: has_arguments(call, *given))
    own = [each for each in messages if not isinstance(each, ToolMessage) or each.call_id in made]
    return _readings(own, tool)


def _readings(messages: Sequence[Message], tool: str) -> Iterator[SeenReading]:
    """Yield the metrics that a tool call or a note before the first reply has read."""
    calls = _calls(messages, tool)
    for message in messages:
        if isinstance(message, ToolMessage) and message.call_id in calls:
            label = _RESULT_ID.search(label_of(message) or "")
            text, failed = output_text(message), message.status != "success"
            yield SeenReading(text=text, result_id=label[1] if label else "", failed=failed)
        elif isinstance(message, UserMessage) and is_user_message(message, "note"):
            noted = _NOTED.match(message.text)
            if noted is not None and noted["tool"] == tool:
                label = _RESULT_ID.match(noted["label"] or "")
                failed = noted["text"].startswith("Error: ")
                yield SeenReading(text=noted["text"], result_id=label[1] if label else "", failed=failed)


def _calls(
    messages: Sequence[Message], tool: str, wanted: Callable[[ToolCall], bool] = lambda _: True
) -> set[ToolCallId]:
    return {
        call.id
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
        if called(call).name == tool and wanted(call)
    }


def _text(quoted: str) -> str:
    """Return the text of a quoted value, or the value itself if it is not valid JSON."""
    try:
        value = json.loads(quoted)
    except ValueError:
        return quoted
    return value if isinstance(value, str) else quoted


def _looks(messages: Sequence[Message]) -> Iterator[SeenLook]:
    return (each for each in _outcomes(messages) if isinstance(each, SeenLook))


def _outcomes(messages: Sequence[Message]) -> Iterator[SeenLook | str]:
    """Yield each first look, or the error message of a first look that failed."""
    calls = _calls(messages, FIRST_LOOK_TOOL)
    for message in messages:
        if isinstance(message, ToolMessage) and message.call_id in calls:
            label = _RESULT_ID.search(label_of(message) or "")
            yield _outcome(output_text(message), label, failed=message.status != "success")
        elif is_user_message(message, "note"):
            noted = _NOTED.match(message.text) if isinstance(message, UserMessage) else None
            if noted is not None and noted["name"] == FIRST_LOOK_NOTE:
                # A note has no status: a look that failed is the message of its error.
                failed = _VERDICT.search(noted["text"]) is None
                yield _outcome(noted["text"], _RESULT_ID.match(noted["label"] or ""), failed=failed)


def _outcome(text: str, label: re.Match[str] | None, *, failed: bool) -> SeenLook | str:
    if failed:
        return " ".join(text.removeprefix("Error: ").split())
    try:
        return SeenLook(look=look_from_yaml(text), text=text, result_id=label[1] if label else "")
    except ValueError as error:
        return str(error)


def second_look(messages: Sequence[Message]) -> FirstLook | None:
    """Return the check of the last answer, or None if it was not checked or the check failed."""
    for message in reversed(messages):
        if isinstance(message, AssistantMessage):
            return None
        noted = _NOTED.match(message.text) if is_user_message(message, "note") else None
        if noted is not None and noted["name"] == SECOND_LOOK_NOTE:
            try:
                return look_from_yaml(noted["text"])
            except ValueError:
                return None
    return None
