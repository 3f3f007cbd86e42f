"""Stored results survive everything: restarts, odd names, full and read-only disks, other processes (invariant 13)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.stores.result_store import FileResultStore
from holmes.values.errors import ResultStoreError
from holmes.values.messages import ResultId, ToolCallId

NAMES = st.one_of(
    st.text(max_size=120), st.sampled_from(["..", "../../etc/passwd", "/", "a/b", ".hidden", "", "x" * 300])
)


def files_below(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if not path.is_dir() and path.name != ".lock")


async def put(store: FileResultStore, content: bytes, call_id: str = "c1", media_type: str = "text/plain") -> ResultId:
    stored = await store.put(content, tool_name="kubectl_logs", call_id=ToolCallId(call_id), media_type=media_type)
    return stored.id


@pytest.mark.row("T5", "K11", "I6")
async def test_content_comes_back_verbatim_and_after_a_restart(tmp_path: Path) -> None:
    content = b"\x00\xffnot utf-8\r\n" * 1_000
    result_id = await put(FileResultStore(tmp_path / "results"), content)
    assert len(result_id) == 12
    again, stored = await FileResultStore(tmp_path / "results").read(result_id)
    assert again == content
    assert stored.path is not None
    assert stored.path == str(tmp_path / "results" / "kubectl_logs_c1.txt")
    assert files_below(tmp_path)[-2].read_bytes() == content
    assert (stored.size_bytes, stored.media_type) == (len(content), "text/plain")


@pytest.mark.row("I13")
@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(NAMES, NAMES, st.binary(max_size=30)), min_size=1, max_size=4))
def test_every_path_stays_inside_is_private_and_nothing_is_overwritten(calls: list[tuple[str, str, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "results")
        store = FileResultStore(root)

        async def store_all() -> None:
            kept: list[tuple[Path, bytes]] = []
            for tool_name, call_id, content in calls:
                stored = await store.put(
                    content, tool_name=tool_name, call_id=ToolCallId(call_id), media_type="text/plain"
                )
                assert stored.path is not None
                kept.append((Path(stored.path), content))
                assert (await store.read(stored.id))[0] == content
                assert all(path.read_bytes() == before for path, before in kept)

        asyncio.run(store_all())
        assert [path.name for path in Path(folder).iterdir()] == ["results"]
        for path in [root, *root.rglob("*")]:
            assert path.resolve().is_relative_to(root)
            assert stat.S_IMODE(path.lstat().st_mode) == (0o700 if path.is_dir() else 0o600)


@pytest.mark.row("N3")
async def test_equal_content_is_one_blob_and_the_same_call_twice_keeps_both(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    first, second, third = [await put(store, content) for content in (b"one", b"two", b"one")]
    assert first == third != second
    assert [path.name for path in files_below(tmp_path)] == [
        *sorted(hashlib.sha256(content).hexdigest() for content in (b"one", b"two")),
        "kubectl_logs_c1-2.txt",
        "kubectl_logs_c1.txt",
        "manifest.jsonl",
    ]
    assert (tmp_path / "kubectl_logs_c1.txt").samefile(tmp_path / "blobs" / hashlib.sha256(b"one").hexdigest())
    assert len((tmp_path / "manifest.jsonl").read_text().splitlines()) == 1 + 3


@pytest.mark.row("T7")
async def test_a_call_id_that_occurs_again_and_again_costs_no_more_each_time(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    ids = [await put(store, b"%d" % number) for number in range(40)]
    names = {path.name for path in files_below(tmp_path)}
    assert {"kubectl_logs_c1.txt", "kubectl_logs_c1-2.txt", "kubectl_logs_c1-9.txt"} < names
    assert f"kubectl_logs_c1-{hashlib.sha256(b'39').hexdigest()}.txt" in names
    assert [(await store.read(result_id))[0] for result_id in ids] == [b"%d" % number for number in range(40)]


@pytest.mark.parametrize(
    ("media_type", "extension"),
    [("image/png", "png"), ("image/jpeg", "jpg"), ("image/gif", "gif"), ("image/webp", "webp"), ("x/y", "bin")],
)
async def test_files_have_the_right_extension(tmp_path: Path, media_type: str, extension: str) -> None:
    await put(FileResultStore(tmp_path), b"picture", media_type=media_type)
    assert (tmp_path / f"kubectl_logs_c1.{extension}").read_bytes() == b"picture"


@pytest.mark.row("T5")
async def test_one_line_json_gets_a_readable_file_and_keeps_its_bytes(tmp_path: Path) -> None:
    store, content = FileResultStore(tmp_path), b'{"a":[1,2.50]}'
    result_id = await put(store, content, media_type="application/json")
    assert await put(store, content, media_type="application/json") == result_id
    view = tmp_path / "kubectl_logs_c1.json"
    assert view.read_text() == '{\n  "a": [\n    1,\n    2.50\n  ]\n}'
    assert (await store.read(result_id))[0] == content
    assert (await store.read(ResultId(str(view))))[0] == content
    assert len(files_below(tmp_path)) == 3


@pytest.mark.row("I13")
async def test_a_path_inside_the_store_reads_and_everything_else_is_refused(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path / "results")
    await put(store, b"mine")
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (tmp_path / "results" / "link.txt").symlink_to(secret)
    for inside in ("kubectl_logs_c1.txt", str(tmp_path / "results" / "kubectl_logs_c1.txt")):
        assert (await store.read(ResultId(inside)))[0] == b"mine"
    for outside in (str(secret), "../secret.txt", "link.txt", "/etc/passwd", "blobs/../../secret.txt"):
        with pytest.raises(ResultStoreError, match="is outside the stored results"):
            await store.read(ResultId(outside))
    for other in ("manifest.jsonl", "blobs/", "nothing.txt"):
        with pytest.raises(ResultStoreError, match="is not a stored result"):
            await store.read(ResultId(other))


async def test_an_unknown_id_names_no_other(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    result_id = await put(store, b"x")
    for unknown in ("abc", result_id[:-1] + "z", "?"):
        with pytest.raises(ResultStoreError, match=r"stored result .* not found") as caught:
            await store.read(ResultId(unknown))
        assert result_id not in str(caught.value)


async def test_content_that_was_changed_or_removed_on_disk_is_not_used(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    result_id = await put(store, b"evidence")
    blob = tmp_path / "blobs" / hashlib.sha256(b"evidence").hexdigest()
    blob.write_bytes(b"evidenze")
    with pytest.raises(ResultStoreError, match="was changed on disk"):
        await store.read(result_id)
    blob.unlink()
    with pytest.raises(ResultStoreError, match="cannot be read: No such file or directory; repeat the tool call"):
        await store.read(result_id)


async def test_a_manifest_that_a_crash_cut_off_loses_one_line_only(tmp_path: Path) -> None:
    first = await put(FileResultStore(tmp_path), b"one", "c1")
    with (tmp_path / "manifest.jsonl").open("a") as manifest:
        manifest.write('{"id": "half')
    store = FileResultStore(tmp_path)
    second = await put(store, b"two", "c2")
    for reader in (store, FileResultStore(tmp_path)):
        assert (await reader.read(first))[0] == b"one"
        assert (await reader.read(second))[0] == b"two"


async def test_contents_whose_ids_would_be_equal_get_longer_ids(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    digest = hashlib.sha256(b"new").hexdigest()
    known = {"id": digest[:12], "sha256": "f" * 64, "name": "x", "media_type": "text/plain", "size_bytes": 1}
    (tmp_path / "manifest.jsonl").write_text(json.dumps(known) + "\n")
    assert await put(store, b"new") == digest[:16]
    assert (await store.read(ResultId(digest[:16])))[0] == b"new"


async def test_parallel_calls_and_a_second_store_on_the_same_folder_lose_nothing(tmp_path: Path) -> None:
    stores = [FileResultStore(tmp_path), FileResultStore(tmp_path)]
    contents = [b"content %d" % (number % 20) for number in range(60)]
    ids = await asyncio.gather(
        *(put(stores[number % 2], content, f"c{number % 7}") for number, content in enumerate(contents))
    )
    for result_id, content in zip(ids, contents, strict=True):
        assert (await stores[0].read(result_id))[0] == content
    assert len((tmp_path / "manifest.jsonl").read_text().splitlines()) == 1 + 60
    assert not [path for path in files_below(tmp_path) if path.suffix == ".tmp"]


FULL_DISK_SCRIPT = """
import asyncio, resource, signal, sys
from pathlib import Path
from holmes.values.errors import ResultStoreError
from holmes.values.messages import ToolCallId
from holmes.stores.result_store import FileResultStore

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = FileResultStore(Path(sys.argv[1]))

