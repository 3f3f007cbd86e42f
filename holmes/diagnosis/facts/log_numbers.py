"""Finds numbers in a log that rise and stay high: response times, memory, queues.

Counters rise in every healthy program, so only numbers whose name speaks of an amount in use count. A number that also
falls, for example the memory of a program with garbage collection, is healthy.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.log_groups import group_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence

    from holmes.diagnosis.facts.line_groups import LogGroup
    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.diagnosis.facts.log_groups import LogStory
    from holmes.previews.log_patterns import Pattern

_MOST_PATTERNS: Final = 500
_MOST_SAMPLES: Final = 120
_LEAST_SAMPLES: Final = 8
_LINE_CHARACTERS: Final = 1_000
_LEVEL: Final = expression(r"(?i)\b(?:level=)?(?:info|warn(?:ing)?|error|debug|notice)\b\W*")
_PAIR: Final = expression(
    r"\b(?P<key>[A-Za-z_][\w.-]{1,40})[\"']?[=:] ?[\"']?(?P<number>\d{1,15}(?:\.\d{1,9})?)"
    r"(?P<unit> ?(?:ms|us|µs|sec|s)\b|[a-zA-Zµ%]{0,8})"
)
_NAMED: Final = expression(
    r"(?i)\b(?P<key>heap(?: \w{1,12})?|rss|memory(?: \w{1,12})?|queue (?:length|size|depth)|backlog|lag)\b"
    r"[^\d\n]{1,12}?(?P<number>\d{1,15}(?:\.\d{1,9})?) ?(?P<unit>[kmgt]?i?b)?\b"
)
_DURATION: Final = expression(
    r"(?<![\w.=:])(?:(?P<key>[A-Za-z_]{1,20}) )?(?<![=:] )(?P<number>\d{1,9}(?:\.\d{1,9})?) ?(?P<unit>ms|s|sec|µs|us)\b"
)
_TIMED: Final = expression(r"(?i)latency|duration|elapsed|took|(?:^|_)(?:dur|rt|time|millis|ms|secs?|seconds)$")
_NO_DURATION: Final = expression(
    r"(?i)timeout|limit|interval|delay|backoff|retr(?:y|ies)|age$|ago|uptime|since|every|within|ttl|expir|lease"
)
_AMOUNT: Final = expression(
    r"(?i)heap|rss|mem(?:ory)?(?:[_ ]|$)|queue|backlog|(?:^|_)lag|pending|waiting|in_?flight|goroutines|threads"
    r"|open_(?:files|fds)|sessions|connections|cached"
)
_NO_AMOUNT: Final = expression(r"(?i)total|max|limit|capacity|free|available|count$|processed|_id$|port|seq|offset")
_UNNAMED: Final = frozenset({"", "in", "after", "for", "OK", "ok", "of"})
"""Words before a time that do not name it."""
_ATTEMPTS: Final = expression(r"(?i)\bretr(?:y|ies|ying)\b|back ?off|\bagain (?:in|after)\b|\bnext (?:try|attempt)\b")
"""Words of lines whose times are pauses between attempts."""
_CAPACITY: Final = expression(
    r"(?i)^[^\d\n]{0,12}(?:/|\bof\b|\bmax(?:imum)?\b|\blimit\b|\bcapacity\b)[ =:]{0,2}"
    r"(?P<number>\d{1,15}(?:\.\d{1,9})?)(?P<unit> ?[a-zA-Z]{0,3})(?![\w.])"
)
"""The limit of an amount, which follows it: "580 MB of 4096 MB"."""
_MILLISECONDS: Final = {"ms": 1.0, "s": 1_000.0, "sec": 1_000.0, "us": 0.001, "µs": 0.001}
_SECONDS: Final = expression(r"\.\d{3,}$")
_FAILED: Final = 3.5
"""The severity of a line with a server error."""
_TIME: Final = "ms"
_SLOWER: Final = 5.0
_SLOW_MILLISECONDS: Final = 500.0
_GROWN: Final = 2.0
_MOST_FALL: Final = 0.1
_STEADY: Final = 1.25
_NEARLY_FULL: Final = 0.7
_SAME_RATIO: Final = 2.0


def risen_numbers(story: LogStory) -> Iterator[LogGroup]:
    """Yield a group for each pattern with a number that rose and stayed high.

    Lines that were written in place of others are read together with them. How long failed requests took is the result
    of another fault.
    """
    for pattern, numbers in _alike(story):
        every = list(_series(numbers, story))
        amounts = [each for each in every if not each.is_time]
        for series in every:
            begun = series.begun()
            more = series.is_time and begun is not None and any(map(series.is_work, amounts))
            if begun is not None and not more:
                yield _group(pattern, story, series, begun)
                break


def settled_amounts(story: LogStory, named: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield what amounts with a name do that go up and down or stay, each with its last line."""
    for _, numbers in _alike(story):
        for series in _series(numbers, story):
            values = [value for _, value in series.values]
            third = max(2, len(values) // 3)
            before, after = statistics.median(values[:third]), statistics.median(values[-third:])
            if series.is_amount and named.search(series.key) and after <= _STEADY * max(1.0, before):
                last, unit = series.values[-1], series.unit
                words = f"`{series.key}` stays between {min(values):g}{unit} and {max(values):g}{unit}"
                yield f"{words}; the last of {len(values)} values is {last[1]:g}{unit}", story.lines[last[0] - 1]


def _alike(story: LogStory) -> Iterator[tuple[Pattern, list[int]]]:
    """Yield the patterns with enough lines, each with the lines of those that take its place."""
    usual = {change.new.text: change.usual.text for change in story.changes}
    alike: dict[str, list[Pattern]] = defaultdict(list)
    for pattern in story.patterns:
        if not pattern.is_cause and "*" in pattern.text and pattern.severity < _FAILED:
            alike[_LEVEL.sub("", usual.get(pattern.text, pattern.text))].append(pattern)
    for patterns in sorted(alike.values(), key=lambda each: -sum(one.count for one in each))[:_MOST_PATTERNS]:
        numbers = sorted(number for each in patterns for number in each.numbers)
        if len(numbers) >= _LEAST_SAMPLES:
            yield max(patterns, key=lambda each: each.last_number), numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Series:
    """The numbers with one name in the lines of a pattern, each with the number of its line. Times are milliseconds.

    `capacity` is the limit of an amount according to the last line, or 0.
    """

    key: str
    unit: str
    values: tuple[tuple[int, float], ...]
    capacity: float = 0.0

    @property
    def is_time(self) -> bool:
        timed = self.unit == _TIME or (not self.unit and _TIMED.search(self.key) is not None)
        return timed and _NO_DURATION.search(self.key) is None

    @property
    def is_amount(self) -> bool:
        return _AMOUNT.search(self.key) is not None and _NO_AMOUNT.search(self.key) is None

    def begun(self) -> int | None:
        """Return the index since which the number is high, or None."""
        if self.is_time:
            return _slower([value for _, value in self.values])
        room = self.values[-1][1] < _NEARLY_FULL * self.capacity
        return _grown([value for _, value in self.values]) if self.is_amount and not room else None

    def is_work(self, other: _Series) -> bool:
        """Return whether a time grows only as much as another number of the same lines, so that there is more work."""
        numbers = dict(other.values)
        pairs = [(value, numbers.get(line, 0.0)) for line, value in self.values]
        ratios = [value / number for value, number in pairs if value > 0 and number > 0]
        steps = {later - earlier for (_, earlier), (_, later) in pairwise(other.values)}
        counts = len(steps) == 1 and steps <= {1.0}  # a number of the line itself grows with everything
        return len(ratios) * 5 >= len(pairs) * 4 and not counts and max(ratios) <= _SAME_RATIO * min(ratios)


def _series(numbers: Sequence[int], story: LogStory) -> Iterator[_Series]:
    """Yield the numbers with the same name in most of the lines."""
    sampled = numbers[:: max(1, len(numbers) // _MOST_SAMPLES)]
    found: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    most: dict[tuple[str, str], float] = {}
    for number in sampled:
        line = story.lines[number - 1][:_LINE_CHARACTERS]
        pairs = [(match["key"], match) for match in _PAIR.finditer(line)]
        words = [(match["key"].lower(), match) for match in _NAMED.finditer(line)]
        timed = () if _ATTEMPTS.search(line) else _DURATION.finditer(line)
        durations = [(match["key"] or "", match) for match in timed]
        for key, match in (*pairs, *words, *durations):
            value, unit = _amount(key, match["number"], (match["unit"] or "").strip())
            found[key, unit].append((number, value))
            capacity = _CAPACITY.match(line[match.end() :])
            most[key, unit] = float(capacity["number"]) if capacity and capacity["unit"].strip() in ("", unit) else 0.0
    for (key, unit), values in found.items():
        if len(values) >= max(_LEAST_SAMPLES, len(sampled) * 4 // 5):
            yield _Series(key=key, unit=unit, values=tuple(values), capacity=most[key, unit])


def _amount(key: str, number: str, unit: str) -> tuple[float, str]:
    """Return a number and its unit. Times are in milliseconds. A time with three decimals and no unit has seconds."""
    if not unit and _SECONDS.search(number) and _TIMED.search(key) and "ms" not in key.lower():
        unit = "s"
    factor = _MILLISECONDS.get(unit)
    return (float(number), unit) if factor is None else (float(number) * factor, _TIME)


def _slower(milliseconds: Sequence[float]) -> int | None:
    """Return the index since which the durations are long, or None if they are not."""
    third = max(2, len(milliseconds) // 3)
    usual, recent = statistics.median(milliseconds[:third]), milliseconds[-max(3, len(milliseconds) // 8) :]
    if statistics.median(recent) < max(_SLOW_MILLISECONDS, _SLOWER * usual) or min(recent) < 2 * usual:
        return None
    middle = (usual * statistics.median(recent)) ** 0.5
    return next((index for index, value in enumerate(milliseconds) if value >= middle), None)


def _grown(amounts: Sequence[float]) -> int | None:
    """Return the index of the first value if the amount grows without falling, or None."""
    highest = 0.0
    for amount in amounts:
        highest = max(highest, amount)
        if amount < highest * (1 - _MOST_FALL):
            return None
    rises = sum(later > earlier for earlier, later in pairwise(amounts))
    steady = rises * 3 >= len(amounts)
    return 0 if steady and amounts[-1] >= _GROWN * max(1.0, amounts[0]) else None


def _group(pattern: Pattern, story: LogStory, series: _Series, begun: int) -> LogGroup:
    name = "The time" if series.key in _UNNAMED else f"`{series.key}`"
    usual = statistics.median(value for _, value in series.values[: max(1, begun)])
    number, newest = series.values[-1]
    detail = f"{name} rose from {usual:g}{series.unit} to {newest:g}{series.unit}"
    kind: LineKind | None = "slow" if series.is_time else None
    group = group_of(
        pattern,
        story,
        record=story.lines[number - 1][:_LINE_CHARACTERS].strip(),
        kind=kind,
        weight="kind",
        detail=detail,
    )
    return group.since(story, series.values[begun][0])
