"""Old results go, newest and protected ones stay, and a kill at any moment leaves a store that can be read (N3)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holmes.stores.result_manifest import ResultManifest
from holmes.stores.result_retention import RetentionRules, sweep
from holmes.stores.result_store import FileResultStore
from holmes.values.errors import HolmesError, ResultStoreError
from holmes.values.messages import ResultId, StoredResult
from tests.stores.aged_results import DAY, HOUR, age, blob_of, names_in, put, readable, store_at
from tests.support.deadlines import ends_before


@pytest.mark.row("N3")
async def test_what_is_older_than_its_time_goes_with_all_its_files_and_says_so_when_it_is_read(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    old = await put(store, b'{"a":1}', "old", "application/json")
    fresh = await put(store, b"fresh", "fresh")
    age(tmp_path, b'{"a":1}', 8 * DAY)
    report = await store_at(tmp_path).sweep()
    assert (report.removed, report.kept_bytes) == (1, 5)
    assert report.freed_bytes > len(b'{"a":1}'), "its view counts too"
    assert names_in(tmp_path) == [
        ".lock",
        "blobs",
        "kubectl_logs_fresh.txt",
        "manifest.jsonl",
    ]
    assert names_in(tmp_path / "blobs") == [hashlib.sha256(b"fresh").hexdigest()]
    for reader in (store, FileResultStore(tmp_path)):
        for reference in (old.id, old.path):
            with pytest.raises(ResultStoreError, match=r"has expired: .* repeat the tool call"):
                await reader.read(ResultId(str(reference)))
        assert (await reader.read(fresh.id))[0] == b"fresh"
    again = await put(store, b'{"a":1}', "old", "application/json")
    assert again == old
    assert (await store.read(old.id))[0] == b'{"a":1}'


@pytest.mark.row("N3")
async def test_above_the_quota_the_least_recently_used_go_first(tmp_path: Path) -> None:
    store = store_at(tmp_path, retention=None, quota=2_500)
    stored = {number: await put(store, b"%d" % number * 1_000, f"c{number}") for number in range(5)}
    for number, hours in enumerate((5, 9, 3, 7, 2)):
        age(tmp_path, b"%d" % number * 1_000, hours * HOUR)
    await FileResultStore(tmp_path).read(stored[1].id)  # a read is a use
    report = await store.sweep()
    assert report.kept_bytes == 2_000
    assert [number for number in range(5) if await readable(tmp_path, stored[number])] == [1, 4]
    assert (await store.sweep()).removed == 0


@pytest.mark.row("N3")
async def test_the_last_hour_and_what_kept_conversations_point_at_are_never_deleted(tmp_path: Path) -> None:
    kept: set[ResultId] = set()
    store = store_at(tmp_path, retention=60, quota=1, protected=lambda: frozenset(kept))
    pointed_at, recent, used_again = [await put(store, content, content.decode()) for content in (b"p", b"r", b"u")]
    kept.add(pointed_at.id)
    age(tmp_path, b"p", 30 * DAY)
    age(tmp_path, b"u", 30 * DAY)
    await put(FileResultStore(tmp_path), b"u", "again")  # the same output once more
    assert (await store.sweep()).removed == 0
    assert all([await readable(tmp_path, each) for each in (pointed_at, recent, used_again)])
    kept.clear()
    age(tmp_path, b"p", 30 * DAY)
    assert (await store.sweep()).removed == 1


async def test_when_it_is_unknown_what_is_protected_nothing_is_deleted(tmp_path: Path) -> None:
    def unknown() -> frozenset[ResultId]:
        raise HolmesError("the conversations cannot be read")

    store = store_at(tmp_path, retention=60, protected=unknown)
    old = await put(store, b"old")
    age(tmp_path, b"old", DAY)
    with pytest.raises(HolmesError, match="conversations cannot be read"):
        await store.sweep()
    await put(store, b"new", "new")
    assert await readable(tmp_path, old)


async def test_without_limits_nothing_is_ever_deleted(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    old = await put(store, b"old")
    age(tmp_path, b"old", 10_000 * DAY)
    assert (await store.sweep()).removed == 0
    assert await readable(tmp_path, old)


@pytest.mark.row("N3")
def test_the_first_result_of_a_process_starts_a_clean_up_in_the_background(tmp_path: Path) -> None:
    first = asyncio.run(put(FileResultStore(tmp_path), b"old"))
    age(tmp_path, b"old", 8 * DAY)
    asyncio.run(put(store_at(tmp_path), b"new", "new"))
    assert not blob_of(tmp_path, b"old").exists()
    assert not asyncio.run(readable(tmp_path, first))


async def test_a_manifest_of_before_with_neither_times_nor_generation_is_read_and_cleaned(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    old, kept = await put(store, b"old", "old"), await put(store, b"kept", "kept")
    lines = [json.loads(line) for line in (tmp_path / "manifest.jsonl").read_text().splitlines()][1:]
    for line in lines:
        del line["stored_at"]
    (tmp_path / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    os.utime(blob_of(tmp_path, b"old"), (1, 1))
    reader = FileResultStore(tmp_path)
    assert (await reader.read(kept.id))[0] == b"kept"
    assert (await store_at(tmp_path).sweep()).removed == 1
    assert (await reader.read(kept.id))[0] == b"kept"
    assert not await readable(tmp_path, old)


async def test_the_manifest_does_not_grow_for_ever(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    same = [await put(store, b"the same output", "c") for _ in range(1_100)]
    reader = FileResultStore(tmp_path)
    await reader.read(same[0].id)
    await store.sweep()
    assert len((tmp_path / "manifest.jsonl").read_text().splitlines()) < 700
    assert (await reader.read(same[0].id))[0] == b"the same output"
    assert (await put(reader, b"another", "d")).path == str(tmp_path / "kubectl_logs_d.txt")
    assert (await store.read(same[0].id))[0] == b"the same output"


async def test_only_what_the_store_has_made_is_deleted(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    await put(store, b"old")
    age(tmp_path, b"old", 8 * DAY)
    outside = tmp_path.parent / f"{tmp_path.name}-outside.txt"
    mine = [tmp_path / "notes.txt", tmp_path / "blobs" / "readme", outside]
    for path in mine:
        path.write_text("mine")
        os.utime(path, (1, 1))
    for name in (f"../{outside.name}", "notes.txt/", ".", "blobs/readme"):
        line = {"id": "x" * 12, "sha256": f"../{outside.name}", "name": name, "media_type": "a/b", "size_bytes": 1}
        with (tmp_path / "manifest.jsonl").open("a") as manifest:
            manifest.write(json.dumps(line) + "\n")
    await store.sweep()
    assert [path.read_text() for path in mine] == ["mine"] * 3
    assert not blob_of(tmp_path, b"old").exists()
    outside.unlink()


async def test_what_a_killed_process_left_behind_goes_an_hour_later(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    await put(store, b"good")
    orphan = blob_of(tmp_path, b"orphan")
    half = tmp_path / "blobs" / f".{'0' * 32}.tmp"
    named = tmp_path / "kubectl_logs_killed.txt"
    for path in (orphan, half):
        path.write_bytes(b"orphan")
    os.link(orphan, named)
    await store.sweep()
    assert all(path.exists() for path in (orphan, half, named)), "its process may still be writing"
    for path in (orphan, half):
        os.utime(path, (1, 1))
    await store.sweep()
    assert not any(path.exists() for path in (orphan, half, named))
    assert (tmp_path / "kubectl_logs_c.txt").read_bytes() == b"good"


WRITER = """
import asyncio, os, sys
from pathlib import Path
from holmes.values.messages import ToolCallId
from holmes.stores.result_store import FileResultStore

