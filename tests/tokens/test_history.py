"""The history counts what a fresh count gives, and each message only once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.tokens import TokenCounter, message_texts, utf8_bytes
from holmes.tokens.history import History
from holmes.values.messages import Message, user_text
from tests.support.conversations import histories


def offered_bytes(messages: tuple[Message, ...]) -> int:
    return sum(utf8_bytes(text) for message in messages for text in message_texts(message))


@given(histories(max_rounds=4), st.lists(st.integers(0, 3_000), max_size=6))
def test_every_question_is_answered_as_a_recount_would(messages: tuple[Message, ...], limits: list[int]) -> None:
    counter = TokenCounter()
    history = History((), counter)
    exact = 0
    for index, message in enumerate(messages):
        history.append(message)
        exact += TokenCounter().count_message(message)
        if limits:
            limit = limits[index % len(limits)]
            assert history.exceeds(limit) == (exact > limit)
        assert history.upper_bound_tokens() >= exact
    assert history.tokens() == exact
    assert sum(history.token_counts()) == exact
    assert history.messages() == messages
    assert len(history) == len(messages)


@given(histories(max_rounds=4), st.data())
def test_a_message_is_tokenized_once_in_its_life(messages: tuple[Message, ...], data: st.DataObject) -> None:
    counter = TokenCounter()
    history = History(messages, counter)
    for _ in range(3):
        history.tokens()
        keep = data.draw(st.lists(st.booleans(), min_size=len(history), max_size=len(history)))
        history = history.replaced([message for message, stays in zip(history, keep, strict=True) if stays])
        history.append(user_text("new " * 10))
    total = history.tokens()
    assert total == History(history.messages(), TokenCounter()).tokens()
    assert counter.bytes_tokenized <= offered_bytes(messages) + 3 * 40


@pytest.mark.row("N9")
def test_a_replaced_history_knows_the_counts_of_what_stayed_without_counting() -> None:
    history = History([user_text("checkout failed " * 50), user_text("why?")], TokenCounter())
    exact = history.tokens()
    shorter = history.replaced(history.messages()[:1])
    assert shorter.upper_bound_tokens() == exact - history.token_counts()[1]


def test_the_bound_settles_a_small_history_without_tokenizing() -> None:
    counter = TokenCounter()
    history = History([user_text("why?")], counter)
    assert not history.exceeds(8)
    assert counter.bytes_tokenized == 0
    assert history.exceeds(5)


@pytest.mark.row("N9")
def test_asking_tokenizes_only_what_is_new_however_long_the_history_is() -> None:
    def tokenized_for(messages: int) -> int:
        counter = TokenCounter()
        history = History([user_text(f"message {index} " * 20) for index in range(messages)], counter)
        history.tokens()
        before = counter.bytes_tokenized
        for index in range(200):
            history.append(user_text(f"new {index}"))
            history.exceeds(10**9)
            history.tokens()
        return counter.bytes_tokenized - before

    assert tokenized_for(8_000) == tokenized_for(100)


def test_messages_is_a_value_that_later_appends_do_not_change() -> None:
    history = History([user_text("a")], TokenCounter())
    before = history.messages()
    history.append(user_text("b"))
    assert [len(before), len(history), len(history[0:2])] == [1, 2, 2]
    assert history[-1] == user_text("b")
