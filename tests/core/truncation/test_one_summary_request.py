"""What fits one summary request is asked for in one, uncut; what does not fit, in pieces."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from holmes.core.policy import ContextPolicy, SummaryPolicy
from holmes.core.truncation.offload import OffloadOptions, offload_context
from holmes.core.truncation.summary import OTHER_PROVIDER_MARGIN, request_summary
from holmes.llm.scripted import ScriptedModel, ScriptedReply
from holmes.tokens.history import History
from holmes.values.errors import ContextOverflow
from holmes.values.messages import AssistantMessage, Message, ToolMessage, UserMessage, user_text
from holmes.values.model import ModelLimits, ModelRequest
from tests.core.truncation.masking.support import COUNTER, MemoryStore
from tests.core.truncation.summaries import context_for, history_of, job_for, round_of
from tests.core.truncation.test_offload import SUMMARY, talk
from tests.support.conversations import png
from tests.support.counting_model import CountingModel

WINDOW, OUTPUT = 32_000, 4_000
LIMITS = ModelLimits(context_window_tokens=WINDOW, max_output_tokens=OUTPUT)


def shown(request: ModelRequest) -> str:
    """What the user says in a request."""
    return "\n".join(message.text for message in request.messages if isinstance(message, UserMessage))


def request_tokens(request: ModelRequest) -> int:
    return sum(map(COUNTER.count_message, request.messages)) + request.max_output_tokens


@pytest.mark.row("K10", "I15")
@pytest.mark.parametrize("threshold", [None, 0, 25_000])
async def test_a_group_that_fits_one_request_is_one_request_and_not_cut_into_four(threshold: int | None) -> None:
    given: tuple[Message, ...] = (*talk(3), user_text("a long file " + "log " * 12_000), *talk(3)[1:], *talk(1)[1:])
    model = ScriptedModel(lambda _: ScriptedReply(text=SUMMARY), limits=LIMITS)
    options = OffloadOptions(mode="compress", group_token_threshold=threshold)
    outcome = await offload_context(given, options, store=MemoryStore(), model=model)
    assert outcome.metadata.failure is None
    (request,) = model.requests
    assert request_tokens(request) <= WINDOW
    assert all(message.text in shown(request) for message in given[1:-2]), "nothing is cut"


@pytest.mark.row("K10", "I15")
async def test_a_group_that_does_not_fit_one_request_is_asked_for_in_pieces_that_do() -> None:
    model = ScriptedModel(lambda _: ScriptedReply(text=SUMMARY), limits=LIMITS)
    outcome = await offload_context(talk(22), OffloadOptions(mode="compress"), store=MemoryStore(), model=model)
    assert outcome.metadata.failure is None
    assert len(model.requests) > 1
    assert all(request_tokens(request) <= WINDOW for request in model.requests)


@pytest.mark.row("K10", "I15")
@pytest.mark.parametrize("told", [None, 25_000])
async def test_a_provider_that_counts_more_than_we_do_is_asked_again_in_pieces(told: int | None) -> None:
    def answer(request: ModelRequest) -> ScriptedReply | ContextOverflow:
        if request_tokens(request) * 1.3 > WINDOW:
            return ContextOverflow("too long", provider="p", model="m", window_tokens=told)
        return ScriptedReply(text=SUMMARY)

    model = ScriptedModel(answer, limits=LIMITS)
    outcome = await offload_context(talk(14), OffloadOptions(mode="compress"), store=MemoryStore(), model=model)
    assert outcome.metadata.failure is None
    assert 2 < len(model.requests) <= 5


@pytest.mark.row("K10", "K12", "I15")
@pytest.mark.parametrize("window", [20_000, 30_000])
async def test_groups_within_a_run_are_one_request_each_for_any_model_that_has_room(window: int) -> None:
    model = CountingModel(lambda _: AssistantMessage(text=SUMMARY), window_tokens=60_000)
    small = CountingModel(lambda _: AssistantMessage(text=SUMMARY), window_tokens=window, max_output_tokens=2_000)
    policy = ContextPolicy(summary=SummaryPolicy(group_token_threshold=9_000))
    for writer in (None, small):
        context = context_for(model, policy=policy, summary_model=writer)
        job = job_for(history_of(rounds=20), context, cap_tokens=900)
        groups = -(-sum(map(COUNTER.count_message, job.removed)) // 9_000)
        asked = writer or model
        before = len(asked.requests)
        await request_summary(job)
        assert groups <= len(asked.requests) - before <= groups + 1, (
            "one for each group, the last of which may be short"
        )


@pytest.mark.row("K5")
@pytest.mark.parametrize(("thinking", "output"), [(0, 1_800), (1_000, 2_800), (3_000, 1_800)])
async def test_a_summary_in_place_gets_twice_its_cap_and_the_thinking_budget_where_both_have_room(
    thinking: int, output: int
) -> None:
    model = ScriptedModel(lambda _: ScriptedReply(text=SUMMARY), limits=replace(LIMITS, thinking_tokens=thinking))
    context = replace(context_for(CountingModel(lambda _: AssistantMessage(text=""))), model=model)
    await request_summary(job_for(history_of(rounds=4), context, cap_tokens=900))
    (request,) = model.requests
    assert request.max_output_tokens == output


@pytest.mark.row("K14", "K12")
async def test_pictures_do_not_weigh_in_a_transcript_so_the_text_beside_them_is_whole() -> None:
    said, looked = round_of("c1", "a chart " + "word " * 6_000)
    assert isinstance(looked, ToolMessage)
    looked = replace(looked, parts=(*looked.parts, *(png(1_500, 1_500) for _ in range(10))))
    history = History(
        (*history_of(rounds=0, facts=()).messages(), said, looked, *history_of(rounds=8).messages()[2:]), COUNTER
    )
    writer = CountingModel(lambda _: AssistantMessage(text=SUMMARY), window_tokens=24_000, max_output_tokens=2_000)
    context = context_for(CountingModel(lambda _: AssistantMessage(text="")), summary_model=writer)
    job = replace(job_for(history, context, cap_tokens=900), removed=history.messages()[2:8])
    await request_summary(job)
    (request,) = writer.raw_requests
    assert looked.text in shown(request)


@pytest.mark.row("I15", "K12")
async def test_a_message_whose_ends_are_denser_than_its_middle_makes_no_request_too_large() -> None:
    dense = base64.b64encode(bytes(number * 7919 % 251 for number in range(9_000))).decode()
    text = f"{dense}{'checkout failed again ' * 8_000}{dense}"
    history = History((*history_of(rounds=0, facts=()).messages(), *round_of("c1", text)), COUNTER)
    writer = CountingModel(lambda _: AssistantMessage(text=SUMMARY), window_tokens=6_000, max_output_tokens=500)
    context = context_for(CountingModel(lambda _: AssistantMessage(text="")), summary_model=writer)
    written = await request_summary(replace(job_for(history, context, cap_tokens=200), removed=history.messages()[2:]))
    assert written.text == SUMMARY
    assert all(request_tokens(request) <= 6_000 / OTHER_PROVIDER_MARGIN for request in writer.raw_requests)
