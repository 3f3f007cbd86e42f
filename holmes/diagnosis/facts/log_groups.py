"""Groups the lines of a container log by their text, and tells which groups report trouble that began in the log.

A level alone is not evidence. A group counts by its content, its share of the lines, and its beginning. Lines that also
occur in the healthy time are noise. If the log continues without a group, its trouble is over.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from holmes.diagnosis.facts.line_groups import (
    ALL_OF_THE_LOG,
    LEAST_OCCURRENCES,
    MOST_OF_THE_LOG,
    RARE,
    LogGroup,
    joined,
)
from holmes.diagnosis.facts.line_kinds import kind_of
from holmes.diagnosis.facts.log_changes import changes_of
from holmes.diagnosis.facts.log_records import LogLines, by_cause, told
from holmes.diagnosis.facts.log_weights import (
    Weight,
    always_fails,
    is_aside,
    is_of_client,
    is_refusal,
    is_retried,
    persists,
    repairs_of,
    weight_of,
)
from holmes.diagnosis.facts.pods import containers_of
from holmes.kubernetes.cluster_state import LOG_TIME
from holmes.kubernetes.fields import moment, text
from holmes.previews.log_patterns import read_patterns
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.diagnosis.facts.log_changes import Change
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState, LogKey
    from holmes.previews.log_patterns import Pattern

_CHANGE: Final = expression(
    r"(?i)\b(?:re)?load(?:ed|ing)?\b|config|deploy|rotat|migrat|version|upgrad|updat|chang|switch|fail ?over|leader"
    r"|\belected\b|promot|demot|read[_ -]?only|renam|\bdeleted\b|\bremoved\b"
    r"|lease|renew|expire|(?:dis|en)abled\b|replac|\bapplied\b|\bapplying\b|settings"
    r"|\b(?:DROP|ALTER|CREATE|TRUNCATE|VACUUM|LOCK) |authorized|feature|flag|\bset to\b"
)
_SHORTLY_SECONDS: Final = 300.0
_MANY: Final = 50
_WAITS: Final = expression(
    r"(?i)\b(?:wait\w*|retr(?:y|ies|ying)|blocked|lock(?:s|ed)?|stuck|idle|sleep\w*|pending|alive|heartbeat|polling)\b"
)
_FRESH_SECONDS: Final = 600.0
_LEAST_FRESH: Final = 3
_COMPLETE_SECONDS: Final = 60.0
_PACED_RECORDS: Final = 40
_LEAST_LINES_BEFORE: Final = 5
_OFTEN_SECONDS: Final = 900.0
_LEAST_SECONDS_BEFORE: Final = 120.0
_CANDIDATES: Final = 64
_STRAYS: Final = 10
"""One of this number of lines may precede the beginning of a burst."""
_BURST: Final = 5.0
"""A burst has at least this many times the lines of the time before it."""
_AMONG: Final = 2.0
_SURGE: Final = 10.0
"""A surge of lines that are usual has at least this many times their frequency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStory(LogLines):
    """A container log: its groups with trouble, its patterns, and what it says in place of its usual lines.

    `started` is the time when the container started, or 0. `repairs` are the patterns that tell of a later attempt that
    succeeded, and `rare` the numbers of lines that occur once or twice. `own` are the heads without the trouble of what
    only observes the program, which can be louder than all others.
    """

    groups: tuple[LogGroup, ...]
    patterns: tuple[Pattern, ...]
    started: float = 0.0
    changes: tuple[Change, ...] = ()
    repairs: tuple[Pattern, ...] = ()
    rare: tuple[int, ...] = ()
    own: array[int] = field(default_factory=lambda: array("L"), repr=False)

    def change_before(self, at: float) -> str:
        """Return the last rare line about a change in the five minutes before a time, or an empty string."""
        for number in reversed(self.rare):
            told = self.time_of(number)
            if at - _SHORTLY_SECONDS <= told <= at and number > 1 and _CHANGE.search(self.lines[number - 1]):
                return self.lines[number - 1]
        return ""

    def line_before(self, group: LogGroup) -> str:
        """Return a rare line shortly before a group began: one about a change, or else a warning, or else nothing."""
        warnings = {each.first_number for each in self.groups if each.count <= RARE}
        warning = ""
        for number in reversed(self.rare):
            at, line = self.time_of(number), self.lines[number - 1]
            if at and at < group.first - _SHORTLY_SECONDS:
                break
            near = at <= group.first if at and group.first else number < group.first_number
            if not near or number <= 1 or number == group.first_number:
                continue
            if _CHANGE.search(line):
                return line
            warning = warning or (line if number in warnings else "")
        return warning


