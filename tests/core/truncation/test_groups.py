"""Groups are whole rounds in order, at most as large as asked for, and not more than the summary has room for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.truncation.summary import split_groups
from holmes.values.messages import Message
from tests.core.truncation.summaries import COUNTER, history_of
from tests.support.conversations import histories
from tests.support.counting_model import pairing_errors


@pytest.mark.row("K10", "K9")
@settings(max_examples=100, deadline=None)
@given(histories(), st.one_of(st.none(), st.integers(0, 4_000)), st.integers(1, 9))
def test_groups_are_the_messages_in_order_and_never_part_a_call_from_its_results(
    messages: tuple[Message, ...], threshold: int | None, most: int
) -> None:
    body = messages[1:]
    groups = split_groups(body, [COUNTER.count_message(message) for message in body], threshold, most)
    assert tuple(message for group in groups for message in group) == body
    assert all(groups)
    assert len(groups) <= most
    assert all(pairing_errors(group) == [] for group in groups)
    if not threshold:
        assert len(groups) <= 1


@pytest.mark.row("K10")
def test_a_group_is_at_most_the_threshold_and_a_message_above_it_is_its_own_group() -> None:
    history = history_of(rounds=6, lines=10, facts=("x", "word " * 3_000, "y"))
    body, weights = history.messages()[2:], history.token_counts()[2:]
    groups = split_groups(body, weights, 700, 100)
    sizes = [sum(COUNTER.count_message(message) for message in group) for group in groups]
    assert [size > 700 for size in sizes].count(True) == 1
    giant = groups[next(index for index, size in enumerate(sizes) if size > 700)]
    assert len(giant) == 2
    assert len(groups) > 3


@pytest.mark.row("K10")
@pytest.mark.parametrize("threshold", [None, 0])
def test_without_a_threshold_there_is_one_group(threshold: int | None) -> None:
    body = history_of(rounds=6).messages()[2:]
    assert split_groups(body, [1] * len(body), threshold, 100) == (body,)
