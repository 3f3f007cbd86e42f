"""A history with a summary in place of old rounds: its shape, what it keeps, what it costs, and when it is refused."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.policy import ContextPolicy, KeepPolicy, SummaryPolicy
from holmes.core.truncation.compaction import SUMMARY_HEADING, CompactionAttempt, compact_conversation_history
from holmes.core.truncation.context import CompactionContext, budget_of, measured
from holmes.core.truncation.entity_check import NOT_IN_SOURCE
from holmes.core.truncation.summary_message import largest_message_tokens
from holmes.evidence.verification import ledger_of
from holmes.stores.result_store import FileResultStore
from holmes.tokens.history import History
from holmes.values.errors import ModelError
from holmes.values.messages import (
    AssistantMessage,
    CompactionMark,
    Message,
    Text,
    ToolMessage,
    UserMessage,
    user_text,
)
from holmes.values.model import ModelReply, ModelRequest
from tests.core.truncation.summaries import COUNTER, FACTS, PLANTED, RecordingSteps, context_for, history_of, round_of
from tests.core.truncation.test_summary import CARELESS, FAILURES, GOOD, answering, is_repair
from tests.evidence.stores import PODS, Conversation
from tests.support.conversations import histories
from tests.support.counting_model import CountingModel, pairing_errors

PLAIN = ContextPolicy(summary=SummaryPolicy(verify_entities=False, reminder=False))
SMALL = 20_000


async def compact(history: History, context: CompactionContext) -> CompactionAttempt:
    return await compact_conversation_history(history, measured(history, context))


def adopted(attempt: CompactionAttempt) -> History:
    assert attempt.history is not None, attempt.failure
    return attempt.history


def summary_in(history: History) -> UserMessage:
    (message,) = (m for m in history if isinstance(m, UserMessage) and m.kind == "summary")
    return message


@pytest.mark.row("K1", "K8", "K11")
async def test_the_shape_is_system_task_one_summary_last_question_tail(tmp_path: Path) -> None:
    before = history_of(rounds=10).messages()
    asked = user_text("And the payment service?")
    later = tuple(message for n in range(30) for message in round_of(f"l{n}", f"healthy {n} " * 200))
    history = History((*before, asked, *later), COUNTER)
    store = FileResultStore(tmp_path)
    context = context_for(answering(GOOD, window=SMALL, output=2_000), store=store)
    attempt = await compact(history, context)
    after = adopted(attempt).messages()
    assert after[:2] == before[:2]
    assert after[3] is asked
    tail = after[4:]
    assert tail == history.messages()[-len(tail) :]
    message = after[2]
    assert isinstance(message, UserMessage)
    assert message.text.startswith(f"{SUMMARY_HEADING} The removed messages are stored as result ")
    assert GOOD.text in message.text
    assert message.text.endswith("Available tools, as before: kubectl_get, kubectl_logs.")
    assert attempt.removed is not None
    assert message.stored == (attempt.removed,)
    assert message.mark == CompactionMark(kept_rounds=len(tail) // 2, tokens=adopted(attempt).tokens())
    stored = (await store.read(attempt.removed.id))[0].decode()
    kept = {id(one) for one in after}
    assert all(one.text in stored for one in history if id(one) not in kept)
    assert pairing_errors(after) == []


@pytest.mark.row("K8")
async def test_a_policy_without_reminder_and_check_writes_the_summary_alone() -> None:
    attempt = await compact(history_of(), context_for(answering(GOOD, window=SMALL, output=2_000), policy=PLAIN))
    assert summary_in(adopted(attempt)).parts == (Text(text=f"{SUMMARY_HEADING}\n\n{GOOD.text}"),)
    assert (attempt.removed, attempt.flagged) == (None, ())


@pytest.mark.row("S7")
async def test_summary_retry_and_repair_are_the_cost_of_the_compaction() -> None:
    def answer(request: ModelRequest) -> AssistantMessage:
        return AssistantMessage(text="") if request.tools else CARELESS

    model = CountingModel(answer, window_tokens=60_000)
    attempt = await compact(history_of(), context_for(model))
    assert len(model.requests) == 3
    assert attempt.stats.cost == attempt.stats.compaction_cost == pytest.approx(0.03)
    assert attempt.stats.compaction_tokens == attempt.stats.total_tokens > 0
    assert (attempt.stats.calls, attempt.stats.compactions) == (3, 1)


@pytest.mark.row("S7")
async def test_a_failed_compaction_is_charged_and_counts_as_none() -> None:
    model = answering(FAILURES["exception"], window=60_000)
    attempt = await compact(history_of(), context_for(model))
    assert attempt.history is None
    assert attempt.stats.compaction_cost == attempt.stats.cost == pytest.approx(0.01 * len(model.requests))
    assert attempt.stats.compactions == 0


@pytest.mark.row("K16")
async def test_a_summary_that_is_not_shorter_than_what_it_stands_for_is_not_adopted() -> None:
    rounds = (message for number in range(4) for message in round_of(f"c{number}", "ok"))
    messages = (*history_of(rounds=0, facts=()), *rounds)
    policy = ContextPolicy(keep=KeepPolicy(tail_tokens=0), summary=SummaryPolicy(verify_entities=False))
    model = answering(AssistantMessage(text="Checked. " * 40), window=600, output=100)
    context = context_for(model, policy=policy, tools=())
    attempt = await compact(History(messages, COUNTER), context)
    assert model.requests
    assert attempt.history is None
    assert attempt.failure == "the conversation is still too long with the summary"
    assert attempt.stats.cost > 0


@pytest.mark.row("K16")
async def test_the_model_is_not_asked_when_too_little_would_come_free() -> None:
    history = history_of(rounds=1, lines=2, facts=FACTS[:1])
    model = answering(GOOD, window=SMALL)
    attempt = await compact(history, context_for(model))
    assert attempt.failure == "a summary would remove only 0 tokens"
    assert model.requests == []


@pytest.mark.row("K10")
@pytest.mark.parametrize(("above", "asked"), [(1_000, True), (500_000, False)])
async def test_there_is_no_summary_while_what_it_would_stand_for_is_small(above: int, asked: bool) -> None:
    policy = ContextPolicy(summary=SummaryPolicy(compress_above_tokens=above, verify_entities=False))
    model = answering(GOOD, window=SMALL, output=2_000)
    attempt = await compact(history_of(), context_for(model, policy=policy))
    assert bool(model.requests) == (attempt.history is not None) == asked


@pytest.mark.row("K10")
async def test_groups_are_stored_under_the_chat(tmp_path: Path) -> None:
    summary = SummaryPolicy(group_token_threshold=3_000, chat_id="chat-9", verify_entities=False)
    model = CountingModel(lambda _: GOOD, window_tokens=SMALL, max_output_tokens=2_000)
    context = context_for(model, policy=ContextPolicy(summary=summary), store=FileResultStore(tmp_path))
    attempt = await compact(history_of(), context)
    texts = files_named(tmp_path, "group_chat-9-")
    assert len(texts) == len(model.requests) > 1
    assert FACTS[0] in texts["group_chat-9-1.txt"]
    assert [stored.media_type for stored in attempt.groups] == ["text/plain"] * len(texts)
    assert await compact_without_groups(tmp_path / "plain") == {}


async def compact_without_groups(folder: Path) -> dict[str, str]:
    context = context_for(answering(GOOD, window=SMALL, output=2_000), policy=PLAIN, store=FileResultStore(folder))
    await compact(history_of(), context)
    return files_named(folder, "group_")


def files_named(folder: Path, start: str) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.glob(f"{start}*"))}


@pytest.mark.row("N7")
async def test_a_careless_summary_keeps_every_planted_name_with_the_check_and_none_without() -> None:
    def recall(attempt: CompactionAttempt) -> float:
        text = "\n".join(message.text for message in adopted(attempt).messages()[2:])
        return sum(name in text for name in PLANTED) / len(PLANTED)

    model = answering(CARELESS, window=SMALL, output=2_000)
    without = await compact(history_of(), context_for(model, policy=PLAIN))
    checked = await compact(history_of(), context_for(model))
    assert (recall(without), recall(checked)) == (0.0, 1.0)
    added = summary_in(adopted(checked)).text.partition("Also seen: ")[2]
    assert "web-" not in added
    assert COUNTER.count_text(added) <= 250


@pytest.mark.row("N8")
async def test_invented_names_are_marked_and_reported_and_the_summary_is_used() -> None:
    text = "\n".join((*FACTS, "Also pod payment-5c4d8f7b9-zzk8q got ImagePullBackOff."))
    attempt = await compact(history_of(), context_for(answering(AssistantMessage(text=text), window=SMALL)))
    assert attempt.flagged == ("payment-5c4d8f7b9-zzk8q", "ImagePullBackOff")
    assert f"pod payment-5c4d8f7b9-zzk8q{NOT_IN_SOURCE} got ImagePullBackOff{NOT_IN_SOURCE}." in (
        summary_in(adopted(attempt)).text
    )


@pytest.mark.row("N6")
async def test_the_ledger_outlives_two_compactions(tmp_path: Path) -> None:
    conversation = Conversation.below(tmp_path)
    pods = await conversation.result(PODS)
    cited = AssistantMessage(text=f"`inventory-9b2` is `OOMKilled` [[{pods}:4]].")
    messages = list(history_of().messages())
    messages[2:2] = [cited]
    verifier = conversation.verifier()
    context = replace(context_for(answering(GOOD, window=SMALL, output=2_000)), verifier=verifier)
    first = adopted(await compact(History(messages, COUNTER), context))
    assert f"[[{pods}:4]]" in summary_in(first).text
    more = History((*first, *history_of().messages()[2:]), COUNTER)
    second = adopted(await compact(more, replace(context, steps=RecordingSteps())))
    proved = await ledger_of((cited,), verifier)
    assert len(proved.citations) == 1
    assert (await ledger_of(second.messages(), None)).citations == proved.citations
    assert sum(isinstance(m, UserMessage) and m.kind == "summary" for m in second) == 1


@pytest.mark.row("K11")
async def test_a_full_disk_stops_no_compaction(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    store = FileResultStore(blocked / "results")
    attempt = await compact(history_of(), context_for(answering(GOOD, window=SMALL, output=2_000), store=store))
    assert adopted(attempt).tokens() < 10_000
    assert attempt.removed is None
    assert "are stored as" not in summary_in(adopted(attempt)).text


ANSWERS = st.sampled_from([*FAILURES.values(), GOOD, CARELESS, AssistantMessage(text="The pod web-1 is down.\n" * 400)])


@settings(max_examples=100, deadline=None)
@given(histories(max_rounds=8, max_words=250), st.integers(500, 4_000), ANSWERS, ANSWERS, st.booleans())
async def test_any_failure_leaves_a_valid_conversation_or_none(
    messages: tuple[Message, ...],
    window: int,
    first: AssistantMessage | ModelReply | ModelError,
    second: AssistantMessage | ModelReply | ModelError,
    with_store: bool,
) -> None:
    def answer(request: ModelRequest) -> AssistantMessage | ModelReply | ModelError:
        return second if is_repair(request) or not request.tools else first

    model = CountingModel(answer, window_tokens=window, max_output_tokens=window // 8)
    history = History(messages, COUNTER)
    with tempfile.TemporaryDirectory() as folder:
        context = context_for(model, store=FileResultStore(Path(folder)) if with_store else None)
        attempt = await compact(history, context)
        assert history.messages() == messages
        assert attempt.stats.cost == attempt.stats.compaction_cost
        assert (attempt.stats.cost > 0) or not model.requests
        if attempt.history is None:
            assert attempt.failure
            assert attempt.stats.compactions == 0
            return
        after, budget = attempt.history, budget_of(history, context)
        assert pairing_errors(after) == []
        assert after.tokens() < history.tokens()
        assert after.messages()[:2] == messages[:2]
        requests = [m for m in messages if isinstance(m, UserMessage) and m.kind == "request"]
        assert any(m is requests[-1] for m in after)
        stand_in = next(m for m in after if isinstance(m, UserMessage) and m.kind == "summary")
        assert COUNTER.count_message(stand_in) <= largest_message_tokens(budget.summary_tokens)
        for failure in FAILURES.values():
            if isinstance(failure, ModelError):
                assert str(failure) not in stand_in.text
        if with_store and attempt.removed is not None and context.store is not None:
            blob = (await context.store.read(attempt.removed.id))[0].decode()
            cut = {m.call_id for m in after if isinstance(m, ToolMessage)}
            results = [m for m in messages if isinstance(m, ToolMessage) and m.call_id not in cut]
            assert all(m.text in blob for m in results if not m.stored)
