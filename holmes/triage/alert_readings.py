"""Reads the conditions of alerts from metrics, beside the first look, and writes them into the answer.

They are evidence that the alert is true, since when, and what contributes most. They name no cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.observability.metrics.series import selector
from holmes.triage.markdown import code, plain
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holmes.triage.conversation import Conversation, SeenReading

_MOST_ALERTS: Final = 2
_NOTES: Final = frozenset({"alertname", "summary", "description", "message"})
_VALUE_CHARACTERS: Final = 300
_CONTRIBUTIONS: Final = "contributions: "
_NO_RULE: Final = "has no alerting rule"


def alert_arguments(conversation: Conversation) -> tuple[dict[str, str], ...]:
    """Return the arguments of the tool for each alert of the question. Repeated names are read once."""
    found: dict[str, dict[str, str]] = {}
    for labels, began in zip(conversation.alerts, conversation.firing, strict=False):
        name = labels.get("alertname", "")
        if name and name not in found:
            given = {"name": name, "labels": selector(_own(labels)), "since": began}
            found[name] = {key: value for key, value in given.items() if value}
    return tuple(found.values())[:_MOST_ALERTS]


def measured_lines(readings: Sequence[SeenReading]) -> list[str]:
    """Return lines of an answer about the conditions of its alerts, with citations."""
    return [line for reading in readings for line in _lines(reading)]


def _lines(reading: SeenReading) -> Iterator[str]:
    if reading.failed:
        # Another system may have sent the alert, but a failed source matters.
        if _NO_RULE not in reading.text:
            yield f"Not checked: the metrics of the alert ({plain(reading.text.removeprefix('Error: '), 200)})"
        return
    lines = reading.text.splitlines()
    cited = f" [[{reading.result_id}:1-2]]" if reading.result_id and len(lines) > 1 else ""
    value = lines[0].partition("; measured: ")[0]
    yield f"- {plain(value, _VALUE_CHARACTERS)}; {plain(lines[1], _VALUE_CHARACTERS) if len(lines) > 1 else ''}{cited}"
    for number, line in enumerate(lines, 1):
        if line.startswith(_CONTRIBUTIONS):
            place = f" [[{reading.result_id}:{number}]]" if reading.result_id else ""
            told = shortened(line.removeprefix(_CONTRIBUTIONS), _VALUE_CHARACTERS)
            yield f"- Contributions: {code(told)}{place}"


def _own(labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in labels.items() if name not in _NOTES)