async def main(folder, name, number, sweeps):
    store = FileResultStore(folder, retention_seconds=1e9, quota_bytes=1)
    for index in range(number):
        content = f"{name if index % 3 else 'shared'} {index}".encode() * (1 + index % 50)
        stored = await store.put(content, tool_name="t", call_id=ToolCallId(f"{name}-{index}"), media_type="text/plain")
        print(stored.id, len(content), flush=True)
        if sweeps and index % 10 == 9:
            await store.sweep()

asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4] == "sweeps"))
"""


def writer(folder: Path, name: str, number: int, *, sweeps: bool = False) -> subprocess.Popen[str]:
    arguments = [str(folder), name, str(number), "sweeps" if sweeps else ""]
    return subprocess.Popen([sys.executable, "-c", WRITER, *arguments], stdout=subprocess.PIPE, text=True)


async def check_whole(folder: Path, lines: list[str]) -> None:
    """Every result that was confirmed is there, whole."""
    store = FileResultStore(folder)
    for line in lines:
        result_id, size = line.split()
        content, stored = await store.read(ResultId(result_id))
        assert len(content) == int(size) == stored.size_bytes


@pytest.mark.row("N3", "I13")
async def test_several_processes_write_and_clean_up_at_once_and_lose_nothing(tmp_path: Path) -> None:
    processes = [writer(tmp_path, f"p{number}", 120, sweeps=number % 2 == 0) for number in range(3)]
    lines: list[str] = []
    for process in processes:
        lines += process.communicate(timeout=60)[0].splitlines()
        assert process.returncode == 0
    assert len(lines) == 3 * 120
    await check_whole(tmp_path, lines)


@pytest.mark.row("N3")
async def test_a_kill_at_any_moment_leaves_a_store_that_is_read_and_written(tmp_path: Path) -> None:
    lines: list[str] = []
    for number, confirmed in enumerate((1, 2, 5, 11, 23, 40)):
        process = writer(tmp_path, f"k{number}", 100_000, sweeps=True)
        assert process.stdout is not None
        lines += [process.stdout.readline() for _ in range(confirmed)]
        process.send_signal(signal.SIGKILL)
        lines += [line for line in process.communicate(timeout=60)[0].splitlines(keepends=True) if line.endswith("\n")]
        await check_whole(tmp_path, lines)
        await put(FileResultStore(tmp_path), b"after %d" % number, f"after{number}")
    assert sum(1 for _ in (tmp_path / "blobs").iterdir()) >= len({line.split()[0] for line in lines})


SWEEPER = """
import asyncio, sys
from pathlib import Path
from holmes.stores.result_store import FileResultStore

