"""Whole runs under every policy: pairing, prompt, nothing lost, costs, and how often things are counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.core.tools_utils.tool_executor import tool_result_message
from holmes.core.truncation.plan import repair_pairing
from holmes.llm.codec import MessageCodec
from holmes.stores.result_store import FileResultStore
from holmes.tokens import message_texts, utf8_bytes
from holmes.values.events import (
    AssistantReplied,
    ContextOverflowed,
    HistoryCompacted,
    ToolCallFinished,
    ToolResultsMasked,
)
from holmes.values.messages import SystemMessage, ToolMessage
from holmes.values.stats import RequestStats
from tests.core.invariants.failures import FAILURES
from tests.core.invariants.reach import Reachable, encoded
from tests.core.invariants.runs import Run, Script, play, scripts
from tests.core.invariants.stages import FEW, MANY, MEGABYTES, SUMMARY
from tests.support.counting_model import pairing_errors, tool_call
from tests.support.result_stores import MemoryStore

if TYPE_CHECKING:
    from holmes.values.tools import ResultStore, ToolResult
    from tests.support.counting_model import Answer

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Generating overly large repr")]
SUMMARISERS: tuple[Answer, ...] = (lambda _: SUMMARY, *FAILURES.values())
# Texts of Holmes that are in no message of a run, and guesses about where a preview or a cut should end.
_FIXED_BYTES = 32_768
_SAMPLED_FROM, _SAMPLE = 32_768, 16_384
ENDS = (AssistantReplied, ContextOverflowed)


@pytest.mark.timeout(600)
@pytest.mark.row("I1", "I2", "I6", "I12", "I14")
@MANY
@given(scripts(factors=(1.0, 1.0, 1.3)), st.integers(0, 2 * len(SUMMARISERS)))
async def test_a_whole_run_keeps_every_invariant(script: Script, summariser: int) -> None:
    store = MemoryStore()
    summarise = SUMMARISERS[summariser % len(SUMMARISERS)] if summariser < len(SUMMARISERS) else SUMMARISERS[0]
    run = await play(script, store, summarise=summarise)
    assert_pairing(run)
    assert_same_prompt(run)
    await assert_nothing_lost(run, store)
    assert_costs_add_up(run)
    assert_counted_once(run)


@pytest.mark.timeout(600)
@pytest.mark.row("I1", "I2", "I6", "I12", "I14")
@FEW
@given(scripts(most_rounds=4), MEGABYTES)
async def test_a_whole_run_keeps_every_invariant_with_lines_of_megabytes(script: Script, line_bytes: int) -> None:
    with TemporaryDirectory() as folder:
        store = FileResultStore(Path(folder) / "results")
        run = await play(replace(script, rounds=(5, *script.rounds)), store, longest_line=line_bytes)
        assert_pairing(run)
        assert_same_prompt(run)
        await assert_nothing_lost(run, store)
        assert_costs_add_up(run)
        assert_counted_once(run)


@pytest.mark.timeout(600)
@pytest.mark.row("I3")
@MANY
@given(scripts(["balanced"], factors=(1.0, 1.3)))
async def test_between_resets_a_request_is_a_prefix_of_the_next_and_results_join_in_call_order(script: Script) -> None:
    run = await play(script, MemoryStore())
    assert_prefix_between_resets(run)
    called = [
        call.id for event in run.events if isinstance(event, AssistantReplied) for call in event.message.tool_calls
    ]
    joined = [message.call_id for message in run.last.messages if isinstance(message, ToolMessage)]
    known = set(called)
    assert [call_id for call_id in joined if call_id in known] == [
        call_id for call_id in called if call_id in set(joined)
    ]


@pytest.mark.row("I3")
@FEW
@given(scripts(["balanced"], most_rounds=5), MEGABYTES)
async def test_between_resets_the_prefix_stays_with_lines_of_megabytes(script: Script, line_bytes: int) -> None:
    assert_prefix_between_resets(await play(replace(script, rounds=(5, *script.rounds)), None, longest_line=line_bytes))


def assert_pairing(run: Run) -> None:
    """Invariant 1. The model checks each request itself."""
    assert pairing_errors(run.last.messages) == []


def assert_same_prompt(run: Run) -> None:
    """Invariant 2: also in requests for summaries that carry the tools."""
    system = run.script.start[0]
    assert run.last.messages[0] == system
    tools = run.agent_requests[0].tools if run.agent_requests else ()
    for request in run.model.raw_requests:
        if request.tools:
            assert request.messages[0] == system
            assert request.tools == tools
    assert all(request.tools for request in run.agent_requests)


async def assert_nothing_lost(run: Run, store: ResultStore) -> None:
    """Invariant 6: what tools returned, and what the continued conversation had."""
    reachable = await Reachable.of(run.last.messages, store)
    earlier = [message for message in repair_pairing(run.script.start) if isinstance(message, ToolMessage)]
    returned = [tool_result_message(tool_call("x"), result) for result in run.outputs]
    for message in (*earlier, *returned):
        assert reachable.has(encoded(message.text)), message.text[:200]
        assert all(reachable.has(part.data) for part in message.parts if not hasattr(part, "text"))


def assert_costs_add_up(run: Run) -> None:
    """Invariant 12: the run's stats are the sum of what the provider billed; the parts are those of the requests."""
    paid = sum((stats for _, stats in run.model.charged), RequestStats())
    total = run.last.stats
    assert (total.prompt_tokens, total.completion_tokens, total.calls) == (
        paid.prompt_tokens,
        paid.completion_tokens,
        paid.calls,
    )
    assert total.cost == pytest.approx(paid.cost)
    summaries = sum((stats for request, stats in run.model.charged if request.tool_choice == "none"), RequestStats())
    assert total.compaction_tokens == summaries.total_tokens
    assert total.compaction_cost == pytest.approx(summaries.cost)
    adopted = [event for event in run.events if isinstance(event, HistoryCompacted)]
    assert total.compactions == len(adopted)


