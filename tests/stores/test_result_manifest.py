"""The list of stored results stays cheap to ask, however long it is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holmes.stores.result_manifest import ManifestEntry, ResultManifest
from holmes.stores.result_store import FileResultStore
from holmes.stores.secret_key import KEY_BYTES, load_or_create_key
from holmes.values.errors import ResultStoreError
from holmes.values.messages import ResultId, ToolCallId


def test_finding_an_id_reads_only_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str | bytes] = []
    loads = json.loads

    def counting(line: str | bytes) -> object:
        parsed.append(line)
        return loads(line)

    def add(number: int) -> None:
        name = f"{number}.txt"
        manifest.append(
            ManifestEntry(id=ResultId(f"{number:012}"), sha256="0" * 64, name=name, media_type="a/b", size_bytes=1)
        )

    manifest = ResultManifest(tmp_path / "manifest.jsonl")
    for number in range(300):
        add(number)
    monkeypatch.setattr(json, "loads", counting)
    assert manifest.find(ResultId("0")) is None
    assert len(parsed) >= 300
    parsed.clear()
    for number in range(300):
        assert manifest.find(ResultId(f"{number:012}")) is not None
    assert parsed == []
    add(300)
    assert manifest.find(ResultId(f"{300:012}")) is not None
    assert len(parsed) == 1


HOSTILE_LINES = {
    "endless size": b'{"id":"a","sha256":"b","name":"c","media_type":"t","size_bytes":1e999}',
    "endless time": b'{"id":"a","sha256":"b","name":"c","removed_at":' + b"9" * 400 + b"}",
    "deep": b"[" * 100_000,
    "a name with a NUL": b'{"id":"a","sha256":"' + b"0" * 64 + b'","name":"x\\u0000y","media_type":"t","size_bytes":1}',
    "half a pair": b'{"id":"a","sha256":"\\ud800","name":"c","media_type":"t","size_bytes":1}',
    "outside": b'{"id":"a","sha256":"../../etc/passwd","name":"c","media_type":"t","size_bytes":1}',
}


@pytest.mark.parametrize("line", HOSTILE_LINES.values(), ids=HOSTILE_LINES.keys())
async def test_a_line_that_cannot_be_true_is_skipped_by_reads_and_by_the_clean_up(line: bytes, tmp_path: Path) -> None:
    store = FileResultStore(tmp_path, retention_seconds=1_000.0, quota_bytes=1_000_000)
    first = await store.put(b"one", tool_name="t", call_id=ToolCallId("c1"), media_type="text/plain")
    with (tmp_path / "manifest.jsonl").open("ab") as file:
        file.write(line + b"\n")
    second = await store.put(b"two", tool_name="t", call_id=ToolCallId("c2"), media_type="text/plain")
    await store.sweep()
    for stored, content in ((first, b"one"), (second, b"two")):
        assert (await FileResultStore(tmp_path).read(stored.id))[0] == content


@pytest.mark.timeout(20)
@pytest.mark.parametrize("what", ["manifest.jsonl", "blob", "redaction.key"])
async def test_a_pipe_in_the_place_of_a_file_is_an_error_and_nobody_waits_for_it(what: str, tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    stored = await store.put(b"one", tool_name="t", call_id=ToolCallId("c1"), media_type="text/plain")
    path = next((tmp_path / "blobs").iterdir()) if what == "blob" else tmp_path / what
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    if what == "redaction.key":
        assert len(load_or_create_key(path)) == KEY_BYTES
        return
    with pytest.raises(ResultStoreError):
        await FileResultStore(tmp_path).read(stored.id)
