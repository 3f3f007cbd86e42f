"""What is kept free for the reply leaves the conversation room, and holds the thinking budget too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.values.model import ModelLimits


def limits(window: int, output: int, thinking: int = 0) -> ModelLimits:
    return ModelLimits(context_window_tokens=window, max_output_tokens=output, thinking_tokens=thinking)


@pytest.mark.row("C2")
@pytest.mark.parametrize(
    ("of_model", "output_reserved", "window", "reserve"),
    [
        (limits(200_000, 64_000), None, 200_000, 50_000),
        (limits(128_000, 4_096), None, 128_000, 4_096),
        (limits(200_000, 64_000), 4_096, 200_000, 4_096),
        (limits(200_000, 64_000), 0, 200_000, 50_000),
        (limits(200_000, 64_000), None, 40_000, 10_000),  # the window turned out to be smaller
        (limits(200_000, 64_000, 10_000), None, 200_000, 50_000),
        (limits(200_000, 64_000, 10_000), 4_096, 200_000, 14_096),
        (limits(32_000, 64_000, 10_000), None, 32_000, 11_024),
        (limits(16_000, 64_000, 10_000), None, 16_000, 8_000),  # no room to think
        (limits(200_000, 8_192, 8_192), None, 200_000, 8_192),
    ],
)
def test_the_reserve_is_what_the_reply_may_take_with_its_thinking(
    of_model: ModelLimits, output_reserved: int | None, window: int, reserve: int
) -> None:
    assert of_model.reserve_tokens(output_reserved, window) == reserve


@pytest.mark.row("C2")
@given(
    st.integers(1_000, 2_000_000),
    st.integers(1, 200_000),
    st.integers(0, 100_000),
    st.one_of(st.none(), st.integers(0, 300_000)),
)
def test_at_least_half_of_the_window_stays_for_the_conversation(
    window: int, output: int, thinking: int, output_reserved: int | None
) -> None:
    of_model = limits(window, output, thinking)
    reserve = of_model.reserve_tokens(output_reserved, window)
    assert 0 < reserve <= min(output, window // (2 if thinking else 4))
    if window // 2 > thinking + 1_024 <= output:
        assert reserve > thinking, "providers refuse a budget that is not below max_tokens"
    assert of_model.output_reserve_tokens == of_model.reserve_tokens(None, window)


@pytest.mark.row("K5")
@pytest.mark.parametrize(
    ("text", "most", "output", "thinking", "reply"),
    [
        (1_400, 8_000, 8_000, 0, 1_400),
        (9_000, 50_000, 8_000, 0, 8_000),
        (4_200, 16_000, 32_000, 4_096, 8_296),  # not 4,200, of which the thinking would leave a hundred
        (4_200, 6_000, 32_000, 4_096, 4_096),  # without thinking there is more for the text
        (4_200, 6_000, 32_000, 1_024, 5_224),
        (600, 1_000, 32_000, 4_096, 600),
    ],
)
def test_a_text_has_its_room_beside_the_thinking(text: int, most: int, output: int, thinking: int, reply: int) -> None:
    assert limits(200_000, output, thinking).reply_tokens(text, most) == reply
