"""`offload_context` does what its document says, loses nothing, breaks no pair, and never cuts anything off."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.truncation.offload import OffloadOptions, offload_context
from holmes.llm.scripted import ScriptedModel, ScriptedReply
from holmes.stores.result_store import FileResultStore
from holmes.values.errors import ConfigError, ModelError
from holmes.values.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage, user_text
from tests.core.truncation.masking.support import (
    COUNTER,
    MemoryStore,
    conversation,
    history_of,
    result,
    unstored,
)
from tests.support.conversations import broken_histories, histories
from tests.support.counting_model import pairing_errors

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.core.policy import Mode
    from holmes.core.truncation.offload import OffloadOutcome
    from holmes.values.errors import HolmesError
    from holmes.values.messages import Message
    from holmes.values.model import ModelRequest

BIG = "pod checkout-7f9c OOMKilled\n" * 400
SUMMARY = "checkout-7f9c was OOMKilled; the limit is 128Mi."


def chat(rounds: int, *, text: str = BIG) -> tuple[Message, ...]:
    """A conversation with results that no store has seen."""
    return conversation(*((unstored(result(f"c{number}", f"{number} {text}")),) for number in range(rounds)))


def talk(turns: int) -> tuple[Message, ...]:
    """A conversation without tools, each message of about a thousand tokens."""
    said: list[Message] = [SystemMessage(text="You help.")]
    for number in range(turns):
        said += [user_text(f"question {number} " + "why " * 1_000), AssistantMessage(text=f"{number} " + "so " * 1_000)]
    return tuple(said)


def summariser() -> ScriptedModel:
    """Writes the same summary whatever it is asked."""
    return ScriptedModel(lambda _: ScriptedReply(text=SUMMARY))


def prompts(model: ScriptedModel) -> list[str]:
    """The user's text of every request."""
    return ["\n".join(m.text for m in request.messages if isinstance(m, UserMessage)) for request in model.requests]


async def failing(error: ScriptedReply | HolmesError) -> tuple[OffloadOutcome, tuple[Message, ...]]:
    given = talk(12)
    model = ScriptedModel(lambda _: error)
    return await offload_context(given, OffloadOptions(mode="compress"), store=MemoryStore(), model=model), given


@pytest.mark.row("K15", "P2")
async def test_compact_moves_large_results_and_tells_what_went_where(tmp_path: Path) -> None:
    given = chat(12)
    store = FileResultStore(tmp_path / "results")
    outcome = await offload_context(given, OffloadOptions(mode="compact"), store=store)
    metadata = outcome.metadata
    assert [moved.position for moved in metadata.moved] == list(range(3, 25, 2))
    assert (metadata.tokens_before, metadata.tokens_after) == (
        history_of(given).tokens(),
        history_of(outcome.messages).tokens(),
    )
    assert metadata.tokens_after < metadata.tokens_before / 2
    assert (metadata.messages_before, metadata.messages_after, metadata.groups, metadata.failure) == (26, 26, (), None)
    assert str(uuid.UUID(metadata.chat_id)) == metadata.chat_id
    first = metadata.moved[0]
    assert (first.tool_name, len(first.stored)) == ("kubectl_get", 1)
    assert first.stored[0].path is not None
    assert (await store.read(first.stored[0].id))[0].decode() == f"0 {BIG}"
    assert first.tokens_before - first.tokens_after == COUNTER.count_message(given[3]) - COUNTER.count_message(
        outcome.messages[3]
    )
    assert [a is b for a, b in zip(given, outcome.messages, strict=True)].count(False) == 11


@pytest.mark.row("K15", "P2")
async def test_compact_leaves_alone_what_the_thresholds_spare() -> None:
    given = chat(3)
    tokens = history_of(given).tokens()
    over = OffloadOptions(mode="compact", max_total_tokens=tokens - 1)
    for options in (
        replace(over, max_total_tokens=tokens),
        replace(over, max_tool_message_tokens=tokens),
        replace(over, keep_recent_count=100),
    ):
        outcome = await offload_context(given, options, store=MemoryStore())
        assert [a is b for a, b in zip(given, outcome.messages, strict=True)] == [True] * 8
        assert outcome.metadata.moved == ()
    for keep, moved in ((None, 2), (0, 3), (1, 2), (3, 1)):
        options = replace(over, keep_recent_count=keep)
        assert len((await offload_context(given, options, store=MemoryStore())).metadata.moved) == moved


@pytest.mark.row("K15")
async def test_what_cannot_be_stored_stays_whole_and_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    given = chat(12)
    store = FileResultStore(tmp_path / "file" / "results")
    outcome = await offload_context(given, OffloadOptions(mode="compact"), store=store)
    assert outcome.messages == given
    assert outcome.metadata.failure is not None
    assert "some results could not be stored and stay whole: " in outcome.metadata.failure
    talked = talk(12)
    model = summariser()
    outcome = await offload_context(talked, OffloadOptions(mode="compress"), store=store, model=model)
    assert outcome.messages == talked
    assert outcome.metadata.failure == "no summary was written: the removed messages could not be stored"
    assert model.requests == []