def assert_counted_once(run: Run) -> None:
    """Invariant 14. Offered: prompt, schemas, users, tools. Generated: by the model, or by Holmes in its place."""
    tokenized = sum(counter.bytes_tokenized for counter in run.watched.counters)
    messages = (
        *run.last.messages,
        *(message for request in run.model.raw_requests for message in request.messages),
        *(event.message for event in run.events if isinstance(event, ToolCallFinished)),
    )
    shown = {text for message in messages for text in message_texts(message)}
    first = {text for message in run.script.start for text in message_texts(message)}
    replies = [text for reply in run.model.replies for text in message_texts(reply)]
    whole = {result.data for result in run.outputs}
    offered = sum(map(_offered_bytes, run.outputs)) + sum(map(utf8_bytes, first)) + _FIXED_BYTES
    generated = sum(map(utf8_bytes, (*(shown - first - whole - set(replies)), *replies)))
    assert tokenized <= 1.05 * offered + 2 * generated, (tokenized, offered, generated)


def _offered_bytes(result: ToolResult) -> float:
    """The bytes of an output. Of a large one a sample of 16 K characters may be looked at before it is counted."""
    size = utf8_bytes(result.data)
    return size if len(result.data) <= _SAMPLED_FROM else size * (1 + _SAMPLE / len(result.data))


def assert_prefix_between_resets(run: Run) -> None:
    """Invariant 3, on the wire."""
    codec = MessageCodec(provider="x", vision=True)
    wires = iter([codec.encode(request.messages) for request in run.agent_requests])
    before = next(wires)
    resets = [False]
    for event in run.events:
        if isinstance(event, HistoryCompacted | ToolResultsMasked):
            resets[-1] = True
        elif isinstance(event, ENDS):
            resets.append(False)
    for after, reset in zip(wires, resets[1:], strict=False):
        assert reset or after[: len(before)] == before
        before = after
    assert len({repr(codec.encode_tools(request.tools)) for request in run.agent_requests}) == 1
    assert all(isinstance(request.messages[0], SystemMessage) for request in run.agent_requests)
