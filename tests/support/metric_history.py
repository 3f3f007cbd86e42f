"""Samples of the past, as exporters would have given them, in the format of OpenMetrics."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class History:
    """Samples of the last hours. Functions get the seconds until the end, and their values are disturbed by 3 %."""

    def __init__(self, *, hours: float = 4, step: int = 30) -> None:
        self._step = step
        self.seconds = hours * 3_600
        self._end = int(time.time()) // step * step
        self._times = range(self._end - int(self.seconds), self._end + step, step)
        self._random = random.Random(5)  # noqa: S311
        self._families: dict[str, list[str]] = {}

    def gauge(self, name: str, labels: str, value: Callable[[float], float], *, exact: bool = False) -> None:
        """Add a gauge. An `exact` one is not disturbed, for example a limit."""
        spread = 0.0 if exact else 0.03
        values = (
            (each, value(self._end - each) * self._random.uniform(1 - spread, 1 + spread)) for each in self._times
        )
        self._add("gauge", name, [f"{name}{{{labels}}} {number} {each}" for each, number in values])

    def counter(self, name: str, labels: str, rate: Callable[[float], float], *, ends: int = 0) -> None:
        """Add a counter. `ends` is when its pod was deleted."""
        total, lines = 0.0, []
        for each in self._times:
            total += self._step * rate(self._end - each) * self._random.uniform(0.9, 1.1)
            if self._end - each >= ends:
                lines.append(f"{name}{{{labels}}} {total} {each}")
        self._add("counter", name, lines)

    def _add(self, kind: str, name: str, lines: list[str]) -> None:
        family = self._families.setdefault(name, [f"# TYPE {name.removesuffix('_total')} {kind}"])
        family.extend(lines)

    def text(self) -> str:
        """Return all samples."""
        return "".join(f"{line}\n" for family in self._families.values() for line in family)
