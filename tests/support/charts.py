"""Charts for tests: a pod whose memory jumps over a threshold after a rollout, beside others that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.values.charts import Chart, ChartLine, ChartMark, Threshold

if TYPE_CHECKING:
    from collections.abc import Callable

START = 1_795_000_200.0
STEP = 60.0
SAMPLES = 61
END = START + STEP * (SAMPLES - 1)


def line(name: str, value: Callable[[int], float], places: range = range(SAMPLES)) -> ChartLine:
    """A line with one value for each minute."""
    return ChartLine(name=name, times=tuple(START + STEP * each for each in places), values=tuple(map(value, places)))


def chart(
    *lines: ChartLine, series: int = 0, threshold: Threshold | None = None, marks: tuple[ChartMark, ...] = ()
) -> Chart:
    return Chart(
        title="requests",
        start=START,
        end=END,
        step_seconds=STEP,
        lines=lines,
        series=series or len(lines),
        threshold=threshold,
        marks=marks,
    )


def _low(number: int) -> ChartLine:
    return line("", lambda place: 1e8 + 5e6 * number + 1e6 * (place % 5))


MEMORY = Chart(
    title='sum by (pod) (container_memory_working_set_bytes{namespace="shop"})',
    unit="bytes",
    start=START,
    end=END,
    step_seconds=STEP,
    lines=(
        line('{pod="checkout-0"}', lambda place: 8e8 if place > 30 else 2e8),
        line('{pod="cart-0"}', lambda place: 3e8 + 1e6 * (place % 3)),
    ),
    series=12,
    background=tuple(map(_low, range(10))),
    threshold=Threshold(value=6e8, text="> 600,000,000 (MemoryHigh)"),
    marks=(ChartMark(time=START + 1_800, text="rollout checkout"), ChartMark(time=START + 2_700, text="restart a")),
)
