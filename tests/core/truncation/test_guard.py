"""What keeps compaction from running for ever: attempts in a row, gains, and the rest after each one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holmes.core.policy import ContextPolicy, SafetyPolicy
from holmes.core.truncation.context import CompactionGuard, HistoryBudget, is_cooling_down
from holmes.stores.message_codec import message_from_json, message_to_json
from holmes.tokens import TokenCounter
from holmes.tokens.history import History
from holmes.values.errors import CompactionInsufficientError
from holmes.values.messages import (
    AssistantMessage,
    CompactionMark,
    Message,
    SystemMessage,
    Text,
    UserMessage,
    user_text,
)

SAFETY = SafetyPolicy()
BUDGET = HistoryBudget(
    window_tokens=10_000,
    reserve_tokens=2_000,
    schema_tokens=0,
    system_tokens=0,
    max_output_tokens=2_000,
    policy=ContextPolicy(),
)


@pytest.mark.row("S2")
def test_three_attempts_in_a_row_are_the_most_until_the_model_answers() -> None:
    guard = CompactionGuard()
    for _ in range(3):
        guard.begin(SAFETY, 8_000)
    with pytest.raises(CompactionInsufficientError, match=r"compacted 3 times in a row.*Start a new conversation"):
        guard.begin(SAFETY, 8_000)
    guard.step_succeeded()
    guard.begin(SAFETY, 8_000)


@pytest.mark.row("S2")
def test_two_attempts_that_gain_little_make_another_one_futile_until_one_gains_more() -> None:
    guard, futile = CompactionGuard(), []
    for after in (960, 1_000, 900, 960):
        guard.record(1_000, after, SAFETY)
        guard.step_succeeded()
        futile.append(guard.is_futile)
    assert futile == [False, True, False, False]


def after_compaction(rounds: int, words: int) -> History:
    summary = UserMessage(
        parts=(Text(text="Summary."),), kind="summary", mark=CompactionMark(kept_rounds=1, tokens=100)
    )
    messages: list[Message] = [SystemMessage(text="s"), user_text("why?"), summary, AssistantMessage(text="kept")]
    messages += [AssistantMessage(text="word " * words) for _ in range(rounds)]
    return History(messages, TokenCounter())


@pytest.mark.row("S1")
@pytest.mark.parametrize(
    ("rounds", "words", "cooling"), [(0, 0, True), (1, 2_000, True), (2, 100, True), (2, 500, False), (5, 10, True)]
)
def test_a_conversation_rests_for_two_rounds_and_a_tenth_of_the_window(rounds: int, words: int, cooling: bool) -> None:
    history = after_compaction(rounds, words)
    assert is_cooling_down(history, BUDGET) == cooling
    reloaded = History([message_from_json(message_to_json(message)) for message in history], TokenCounter())
    assert is_cooling_down(reloaded, BUDGET) == cooling


@pytest.mark.row("S1")
def test_without_a_compaction_or_a_cooldown_there_is_nothing_to_rest_from() -> None:
    assert not is_cooling_down(History([user_text("why?")], TokenCounter()), BUDGET)
    eager = replace(BUDGET, policy=ContextPolicy(safety=SafetyPolicy(cooldown_rounds=0, cooldown_share=0.0)))
    assert not is_cooling_down(after_compaction(0, 0), eager)