store = FileResultStore(Path(sys.argv[1]), retention_seconds=3600)
print("now", flush=True)
asyncio.run(store.sweep())
"""


def kill_while_sweeping(folder: Path, delay_seconds: float) -> None:
    process = subprocess.Popen([sys.executable, "-c", SWEEPER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(delay_seconds)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)


async def is_whole_or_expired(folder: Path, result_id: ResultId, content: bytes) -> bool:
    """Reads without making the result younger."""
    try:
        read, _ = await FileResultStore(folder).read(result_id)
    except ResultStoreError as error:
        return "has expired" in str(error)
    os.utime(blob_of(folder, content), (1, 1))
    return read == content


@pytest.mark.row("N3")
def test_a_kill_in_the_middle_of_a_clean_up_loses_nothing_that_should_stay(tmp_path: Path) -> None:
    contents = [b"content %d" % number for number in range(600)]

    async def fill() -> list[StoredResult]:
        store = FileResultStore(tmp_path)
        return [await put(store, content, f"c{number}") for number, content in enumerate(contents)]

    stored = asyncio.run(fill())
    for content in contents[:500]:
        os.utime(blob_of(tmp_path, content), (1, 1))
    manifest = (tmp_path / "manifest.jsonl").read_text().splitlines()
    aged = [json.dumps({**json.loads(line), "stored_at": 1}) for line in manifest[1:501]]
    (tmp_path / "manifest.jsonl").write_text("\n".join((*aged, *manifest[501:], "")))

    async def check() -> None:
        reader = FileResultStore(tmp_path)
        for each, content in zip(stored[500:], contents[500:], strict=True):
            assert (await reader.read(each.id))[0] == content
        for each, content in zip(stored[:500:50], contents[:500:50], strict=True):
            assert await is_whole_or_expired(tmp_path, each.id, content)

    left: list[int] = []
    for delay_seconds in (0.0, 0.002, 0.004, 0.008, 0.016):
        kill_while_sweeping(tmp_path, delay_seconds)
        left.append(len(names_in(tmp_path / "blobs")))
        asyncio.run(check())
    assert left == sorted(left, reverse=True)
    asyncio.run(store_at(tmp_path, retention=HOUR).sweep())
    assert len(names_in(tmp_path / "blobs")) == 100
    assert len(names_in(tmp_path)) == 100 + 3


class Killed(BaseException):
    """Stands for the end of the process in the middle of a cleanup."""


@pytest.mark.row("N3")
async def test_a_clean_up_that_is_killed_between_its_steps_is_finished_by_the_next(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    old, kept = await put(store, b"old", "old"), await put(store, b"kept", "kept")
    age(tmp_path, b"old", 8 * DAY)

    class DyingManifest(ResultManifest):
        """Ends right after the manifest is written, before any file goes."""

        def rewrite(self, entries: object, removed: object) -> None:
            super().rewrite(entries, removed)  # type: ignore[arg-type]
            raise Killed

    rules = RetentionRules(retention_seconds=DAY, quota_bytes=None, protected=frozenset)
    with pytest.raises(Killed):
        sweep(tmp_path, DyingManifest(tmp_path / "manifest.jsonl"), rules, frozenset(), time.time())
    assert blob_of(tmp_path, b"old").exists()
    assert (await store.read(kept.id))[0] == b"kept"
    with pytest.raises(ResultStoreError, match="has expired"):
        await store.read(old.id)
    await store.sweep()
    assert not blob_of(tmp_path, b"old").exists()
    assert not (tmp_path / "kubectl_logs_old.txt").exists()
    assert (await store.read(kept.id))[0] == b"kept"


def test_a_store_that_another_process_holds_is_an_error_and_not_a_hang(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    asyncio.run(put(store, b"x"))
    script = (
        "import fcntl, sys, time\n"
        "file = open(sys.argv[1]); fcntl.flock(file, fcntl.LOCK_SH); print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / ".lock")]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with ends_before(30), pytest.raises(ResultStoreError, match="another process has locked the folder"):
            asyncio.run(store.sweep())
        asyncio.run(put(store, b"y", "y"))  # writers share the folder
    finally:
        holder.kill()
        holder.communicate()
