"""Formats the Slack messages of an incident, which are the root message and the replies in its thread.

Slack accepts 3,000 characters in a section, 50 blocks, and about 12,000 characters in all blocks of a message
(undocumented). A long answer is split into several replies. If the answer is truncated, the last reply links to the
full answer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.destinations.slack_markdown import (
    code,
    cut,
    escaped,
    length,
    link,
    markdown_pieces,
    one_line,
    sections,
)
from holmes.evidence import OUTCOME_WORDS, scan_markers
from holmes.values.texts import shortened
from holmes.values.verdicts import VERDICT_WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from holmes.destinations.destination import AlertNews, IncidentNews, InvestigationNews
    from holmes.evidence import Marker
    from holmes.values.json_types import JsonObject

_SECTION_UNITS: Final = 2_900
_MESSAGE_UNITS: Final = 9_000
_MESSAGE_BLOCKS: Final = 40
_ANSWER_MESSAGES: Final = 4
_ANSWER_CHARACTERS: Final = 60_000
_TEXT_UNITS: Final = 1_000
_PLAIN_UNITS: Final = 3_900
_SHOWN_ALERTS: Final = 6
_SHOWN_LABELS: Final = 12
_EMOJI: Final = {"critical": ":red_circle:", "warning": ":large_orange_circle:", "info": ":large_blue_circle:"}


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """One message in mrkdwn. `text` is for notifications. `sections` and the small `notes` are for the channel."""

    text: str
    sections: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def blocks(self) -> tuple[JsonObject, ...]:
        """Format the message as Block Kit. `verbatim` prevents Slack from adding mentions and links."""
        shown: list[JsonObject] = [{"type": "section", "text": _mrkdwn(text)} for text in self.sections]
        if self.notes:
            shown.append({"type": "context", "elements": [_mrkdwn(note) for note in self.notes]})
        return tuple(shown)

    def as_text(self) -> str:
        """Format the message without blocks, cut to Slack's limit."""
        return cut("\n\n".join((*self.sections, *self.notes)), _PLAIN_UNITS)


def root_message(news: IncidentNews) -> SlackMessage:
    """Format the message for the channel, with the firing alerts, the status, and the root cause if known."""
    title = one_line(news.title, 300) or "Incident"
    facts = [_emoji(news), f"*{title}*"]
    status = _status(news)
    texts = [f"{' '.join(facts)}\n{_situation(news)}", status]
    if alerts := _alerts(news):
        texts.append(alerts)
    notes = [note for note in (_labels(news.labels), _page(news.link, "Open in Holmes")) if note]
    shown = f"{_emoji(news)} {title}: {cut(status, 400)}"
    return SlackMessage(cut(shown, _TEXT_UNITS), tuple(cut(text, _SECTION_UNITS) for text in texts), tuple(notes))


def replies(news: IncidentNews) -> tuple[SlackMessage, ...]:
    """Format new messages for the thread. For `opened` and `resolved` news, only the root message is updated."""
    match news.kind:
        case "answered":
            return _answer(news.investigation) if news.investigation else ()
        case "failed":
            return (_failure(news.investigation),) if news.investigation else ()
        case "reopened":
            text = f":repeat: Firing again since{_since(news.updated_at)}."
            return (SlackMessage(text, (text,)),)
        case "opened" | "resolved":
            return ()


def _answer(investigation: InvestigationNews) -> tuple[SlackMessage, ...]:
    """Split the answer into at most `_ANSWER_MESSAGES` replies."""
    markdown, outcomes = _numbered(investigation.answer or "No answer.")
    texts = sections(markdown_pieces(shortened(markdown, _ANSWER_CHARACTERS, mark="")), _SECTION_UNITS)
    groups = _groups(texts)
    is_whole = len(groups) <= _ANSWER_MESSAGES and len(markdown) <= _ANSWER_CHARACTERS
    groups = groups[:_ANSWER_MESSAGES]
    summary = one_line(investigation.summary or "", 400) or "Answered"
    messages = [
        SlackMessage(summary if number == 0 else f"{summary} ({number + 1})", tuple(group))
        for number, group in enumerate(groups)
    ]
    last = messages[-1]
    notes = [*([] if is_whole else [_rest(investigation)]), *outcomes, _costs(investigation)]
    if page := _page(investigation.link, "Evidence and steps"):
        notes.append(page)
    messages[-1] = SlackMessage(last.text, last.sections, tuple(notes))
    return tuple(messages)