def story_of(log: str, started: float = 0.0) -> LogStory:
    """Analyse a log. Its lines may begin with the times of the kubelet. `started` is the start of the container."""
    raw = log.split("\n")
    if raw and not raw[-1]:
        raw.pop()
    lines, stamps = _without_times(raw)
    patterns = tuple(read_patterns("\n".join(lines)).patterns)
    heads = array("L", sorted(number for each in patterns if not each.is_cause for number in each.numbers))
    records = tuple(by_cause(patterns, LogLines(lines=lines, stamps=stamps, heads=heads)))
    rare = tuple(sorted(number for each in records if each.count <= RARE for number in each.numbers))
    observing = (each for each in records if is_aside(each.last_line) and kind_of(each.last_line) is not None)
    aside = {number for each in observing for number in each.numbers}
    own = array("L", (number for number in heads if number not in aside)) if aside else heads
    story = LogStory(
        groups=(), patterns=patterns, lines=lines, started=started, stamps=stamps, heads=heads, own=own, rare=rare
    )
    story = replace(story, changes=changes_of(records, story), repairs=repairs_of(patterns))
    usual = {id(change.new): change.usual for change in story.changes}
    groups = [group for each in records if (group := _group(each, usual.get(id(each)), story)) is not None]
    return replace(story, groups=tuple(joined(groups)))


def _without_times(lines: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lines without the times of the kubelet, and these times. No match lives longer than its line."""
    rest: list[str] = []
    stamps: list[str] = []
    for line in lines:
        found = LOG_TIME.match(line)
        stamps.append(found[1] if found else "")
        rest.append(line[found.end() :] if found else line)
    return tuple(rest), tuple(stamps)


_STORIES: Final[WeakKeyDictionary[ClusterState, dict[LogKey, LogStory]]] = WeakKeyDictionary()


def stories_of(state: ClusterState, workload: ClusterObject) -> tuple[tuple[LogKey, LogStory], ...]:
    """Return the analysed logs of the workload's current containers that were read. Cached for each state."""
    pods = {pod.ref: pod for pod in state.pods_of(workload) if pod.text("status", "phase") != "Succeeded"}
    known = _STORIES.setdefault(state, {})
    logs = state.timed_logs
    keys = [key for key in logs if key.pod in pods and not key.previous]
    for key in keys:
        if key not in known:
            known[key] = story_of(logs[key], _started(pods[key.pod], key.container))
    return tuple((key, known[key]) for key in keys)


def _started(pod: ClusterObject, container: str) -> float:
    found = (each for each in containers_of(pod) if each.name == container)
    return next((moment(text(each.status, "state", "running", "startedAt")) or 0.0 for each in found), 0.0)


def _group(pattern: Pattern, usual: Pattern | None, story: LogStory) -> LogGroup | None:
    """Return the pattern as a group if it reports trouble. `usual` is the pattern that it replaces."""
    record = story.record_at(pattern.last_number)
    kind = kind_of(record)
    weight = weight_of(pattern, record, kind, replaces=usual is not None)
    weak = weight == "none" and pattern.level is None and is_refusal(record)
    if (weight == "none" and not weak) or _is_repaired(pattern, record, story):
        return None
    group = group_of(pattern, story, record=told(record), kind=kind, weight="warning" if weak else weight)
    if usual is not None:
        return replace(group, instead=usual.last_line, sudden=True)
    return group if not weak or group.share >= (MOST_OF_THE_LOG if group.sudden else ALL_OF_THE_LOG) else None


def _is_repaired(pattern: Pattern, record: str, story: LogStory) -> bool:
    """Return whether other lines tell after these attempts that one succeeded, at least after each second one."""
    if not is_retried(record):
        return False
    successes = sum(number >= pattern.first_number for each in story.repairs for number in each.numbers)
    return successes * 2 >= pattern.count


def group_of(
    pattern: Pattern, story: LogStory, *, record: str, kind: LineKind | None, weight: Weight, detail: str = ""
) -> LogGroup:
    """Return the group of a pattern, with its times and its beginning."""
    numbers, total = pattern.numbers, story.last_number
    start = _onset(numbers, story)
    first, last = numbers[start], numbers[-1]
    begun, ended, began = story.time_of(first), story.time_of(last), story.time_of(1)
    steps = max(1, len(numbers) - start - 1)
    gap_lines, gap_seconds = (last - first) / steps, (ended - begun) / steps
    quiet = begun - began if begun and not start else 0.0
    sudden = (
        start > 0
        or quiet >= max(_LEAST_SECONDS_BEFORE, 5 * gap_seconds)
        or first - 1 >= max(_LEAST_LINES_BEFORE, 3 * gap_lines)
    )
    silent = story.time_of(total) - ended if ended else 0.0
    over = total - last > max(5, 4 * gap_lines) and (not ended or silent > max(30.0, 4 * gap_seconds))
    heads = story.heads if is_aside(record) or gap_seconds > _OFTEN_SECONDS else story.own
    until = bisect_right(heads, last) if over else len(heads)
    share = min(1.0, (len(numbers) - start) / max(1, until - bisect_left(heads, first)))
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
        persists=persists(record, last, story.patterns),
        began=began,
        complete=0 < began <= story.started + _COMPLETE_SECONDS,
        of_client=is_of_client(record, kind),
        always=len(numbers) >= _MANY and always_fails(pattern, story.patterns),
        step=gap_seconds,
        pace=_pace(story) if last >= story.heads[-1] else 0.0,
        detail=detail,
    )


