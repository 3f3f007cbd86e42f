"""Builds what stands for removed rounds: summary, ledger, reminder, and the note beside the line of a truncation.

The parts of the user message are the summary with what is said about it, the ledger, and the reminder of the tools at
hand (K8), in this order; the truncation keeps the first part of an earlier one. Never larger than
`largest_message_tokens`, whatever the model wrote: the ledger comes before the list of what else was seen, and that
before the reminder; a long summary is cut for them.

The reminder takes at most 150 tokens for names that are made of words, and never more than 450 characters.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.core.truncation.entity_check import with_distinct_lines
from holmes.core.truncation.summary_request import LONGEST_SHARE_OF_CAP, shortened
from holmes.evidence.verification import LEDGER_HEADING
from holmes.tokens import MESSAGE_OVERHEAD_TOKENS
from holmes.values.messages import Text, UserMessage
from holmes.values.texts import after_placeholder, before_placeholder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.truncation.entity_check import RankedEntity
    from holmes.tokens import TokenCounter
    from holmes.values.messages import StoredResult
    from holmes.values.tools import Tool

MAX_LISTED_TOOLS = 20
_MAX_CHARACTERS = 360
_FIRST_WORD = re.compile(r"[^A-Za-z0-9]*([A-Z]?[a-z0-9]+|[A-Z0-9]+)")


def reminder_text(tools: Sequence[Tool]) -> str:
    """One line: all names when there are at most 20, else their first words with counts. Empty without tools."""
    if not tools:
        return ""
    names = [tool.name for tool in tools]
    listed = ", ".join(names)
    if len(names) <= MAX_LISTED_TOOLS and len(listed) <= _MAX_CHARACTERS:
        return f"Tools at hand, as before: {listed}."
    counts = Counter(map(_family, names))
    families = [f"{family} ({count})" for family, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    shown: list[str] = []
    for family in families:
        if sum(map(len, shown)) + 2 * len(shown) + len(family) > _MAX_CHARACTERS:
            break
        shown.append(family)
    rest = len(families) - len(shown)
    more = f" and {rest:,} more kinds" if rest else ""
    return (
        f"Tools at hand, as before, {len(names):,} in all: {', '.join(shown)}{more}. Their schemas are in the request."
    )


def _family(name: str) -> str:
    """`kubectl_get` and `kubectlDescribe` are both `kubectl`."""
    match = _FIRST_WORD.match(name)
    return match[1].lower()[:24] if match else name[:24]


SUMMARY_HEADING = (
    "Summary of the investigation until here. The messages it stands for were removed to save space; "
    "results with an id can still be read back. Go on from here without repeating what was checked."
)
MAX_ALSO_SEEN_TOKENS = 600
MAX_EXTRA_TOKENS = 300
_ALSO_SEEN_SHARE = 0.15
_SEPARATOR_TOKENS = 8
_LINE_CHARACTERS = 140


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """What goes into the message.

    `missing` is what the summary does not mention, the most important first. `ledger` is its text, at most
    `ledger_room_tokens`, or empty. `tools` is empty when no reminder is wanted.
    """

    summary: str
    removed: StoredResult | None = None
    missing: tuple[RankedEntity, ...] = ()
    ledger: str = ""
    tools: Sequence[Tool] = ()


def largest_message_tokens(cap_tokens: int) -> int:
    """The most that the message takes when the summary's cap is `cap_tokens`."""
    return int(cap_tokens * LONGEST_SHARE_OF_CAP) + min(MAX_EXTRA_TOKENS, 2 * cap_tokens)


def ledger_room_tokens(cap_tokens: int) -> int:
    """The most that the ledger may take."""
    return cap_tokens // 3


def summary_message(stand_in: StandIn, cap_tokens: int, counter: TokenCounter) -> UserMessage:
    """The message. `cap_tokens` is what the summary was asked to take at most."""
    heading = SUMMARY_HEADING
    if stand_in.removed is not None:
        heading += f" The removed messages are stored as result {stand_in.removed.id}."
    room = largest_message_tokens(cap_tokens) - MESSAGE_OVERHEAD_TOKENS - _SEPARATOR_TOKENS
    room -= counter.count_text(heading) + counter.count_text(stand_in.ledger)
    also_tokens = min(MAX_ALSO_SEEN_TOKENS, int(cap_tokens * _ALSO_SEEN_SHARE), room - cap_tokens)
    also_seen = also_seen_text(stand_in.missing, also_tokens, counter)
    room -= counter.count_text(also_seen)
    reminder = reminder_text(stand_in.tools)
    if counter.count_text(reminder) > room - cap_tokens:
        reminder = ""
    room -= counter.count_text(reminder)
    # A copied heading would make the model's own words a ledger, whose citations count as checked.
    text = stand_in.summary.replace(LEDGER_HEADING, LEDGER_HEADING.rstrip(":"))
    summary = shortened(text, room, counter) or _cut(text, room, counter)
    first = "\n\n".join(part for part in (heading, summary, also_seen) if part)
    parts = (first, stand_in.ledger, reminder)
    removed = (stand_in.removed,) if stand_in.removed is not None else ()
    return UserMessage(parts=tuple(Text(text=part) for part in parts if part), kind="summary", stored=removed)


def also_seen_text(missing: Sequence[RankedEntity], room_tokens: int, counter: TokenCounter) -> str:
    """The lines in which `missing` stand, as many as fit `room_tokens`; empty when none does.

    A name alone would say that something was there, and not what was wrong with it.
    """
    lines: list[str] = []
    left = room_tokens - counter.count_text("Also seen:\n")
    for item in with_distinct_lines(missing):
        line = f"- {_clipped(item)}"
        left -= counter.count_text(line) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join(["Also seen:", *lines]) if lines else ""


def _clipped(item: RankedEntity) -> str:
    """The line of `item`, or its name when that is not in it."""
    line, value = " ".join(item.line.split()).lstrip("- "), item.entity.value
    if value not in line:
        return f"{item.entity.kind} {value}"
    start = after_placeholder(line, max(0, line.find(value) + len(value) - _LINE_CHARACTERS))
    return line[start : before_placeholder(line, start + _LINE_CHARACTERS)]


def _cut(text: str, room_tokens: int, counter: TokenCounter) -> str:
    """The beginning of a text that has no place to end."""
    keep = len(text) * max(1, room_tokens) // max(1, counter.count_text(text))
    while keep > 1 and counter.count_text(text[:keep]) > room_tokens:
        keep = keep * 9 // 10
    return text[: before_placeholder(text, keep)]