def _numbered(markdown: str) -> tuple[str, list[str]]:
    """Shorten citations to `[1]` or `[2 cited]`, and summarise the outcomes of the citation checks in one line."""
    numbers: dict[Marker, int] = {}
    shown = "".join(
        piece
        if isinstance(piece, str)
        else "".join(marker.short(numbers.setdefault(marker, len(numbers) + 1)) for marker in piece.markers)
        for piece in scan_markers(markdown)
    )
    counts = Counter(marker.outcome for marker in numbers)
    words = "; ".join(f"{counts[outcome]} {word}" for outcome, word in OUTCOME_WORDS.items() if counts[outcome])
    return shown, [f"Citations: {words}"] if words else []


def _groups(texts: list[str]) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    used = 0
    for text in texts:
        if groups[-1] and (used + length(text) > _MESSAGE_UNITS or len(groups[-1]) >= _MESSAGE_BLOCKS):
            groups.append([])
            used = 0
        groups[-1].append(text)
        used += length(text)
    return groups if groups[0] else [["The answer is empty."]]


def _rest(investigation: InvestigationNews) -> str:
    page = _page(investigation.link, "the full answer")
    where = f"see {page}" if page else "the web page of Holmes shows the full answer"
    return f":scissors: This answer is truncated; {where}."


def _failure(investigation: InvestigationNews) -> SlackMessage:
    text = _failed(investigation, 1_500)
    page = _page(investigation.link, "Steps")
    return SlackMessage(cut(text, _TEXT_UNITS), (text,), (page,) if page else ())


def _failed(investigation: InvestigationNews, limit: int) -> str:
    return f":warning: The investigation failed: {one_line(investigation.error or 'unknown cause.', limit)}"


def _status(news: IncidentNews) -> str:
    if news.verdict:
        return f"*{VERDICT_WORDS[news.verdict]}:* {one_line(news.summary or '', 1_500)}".rstrip()
    if news.root_cause:  # stored by an older version
        return f"*Root cause:* {one_line(news.root_cause, 1_500)}"
    investigation = news.investigation
    if investigation is None:
        return "_Not investigated._"
    if investigation.state == "failed":
        return _failed(investigation, 500)
    if investigation.state in {"queued", "running"}:
        return ":hourglass_flowing_sand: Investigating…"
    return "_The investigation ended without a root cause._"


def _situation(news: IncidentNews) -> str:
    is_open = news.state == "open"
    parts = [f"Firing since{_since(news.opened_at)}" if is_open else f"Resolved{_since(news.closed_at)}"]
    if news.severity:
        parts.append(f"severity {code(news.severity, 60)}")
    if news.cluster:
        parts.append(f"cluster {code(news.cluster, 100)}")
    if news.reopened:
        parts.append("reopened once" if news.reopened == 1 else f"reopened {news.reopened} times")
    return " \u00b7 ".join(parts)


def _emoji(news: IncidentNews) -> str:
    if news.state == "closed":
        return ":white_check_mark:"
    return _EMOJI.get((news.severity or "").lower(), ":rotating_light:")


def _since(at: datetime | None) -> str:
    """Format a time that Slack converts to each reader's time zone."""
    if at is None:
        return ""
    return f" <!date^{int(at.timestamp())}^{{date_short_pretty}} {{time}}|{at:%Y-%m-%d %H:%M} UTC>"


def _alerts(news: IncidentNews) -> str:
    lines = [_alert(alert) for alert in news.alerts[:_SHOWN_ALERTS]]
    more = news.alerts_total - len(lines)
    return "\n".join([*lines, *([f"and {more} more"] if lines and more > 0 else [])])


def _alert(alert: AlertNews) -> str:
    mark = "" if alert.status == "firing" else " (resolved)"
    summary = one_line(alert.summary or "", 280)
    return f"\u2022 *{one_line(alert.name, 100)}*{mark}{f': {summary}' if summary else ''}"


def _labels(labels: Mapping[str, str]) -> str:
    shown = [code(f"{name}={value}", 120) for name, value in sorted(labels.items())[:_SHOWN_LABELS]]
    return " ".join(filter(None, shown))


def _costs(investigation: InvestigationNews) -> str:
    parts = []
    if investigation.without_llm:
        reason = investigation.without_llm_reason
        parts.append(f"No LLM was used{f': {one_line(reason, 300)}' if reason else ''}")
    elif investigation.model:
        parts.append(f"Model {code(investigation.model, 100)}")
    if investigation.cost:
        parts.append(f"US$ {investigation.cost:.4f}" if investigation.cost < 1 else f"US$ {investigation.cost:.2f}")
    if investigation.started_at and investigation.finished_at:
        seconds = (investigation.finished_at - investigation.started_at).total_seconds()
        parts.append(f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min")
    return " \u00b7 ".join(parts) or escaped(f"Investigation {investigation.id}")


def _page(url: str | None, label: str) -> str:
    return link(url, label) if url else ""


def _mrkdwn(text: str) -> JsonObject:
    return {"type": "mrkdwn", "text": text, "verbatim": True}
