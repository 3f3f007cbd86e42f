"""Groups of log lines that report trouble: when they are evidence, and which groups belong together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, get_args

from holmes.diagnosis.facts.log_weights import Weight
from holmes.kubernetes.fields import written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.diagnosis.facts.log_records import LogLines

RARE: Final = 2
RECENT_SECONDS: Final = 900.0
RECENT_STEPS: Final = 3
_SAME_WORDS: Final = 2
_AT_ONCE: Final = 30.0
OFTEN: Final = 5
MOST_OF_THE_LOG: Final = 0.5
ALL_OF_THE_LOG: Final = 0.8
"""The share of lines without a healthy time before. Beside ordinary lines they are noise."""
_ALTERNATING: Final = 0.3
"""The share of lines that alternate with others, for example one for each second request."""
_REPLACING: Final = 0.1
"""The share of warnings that are written in place of usual lines, among other usual lines."""
_YOUNG_SECONDS: Final = 3_600.0
_CHRONIC_SECONDS: Final = 10_800.0
"""Errors without a known kind that are as old as a log of this age are the usual noise of the program."""
_LEAST_SHARE: Final = 0.02
LEAST_OCCURRENCES: Final = 3
_ENDED_STEPS: Final = 20
"""A log has ended if it is silent for this number of its usual steps."""
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
        if self.last and now - self.last > max(RECENT_SECONDS, RECENT_STEPS * self.step):
            return self.is_end(now)
        if self.over or self.count < LEAST_OCCURRENCES or self.share < _LEAST_SHARE:
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
        if self.share < ALL_OF_THE_LOG or self.count < OFTEN or self.weight == "warning":
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
        return not self.over and self.count >= LEAST_OCCURRENCES and self.share >= _ALTERNATING

    def since(self, story: LogLines, number: int) -> LogGroup:
        """Return the group as something that began suddenly at a line and is not over."""
        begun = story.time_of(number)
        return replace(self, first=begun, first_number=number, share=1.0, sudden=True, over=False)


def joined(groups: Sequence[LogGroup]) -> Iterator[LogGroup]:
    """Yield the groups. Errors just before a lasting state belong to it, and rare records to the flood that follows.

    The first record of a fault is often longer than the others, for example with its stack.
    """
    states = [each.first for each in groups if each.persists]
    floods = [each for each in groups if each.count > RARE and each.sudden and each.kind is not None]
    firsts: dict[int, LogGroup] = {}
    for each in groups:
        flood = next((one for one in floods if each.count <= RARE and _precedes(each, one)), None)
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
        and flood.first - group.last <= max(RECENT_SECONDS, RECENT_STEPS * flood.step)
    )
