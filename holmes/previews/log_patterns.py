"""Groups the lines of a log by pattern, in one pass.

The shape of a line is the line without digits and the letters a to f. Only lines with a new shape are parsed. When the
limits on shapes and patterns are reached, lines are grouped by their beginning.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from holmes.previews.excerpts import lines_in_pieces
from holmes.previews.log_lines import ParsedLine, begins_like_a_log_line, parse_line
from holmes.previews.severity import INFO, STATUS, WARNING, may_be_severe, status_of

_DROPPED = b"0123456789abcdefABCDEF"
_MAX_PARSED = 8_000
_MAX_PATTERNS = 12_000
_MAX_BEGINNINGS = 1_000
_SHAPE_BYTES = 600
_MAX_TRACE_LINES = 60
_SAMPLE_LINES = 400
_MANY_VARIANTS = 5


@dataclass(slots=True, kw_only=True)
class Pattern:
    """A group of similar lines.

    `numbers` are the line numbers in ascending order. `trace` contains the continuation lines after the first line.
    `cause` is the innermost exception in the trace.
    """

    text: str
    severity: float
    level: float | None
    first_number: int
    first_line: str
    numbers: array[int] = field(default_factory=lambda: array("L"))
    last_line: str = ""
    is_cause: bool = False
    trace: list[str] = field(default_factory=list)
    cause: str = ""
    variants: int = 1

    @property
    def count(self) -> int:
        return len(self.numbers)

    @property
    def last_number(self) -> int:
        return self.numbers[-1] if self.numbers else 0


@dataclass(slots=True, kw_only=True)
class LogPatterns:
    """The patterns of a log, in order of appearance, and the number of its lines."""

    patterns: list[Pattern]
    lines: int
    continuation_lines: int

    @property
    def novelty(self) -> float:
        """The value of a rare line. The value is lower if the log contains many rare lines."""
        alone = sum(pattern.count <= 3 and pattern.severity == 0 for pattern in self.patterns)
        return max(10.0, 36.0 / (1 + alone / 8))


@dataclass(slots=True)
class _Shape:
    """The shape of similar lines.

    `pattern` is the common pattern of these lines, or None if the pattern depends on the status. `by_status` contains
    the patterns of the statuses, because most lines of a log have one.
    """

    parsed: ParsedLine
    pattern: Pattern | None = None
    by_status: dict[str, Pattern] = field(default_factory=dict)


class _Reader:
    def __init__(self, *, usual_start: bool) -> None:
        self._usual_start = usual_start
        self._shapes: dict[bytes, _Shape] = {}
        self._beginnings: dict[tuple[bytes, bool], _Shape] = {}
        self._patterns: dict[str, Pattern] = {}
        self._parsed = 0
        self._current: Pattern | None = None
        self._in_trace = False
        self._is_exception = False
        self.continuations = 0

    def read(self, number: int, lines: list[str]) -> None:
        """Add `lines`. `number` is the line number of the first line."""
        dropped = "\n".join(lines).encode("utf-8", "surrogatepass").translate(None, _DROPPED)
        shapes = self._shapes
        for number_, (line, shape_key) in enumerate(zip(lines, dropped.split(b"\n"), strict=True), start=number):
            key = shape_key[:_SHAPE_BYTES]
            shape = shapes.get(key)
            if shape is None:
                if not line or line.isspace():
                    continue
                shape = self._new_shape(key, line)
            pattern = shape.pattern
            if pattern is None or shape.parsed.role != "head":
                if self._continues(shape.parsed, line, number_):
                    continue
                pattern = self._pattern_of(shape, line, number_)
            pattern.numbers.append(number_)
            pattern.last_line = line
            self._current = pattern
            self._in_trace = False
            self._is_exception = shape.parsed.is_cause

    def patterns(self) -> list[Pattern]:
        return list(self._patterns.values())

    def _new_shape(self, key: bytes, line: str) -> _Shape:
        if self._parsed >= _MAX_PARSED:
            return self._shape_by_beginning(key, line)
        self._parsed += 1
        shape = _Shape(parse_line(line, usual_start=self._usual_start))
        self._shapes[key] = shape
        return shape

    def _shape_by_beginning(self, key: bytes, line: str) -> _Shape:
        """Group a line by its beginning and severity, because the limit on parsed lines is reached."""
        alarming = may_be_severe(line)
        beginning = (key[:32], alarming)
        if beginning not in self._beginnings and len(self._beginnings) >= _MAX_BEGINNINGS:
            beginning = (b"", alarming)
        shape = self._beginnings.get(beginning)
        if shape is None:
            parsed = parse_line(line, usual_start=self._usual_start)
            name = f"{beginning[0].decode('utf-8', 'replace')} {'!' if alarming else ''}"
            shape = _Shape(ParsedLine(pattern=name, severity=parsed.severity, level=parsed.level, role="head"))
            self._beginnings[beginning] = shape
        return shape

    def _continues(self, parsed: ParsedLine, line: str, number: int) -> bool:
        """Add `line` to the preceding stack trace. Returns whether the line belongs to the trace."""
        if self._current is None:
            return False
        begins_trace = parsed.is_cause and not self._is_exception and (self._current.level or INFO) >= WARNING
        if parsed.role != "indented" and not (parsed.role == "stray" and (self._in_trace or begins_trace)):
            return False
        self._in_trace = True
        self.continuations += 1
        owner = self._current
        if owner.count == 1 and len(owner.trace) < _MAX_TRACE_LINES:
            owner.trace.append(line)
        if parsed.is_cause or parsed.may_be_cause:
            if owner.count == 1:
                owner.cause = line.strip()
            cause = self._named(f"cause|{parsed.pattern}", parsed, line, number)
            cause.is_cause = True
            cause.numbers.append(number)
            cause.last_line = line
        return True

    def _pattern_of(self, shape: _Shape, line: str, number: int) -> Pattern:
        parsed = shape.parsed
        match = STATUS.search(line) if parsed.has_status else None
        stated = match[match.lastindex] if match is not None and match.lastindex else ""
        if stated in shape.by_status:
            return shape.by_status[stated]
        status = status_of(line) if stated else None
        if status is None:
            pattern = self._named(parsed.pattern, parsed, line, number)
            shape.pattern = pattern
            return pattern
        pattern = self._named(f"{status[0]}|{parsed.pattern}", parsed, line, number)
        pattern.severity = max(pattern.severity, status[1])
        shape.by_status[stated] = pattern
        return pattern

    def _named(self, name: str, parsed: ParsedLine, line: str, number: int) -> Pattern:
        known = self._patterns.get(name)
        if known is None:
            name = name if len(self._patterns) < _MAX_PATTERNS else f"{name[:16]}|{parsed.severity:.0f}"
            known = self._patterns.get(name)
        if known is None:
            known = Pattern(
                text=name, severity=parsed.severity, level=parsed.level, first_number=number, first_line=line
            )
            self._patterns[name] = known
        return known


def read_patterns(text: str) -> LogPatterns:
    """Group the lines of `text` by pattern, and merge patterns that differ in one variable word."""
    reader: _Reader | None = None
    total = 0
    for number, lines in lines_in_pieces(text):
        if reader is None:
            sample = [line for line in lines[:_SAMPLE_LINES] if line and not line[0].isspace()]
            starts = sum(begins_like_a_log_line(line) for line in sample)
            reader = _Reader(usual_start=starts * 2 > len(sample))
        reader.read(number, lines)
        total = number + len(lines) - 1
    if reader is None:
        return LogPatterns(patterns=[], lines=0, continuation_lines=0)
    patterns = _merged(_merged(reader.patterns()))
    return LogPatterns(patterns=patterns, lines=total, continuation_lines=reader.continuations)


def _merged(patterns: list[Pattern]) -> list[Pattern]:
    """Merge patterns that differ in one word, if the word has many values."""
    groups: dict[tuple[int, int, int, float], list[int]] = {}
    for index, pattern in enumerate(patterns):
        if pattern.is_cause or pattern.trace:
            continue
        words = pattern.text.split(" ", 40)
        hashes = [hash((place, word)) for place, word in enumerate(words)]
        total = sum(hashes)
        for place, value in enumerate(hashes):
            groups.setdefault((len(words), place, total - value, pattern.severity), []).append(index)
    merged_into: dict[int, int] = {}
    result: dict[int, Pattern] = {}
    ranked = sorted(
        (item for item in groups.items() if len(item[1]) >= _MANY_VARIANTS), key=lambda item: (-len(item[1]), item[1])
    )
    for (_, place, _, _), members in ranked:
        free = [index for index in members if index not in merged_into]
        if len(free) >= _MANY_VARIANTS:
            merged_into.update(dict.fromkeys(free, free[0]))
            result[free[0]] = _union([patterns[index] for index in free], place)
    result.update({index: each for index, each in enumerate(patterns) if index not in merged_into})
    return [result[index] for index in sorted(result)]


def _union(members: list[Pattern], place: int) -> Pattern:
    first = min(members, key=lambda each: each.first_number)
    last = max(members, key=lambda each: each.last_number)
    words = first.text.split(" ", 40)
    words[place] = "*"
    return Pattern(
        text=" ".join(words),
        severity=first.severity,
        level=first.level,
        first_number=first.first_number,
        first_line=first.first_line,
        numbers=array("L", sorted(number for each in members for number in each.numbers)),
        last_line=last.last_line,
        variants=sum(each.variants for each in members),
    )
