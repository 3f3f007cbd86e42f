"""A cleanup spares what conversations point at, reads them only when it must, and holds up nobody's end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from holmes.stores.conversation_store import ConversationStore
from holmes.stores.result_store import FileResultStore
from holmes.values.messages import (
    AssistantMessage,
    ResultId,
    Text,
    ToolCall,
    ToolCallId,
    ToolMessage,
    UserMessage,
    user_text,
)
from tests.stores.aged_results import DAY, HOUR, age, blob_of, put, readable, store_at

SLOW_TO_ASK = """
import asyncio, sys, time
from pathlib import Path
from holmes.values.messages import ToolCallId
from holmes.stores.result_store import FileResultStore

asked = Path(sys.argv[1], "asked")

def protected():
    asked.touch()
    time.sleep(60)
    return frozenset()

async def main():
    store = FileResultStore(Path(sys.argv[1]), retention_seconds=3600, protected=protected)
    await store.put(b"new", tool_name="t", call_id=ToolCallId("new"), media_type="text/plain")
    while not asked.exists():
        await asyncio.sleep(0.01)

asyncio.run(main())
"""


@pytest.mark.row("N3")
def test_the_end_of_a_process_does_not_wait_for_its_clean_up(tmp_path: Path) -> None:
    old = asyncio.run(put(FileResultStore(tmp_path), b"old", "old"))
    age(tmp_path, b"old", DAY)
    subprocess.run([sys.executable, "-W", "error", "-c", SLOW_TO_ASK, str(tmp_path)], check=True, timeout=30)
    assert asyncio.run(readable(tmp_path, old))


@pytest.mark.row("N3")
async def test_the_conversations_are_read_only_when_something_would_go(tmp_path: Path) -> None:
    asked: list[str] = []

    def protected() -> frozenset[ResultId]:
        asked.append("asked")
        return frozenset()

    for content in (b"old", b"new"):
        await put(FileResultStore(tmp_path), content, content.decode())
    age(tmp_path, b"old", 2 * HOUR)
    assert (await store_at(tmp_path, retention=DAY, quota=1_000, protected=protected).sweep()).removed == 0
    assert asked == []
    assert (await store_at(tmp_path, retention=DAY, quota=3, protected=protected).sweep()).removed == 1
    assert asked == ["asked"]
    assert not blob_of(tmp_path, b"old").exists()


@pytest.mark.row("N3")
async def test_what_a_running_conversation_points_at_stays_however_long_it_runs(tmp_path: Path) -> None:
    conversations = ConversationStore(tmp_path / "conversations", retention_days=7, limit=5)
    running = conversations.start()
    results = tmp_path / "results"
    contents = {name: name.encode() * 50 for name in ("shown", "spilled away", "proved", "nobody's")}
    stored = {name: await put(FileResultStore(results), content, name) for name, content in contents.items()}
    shown = ToolMessage(call_id=ToolCallId("1"), tool_name="t", status="success", parts=(), stored=(stored["shown"],))
    running.append(user_text("why?"))
    running.append(AssistantMessage(text="", tool_calls=(ToolCall(id=ToolCallId("1"), name="t", arguments="{}"),)))
    running.append(shown)
    running.append(AssistantMessage(text=f"It is [[{stored['proved'].id}:1]]."))
    pointing = UserMessage(parts=(Text(text="Summary."),), kind="summary", stored=(stored["spilled away"],))
    running.replace([*running.messages[:1], pointing, *running.messages[1:]])
    for content in contents.values():
        age(results, content, 3 * HOUR)
    another_process = store_at(results, retention=HOUR, quota=1, protected=conversations.result_ids)
    assert (await another_process.sweep()).removed == 1
    assert [name for name in contents if await readable(results, stored[name])] == ["shown", "spilled away", "proved"]
    running.close()