@pytest.mark.row("K15", "K10")
async def test_compress_puts_one_summary_in_the_place_of_all_but_system_and_recent_messages(tmp_path: Path) -> None:
    given = talk(12)
    store = FileResultStore(tmp_path / "results")
    model = summariser()
    options = OffloadOptions(mode="compress", chat_id="incident-7")
    outcome = await offload_context(given, options, store=store, model=model)
    system, summary, *recent = outcome.messages
    assert (system, tuple(recent)) == (given[0], given[-2:])
    assert isinstance(summary, UserMessage)
    assert summary.kind == "summary"
    assert SUMMARY in summary.text
    (group,) = outcome.metadata.groups
    assert group.messages == 22
    assert f"result {group.stored.id}" in summary.text
    assert group.stored.path is not None
    assert "incident-7" in group.stored.path
    content = (await store.read(group.stored.id))[0].decode()
    assert all(message.text in content for message in given[1:-2])
    assert outcome.metadata.stats.compactions == 1
    assert outcome.metadata.stats.calls == len(model.requests) > 0
    assert outcome.metadata.tokens_after == history_of(outcome.messages).tokens()


@pytest.mark.row("K10")
async def test_compress_leaves_system_and_recent_messages_out_of_the_total() -> None:
    given = (SystemMessage(text="rule " * 30_000), *talk(9)[1:], user_text("paste " * 30_000))
    counts = history_of(given).token_counts()
    removable = sum(counts[1:-2])
    for limit, requests in ((removable, 0), (removable - 1, 1)):
        model = summariser()
        options = OffloadOptions(mode="compress", max_total_tokens=limit)
        await offload_context(given, options, store=MemoryStore(), model=model)
        assert (len(model.requests) > 0) == (requests > 0)


@pytest.mark.row("K10")
async def test_groups_follow_the_threshold_and_a_large_message_is_its_own_group() -> None:
    small = talk(4)[1:]
    given = (*talk(0), *small, user_text("log " * 9_000), *talk(5)[1:])
    model = summariser()
    options = OffloadOptions(mode="compress", max_total_tokens=5_000, group_token_threshold=4_200)
    outcome = await offload_context(given, options, store=MemoryStore(), model=model)
    assert [group.messages for group in outcome.metadata.groups] == [4, 4, 1, 4, 4]
    summary = outcome.messages[1]
    assert isinstance(summary, UserMessage)
    assert [f"Part {number} of 5" in summary.text for number in range(1, 6)] == [True] * 5
    asked = prompts(model)
    assert "question 0" in asked[0]
    assert "question 2" not in asked[0]
    for threshold in (None, 0):
        options = replace(options, group_token_threshold=threshold)
        outcome = await offload_context(given, options, store=MemoryStore(), model=summariser())
        assert [group.messages for group in outcome.metadata.groups] == [17]


@pytest.mark.row("K9", "K10")
@pytest.mark.parametrize("keep", [0, 1, 2, 3, 4, 7])
async def test_recent_messages_are_kept_in_whole_rounds(keep: int) -> None:
    parallel = tuple(unstored(result(f"p{number}", "x")) for number in range(4))
    given = (*chat(10), *conversation(parallel)[2:])
    options = OffloadOptions(mode="compress", keep_recent_count=keep)
    outcome = await offload_context(given, options, store=MemoryStore(), model=summariser())
    kept = outcome.messages[2:]
    assert outcome.metadata.groups
    assert kept == given[len(given) - len(kept) :]
    assert len(kept) >= keep
    assert len(kept) == {0: 0, 7: 7}.get(keep, 5)
    assert pairing_errors(outcome.messages) == []


@pytest.mark.row("C5", "K15")
async def test_auto_compresses_only_what_compaction_did_not_reduce_to_three_quarters() -> None:
    large_results = chat(12)
    model = summariser()
    # What is left is above the total again, and yet less than three quarters of what was given.
    options = OffloadOptions(max_total_tokens=3_000)
    outcome = await offload_context(large_results, options, store=MemoryStore(), model=model)
    assert len(outcome.metadata.moved) == 11
    assert outcome.metadata.tokens_after > 6_000
    assert (outcome.metadata.groups, model.requests) == ((), [])
    # One large result among much talk: moving it frees too little.
    mixed = (*talk(12), *chat(2)[2:])
    outcome = await offload_context(mixed, store=MemoryStore(), model=model)
    assert [moved.position for moved in outcome.metadata.moved] == [26]
    assert outcome.metadata.groups
    assert outcome.metadata.tokens_after < outcome.metadata.tokens_before / 2
    short = talk(3)
    outcome = await offload_context(short, store=MemoryStore(), model=summariser())
    assert outcome.messages == short


