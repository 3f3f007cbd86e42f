"""Groups the lines of a container log by their text, and tells which groups report trouble that began in the log.

A level alone is not evidence. A group counts by its content, its share of the lines, and its beginning. Lines that also
occur in the healthy time are noise. If the log continues without a group, its trouble is over.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from weakref import WeakKeyDictionary

from holmes.diagnosis.facts.line_kinds import kind_of, reports_success
from holmes.kubernetes.cluster_state import LOG_TIME
from holmes.kubernetes.fields import moment, written
from holmes.previews.log_patterns import read_patterns
from holmes.previews.severity import ERROR, WARNING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState, LogKey
    from holmes.previews.log_patterns import Pattern

Weight: TypeAlias = Literal["kind", "error", "status", "warning", "none"]
"""Why a group reports trouble, the strongest first: its kind, its level, an HTTP status, or only a warning."""

_SERVER_ERROR: Final = re.compile(
    r"(?i)\bstatus(?:_?code)?[\"']?\s?[=:]\s?[\"']?5\d\d\b|\bHTTP/\d(?:\.\d)?\"? 5\d\d\b"
    r"|\b(?:answer(?:ed|ing)|return(?:ed|s|ing)|got|respond(?:ed|s|ing)(?: with)?) (?:with )?(?:HTTP )?5\d\d\b"
    r"|-> 5\d\d\b|(?:GET|POST|PUT|DELETE|PATCH|HEAD) [^\s\"]{1,300}:? 5\d\d\b|https?://[^\s\"]{1,300}: 5\d\d\b"
    r"|\b5\d\d (?:Bad Gateway|Service Unavailable|Gateway Time|Internal Server)"
)
_HANDLED: Final = re.compile(
    r"(?i)\bskipp(?:ed|ing)\b|\bignor(?:ed|ing)\b|\busing (?:the )?default|\bdeprecat|\bfalling back\b|\bfell back\b"
)
_CLIENT: Final = re.compile(
    r"(?i)\b(?:requests?|connections?|calls?|error|logins?|attempts?|query|traffic) from\b|\bclient ?[\"'=:\d]"
    r"|\bfor user\b|\bby (?:the )?client\b|\bremote(?:_addr|_ip)?[=:]"
    r"|\buser(?:name)?[= ][\"']?\w|\b(?:POST|GET) /(?:login|signin)\b"
)
_OF_CLIENTS: Final[frozenset[LineKind | None]] = frozenset({
    "auth failed", "forbidden", "rate limited", "tls", "connection reset", "connection timeout", "clock or token",
    "configuration invalid", "file missing", None,
})  # fmt: skip
_SUSPECT: Final = re.compile(
    r"(?i)\bwaiting (?:for|on|until) |\b(?:failed|unable) (?:to|since|because|with|after)\b|\bfailed: "
)
"""Words of lines without a level or with the level INFO, which count as a warning."""
_CHANGE: Final = re.compile(
    r"(?i)\b(?:re)?load(?:ed|ing)?\b|config|deploy|rotat|migrat|version|upgrad|updat|chang|switch|fail ?over|leader"
    r"|lease|renew|expire|(?:dis|en)abled\b"
    r"|\b(?:DROP|ALTER|CREATE|TRUNCATE|VACUUM|LOCK) |authorized|feature|flag|\bset to\b"
)
_SHORTLY_SECONDS: Final = 120.0
_RARE: Final = 2
OFTEN: Final = 5
MOST_OF_THE_LOG: Final = 0.5
_ALL_OF_THE_LOG: Final = 0.8
"""The share of lines without a healthy time before. Beside ordinary lines they are noise."""
_ALTERNATING: Final = 0.3
"""The share of warnings that alternate with other lines, for example one for each second request."""
_LEAST_SHARE: Final = 0.02
_LEAST_OCCURRENCES: Final = 3
_RECENT_SECONDS: Final = 900.0
_PACED_RECORDS: Final = 40
_ENDED_STEPS: Final = 20
"""A log has ended if it is silent for this number of its usual steps."""
_LEAST_LINES_BEFORE: Final = 5
_LEAST_SECONDS_BEFORE: Final = 120.0
_STRAYS: Final = 10
"""One of this number of lines may precede the beginning of a burst."""
_BURST: Final = 5.0
"""A burst has at least this many times the lines of the time before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogGroup:
    """Lines of a log that differ only in numbers and names.

    `record` is the newest line, followed by the last cause of its stack trace. `first` and `last` are times in seconds
    since the epoch, or 0 if the log has none. `share` is the part of the lines since the first one. `sudden` means that
    the log has a time without such lines before them, and `over` that the log continues without them. `of_client` means
    that a client's mistake can be the reason. `pace` is the usual time in seconds between two records, or 0 if the log
    does not end with the group. `detail` describes a number that changed.
    """

    template: str
    record: str
    kind: LineKind | None
    weight: Weight
    count: int
    first: float
    last: float
    first_number: int
    share: float
    sudden: bool
    over: bool
    of_client: bool = False
    pace: float = 0.0
    detail: str = ""

    @property
    def is_amount(self) -> bool:
        """Whether the group only tells that an amount grows, for example memory or a queue."""
        return bool(self.detail) and self.kind is None

    @property
    def span(self) -> str:
        """How often the lines occur and since when, for example `40 times from … to …`."""
        if self.count == 1:
            return f"once at {written(self.last)}" if self.last else "once"
        return f"{self.count} times" + (f" from {written(self.first)} to {written(self.last)}" if self.first else "")

    def is_evidence(self, now: float) -> bool:
        """Return whether the lines still occur, occur often enough, and are not the noise of a healthy time.

        A client's mistake is evidence only if it fills the log.
        """
        if self.last and now - self.last > _RECENT_SECONDS:
            return self.is_end(now)
        if self.over or self.count < _LEAST_OCCURRENCES or self.share < _LEAST_SHARE:
            return False
        if self.of_client or not self.sudden:
            filled = MOST_OF_THE_LOG if self.sudden else _ALL_OF_THE_LOG
            return self.share >= filled and self.count >= OFTEN and self.weight != "warning"
        return self.weight != "warning" or self.share >= _ALTERNATING

    def is_end(self, now: float) -> bool:
        """Return whether a busy log ended with these lines long ago, as that of a program that no longer works."""
        return (
            0 < _ENDED_STEPS * self.pace < now - self.last and self.weight in ("kind", "error") and not self.of_client
        )

    @property
    def is_lasting(self) -> bool:
        """Whether the lines occur again and again up to the end of the log, so that what they name matters."""
        return not self.over and self.count >= _LEAST_OCCURRENCES and self.share >= _ALTERNATING

    def since(self, story: LogStory, number: int) -> LogGroup:
        """Return the group as something that began suddenly at a line and is not over."""
        begun = story.time_of(number)
        return replace(self, first=begun, first_number=number, share=1.0, sudden=True, over=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStory:
    """A container log: its groups with trouble, and its patterns. `lines` contains the lines without times."""

    groups: tuple[LogGroup, ...]
    patterns: tuple[Pattern, ...]
    lines: tuple[str, ...]
    stamps: tuple[str, ...] = field(repr=False)
    heads: array[int] = field(repr=False)

    @property
    def last_number(self) -> int:
        return len(self.lines)

    def time_of(self, number: int) -> float:
        """Return the time of a line in seconds since the epoch, or 0 if the line has none. Numbers start at 1."""
        return moment(self.stamps[number - 1]) or 0.0 if 0 < number <= len(self.stamps) else 0.0

    def line_before(self, group: LogGroup) -> str:
        """Return a rare line that tells of a change shortly before a group began, or an empty string."""
        numbers = sorted(number for each in self.patterns if len(each.numbers) <= _RARE for number in each.numbers)
        for number in reversed(numbers):
            at, line = self.time_of(number), self.lines[number - 1]
            if at and at < group.first - _SHORTLY_SECONDS:
                break
            near = at <= group.first if at and group.first else number < group.first_number
            if near and number > 1 and number != group.first_number and _CHANGE.search(line):
                return line
        return ""


def story_of(log: str) -> LogStory:
    """Analyse a log. Its lines may begin with the times of the kubelet."""
    raw = log.split("\n")
    if raw and not raw[-1]:
        raw.pop()
    matches = [LOG_TIME.match(line) for line in raw]
    lines = tuple(line[match.end() :] if match else line for line, match in zip(raw, matches, strict=True))
    stamps = tuple(match[1] if match else "" for match in matches)
    patterns = tuple(read_patterns("\n".join(lines)).patterns)
    heads = array("L", sorted(number for each in patterns if not each.is_cause for number in each.numbers))
    story = LogStory(groups=(), patterns=patterns, lines=lines, stamps=stamps, heads=heads)
    found = (_group(each, story) for each in patterns if each.numbers and not each.is_cause)
    return replace(story, groups=tuple(filter(None, found)))


_STORIES: Final[WeakKeyDictionary[ClusterState, dict[LogKey, LogStory]]] = WeakKeyDictionary()


def stories_of(state: ClusterState, workload: ClusterObject) -> tuple[tuple[LogKey, LogStory], ...]:
    """Return the analysed logs of the workload's current containers that were read. Cached for each state."""
    pods = {pod.ref for pod in state.pods_of(workload) if pod.text("status", "phase") != "Succeeded"}
    known = _STORIES.setdefault(state, {})
    logs = state.timed_logs
    keys = [key for key in logs if key.pod in pods and not key.previous]
    for key in keys:
        if key not in known:
            known[key] = story_of(logs[key])
    return tuple((key, known[key]) for key in keys)


def _group(pattern: Pattern, story: LogStory) -> LogGroup | None:
    """Return the pattern as a group if it reports trouble."""
    trace = "\n".join(pattern.trace)
    record = f"{pattern.last_line}\n{trace}" if trace else pattern.last_line
    kind = kind_of(record)
    weight = _weight(pattern, record, kind)
    if weight == "none":
        return None
    shown = f"{pattern.last_line.strip()} … {pattern.cause}" if pattern.cause else pattern.last_line.strip()
    return group_of(pattern, story, record=shown, kind=kind, weight=weight)


def group_of(
    pattern: Pattern, story: LogStory, *, record: str, kind: LineKind | None, weight: Weight, detail: str = ""
) -> LogGroup:
    """Return the group of a pattern, with its times and its beginning."""
    numbers, total = pattern.numbers, story.last_number
    start = _onset(numbers)
    first, last = numbers[start], numbers[-1]
    begun, ended = story.time_of(first), story.time_of(last)
    steps = max(1, len(numbers) - start - 1)
    gap_lines, gap_seconds = (last - first) / steps, (ended - begun) / steps
    share = (len(numbers) - start) / max(1, len(story.heads) - bisect_left(story.heads, first))
    quiet = begun - story.time_of(1) if begun and not start else 0.0
    sudden = quiet >= max(_LEAST_SECONDS_BEFORE, 5 * gap_seconds) or (
        first - 1 >= max(_LEAST_LINES_BEFORE, 3 * gap_lines) and start / max(1, first - 1) <= share / _BURST
    )
    silent = story.time_of(total) - ended if ended else 0.0
    over = total - last > max(5, 4 * gap_lines) and (not ended or silent > max(30.0, 4 * gap_seconds))
    return LogGroup(
        template=pattern.text,
        record=record,
        kind=kind,
        weight=weight,
        count=len(numbers),
        first=begun if sudden else story.time_of(numbers[0]),
        last=ended,
        first_number=first,
        share=share,
        sudden=sudden,
        over=over,
        of_client=kind in _OF_CLIENTS and "upstream" not in record and _CLIENT.search(record) is not None,
        pace=_pace(story) if last >= story.heads[-1] else 0.0,
        detail=detail,
    )


def _pace(story: LogStory) -> float:
    """Return the usual time between two records, or 0 if the log has few records."""
    heads = story.heads[-_PACED_RECORDS:]
    if len(heads) < _PACED_RECORDS // 2:
        return 0.0
    return (story.time_of(heads[-1]) - story.time_of(heads[0])) / (len(heads) - 1)


def _onset(numbers: Sequence[int]) -> int:
    """Return the index of the line after the longest pause among the first lines of a group."""
    candidates = range(len(numbers) // _STRAYS + 1)
    return max(candidates, key=lambda index: (numbers[index] - (numbers[index - 1] if index else 0), -index))


def _weight(pattern: Pattern, record: str, kind: LineKind | None) -> Weight:
    level = pattern.level
    if _HANDLED.search(record) is not None:
        return "warning" if level is not None and level >= WARNING else "none"
    if kind is not None:
        return "kind"
    if _SERVER_ERROR.search(record) is not None:
        return "none" if reports_success(record) else "status"
    if pattern.cause or (level or pattern.severity - 0.5) >= ERROR:
        return "none" if reports_success(record) else "error"
    warns = (level is not None and level >= WARNING) or _SUSPECT.search(record) is not None
    return "warning" if warns else "none"
