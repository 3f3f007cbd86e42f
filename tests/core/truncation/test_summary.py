"""How a summary is asked for: in place or as text, with which limits, by whom, again after a failure, and repaired."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.policy import ContextPolicy, KeepPolicy, SummaryPolicy
from holmes.core.truncation.entity_check import survey
from holmes.core.truncation.summary import OTHER_PROVIDER_MARGIN, request_summary
from holmes.core.truncation.summary_request import ADDED_HEADING, SummaryJob
from holmes.tokens.history import History
from holmes.values.errors import ContextOverflow, ModelError
from holmes.values.events import AttemptDiscarded, TextDelta
from holmes.values.messages import (
    AssistantMessage,
    Image,
    Message,
    SystemMessage,
    Text,
    ToolMessage,
    UserMessage,
    user_text,
)
from holmes.values.model import EmitEvent, ModelReply, ModelRequest
from holmes.values.stats import RequestStats
from tests.core.truncation.summaries import (
    COUNTER,
    FACTS,
    TASK,
    TOOLS,
    RecordingSteps,
    context_for,
    history_of,
    job_for,
    round_of,
)
from tests.support.conversations import histories, png
from tests.support.counting_model import CountingModel, EventLog, model_reply, tool_call

GOOD = AssistantMessage(text="The checkout pod lacks its ConfigMap.")


def answering(
    answer: AssistantMessage | ModelReply | ModelError,
    *,
    window: int = 200_000,
    output: int = 8_000,
    factor: float = 1.0,
) -> CountingModel:
    return CountingModel(lambda _: answer, window_tokens=window, max_output_tokens=output, factor=factor)


def surveyed(job: SummaryJob) -> SummaryJob:
    kept = tuple(message for message in job.history if message not in job.removed)
    return replace(job, survey=survey(job.removed, kept, job.history.messages(), TOOLS))


@pytest.mark.row("S9", "K5")
async def test_in_place_it_is_the_agents_request_plus_one_note_with_room_for_twice_the_cap() -> None:
    model, history = answering(GOOD), history_of()
    job = job_for(history, context_for(model), cap_tokens=700)
    assert (await request_summary(job)).text == GOOD.text
    (request,) = model.raw_requests
    assert (request.messages[:-1], request.tools, request.tool_choice) == (history.messages(), TOOLS, "none")
    assert request.max_output_tokens == 1_400
    note = request.messages[-1]
    assert isinstance(note, UserMessage)
    assert "Write at most 700 tokens." in note.text


@pytest.mark.row("S9")
async def test_what_stays_is_left_out_when_the_whole_history_does_not_fit() -> None:
    history = history_of(rounds=30)
    window = history.tokens() + 600
    model = answering(GOOD, window=window, output=1_000)
    job = job_for(history, context_for(model), cap_tokens=600)
    assert (await request_summary(job)).text == GOOD.text
    (request,) = model.raw_requests
    shown = request.messages[:-1]
    assert shown == history.messages()[: len(shown)]
    assert shown[-1] == job.removed[-1]
    assert len(shown) < len(history)


@pytest.mark.row("K14")
async def test_pictures_are_counted_instead_of_shown_when_they_do_not_fit() -> None:
    seen = UserMessage(parts=(Text(text="a chart"), *(png(1_500, 1_500) for _ in range(12))))
    history = History([SystemMessage(text="s"), user_text(TASK), seen, *history_of().messages()[2:]], COUNTER)
    pictures = COUNTER.count_message(seen)
    model = answering(GOOD, window=history.tokens() - pictures // 2, output=2_000)
    job = replace(job_for(history, context_for(model), cap_tokens=500), removed=history.messages()[2:-2])
    await request_summary(job)
    (request,) = model.raw_requests
    assert request.tools == TOOLS
    assert not any(isinstance(part, Image) for m in request.messages if isinstance(m, UserMessage) for part in m.parts)
    changed = request.messages[2]
    assert isinstance(changed, UserMessage)
    assert changed.text == "a chart\n[12 images left out]"


FAILURES: dict[str, AssistantMessage | ModelReply | ModelError] = {
    "exception": ModelError("503 busy", provider="p", model="m", retryable=True, stats=RequestStats(cost=0.01)),
    "overflow": ContextOverflow("too long", provider="p", model="m", stats=RequestStats(cost=0.01)),
    "empty": AssistantMessage(text=" \n"),
    "tool call": AssistantMessage(text="Let me look.", tool_calls=(tool_call("z"),)),
    "cut off": replace(model_reply(GOOD), finish_reason="length"),
    "content filter": replace(model_reply(GOOD), finish_reason="content_filter"),
    "refusal": AssistantMessage(text="I'm sorry, but I can't help with that."),
    "fabrication": AssistantMessage(
        text="Pod payments-5c4d8f7b9-zzk8q got ImagePullBackOff from 10.9.8.7:6379, exit code 139, STRIPE_KEY unset."
    ),
    "endless": AssistantMessage(text="blah " * 9_000),
}


@pytest.mark.row("S7", "N8")
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
async def test_every_failure_is_asked_for_once_more_as_text_and_paid_for(
    failure: AssistantMessage | ModelReply | ModelError,
) -> None:
    def answer(request: ModelRequest) -> AssistantMessage | ModelReply | ModelError:
        return failure if request.tools else GOOD

    model = CountingModel(answer, window_tokens=200_000)
    policy = ContextPolicy(keep=KeepPolicy(tail_share=0.05))
    written = await request_summary(surveyed(job_for(history_of(), context_for(model, policy=policy))))
    assert written.text is not None
    assert written.text.startswith(GOOD.text)
    assert [bool(request.tools) for request in model.raw_requests][:2] == [True, False]
    assert written.stats.cost == pytest.approx(0.01 * len(model.requests))

    failing = answering(failure)
    never = await request_summary(surveyed(job_for(history_of(), context_for(failing, policy=policy))))
    assert never.text is None
    assert never.failure is not None
    assert "; second attempt: " in never.failure
    assert never.stats.cost == pytest.approx(0.01 * len(failing.requests))
    assert len(failing.requests) == 2


async def test_an_answer_that_was_cut_off_gets_more_room_the_second_time() -> None:
    model = answering(FAILURES["cut off"])
    await request_summary(job_for(history_of(), context_for(model), cap_tokens=500))
    assert [request.max_output_tokens for request in model.raw_requests] == [1_000, 8_000]


@pytest.mark.row("K12", "K14")
async def test_a_summary_model_gets_text_without_tools_in_pieces_that_fit_its_own_smaller_window() -> None:
    agent = answering(ModelError("not this one", provider="p", model="m", retryable=False))
    cheap = answering(GOOD, window=6_000, output=2_000, factor=1.3)
    history = history_of()
    context = context_for(agent, summary_model=cheap)
    written = await request_summary(job_for(history, context))
    assert written.text == GOOD.text
    assert agent.requests == []
    assert 1 < len(cheap.raw_requests) <= 8
    for request in cheap.raw_requests:
        assert request.tools == ()
        assert cheap.request_tokens(request) + request.max_output_tokens <= 6_000
        assert [type(message) for message in request.messages] == [SystemMessage, UserMessage]
        assert request.max_output_tokens == int(6_000 / OTHER_PROVIDER_MARGIN) // 4
    assert isinstance(context.steps, RecordingSteps)
    assert context.steps.names[0] == "step-7/compaction-0/summary-model-text-1"


@pytest.mark.row("K12", "S7")
async def test_when_the_summary_model_fails_the_agents_own_model_writes_it_in_place() -> None:
    agent, cheap = answering(GOOD), answering(FAILURES["exception"])
    written = await request_summary(job_for(history_of(), context_for(agent, summary_model=cheap)))
    assert written.text == GOOD.text
    (request,) = agent.raw_requests
    assert request.tools == TOOLS
    assert written.stats.cost == pytest.approx(0.02)


@pytest.mark.row("K10")
async def test_each_group_is_summarised_in_turn_within_its_share_of_the_cap() -> None:
    model = CountingModel(lambda request: AssistantMessage(text=f"Summary {request.max_output_tokens}."))
    policy = ContextPolicy(summary=SummaryPolicy(group_token_threshold=3_000))
    context = context_for(model, policy=policy)
    job = job_for(history_of(rounds=12), context, cap_tokens=1_000)
    written = await request_summary(job)
    count = len(model.requests)
    assert count > 1
    assert written.text == "\n\n".join(
        f"Part {n + 1} of {count}:\nSummary {2 * (1_000 // count)}." for n in range(count)
    )
    shown = "".join(m.text for request in model.requests for m in request[1:] if isinstance(m, UserMessage))
    assert all(m.text in shown for m in job.removed if isinstance(m, ToolMessage))
    assert written.stats.calls == count


@pytest.mark.row("K10")
async def test_a_group_that_fails_ends_in_one_summary_of_everything() -> None:
    def answer(request: ModelRequest) -> AssistantMessage | ModelError:
        return GOOD if request.tools else AssistantMessage(text="")

    model = CountingModel(answer)
    policy = ContextPolicy(summary=SummaryPolicy(group_token_threshold=3_000))
    written = await request_summary(job_for(history_of(rounds=10), context_for(model, policy=policy)))
    assert written.text == GOOD.text
    assert [bool(request.tools) for request in model.raw_requests] == [False, True]
    assert written.stats.calls == 2


CARELESS = AssistantMessage(text="Some pods were looked at and something is wrong with checkout.")
REPAIR = "\n".join(f"- {fact}" for fact in FACTS)


def careless(repair: AssistantMessage | ModelReply | ModelError) -> CountingModel:
    def answer(request: ModelRequest) -> AssistantMessage | ModelReply | ModelError:
        return repair if is_repair(request) else CARELESS

    return CountingModel(answer, window_tokens=100_000)


def is_repair(request: ModelRequest) -> bool:
    last = request.messages[-1]
    return isinstance(last, UserMessage) and "\nLeft out:\n" in last.text


@pytest.mark.row("N7", "S7")
async def test_what_was_left_out_costs_one_small_request_and_is_added() -> None:
    model = careless(AssistantMessage(text=REPAIR))
    written = await request_summary(surveyed(job_for(history_of(rounds=60), context_for(model))))
    assert written.text == f"{CARELESS.text}\n\n{ADDED_HEADING}\n{REPAIR}"
    first, repair = model.raw_requests
    assert repair.tools == ()
    assert model.request_tokens(repair) < model.request_tokens(first) / 10
    assert repair.max_output_tokens < first.max_output_tokens
    shown = repair.messages[-1]
    assert isinstance(shown, UserMessage)
    assert "- exit code 137: Last state: Terminated, reason OOMKilled, exit code 137, error" in shown.text
    assert "web-" not in shown.text
    assert written.stats.calls == 2


@pytest.mark.row("N7")
async def test_a_summary_that_has_what_matters_is_not_repaired() -> None:
    model = answering(AssistantMessage(text="\n".join(FACTS)))
    written = await request_summary(surveyed(job_for(history_of(), context_for(model))))
    assert len(model.requests) == 1
    assert written.text == "\n".join(FACTS)


@pytest.mark.row("N8")
async def test_a_repair_that_adds_something_invented_is_not_used() -> None:
    model = careless(AssistantMessage(text=f"{REPAIR}\n- pod payments-5c4d8f7b9-zzk8q is down too"))
    written = await request_summary(surveyed(job_for(history_of(), context_for(model))))
    assert written.text == CARELESS.text


@pytest.mark.row("N7", "S7")
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
async def test_a_repair_that_fails_or_invents_leaves_the_summary_as_it_was_and_is_paid_for(
    failure: AssistantMessage | ModelReply | ModelError,
) -> None:
    model = careless(failure)
    written = await request_summary(surveyed(job_for(history_of(), context_for(model))))
    assert written.text == CARELESS.text
    assert len(model.requests) == 2
    assert written.stats.cost == pytest.approx(0.02)


SIZES = st.tuples(st.integers(600, 5_000), st.integers(600, 5_000), st.sampled_from([1.0, 1.3]))


@settings(max_examples=150, deadline=None)
@given(
    histories(max_words=1_500), SIZES, st.booleans(), st.sampled_from([None, 500]), st.sampled_from([GOOD, CARELESS])
)
async def test_no_summary_request_is_larger_than_the_window_of_its_model(
    messages: tuple[Message, ...],
    sizes: tuple[int, int, float],
    with_summary_model: bool,
    threshold: int | None,
    answer: AssistantMessage,
) -> None:
    own_window, other_window, factor = sizes
    agent = answering(answer, window=int(own_window * 1.3), output=own_window // 6, factor=1.3)
    other = answering(answer, window=other_window, output=other_window // 6, factor=factor)
    policy = ContextPolicy(summary=SummaryPolicy(group_token_threshold=threshold))
    summary_model = other if with_summary_model else None
    context = context_for(agent, policy=policy, summary_model=summary_model, window_tokens=own_window)
    job = job_for(History(messages, COUNTER), context)
    if not job.removed:
        return
    written = await request_summary(surveyed(job))
    for model in (agent, other):
        for request in model.raw_requests:
            assert model.request_tokens(request) + request.max_output_tokens <= model.limits.context_window_tokens
    assert written.stats.calls == len(agent.requests) + len(other.requests)


@pytest.mark.row("S7")
async def test_step_names_are_never_used_twice_whatever_fails() -> None:
    replies = iter(["", "x " * 3_000, "", "ok. " * 10, "ok.", "ok.", "ok.", "ok."])
    model = CountingModel(lambda _: AssistantMessage(text=next(replies, "ok.")))
    policy = ContextPolicy(summary=SummaryPolicy(group_token_threshold=3_000))
    context = context_for(model, policy=policy, summary_model=model)
    await request_summary(surveyed(job_for(history_of(rounds=12), context)))
    assert isinstance(context.steps, RecordingSteps)
    assert len(context.steps.names) == len(model.requests) >= 3
    assert all(first != second for first, second in pairwise(context.steps.names))


class Talking(CountingModel):
    """Streams before it answers."""

    async def complete(self, request: ModelRequest, emit: EmitEvent) -> ModelReply:
        await emit(TextDelta(text="The "))
        await emit(AttemptDiscarded(model=self.name, reason="connection lost", retry_in_seconds=0))
        return await super().complete(request, emit)


async def test_the_text_of_a_summary_is_not_streamed_to_the_user_but_other_events_are() -> None:
    context = context_for(Talking(lambda _: GOOD, window_tokens=200_000))
    await request_summary(job_for(history_of(), context))
    assert isinstance(context.emit, EventLog)
    assert context.emit.kinds == ["attempt_discarded"]


def test_helpers_plant_what_they_say() -> None:
    assert all(any(fact in m.text for m in history_of() if isinstance(m, ToolMessage)) for fact in FACTS)
    assert len(round_of("a", "x")) == 2


@pytest.mark.row("K12", "K5")
async def test_a_summary_model_that_thinks_has_room_for_the_text_as_well() -> None:
    own, cheap = answering(GOOD), CountingModel(lambda _: GOOD, window_tokens=64_000, thinking_tokens=1_024)
    job = job_for(history_of(), context_for(own, summary_model=cheap), cap_tokens=700)
    assert (await request_summary(job)).text == GOOD.text
    assert [request.max_output_tokens for request in cheap.raw_requests] == [1_400 + 1_024]
