"""Near a limit the exact counter decides, also where the policy estimates: no estimate that is too low passes a cap."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace

import pytest

from holmes.core.policies import named_policy
from holmes.core.policy import SpillPolicy, TriggerPolicy
from holmes.core.tools_utils.tool_context_window_limiter import (
    cap_round,
    spill_oversized_tool_result,
    spill_oversized_user_message,
)
from holmes.core.truncation.context import budget_of
from holmes.core.truncation.input_context_window_limiter import compact_after_overflow, is_triggered
from holmes.core.truncation.plan import cut_tool_message, shrink_round
from holmes.core.truncation.summary import removed_groups, split_groups
from holmes.previews import prefix_that_fits, suffix_that_fits
from holmes.tokens import CERTAINLY_OVER, EstimatingCounter, TokenCounter, make_counter, utf8_bytes
from holmes.tokens.history import History
from holmes.values.messages import AssistantMessage, Message, SystemMessage, Text, ToolCallId, ToolMessage, user_text
from tests.core.truncation.summaries import context_for, history_of, job_for
from tests.support.counting_model import CountingModel
from tests.support.result_stores import MemoryStore

EXACT = TokenCounter()
NOISE = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(1_000))
# Each is estimated well below what it is: identifiers in JSON by a fifth, hex and base64 by more than half.
LOW = {
    "json": json.dumps(
        [{"uid": hashlib.md5(b"%d" % n, usedforsecurity=False).hexdigest()[:10], "ready": True} for n in range(1_200)]
    ),
    "log": "".join(
        f"2026-11-21T10:00:{n % 60:02d}Z 10.0.{n % 255}.7:5432 refused 0x{n * 7919:x}\n" for n in range(900)
    ),
    "hex": NOISE.hex(),
    "base64": base64.b64encode(NOISE).decode(),
}
LOW_TEXTS = pytest.mark.parametrize("text", LOW.values(), ids=LOW.keys())


def estimating() -> EstimatingCounter:
    counter = make_counter("o200k_base", "estimate")
    assert isinstance(counter, EstimatingCounter)
    return counter


def result(text: str, number: int = 0) -> ToolMessage:
    return ToolMessage(
        call_id=ToolCallId(f"c{number}"), tool_name="kubectl_get", status="success", parts=(Text(text=text),)
    )


def between(text: str) -> int:
    """A limit that the estimate of `text` is below and its real size above."""
    estimate, real = estimating().count_text(text), EXACT.count_text(text)
    assert estimate < 0.9 * real
    return (estimate + real) // 2


@pytest.mark.row("S11", "T2")
@LOW_TEXTS
def test_what_fits_is_what_the_exact_counter_says_and_what_bytes_or_size_settle_is_not_tokenized(text: str) -> None:
    counter, real = estimating(), EXACT.count_text(text)
    assert counter.fits(text, utf8_bytes(text))
    assert not counter.fits(text, counter.count_text(text) // CERTAINLY_OVER - 1)
    assert counter.exact.bytes_tokenized == 0
    assert counter.fits(text, real)
    assert not counter.fits(text, real - 1)
    assert counter.exact.bytes_tokenized == utf8_bytes(text)
    assert counter.count_text(text) == real, "a text that was counted keeps that number"


@pytest.mark.row("S11", "T2", "T8")
@LOW_TEXTS
@pytest.mark.parametrize("name", ["digitorn", "altimate", "octo"])
async def test_no_result_and_no_preview_is_above_its_cap_by_the_real_tokenizer(text: str, name: str) -> None:
    cap = between(text)
    policy = replace(named_policy(name).spill, char_limit=None)
    outcome = await spill_oversized_tool_result(
        result(text), cap_tokens=cap, counter=estimating(), store=MemoryStore(), policy=policy
    )
    assert outcome.spilled
    assert EXACT.count_message(outcome.message) <= cap
    if policy.preview == "head":
        assert EXACT.count_message(outcome.message) > 0.7 * cap, "the preview uses its room"
    exactly = EXACT.count_message(result(text))
    for limit, spilled in ((exactly, False), (exactly - 1, True)):
        again = await spill_oversized_tool_result(
            result(text), cap_tokens=limit, counter=estimating(), store=MemoryStore(), policy=policy
        )
        assert again.spilled == spilled


@pytest.mark.row("S11", "T16")
@LOW_TEXTS
async def test_no_message_of_a_user_is_above_the_cap_by_the_real_tokenizer(text: str) -> None:
    message = await spill_oversized_user_message(
        user_text(text), cap_tokens=between(text), char_limit=10**9, counter=estimating(), store=MemoryStore()
    )
    assert message.stored
    assert EXACT.count_message(message) <= between(text)


@pytest.mark.row("S11", "T1")
@LOW_TEXTS
async def test_no_round_is_above_its_cap_by_the_real_tokenizer(text: str) -> None:
    messages = [result(f"{number} {text}", number) for number in range(3)]
    cap = 3 * between(text)
    capped = await cap_round(messages, cap, estimating(), SpillPolicy(), MemoryStore())
    assert sum(map(EXACT.count_message, capped)) <= cap


@pytest.mark.row("S11", "C2")
@LOW_TEXTS
@pytest.mark.parametrize("ask_first", [False, True])
def test_a_trigger_and_the_window_are_exceeded_at_the_real_number_also_after_an_estimate(
    text: str, ask_first: bool
) -> None:
    messages: list[Message] = [
        SystemMessage(text="s"),
        user_text("why?"),
        AssistantMessage(text="I look."),
        result(text),
    ]
    real = sum(map(EXACT.count_message, messages))
    for limit, exceeded in ((real, False), (real - 1, True)):
        history = History(messages, estimating())
        if ask_first:
            assert history.tokens() < 0.95 * real
        assert history.exceeds(limit) == exceeded
        assert history.tokens() == real
        assert history.replaced(history.messages()[1:]).tokens() == real - EXACT.count_message(messages[0])
    bound = History(messages, estimating())
    bound.tokens()
    assert bound.upper_bound_tokens() >= real, "an estimate is no bound"


@pytest.mark.row("S11", "C2")
def test_the_trigger_of_a_policy_that_estimates_holds_at_the_real_number() -> None:
    altimate = named_policy("altimate")
    history = History(history_of(rounds=8).messages(), estimating())
    real = History(history.messages(), EXACT).tokens()
    for tokens, triggered in ((real, False), (real - 1, True)):
        policy = replace(altimate, trigger=TriggerPolicy(threshold_pct=None, tokens=tokens))
        context = replace(context_for(CountingModel(lambda _: AssistantMessage(text="")), policy=policy), tools=())
        fresh = History(history.messages(), estimating())
        assert is_triggered(fresh, budget_of(fresh, context)) == triggered


@pytest.mark.row("S11", "S3")
async def test_after_an_overflow_half_of_the_window_is_half_by_the_real_tokenizer() -> None:
    messages = [*history_of(rounds=0).messages()[:2]]
    for number in range(20):
        messages += [AssistantMessage(text="", tool_calls=()), user_text(LOW["hex"][number * 2_000 :][:4_000])]
    history = History(messages, estimating())
    context = context_for(CountingModel(lambda _: AssistantMessage(text="")), policy=named_policy("altimate"))
    budget = replace(context.budget, window_tokens=20_000, reserve_tokens=2_000)
    context = replace(context, budget=budget, counter=history.counter)
    outcome = await compact_after_overflow(history, context)
    assert History(outcome.history.messages(), EXACT).tokens() <= 10_000


@pytest.mark.row("S11", "K10")
def test_the_groups_of_a_summary_are_measured_exactly() -> None:
    policy = named_policy("altimate")
    policy = replace(policy, summary=replace(policy.summary, group_token_threshold=1_500))
    history = History(history_of(rounds=12).messages(), estimating())
    context = replace(
        context_for(CountingModel(lambda _: AssistantMessage(text="")), policy=policy), counter=history.counter
    )
    job = job_for(history, context, cap_tokens=4_000)
    weights = [EXACT.count_message(message) for message in job.removed]
    assert removed_groups(job) == split_groups(job.removed, weights, 1_500, 4_000 // 128)


def test_without_a_tokenizer_the_estimate_is_all_there_is() -> None:
    counter = EstimatingCounter()
    assert counter.exact is counter
    estimate = counter.count_text(LOW["hex"])
    assert counter.fits(LOW["hex"], estimate)
    assert not counter.fits(LOW["hex"], estimate - 1)
    history = History([user_text(LOW["hex"])], counter)
    assert not history.exceeds(counter.count_message(history[0]))


@pytest.mark.row("S11", "T8")
@LOW_TEXTS
def test_what_is_cut_to_a_limit_is_within_it_by_the_real_tokenizer(text: str) -> None:
    cap = between(text)
    assert EXACT.count_text(text[: prefix_that_fits(text, cap, estimating(), characters_per_token=4.0)]) <= cap
    assert EXACT.count_text(text[-suffix_that_fits(text, cap, estimating(), characters_per_token=4.0) :]) <= cap
    assert EXACT.count_message(cut_tool_message(result(text), cap, estimating())) <= cap
    whole = (AssistantMessage(text="I look."), result(text), result(text, 1))
    assert sum(map(EXACT.count_message, shrink_round(whole, 2 * cap, estimating()))) <= 2 * cap