def _pace(story: LogStory) -> float:
    """Return the usual time between two records, or 0 if the log has few records."""
    heads = story.heads[-_PACED_RECORDS:]
    if len(heads) < _PACED_RECORDS // 2:
        return 0.0
    return (story.time_of(heads[-1]) - story.time_of(heads[0])) / (len(heads) - 1)


def _onset(numbers: Sequence[int], story: LogStory) -> int:
    """Return the index of the line with which a group begins, or becomes far more frequent than before."""
    count = len(numbers)
    least = max(LEAST_OCCURRENCES, count // _STRAYS)
    candidates = range(0, count - least + 1, max(1, count // _CANDIDATES))
    best, start = max(((_surge(numbers, index, story), -index) for index in candidates), default=(0.0, 0))
    return -start if best >= (_BURST if -start * _STRAYS <= count else _SURGE) else 0


def _surge(numbers: Sequence[int], index: int, story: LogStory) -> float:
    """Return how many times more frequent the lines are from an index on, or 0 if only all lines are more frequent."""
    first, end = numbers[index], story.last_number
    before, after = index or 0.5, len(numbers) - index
    among = (after / (end - first + 1)) / (before / max(1, first - 1))
    begun, began, ended = story.time_of(first), story.time_of(1), story.time_of(end)
    if not began < begun:
        return among
    return (after / max(1.0, ended - begun)) / (before / (begun - began)) if among >= _AMONG else 0.0


def progresses(state: ClusterState, job: ClusterObject) -> bool:
    """Return whether the last lines of a run's log are young, differ, and tell neither of trouble nor of waiting."""
    pods = {pod.ref for pod in state.pods_of(job)}
    for key, log in state.timed_logs.items():
        story = story_of(log) if key.pod in pods and not key.previous and log else None
        if story is None or len(story.heads) < _LEAST_FRESH:
            continue
        since = state.now - _FRESH_SECONDS
        last = {story.lines[number - 1] for number in story.heads[-_LEAST_FRESH:]}
        fresh = story.time_of(story.heads[-1]) > since and len(last) == _LEAST_FRESH
        troubled = any(map(_WAITS.search, last)) or any(group.last > since for group in story.groups)
        if fresh and not troubled:
            return True
    return False
