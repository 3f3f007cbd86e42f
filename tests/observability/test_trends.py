"""The numbers that describe a series: levels, changes, straight lines, gaps."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.observability.metrics.series import Series
from holmes.observability.metrics.trends import trend_of, unlike_the_others

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.observability.metrics.trends import Trend

STEP = 60.0


def described(values: Sequence[float], times: Sequence[float] | None = None) -> Trend:
    given_times = times if times is not None else [STEP * place for place in range(len(values))]
    trend = trend_of(Series(name="m", labels=(), times=tuple(given_times), values=tuple(values)), STEP)
    assert trend is not None
    return trend


def noise(level: float, spread: float, count: int) -> list[float]:
    generator = random.Random(7)  # noqa: S311
    return [level + generator.gauss(0, spread) for _ in range(count)]


def test_a_step_is_found_at_its_time_with_both_levels() -> None:
    (change,) = described([*noise(1, 0.05, 100), *noise(4, 0.1, 50)]).changes
    assert change.time == 100 * STEP
    assert (round(change.before), round(change.after)) == (1, 4)


def test_a_rise_and_a_fall_are_two_changes() -> None:
    changes = described([*noise(1, 0.05, 80), *noise(9, 0.2, 40), *noise(1, 0.05, 80)]).changes
    assert [change.time for change in changes] == [80 * STEP, 120 * STEP]


@pytest.mark.parametrize("values", [noise(5, 1, 300), [5.0] * 50, [float(place % 50) for place in range(300)]])
def test_noise_constants_and_waves_have_no_changes(values: list[float]) -> None:
    assert described(values).changes == ()


def test_a_straight_line_is_steady_and_has_its_slope_but_no_changes() -> None:
    trend = described([place / 10 + noise(0, 0.5, 300)[place] for place in range(300)])
    assert (trend.steady, trend.changes) == (True, ())
    assert trend.slope_per_hour == pytest.approx(6, rel=0.02)


def test_a_small_wave_on_a_large_level_is_no_change() -> None:
    assert described([1_000_000.0] * 50 + [1_000_001.0] * 50).changes == ()


def test_a_transition_of_a_few_samples_is_one_change() -> None:
    assert len(described([*noise(2, 0.05, 100), 3.0, 5.0, 7.0, *noise(9, 0.1, 50)]).changes) == 1


def test_missing_samples_are_gaps_with_their_first_and_last_step() -> None:
    times = [STEP * place for place in (*range(10), *range(20, 30))]
    assert described([1.0] * 20, times).gaps == ((10 * STEP, 19 * STEP),)


def test_decreases_of_a_counter_are_counted() -> None:
    assert described([1, 2, 3, 0, 1, 2, 0, 1]).decreases == 2


def test_values_that_are_not_finite_do_not_count() -> None:
    trend = described([1.0, math.nan, 3.0, math.inf])
    assert (trend.minimum, trend.maximum, trend.last) == (1.0, 3.0, 3.0)
    assert trend_of(Series(name="m", labels=(), times=(0.0,), values=(math.nan,)), STEP) is None


def test_a_series_unlike_its_siblings_is_found_and_a_group_of_two_kinds_is_not() -> None:
    assert unlike_the_others([2.0, 2.1, 1.9, 2.05, 9.0]) == (4,)
    assert unlike_the_others([2.0, 2.1, 1.9, 9.1, 9.0, 8.9]) == ()
    assert unlike_the_others([1.0, 50.0]) == ()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=60))
def test_any_series_has_an_order_of_its_numbers_and_changes_inside_its_range(values: list[float]) -> None:
    trend = described(values)
    assert trend.minimum <= trend.percentile_95 <= trend.maximum
    assert trend.minimum <= trend.first <= trend.maximum
    assert all(0 < change.time <= STEP * len(values) for change in trend.changes)
    assert len(trend.changes) <= 3
