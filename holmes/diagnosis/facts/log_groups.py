"""Groups the lines of a container log by their text, and tells which groups report trouble that began in the log.

A level alone is not evidence. A group counts by its content, its share of the lines, and its beginning. Lines that also
occur in the healthy time are noise. If the log continues without a group, its trouble is over.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, get_args
from weakref import WeakKeyDictionary

from holmes.diagnosis.facts.line_kinds import kind_of
from holmes.diagnosis.facts.log_changes import changes_of
from holmes.diagnosis.facts.log_records import LogLines, by_cause, told
from holmes.diagnosis.facts.log_weights import (
    Weight,
    always_fails,
    is_of_client,
    is_refusal,
    is_retried,
    persists,
    repairs_of,
    weight_of,
)
from holmes.diagnosis.facts.pods import containers_of
from holmes.kubernetes.cluster_state import LOG_TIME
from holmes.kubernetes.fields import moment, text, written
from holmes.previews.log_patterns import read_patterns
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
_RARE: Final = 2
_SAME_WORDS: Final = 2
_AT_ONCE: Final = 30.0
OFTEN: Final = 5
_MANY: Final = 50
MOST_OF_THE_LOG: Final = 0.5
_ALL_OF_THE_LOG: Final = 0.8
"""The share of lines without a healthy time before. Beside ordinary lines they are noise."""
_ALTERNATING: Final = 0.3
"""The share of lines that alternate with others, for example one for each second request."""
_REPLACING: Final = 0.1
"""The share of warnings that are written in place of usual lines, among other usual lines."""
_YOUNG_SECONDS: Final = 3_600.0
_CHRONIC_SECONDS: Final = 10_800.0
"""Errors without a known kind that are as old as a log of this age are the usual noise of the program."""
_COMPLETE_SECONDS: Final = 60.0
_LEAST_SHARE: Final = 0.02
_LEAST_OCCURRENCES: Final = 3
_RECENT_SECONDS: Final = 900.0
_RECENT_STEPS: Final = 3
_PACED_RECORDS: Final = 40
_ENDED_STEPS: Final = 20
"""A log has ended if it is silent for this number of its usual steps."""
_LEAST_LINES_BEFORE: Final = 5
_LEAST_SECONDS_BEFORE: Final = 120.0
_CANDIDATES: Final = 64
_STRAYS: Final = 10
"""One of this number of lines may precede the beginning of a burst."""
_BURST: Final = 5.0
"""A burst has at least this many times the lines of the time before it."""
_AMONG: Final = 2.0
_SURGE: Final = 10.0
"""A surge of lines that are usual has at least this many times their frequency."""
_WEIGHTS: Final[tuple[Weight, ...]] = get_args(Weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogGroup:
    """Lines of a log that differ only in numbers and names.

    `record` is the newest line, followed by the innermost error of its stack trace. `first` and `last` are times in
    seconds since the epoch, or 0 if the log has none. `share` is the part of the lines since the first one, up to the
    last one if the log continues without them, which `over` means. `sudden` means that the log has a time without such
    lines before them. `persists` means that the lines report a state that no later line ends. `began` is the time of
    the first line of the log, and `complete` means that this was the start of the container. `of_client` means that a
    client's mistake can be the reason. `always` means that each request of its sort failed. `step` is the average time
    in seconds between the lines. `pace` is that between two records, or 0 if the log does not end with the group.
    `instead` is the usual line that ended when these began. `detail` describes a number that changed.
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
    persists: bool = False
    began: float = 0.0
    complete: bool = False
    of_client: bool = False
    always: bool = False
    step: float = 0.0
    pace: float = 0.0
    instead: str = ""
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

    @property
    def rank(self) -> tuple[bool, bool, bool, int, float]:
        """A sort key that puts the strongest evidence first. A failed request follows what made it fail."""
        return (
            self.is_amount,
            not (self.sudden or self.persists),
            bool(self.detail),
            _WEIGHTS.index(self.weight),
            -self.share * self.count,
        )

    def is_evidence(self, now: float) -> bool:
        """Return whether the lines still occur, occur often enough, and are not the noise of a healthy time.

        A client's mistake is evidence only if it fills the log.
        """
        if self.persists:
            return True
        if self.last and now - self.last > max(_RECENT_SECONDS, _RECENT_STEPS * self.step):
            return self.is_end(now)
        if self.over or self.count < _LEAST_OCCURRENCES or self.share < _LEAST_SHARE:
            return False
        if not self.sudden:
            return self._is_evidence_from_the_start(now)
        if self.of_client:
            return self.share >= MOST_OF_THE_LOG and self.count >= OFTEN and self.weight != "warning"
        return self.weight != "warning" or self.share >= (_REPLACING if self.instead else _ALTERNATING)

    def _is_evidence_from_the_start(self, now: float) -> bool:
        """Return whether lines are evidence that the log has from its beginning, so that they can be usual noise.

        In the log of a container that started a short time ago, lines of a known kind are never usual. Lines without a
        known kind are noise if the program has written them for hours.
        """
        age = now - self.began if self.began else 0.0
        if self.complete and age <= _YOUNG_SECONDS and self.weight in ("kind", "status") and not self.of_client:
            return self.share >= _ALTERNATING
        if self.always and self.share >= _ALTERNATING:
            return True
        if self.share < _ALL_OF_THE_LOG or self.count < OFTEN or self.weight == "warning":
            return False
        return self.kind is not None or age <= _CHRONIC_SECONDS

    def is_end(self, now: float) -> bool:
        """Return whether a busy log ended with these lines long ago, as that of a program that no longer works.

        A program that worked for a shorter time than it is silent can have pauses, for example a nightly batch.
        """
        ended = 0 < _ENDED_STEPS * self.pace < now - self.last <= self.last - self.began
        return ended and self.weight in ("kind", "error") and not self.of_client

    @property
    def is_lasting(self) -> bool:
        """Whether the lines occur again and again up to the end of the log, so that what they name matters."""
        return not self.over and self.count >= _LEAST_OCCURRENCES and self.share >= _ALTERNATING

    def since(self, story: LogStory, number: int) -> LogGroup:
        """Return the group as something that began suddenly at a line and is not over."""
        begun = story.time_of(number)
        return replace(self, first=begun, first_number=number, share=1.0, sudden=True, over=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStory(LogLines):
    """A container log: its groups with trouble, its patterns, and what it says in place of its usual lines.

    `started` is the time when the container started, or 0. `repairs` are the patterns that tell of a later attempt that
    succeeded, and `rare` the numbers of lines that occur once or twice.
    """

    groups: tuple[LogGroup, ...]
    patterns: tuple[Pattern, ...]
    started: float = 0.0
    changes: tuple[Change, ...] = ()
    repairs: tuple[Pattern, ...] = ()
    rare: tuple[int, ...] = ()

    def change_before(self, at: float) -> str:
        """Return the last rare line about a change in the five minutes before a time, or an empty string."""
        for number in reversed(self.rare):
            told = self.time_of(number)
            if at - _SHORTLY_SECONDS <= told <= at and number > 1 and _CHANGE.search(self.lines[number - 1]):
                return self.lines[number - 1]
        return ""

    def line_before(self, group: LogGroup) -> str:
        """Return a rare line shortly before a group began: one about a change, or else a warning, or else nothing."""
        warnings = {each.first_number for each in self.groups if each.count <= _RARE}
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
    matches = [LOG_TIME.match(line) for line in raw]
    lines = tuple(line[match.end() :] if match else line for line, match in zip(raw, matches, strict=True))
    stamps = tuple(match[1] if match else "" for match in matches)
    patterns = tuple(read_patterns("\n".join(lines)).patterns)
    heads = array("L", sorted(number for each in patterns if not each.is_cause for number in each.numbers))
    records = tuple(by_cause(patterns, LogLines(lines=lines, stamps=stamps, heads=heads)))
    rare = tuple(sorted(number for each in records if each.count <= _RARE for number in each.numbers))
    story = LogStory(groups=(), patterns=patterns, lines=lines, started=started, stamps=stamps, heads=heads, rare=rare)
    story = replace(story, changes=changes_of(records, story), repairs=repairs_of(patterns))
    usual = {id(change.new): change.usual for change in story.changes}
    groups = [group for each in records if (group := _group(each, usual.get(id(each)), story)) is not None]
    return replace(story, groups=tuple(joined(groups)))


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
    return group if not weak or group.share >= (MOST_OF_THE_LOG if group.sudden else _ALL_OF_THE_LOG) else None


def _is_repaired(pattern: Pattern, record: str, story: LogStory) -> bool:
    """Return whether other lines tell after these attempts that one succeeded, at least after each second one."""
    if not is_retried(record):
        return False
    successes = sum(number >= pattern.first_number for each in story.repairs for number in each.numbers)
    return successes * 2 >= pattern.count


def joined(groups: Sequence[LogGroup]) -> Iterator[LogGroup]:
    """Yield the groups. Errors just before a lasting state belong to it, and rare records to the flood that follows.

    The first record of a fault is often longer than the others, for example with its stack.
    """
    states = [each.first for each in groups if each.persists]
    floods = [each for each in groups if each.count > _RARE and each.sudden and each.kind is not None]
    firsts: dict[int, LogGroup] = {}
    for each in groups:
        flood = next((one for one in floods if each.count <= _RARE and _precedes(each, one)), None)
        if flood is not None:
            known = firsts.get(flood.first_number, each)
            firsts[flood.first_number] = min(each, known, key=lambda one: one.first_number)
    for each in groups:
        if each in firsts.values():
            continue
        first = firsts.get(each.first_number) if each in floods else None
        reason = each.weight in ("kind", "error") and any(0 <= at - each.last <= _AT_ONCE for at in states)
        begun = each if first is None else replace(each, first=first.first, first_number=first.first_number)
        yield replace(begun, persists=each.persists or reason)


def _precedes(group: LogGroup, flood: LogGroup) -> bool:
    """Return whether a rare record is the beginning of a flood of the same kind."""
    return (
        group.kind == flood.kind
        and group.template.split(" ")[:_SAME_WORDS] == flood.template.split(" ")[:_SAME_WORDS]
        and group.sudden
        and group.first_number < flood.first_number
        and flood.first - group.last <= max(_RECENT_SECONDS, _RECENT_STEPS * flood.step)
    )


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
    until = bisect_right(story.heads, last) if over else len(story.heads)
    share = (len(numbers) - start) / max(1, until - bisect_left(story.heads, first))
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
    least = max(_LEAST_OCCURRENCES, count // _STRAYS)
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