async def put(content, media_type="text/plain"):
    return await store.put(content, tool_name="t", call_id=ToolCallId("c"), media_type=media_type)

asyncio.run(put(b"small"))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    asyncio.run(put(b"[" + b"1," * 1_000 + b"1]", "application/json"))
except ResultStoreError as error:
    print(error)
else:
    sys.exit("stored")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
asyncio.run(put(b"after"))
"""


@pytest.mark.parametrize("limit", [100, 3_000, 8_000], ids=["in the blob", "in the view", "nowhere"])
def test_a_file_that_cannot_be_written_whole_leaves_nothing_behind(tmp_path: Path, limit: int) -> None:
    script = [sys.executable, "-c", FULL_DISK_SCRIPT, str(tmp_path), str(limit)]
    # Coverage would want to write its own file under the same limit.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False, env=environment)
    names = [path.name for path in files_below(tmp_path)]
    if limit == 8_000:
        assert done.stderr.strip() == "stored"
        return
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"cannot store a result in '{tmp_path}': File too large")
    assert names == [
        *sorted(hashlib.sha256(content).hexdigest() for content in (b"small", b"after")),
        "manifest.jsonl",
        "t_c-2.txt",
        "t_c.txt",
    ]


@pytest.mark.row("N3")
async def test_stores_that_write_the_same_content_at_once_all_succeed(tmp_path: Path) -> None:
    for number in range(60):
        stores = [FileResultStore(tmp_path / str(number)) for _ in range(4)]
        ids = await asyncio.gather(*(put(store, b"same", f"c{index}") for index, store in enumerate(stores)))
        assert len(set(ids)) == 1
        assert (await stores[0].read(ids[0]))[0] == b"same"


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of 64 KB."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.row("T10")
async def test_a_full_disk_is_one_clear_line_and_nothing_half_written(full_disk: Path) -> None:
    store = FileResultStore(full_disk / "results")
    result_id = await put(store, b"x" * 8_000)
    before = files_below(full_disk)
    with pytest.raises(ResultStoreError, match="No space left on device"):
        await put(store, b"y" * 200_000, "c2")
    assert files_below(full_disk) == before
    assert (await store.read(result_id))[0] == b"x" * 8_000


READ_ONLY_SCRIPT = """
import asyncio, os, sys
from pathlib import Path
from holmes.values.errors import ResultStoreError
from holmes.values.messages import ToolCallId
from holmes.stores.result_store import FileResultStore

asyncio.run(asyncio.to_thread(int))  # whatever that imports is not readable any more after the next line
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
try:
    asyncio.run(FileResultStore(Path(sys.argv[1])).put(b"x", tool_name="t", call_id=ToolCallId("c"), media_type="a/b"))
except ResultStoreError as error:
    print(error)
"""


def test_a_read_only_folder_is_one_clear_line() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY_SCRIPT, folder], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.stdout.startswith(f"cannot store a result in '{folder}': Permission denied"), done.stderr
        assert files_below(Path(folder)) == []


async def test_a_folder_that_is_a_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("in the way")
    with pytest.raises(ResultStoreError, match=r"cannot store a result in .*File exists"):
        await put(FileResultStore(tmp_path / "results"), b"x")


@pytest.mark.parametrize("result_id", ["a\0b/..", "x" * 5_000])
async def test_an_id_that_cannot_be_one_is_a_short_line(tmp_path: Path, result_id: str) -> None:
    store = FileResultStore(tmp_path)
    with pytest.raises(ResultStoreError, match=r"stored result .* not found") as caught:
        await store.read(ResultId(result_id))
    assert len(str(caught.value)) < 200