@pytest.mark.row("K15")
async def test_compress_without_a_model_is_a_mistake_and_auto_says_what_it_left_out() -> None:
    with pytest.raises(ConfigError, match="requires a model"):
        await offload_context(talk(1), OffloadOptions(mode="compress"), store=MemoryStore())
    outcome = await offload_context(talk(12), store=MemoryStore())
    assert outcome.messages == talk(12)
    assert outcome.metadata.failure == "no summary was written: a model is required"


@pytest.mark.row("K15")
@pytest.mark.parametrize(
    "error",
    [
        ModelError("the provider is down", provider="test", model="scripted", retryable=False),
        ScriptedReply(text=""),
        ScriptedReply(text="half of", finish_reason="length"),
        ScriptedReply(text="I'm sorry, I cannot do that."),
    ],
)
async def test_a_summary_that_fails_changes_nothing_and_the_metadata_say_why(error: ScriptedReply | ModelError) -> None:
    outcome, given = await failing(error)
    assert outcome.messages == given
    assert outcome.metadata.failure is not None
    assert outcome.metadata.failure.startswith("no summary was written: ")
    assert outcome.metadata.groups == ()
    assert outcome.metadata.tokens_after == outcome.metadata.tokens_before


@pytest.mark.row("K10", "K15")
async def test_one_failed_group_of_several_leaves_all_messages() -> None:
    def answer(request: ModelRequest) -> ScriptedReply | HolmesError:
        if any("question 6" in m.text for m in request.messages if isinstance(m, UserMessage)):
            return ModelError("the provider is down", provider="test", model="scripted", retryable=False)
        return ScriptedReply(text=SUMMARY)

    given = talk(12)
    options = OffloadOptions(mode="compress", group_token_threshold=8_000)
    outcome = await offload_context(given, options, store=MemoryStore(), model=ScriptedModel(answer))
    assert outcome.messages == given
    assert "part 2 of 4: the provider is down" in str(outcome.metadata.failure)
    assert outcome.metadata.stats.calls > 0


@pytest.mark.row("K16", "K15")
async def test_a_summary_that_is_no_shorter_is_not_used() -> None:
    given: list[Message] = [SystemMessage(text="s"), *(user_text(f"{number}") for number in range(40))]
    options = OffloadOptions(mode="compress", max_total_tokens=10)
    model = ScriptedModel(lambda _: ScriptedReply(text="so many words. " * 5))
    options = replace(options, group_token_threshold=1)
    outcome = await offload_context(given, options, store=MemoryStore(), model=model)
    assert outcome.messages == tuple(given)
    assert outcome.metadata.failure


async def test_options_that_make_no_sense_are_refused() -> None:
    for options in (
        OffloadOptions(max_total_tokens=-1),
        OffloadOptions(keep_recent_count=-1),
        OffloadOptions(group_token_threshold=-5),
    ):
        with pytest.raises(ConfigError, match="must be at least 0"):
            await offload_context((), options, store=MemoryStore())


async def test_an_empty_conversation_comes_back() -> None:
    outcome = await offload_context((), store=MemoryStore())
    assert (outcome.messages, outcome.metadata.tokens_before) == ((), 0)


@pytest.mark.row("K9", "K15")
@settings(max_examples=60)
@given(
    messages=st.one_of(histories(8), broken_histories()),
    mode=st.sampled_from(["compact", "compress", "auto"]),
    keep=st.sampled_from([None, 0, 1, 3]),
    threshold=st.sampled_from([None, 0, 300]),
)
async def test_offloading_shortens_or_returns_what_it_got_and_breaks_no_pair(
    messages: tuple[Message, ...], mode: Mode, keep: int | None, threshold: int | None
) -> None:
    options = OffloadOptions(
        mode=mode,
        max_total_tokens=200,
        max_tool_message_tokens=50,
        keep_recent_count=keep,
        group_token_threshold=threshold,
    )
    outcome = await offload_context(messages, options, store=MemoryStore(), model=summariser())
    if any(a is not b for a, b in zip(messages, outcome.messages, strict=False)) or len(messages) != len(
        outcome.messages
    ):
        assert outcome.metadata.tokens_after < outcome.metadata.tokens_before
    assert history_of(outcome.messages).tokens() == outcome.metadata.tokens_after
    if not pairing_errors(messages):
        assert pairing_errors(outcome.messages) == []
    compacted = await offload_context(outcome.messages, replace(options, mode="compact"), store=MemoryStore())
    again = await offload_context(compacted.messages, replace(options, mode="compact"), store=MemoryStore())
    assert again.messages == compacted.messages
    assert not any(
        isinstance(message, ToolMessage) and not message.stored and message.masked for message in again.messages
    )
