"""A jq expression and the statistics of a stored result: bounded in time, memory and tokens, whatever is asked."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.stores.result_store import FileResultStore
from holmes.tokens import TokenCounter
from holmes.toolsets.stored_results import StoredResultsToolset
from holmes.values.json_types import JsonValue
from holmes.values.messages import HandedOver, ResultId, Text, ToolCallId, ToolMessage
from holmes.values.tools import ToolInvocation, ToolResult
from tests.support.conversations import png, texts
from tests.support.deadlines import ends_before
from tests.support.result_stores import MemoryStore

COUNTER = TokenCounter()
PUT: set[ResultId] = set()
"""What `stored` has stored: the results of the conversation that calls."""
PODS = [
    {"metadata": {"name": f"pod-{number}"}, "status": {"phase": "Failed" if number == 77 else "Running"}}
    for number in range(500)
]


def toolset_of(store: FileResultStore | MemoryStore, cap: int = 2_000, *, seconds: int = 8) -> StoredResultsToolset:
    return StoredResultsToolset(store=store, counter=COUNTER, cap_tokens=cap, vision=True, query_seconds=seconds)


async def stored(
    store: FileResultStore | MemoryStore, content: bytes | str, media_type: str = "text/plain"
) -> ResultId:
    raw = content.encode() if isinstance(content, str) else content
    put = await store.put(raw, tool_name="t", call_id=ToolCallId("c"), media_type=media_type)
    PUT.add(put.id)
    return put.id


def handed_over() -> HandedOver:
    return HandedOver(ids=frozenset(PUT))


async def call(toolset: StoredResultsToolset, name: str, **arguments: JsonValue) -> ToolResult:
    tool = next(tool for tool in toolset.tools if tool.name == name)
    result = await toolset.call(
        ToolInvocation(call_id=ToolCallId("x"), tool=tool, arguments=arguments, handed_over=handed_over())
    )
    assert not result.spillable
    message = ToolMessage(
        call_id=ToolCallId("x"), tool_name=name, status="success", parts=(Text(text=result.data or result.error or ""),)
    )
    assert COUNTER.count_message(message) <= toolset.cap_tokens
    return result


async def query(toolset: StoredResultsToolset, result_id: ResultId, expression: str) -> ToolResult:
    return await call(toolset, "query_stored_result", result_id=result_id, expression=expression)


def running_queries() -> list[psutil.Process]:
    return [process for process in psutil.Process().children(recursive=True) if _is_query(process)]


def _is_query(process: psutil.Process) -> bool:
    try:
        return any("jq_program" in argument for argument in process.cmdline())
    except psutil.NoSuchProcess:  # it ended, or it is a zombie of another test
        return False


@pytest.mark.row("N2", "T17")
async def test_an_expression_selects_and_texts_come_without_quotes() -> None:
    store = MemoryStore()
    toolset, result_id = toolset_of(store), await stored(store, json.dumps({"items": PODS}), "application/json")
    found = await query(toolset, result_id, '.items[] | select(.status.phase != "Running") | .metadata.name')
    assert found.data.splitlines()[1:] == ["pod-77"]
    assert found.data.startswith(f"Result {result_id}: 1 results of ")
    counted = await query(
        toolset, result_id, ".items | group_by(.status.phase) | map({(.[0].status.phase): length}) | add"
    )
    assert counted.data.splitlines()[1:] == ['{"Failed": 1, "Running": 499}']


@pytest.mark.row("N2")
async def test_too_many_results_say_how_many_more_and_how_to_go_on() -> None:
    store = MemoryStore()
    toolset, result_id = toolset_of(store, 400), await stored(store, json.dumps(PODS), "application/json")
    result = await query(toolset, result_id, ".[] | .metadata.name")
    heading, *shown = result.data.splitlines()
    assert shown == [f"pod-{number}" for number in range(len(shown))]
    assert f"500 results of '.[] | .metadata.name', showing 1-{len(shown)}; {500 - len(shown)} more" in heading
    whole = await query(toolset, result_id, ".")
    assert "more characters of this result]" in whole.data or whole.data.count("pod-") > 5


@pytest.mark.row("N2")
async def test_json_lines_are_queried_one_by_one_and_what_stopped_a_query_is_said() -> None:
    store = MemoryStore()
    lines = "".join(json.dumps({"level": level}) + "\n" for level in ("info", "error", "info"))
    toolset, result_id = toolset_of(store), await stored(store, lines)
    assert (await query(toolset, result_id, ".level")).data.splitlines()[1:] == ["info", "error", "info"]
    mixed = await stored(store, '{"a": 1}\n[2]\n')
    partly = await query(toolset, mixed, ".a")
    assert "1 results of '.a'; stopped by an error: Cannot index array with string" in partly.data


@pytest.mark.parametrize(
    ("content", "expression", "error"),
    [
        ("[1]", ".[", "syntax error"),
        ("[1]", ".[0].name", 'Cannot index number with string ("name")'),
        ("plain text\n", ".", "the result is not JSON: use search_stored_result"),
        ("[1]", 'import "secrets" as $s; .', "syntax error"),
        ("[1]", "x" * 5_000, "expression is longer than 4,000 characters"),
    ],
)
async def test_a_wrong_expression_or_result_is_an_error_that_helps(content: str, expression: str, error: str) -> None:
    store = MemoryStore()
    result = await query(toolset_of(store), await stored(store, content), expression)
    assert result.status == "error"
    assert error in (result.error or "")


async def test_nothing_found_is_no_data_and_no_variable_of_ours_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    store = MemoryStore()
    toolset, result_id = toolset_of(store), await stored(store, "[1]")
    assert (await query(toolset, result_id, "empty")).status == "no_data"
    assert "sk-secret" not in (await query(toolset, result_id, "$ENV, env")).data


@pytest.mark.row("N2")
@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("[range(1e12)]", "took longer than 1 seconds|exceeded the memory limit"),
        ("last(repeat(1))", "took longer than 1 seconds"),
        ("def f: f; f", "took longer than 1 seconds"),
        ('"x" * 1e9', "took longer than 1 seconds|exceeded the memory limit"),
        ("repeat(1) | select(false)", "took longer than 1 seconds"),
        ("def f: [f]; f", "took longer than 1 seconds|exceeded the memory limit"),
    ],
)
async def test_a_hostile_expression_ends_with_a_clear_error_and_leaves_no_process(expression: str, reason: str) -> None:
    store = MemoryStore()
    toolset, result_id = toolset_of(store, seconds=1), await stored(store, "[1]")
    with ends_before(60):
        result = await query(toolset, result_id, expression)
    assert result.status == "error"
    assert any(part in (result.error or "") for part in reason.split("|")), result.error
    assert "use a simpler expression" in (result.error or "")
    assert running_queries() == []


async def test_results_without_end_are_counted_up_to_a_million_or_until_the_time_is_over() -> None:
    store = MemoryStore()
    result = await query(toolset_of(store, seconds=1), await stored(store, "[1]"), "repeat(1)")
    if result.status == "error":  # a slow machine
        assert "took longer than 1 seconds" in (result.error or "")
    else:
        assert "at least 1,000,000 results of 'repeat(1)'" in result.data
    assert running_queries() == []


async def test_cancelling_a_query_ends_its_process() -> None:
    store = MemoryStore()
    task = asyncio.create_task(query(toolset_of(store), await stored(store, "[1]"), "last(repeat(1))"))
    for _ in range(200):
        await asyncio.sleep(0.02)
        if running_queries():
            break
    assert running_queries()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running_queries() == []


@pytest.mark.row("N2")
async def test_statistics_name_kind_size_and_what_stands_out(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    toolset = toolset_of(store)
    log = "".join(
        f"2026-11-21T10:{number // 60:02d}:{number % 60:02d}Z "
        + ("ERROR disk quota of tenant blue is used up" if number == 900 else f"INFO request {number} served in 12 ms")
        + "\n"
        for number in range(3_000)
    )
    result = await call(toolset, "summarize_stored_result", result_id=await stored(store, log))
    assert ": logs, 3,000 lines, " in result.data.splitlines()[0]
    assert "disk quota of tenant blue" in result.data
    pods = await call(
        toolset, "summarize_stored_result", result_id=await stored(store, json.dumps(PODS), "application/json")
    )
    assert ": json, " in pods.data.splitlines()[0]
    assert "Failed" in pods.data
    picture = await call(toolset, "summarize_stored_result", result_id=await stored(store, png(9, 9).data, "image/png"))
    assert "is an image (image/png); use read_image_file" in (picture.error or "")


@pytest.mark.row("N2", "I7")
@settings(max_examples=40, deadline=None)
@given(texts(3_000).filter(bool), st.integers(150, 1_500))
async def test_statistics_of_any_text_are_within_the_cap(text: str, cap: int) -> None:
    store = MemoryStore()
    content = text.encode("utf-8", "replace")
    result = await call(toolset_of(store, cap), "summarize_stored_result", result_id=await stored(store, content))
    assert result.status == "success"


@pytest.mark.row("N2")
def test_all_schemas_together_stay_below_700_tokens() -> None:
    for encoding in ("o200k_base", "cl100k_base"):
        assert TokenCounter(encoding).count_tools(toolset_of(MemoryStore()).tools) < 700
