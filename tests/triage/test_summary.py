"""Summaries by extraction: the loop accepts them, and they keep the important names without inventing any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings

from holmes.core.truncation.compaction import compact_conversation_history
from holmes.core.truncation.context import measured
from holmes.core.truncation.entity_check import NOT_IN_SOURCE, survey
from holmes.core.truncation.summary_request import REPAIR_PROMPT
from holmes.triage.steps import next_step
from holmes.triage.summary import SummaryRequest, messages_of_transcript, summarise, summary_request_of, whole_words
from holmes.values.messages import AssistantMessage, SystemMessage, Text, ToolMessage, UserMessage, user_text
from holmes.values.model import ModelRequest
from tests.core.truncation.summaries import COUNTER, FACTS, PLANTED, TASK, context_for, history_of
from tests.support.conversations import png, wild_histories
from tests.support.counting_model import CountingModel
from tests.triage.shop_toolset import SYSTEM, ShopToolset, ask

if TYPE_CHECKING:
    from holmes.values.messages import Message

PROMPT = "Write down where this investigation stands."


def counting_model(window_tokens: int) -> CountingModel:
    """The model behind a provider that counts tokens and refuses requests above its window."""
    return CountingModel(
        lambda request: AssistantMessage(text=next_step(request).text),
        window_tokens=window_tokens,
        max_output_tokens=min(8_192, window_tokens // 4),
    )


@pytest.mark.parametrize(("window_tokens", "rounds"), [(128_000, 20), (20_000, 20), (8_000, 10)])
async def test_the_loop_accepts_the_summary_and_nothing_that_matters_is_lost(window_tokens: int, rounds: int) -> None:
    model = counting_model(window_tokens)
    history = history_of(rounds=rounds)
    context = context_for(model)
    attempt = await compact_conversation_history(history, measured(history, context))
    assert attempt.history is not None, attempt.failure
    assert attempt.flagged == ()
    (summary,) = (each for each in attempt.history if isinstance(each, UserMessage) and each.kind == "summary")
    assert [planted for planted in PLANTED if planted not in summary.text] == []
    assert NOT_IN_SOURCE not in summary.text
    assert not any(REPAIR_PROMPT[:40] in str(request.messages[0]) for request in model.raw_requests), "no repair needed"


async def test_after_a_compaction_of_its_own_the_investigation_goes_on() -> None:
    (first,) = await ask(ShopToolset(), "why is payments failing?")
    summary = summarise(SummaryRequest(kind="summary", cap_tokens=2_000, messages=first.messages))
    compacted = (SYSTEM, first.messages[1], user_text(summary, "summary"))
    toolset = ShopToolset()
    await ask(toolset, "and its logs?", earlier=compacted)
    assert toolset.seen[0]["about"] == "Deployment shop/payments"


async def test_a_summary_has_the_question_the_findings_and_citable_evidence() -> None:
    (told,) = await ask(ShopToolset(), "why is payments failing?")
    request = ModelRequest(
        messages=(*told.messages, user_text(f"{PROMPT}\n\nWrite at most 2,000 tokens.", "note")),
        tools=(),
        tool_choice="none",
        max_output_tokens=4_000,
    )
    wanted = summary_request_of(request)
    assert wanted is not None
    assert wanted.cap_tokens == 2_000
    text = summarise(wanted)
    assert text.startswith("## Question\n- why is payments failing?")
    assert "## Resources and their state\n- Deployment shop/payments: Root cause: The container payments" in text
    assert "[[" in text
    assert "- kubernetes_first_look question=why is payments failing?" in text
    assert COUNTER.count_text(text) <= 2_000 * 1.5
    source = survey(told.messages, (), told.messages)
    assert source.invented_in(text) == ()


def test_the_steps_of_an_investigation_are_no_summary_requests() -> None:
    question = (SystemMessage(text="You are Holmes."), user_text("why?"))
    note = user_text("This is the last step: no more tools can be run. Answer the question now.", "note")
    for messages, choice in ((question, "auto"), (question, "none"), ((*question, note), "none")):
        request = ModelRequest(messages=messages, tools=(), tool_choice=choice, max_output_tokens=100)  # type: ignore[arg-type]
        assert summary_request_of(request) is None


def test_what_a_summary_left_out_is_added_line_by_line() -> None:
    left_out = "\n".join(f"- pod web-{n}: shop web-{n} 0/1 CrashLoopBackOff" for n in range(3))
    request = ModelRequest(
        messages=(
            SystemMessage(text=REPAIR_PROMPT.format(cap_tokens=200)),
            user_text(f"Summary:\nSomething.\n\nLeft out:\n{left_out}"),
        ),
        tools=(),
        tool_choice="none",
        max_output_tokens=400,
    )
    wanted = summary_request_of(request)
    assert wanted is not None
    assert wanted.kind == "repair"
    assert summarise(wanted) == left_out


def test_a_line_is_never_cut_inside_a_name() -> None:
    assert whole_words("a checkout-7f9c8d6b5-x2k4q", 12) == "a …"
    assert whole_words("short", 12) == "short"


def test_a_summary_keeps_to_its_cap() -> None:
    messages = history_of(rounds=8, facts=FACTS).messages()
    for cap_tokens in (60, 200, 1_000):
        text = summarise(SummaryRequest(kind="summary", cap_tokens=cap_tokens, messages=messages))
        assert COUNTER.count_text(text) <= 1.5 * cap_tokens


def test_the_question_stands_word_for_word() -> None:
    messages = (user_text(TASK), AssistantMessage(text="I will look."), user_text("And `payments`?"))
    text = summarise(SummaryRequest(kind="summary", cap_tokens=500, messages=messages))
    assert TASK in text
    assert "And `payments`?" in text


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(wild_histories(max_rounds=4, max_words=60))
def test_any_conversation_can_be_summarised_without_inventing(messages: tuple[Message, ...]) -> None:
    source = survey(messages, (), messages)
    text = summarise(SummaryRequest(kind="summary", cap_tokens=600, messages=messages))
    assert text.strip()
    assert source.invented_in(text) == ()
    assert not source.is_fabricated(text)


def test_pictures_do_not_disturb_a_summary() -> None:
    message = UserMessage(parts=(Text(text="look at this"), png(300, 300)))
    assert "look at this" in summarise(SummaryRequest(kind="summary", cap_tokens=100, messages=(message,)))


def test_a_transcript_is_read_back_into_messages() -> None:
    text = (
        "Summary of the earlier parts:\nshop was slow\n\nTranscript, part 2 of 2:\n\n"
        "## user (request)\nwhy is cart failing?\n\n## assistant\ncalls kubectl_get with {}\n\n"
        "## result of kubectl_get (success)\n## a heading of a document\ncart 0/1 CrashLoopBackOff\n"
    )
    messages = messages_of_transcript(text)
    assert [type(message).__name__ for message in messages] == [
        "UserMessage", "UserMessage", "AssistantMessage", "ToolMessage"
    ]  # fmt: skip
    assert [message.kind for message in messages if isinstance(message, UserMessage)] == ["summary", "request"]
    assert isinstance(messages[3], ToolMessage)
    assert messages[3].text.endswith("## a heading of a document\ncart 0/1 CrashLoopBackOff")
    assert messages_of_transcript("no transcript") == (user_text("no transcript"),)
