"""Results in a store that were last used long ago, for the tests of its cleanup."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import threading
import time
from typing import TYPE_CHECKING

from holmes.stores.result_store import SWEEP_THREAD, FileResultStore
from holmes.values.errors import ResultStoreError
from holmes.values.messages import ToolCallId

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from holmes.values.messages import ResultId, StoredResult

HOUR = 3_600.0
DAY = 24 * HOUR


def store_at(
    folder: Path,
    *,
    retention: float | None = 7 * DAY,
    quota: int | None = None,
    protected: Callable[[], frozenset[ResultId]] = frozenset,
) -> FileResultStore:
    return FileResultStore(folder, retention_seconds=retention, quota_bytes=quota, protected=protected)


async def put(
    store: FileResultStore, content: bytes, call_id: str = "c", media_type: str = "text/plain"
) -> StoredResult:
    """Store it, and wait for the cleanup that this may have started."""
    stored = await store.put(content, tool_name="kubectl_logs", call_id=ToolCallId(call_id), media_type=media_type)
    for thread in threading.enumerate():
        if thread.name == SWEEP_THREAD:
            await asyncio.to_thread(thread.join, 30)
    return stored


def blob_of(folder: Path, content: bytes) -> Path:
    return folder / "blobs" / hashlib.sha256(content).hexdigest()


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def age(folder: Path, content: bytes, seconds: float) -> None:
    """Pretend that `content` was last used that long ago, by its file and by the manifest."""
    used = time.time() - seconds
    os.utime(blob_of(folder, content), (used, used))
    manifest = folder / "manifest.jsonl"
    lines = [json.loads(line) for line in manifest.read_text().splitlines()]
    lines[0]["generation"] = f"{time.time_ns():032}"  # readers look again
    for line in lines:
        if line.get("sha256") == hashlib.sha256(content).hexdigest():
            line["stored_at"] = used
    manifest.write_text("".join(json.dumps(line) + "\n" for line in lines))


async def readable(folder: Path, stored: StoredResult) -> bool:
    try:
        await FileResultStore(folder).read(stored.id)
    except ResultStoreError:
        return False
    return True
