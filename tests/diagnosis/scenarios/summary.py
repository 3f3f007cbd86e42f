"""Statistics over many scores, and the first run to compare them with."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.diagnosis.scenarios.scoring import Score

FIRST_RUN: Final = Path(__file__).parent / "first_run.json"
"""The scores of the first complete run of the finished scanner; never overwritten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Counts of scenarios. A scenario that did not show its fault or could not be scanned never counts as correct."""

    faults: int
    healthy: int
    not_shown: int
    failed: int
    culprit: int
    value: int
    both: int
    blamed_in_faults: int
    blamed_in_healthy: int
    extra: int

    @property
    def right_share(self) -> float:
        """Share of the fault scenarios whose first incident names the object and the field or value."""
        return self.both / self.faults if self.faults else 1.0

    @property
    def blamed_share(self) -> float:
        """Share of all scenarios in which an innocent object is a culprit."""
        total = self.faults + self.healthy
        return (self.blamed_in_faults + self.blamed_in_healthy) / total if total else 0.0


def summarize(scores: Sequence[Score]) -> Summary:
    faults = [each for each in scores if each.expectation == "faults"]
    healthy = [each for each in scores if each.expectation == "healthy"]
    return Summary(
        faults=len(faults),
        healthy=len(healthy),
        not_shown=sum(not each.shown for each in scores),
        failed=sum(each.shown and bool(each.error) for each in scores),
        culprit=sum(each.culprit for each in faults),
        value=sum(each.value for each in faults),
        both=sum(each.culprit and each.value for each in faults),
        blamed_in_faults=sum(bool(each.blamed) for each in faults),
        blamed_in_healthy=sum(bool(each.blamed) for each in healthy),
        extra=sum(bool(each.extra) for each in faults),
    )


def median_and_most(scores: Sequence[Score], figure: Callable[[Score], float]) -> tuple[float, float]:
    """The summary of the scanned scenarios; zeros without any."""
    figures = [figure(each) for each in scores if each.shown and not each.error]
    return (statistics.median(figures), max(figures)) if figures else (0.0, 0.0)


def save_scores(scores: Sequence[Score], file: Path) -> None:
    """Writes all scores as JSON, one scenario per line."""
    lines = (json.dumps(asdict(each), ensure_ascii=False) for each in sorted(scores, key=lambda each: each.scenario))
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def load_scores(file: Path = FIRST_RUN) -> tuple[Score, ...]:
    """Reads scores; none when the file does not exist."""
    if not file.exists():
        return ()
    tuples = ("blamed", "extra", "refused")
    return tuple(
        Score(**{**each, **{name: tuple(each.get(name, ())) for name in tuples}})
        for each in json.loads(file.read_text(encoding="utf-8"))
    )
