"""Writes alerts, silences and receivers for the model: short, and with the count of everything that is left out."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from holmes.observability.metrics.series import selector
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.observability.alerts.source import ListedAlert, Silence

_MOST: Final = 30
_LABEL_CHARACTERS: Final = 240
_NOTE_CHARACTERS: Final = 120


def alerts_text(alerts: Sequence[ListedAlert]) -> str:
    """List alerts, active ones first, the newest first. Returns an empty string if there are none."""
    if not alerts:
        return ""
    states = Counter(each.state for each in alerts)
    counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    newest = sorted(alerts, key=lambda each: each.since, reverse=True)
    ordered = sorted(newest, key=lambda each: each.state != "active")[:_MOST]
    lines = [f"{_shown(len(ordered), len(alerts), 'alert')} ({counts}), the newest first"]
    for each in ordered:
        muted = f" silenced by {', '.join(each.silences)}" if each.silences else ""
        muted += f" inhibited by {each.inhibitors} other alerts" if each.inhibitors else ""
        receivers = f" → {', '.join(each.receivers)}" if each.receivers else ""
        labels = shortened(selector(each.labels), _LABEL_CHARACTERS)
        lines.append(_one_line(f"{each.name} since {each.since}{muted}{receivers} {labels}"))
        lines += [f"  {shortened(' '.join(each.summary.split()), _NOTE_CHARACTERS)}"] if each.summary else []
    return "\n".join(lines)


def silences_text(silences: Sequence[Silence]) -> str:
    """List silences, those that end first before the others. Returns an empty string if there are none."""
    if not silences:
        return ""
    ordered = sorted(silences, key=lambda each: (each.state != "active", each.ends))[:_MOST]
    lines = [_shown(len(ordered), len(silences), "silence")]
    for each in ordered:
        comment = shortened(" ".join(each.comment.split()), _NOTE_CHARACTERS)
        matchers = shortened(", ".join(each.matchers), _LABEL_CHARACTERS)
        lines.append(_one_line(f"{each.id} {each.state} until {each.ends}: {{{matchers}}} by {each.author}: {comment}"))
    return "\n".join(lines)


def receivers_text(receivers: Sequence[str], alerts: Sequence[ListedAlert]) -> str:
    """List receivers with the number of the active alerts that they get."""
    counts = Counter(name for each in alerts if each.state == "active" for name in each.receivers)
    rows = (_one_line(f"{name}: {_shown(counts[name], counts[name], 'active alert')}") for name in receivers)
    return "\n".join([_shown(len(receivers), len(receivers), "receiver"), *rows])


def _shown(shown: int, total: int, noun: str) -> str:
    counted = f"{total:,} {noun}{'' if total == 1 else 's'}"
    return counted if shown >= total else f"showing {shown} of {counted}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
