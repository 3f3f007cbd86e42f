"""A truncation keeps the share that the policy says, and a line says that there was more."""

from __future__ import annotations

import pytest

from holmes.core.policy import ContextPolicy, KeepPolicy
from holmes.core.truncation.context import HistoryBudget
from holmes.core.truncation.truncate import TruncationNote, plan_truncation, truncated, truncation_room
from holmes.tokens import TokenCounter
from holmes.tokens.history import History
from holmes.values.messages import Message, SystemMessage, UserMessage, user_text
from tests.core.truncation.test_plan import round_of

COUNTER = TokenCounter()


def history_of(rounds: int) -> History:
    messages: list[Message] = [SystemMessage(text="You find faults."), user_text("why?")]
    for number in range(rounds):
        messages.extend(round_of(f"c{number}", f"round {number} " + "word " * 100))
    return History(messages, COUNTER)


def budget_with(keep: KeepPolicy) -> HistoryBudget:
    return HistoryBudget(
        window_tokens=12_000,
        reserve_tokens=1_000,
        schema_tokens=900,
        system_tokens=100,
        max_output_tokens=1_000,
        policy=ContextPolicy(keep=keep),
    )


def kept_tokens(history: History, keep: KeepPolicy) -> int:
    plan = plan_truncation(history, truncation_room(history, budget_with(keep)), COUNTER, 0)
    return sum(map(COUNTER.count_message, plan.tail))


@pytest.mark.row("P10")
@pytest.mark.parametrize("fraction", [0.2, 0.4, 0.6])
def test_a_truncation_keeps_the_newest_share_of_the_conversation(fraction: float) -> None:
    keep = KeepPolicy(tail_share=0.1, messages=2, fraction=fraction)
    assert 10_000 * fraction - 200 < kept_tokens(history_of(80), keep) <= 10_000 * fraction


@pytest.mark.row("P10")
def test_the_share_is_of_the_conversation_when_that_is_shorter_than_the_window() -> None:
    history = history_of(20)
    body = history.tokens() - 100
    assert body < 5_000
    assert 0.4 * body - 200 < kept_tokens(history, KeepPolicy(fraction=0.4)) <= 0.4 * body


@pytest.mark.row("P10", "K2")
def test_without_a_share_a_truncation_keeps_what_a_summary_would() -> None:
    history = history_of(80)
    assert 800 < kept_tokens(history, KeepPolicy(tail_share=0.1, fraction=None)) <= 1_000
    assert kept_tokens(history, KeepPolicy(tail_share=0.1, messages=2, fraction=None)) < 300


@pytest.mark.row("K7")
def test_the_line_of_the_document_stands_for_the_older_messages() -> None:
    history = history_of(80)
    plan = plan_truncation(history, truncation_room(history, budget_with(KeepPolicy())), COUNTER, 0)
    shortened = truncated(history, plan, TruncationNote())
    assert shortened is not None
    assert shortened[:2] == history[:2]
    assert isinstance(shortened[2], UserMessage)
    assert (shortened[2].text, shortened[2].kind) == ("[Earlier messages truncated]", "summary")
    assert shortened[3:] == history[len(history) - len(plan.tail) :]
