"""What is learned from a provider's own counts and refusals: the factor, the window, and that it took too much."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.core.model_chain import MAX_FACTOR, MIN_FACTOR, MIN_WINDOW_TOKENS, Calibration, Observation

TOKENS = st.integers(0, 2_000_000)
OBSERVATIONS = st.lists(st.tuples(TOKENS, TOKENS), max_size=30)


def taught(*observations: tuple[int, int]) -> Calibration:
    calibration = Calibration()
    for estimated, reported in observations:
        calibration.observe(estimated, reported)
    return calibration


def test_nothing_seen_changes_nothing() -> None:
    calibration = Calibration()
    assert (calibration.factor, calibration.learned_window_tokens) == (1.0, None)
    assert calibration.effective_window(128_000) == 128_000
    assert (calibration.provider_tokens(1234), calibration.our_tokens(1234)) == (1234, 1234)


def test_a_provider_that_counts_higher_is_believed_at_once_and_a_lower_one_slowly() -> None:
    calibration = Calibration()
    assert calibration.observe(10_000, 13_000) == Observation(ratio=1.3, factor=1.3)
    assert calibration.observe(10_000, 10_000).factor == pytest.approx(1.27)
    assert calibration.observe(10_000, 13_500).factor == pytest.approx(1.35)
    assert (calibration.provider_tokens(1_000), calibration.our_tokens(1_350)) == (1_350, 1_000)


def test_the_factor_comes_down_in_the_end() -> None:
    assert taught((10_000, 30_000), *[(10_000, 9_000)] * 60).factor == pytest.approx(0.9, abs=0.02)


@pytest.mark.row("S5")
def test_far_fewer_tokens_than_were_sent_are_suspicious_and_no_factor() -> None:
    calibration = taught((10_000, 12_000))
    seen = calibration.observe(20_000, 13_999)
    assert (seen.suspicious, seen.factor, calibration.learned_window_tokens) == (True, 1.2, None)
    assert not calibration.observe(20_000, 14_000).suspicious


@pytest.mark.row("S5")
@pytest.mark.parametrize(
    "observations",
    [
        ((3_000, 3_300), (7_000, 4_090), (7_700, 4_030)),  # stops growing with the request
        ((40_000, 8_000), (60_000, 8_100), (90_000, 8_050)),  # a gateway that leaves cached tokens out
        ((90_000, 60_000), (100_000, 3_000)),
        ((500, 300), (900, 300)),
    ],
)
def test_a_short_count_never_shows_a_window(observations: tuple[tuple[int, int], ...]) -> None:
    calibration = taught(*observations)
    assert calibration.learned_window_tokens is None
    assert calibration.effective_window(128_000) == 128_000


def test_short_requests_teach_no_factor_because_every_provider_adds_a_few_hundred_tokens() -> None:
    assert taught((40, 400)).factor == 1.0


@pytest.mark.row("S4")
def test_the_window_of_an_error_message_is_kept_as_the_smallest() -> None:
    calibration = Calibration()
    for stated in (32_768, 65_536, 30_000, 31_000):
        calibration.learn_window(stated)
    assert calibration.learned_window_tokens == 30_000
    assert (calibration.effective_window(200_000), calibration.effective_window(8_000)) == (30_000, 8_000)


@pytest.mark.row("S4")
def test_a_learned_window_is_forgotten_an_hour_after_the_last_error() -> None:
    now = 0.0
    calibration = Calibration(lambda: now)
    calibration.learn_window(30_000)
    now = 3_000.0
    calibration.learn_window(40_000)  # stated again, and larger: the smaller one holds, from now on for an hour
    now = 6_599.0
    assert calibration.effective_window(128_000) == 30_000
    now = 6_600.0
    assert calibration.effective_window(128_000) == 128_000
    calibration.learn_window(60_000)
    assert calibration.effective_window(128_000) == 60_000, "what was forgotten no longer counts"


@pytest.mark.row("S4")
@pytest.mark.parametrize("number", [-1, 0, 400, 999, 10**12])
def test_numbers_that_can_be_no_window_are_not_learned(number: int) -> None:
    calibration = Calibration()
    calibration.learn_window(number)
    assert calibration.learned_window_tokens is None


@given(OBSERVATIONS)
def test_the_factor_stays_within_its_bounds_and_is_never_below_what_was_just_seen(
    observations: list[tuple[int, int]],
) -> None:
    calibration = Calibration()
    for estimated, reported in observations:
        before = calibration.factor
        seen = calibration.observe(estimated, reported)
        assert MIN_FACTOR <= seen.factor == calibration.factor <= MAX_FACTOR
        if seen.ratio is None or seen.suspicious:
            assert seen.factor == before
        elif estimated >= 500:
            assert seen.factor >= min(seen.ratio, MAX_FACTOR)


@given(OBSERVATIONS, st.lists(st.integers(-10, 2_000_000), max_size=10))
def test_within_an_hour_the_window_never_grows_and_is_never_tiny(
    observations: list[tuple[int, int]], stated: list[int]
) -> None:
    calibration, before = Calibration(lambda: 0.0), 10**9
    for number, (estimated, reported) in enumerate(observations):
        calibration.observe(estimated, reported)
        if number < len(stated):
            calibration.learn_window(stated[number])
        now = calibration.effective_window(10**9)
        assert MIN_WINDOW_TOKENS <= now <= before
        before = now


@given(OBSERVATIONS, TOKENS)
def test_what_fits_by_our_count_fits_by_the_providers(observations: list[tuple[int, int]], tokens: int) -> None:
    calibration = taught(*observations)
    assert calibration.provider_tokens(calibration.our_tokens(tokens)) <= tokens
    assert calibration.our_tokens(calibration.provider_tokens(tokens)) >= tokens
    assert calibration.provider_tokens(tokens) >= tokens * calibration.factor - 1e-6


def test_investigations_in_threads_share_one_calibration() -> None:
    calibration = Calibration()

    def investigate(number: int) -> None:
        for step in range(300):
            calibration.observe(10_000, 10_000 + number * 300 + step)
            calibration.learn_window(50_000 - number * 300 - step)

    threads = [threading.Thread(target=investigate, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert calibration.learned_window_tokens == 50_000 - 7 * 300 - 299
    assert calibration.factor <= 1.24
