"""Large results through the whole loop: stored, pointed at, read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from holmes.llm.codec import MessageCodec
from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.stores.result_store import FileResultStore
from holmes.tokens import TokenCounter
from holmes.toolsets.stored_results import StoredResultsToolset
from holmes.values.events import AnswerFinished, ToolResultSpilled
from holmes.values.messages import Image, ToolMessage, user_text
from holmes.values.model import ModelRequest
from holmes.values.tools import ToolInvocation, ToolResult, Toolset
from tests.support.conversations import png
from tests.support.investigations import QUESTION, build_loop, events_of
from tests.support.toolsets import FunctionToolset, tool

CAP_TOKENS = 19_200  # 15 % of the scripted model's window of 128,000
PICTURE = png(1_500, 1_500, padding=50_000)


def results_toolset(store: FileResultStore) -> StoredResultsToolset:
    return StoredResultsToolset(store=store, counter=TokenCounter(), cap_tokens=CAP_TOKENS, vision=True)


def result_at(request: ModelRequest, index: int = -1) -> ToolMessage:
    message = request.messages[index]
    assert isinstance(message, ToolMessage)
    return message


@pytest.mark.row("T1", "T17")
async def test_a_log_of_20_mb_is_stored_whole_found_again_and_its_pointer_stays_within_the_cap(tmp_path: Path) -> None:
    lines = [f"2026-01-31T10:00:00Z request {number} served in 12 ms" for number in range(450_000)]
    lines[311_111] = "2026-01-31T10:07:07Z FATAL the disk quota of tenant blue is used up"
    log = "\n".join(lines)
    assert len(log) > 20_000_000

    async def read_log(_: ToolInvocation) -> ToolResult:
        return ToolResult(status="success", data=log)

    def search(request: ModelRequest) -> ScriptedReply:
        (stored,) = result_at(request).stored
        return ScriptedReply(tool_calls=(scripted_call("search_stored_result", result_id=stored.id, pattern="FATAL"),))

    store = FileResultStore(tmp_path)
    model = ScriptedModel(
        [ScriptedReply(tool_calls=(scripted_call("read_log"),)), search, ScriptedReply(text="Quota.")]
    )
    toolsets: list[Toolset] = [FunctionToolset(bodies=((tool("read_log"), read_log),)), results_toolset(store)]
    events = await events_of(build_loop([model], toolsets, store=store))
    assert isinstance(events[-1], AnswerFinished)
    (spilled,) = (event for event in events if isinstance(event, ToolResultSpilled))
    assert spilled.stored
    pointer = result_at(model.requests[1])
    assert TokenCounter().count_message(pointer) <= CAP_TOKENS
    content, _ = await store.read(pointer.stored[0].id)
    assert content.decode() == log
    found = result_at(model.requests[2])
    assert "311112" in found.text
    assert lines[311_111] in found.text
    assert not found.spilled


@pytest.mark.row("T1", "T7", "T17")
async def test_a_picture_is_spilled_with_its_text_and_comes_back_through_read_image_file(tmp_path: Path) -> None:
    async def screenshot(_: ToolInvocation) -> ToolResult:
        return ToolResult(status="success", data="metrics\n" * 40_000, images=(PICTURE,))

    def look(request: ModelRequest) -> ScriptedReply:
        stored = next(each for each in result_at(request).stored if each.media_type == "image/png")
        assert stored.path is not None
        assert stored.path in result_at(request).text
        return ScriptedReply(tool_calls=(scripted_call("read_image_file", result=stored.path),))

    store = FileResultStore(tmp_path)
    model = ScriptedModel(
        [ScriptedReply(tool_calls=(scripted_call("screenshot"),)), look, ScriptedReply(text="A peak.")]
    )
    toolsets: list[Toolset] = [FunctionToolset(bodies=((tool("screenshot"), screenshot),)), results_toolset(store)]
    events = await events_of(build_loop([model], toolsets, store=store))
    assert isinstance(events[-1], AnswerFinished), events[-1]
    (spilled,) = (event for event in events if isinstance(event, ToolResultSpilled))
    assert spilled.cap_tokens == CAP_TOKENS, "it is looked at alone, before all results of the round are"
    assert not any(isinstance(part, Image) for part in result_at(model.requests[1]).parts)
    assert PICTURE in result_at(model.requests[2]).parts
    wire = MessageCodec(provider="openai", vision=True).encode(model.requests[2].messages)
    assert [message["role"] for message in wire[-2:]] == ["tool", "user"], "pictures travel after the results"


@pytest.mark.row("T16")
async def test_a_question_that_is_too_long_is_stored_and_can_be_read_back(tmp_path: Path) -> None:
    pasted = "why does this fail?\n" + "\n".join(f"line {number} of a pasted log" for number in range(40_000))
    store = FileResultStore(tmp_path)
    model = ScriptedModel([ScriptedReply(text="I see.")])
    await events_of(build_loop([model], [results_toolset(store)], store=store), [QUESTION[0], user_text(pasted)])
    admitted = model.requests[0].messages[1]
    assert TokenCounter().count_message(admitted) <= CAP_TOKENS
    (blob,) = (tmp_path / "blobs").iterdir()
    assert blob.read_text() == pasted
