"""The list of stored results stays cheap to ask, however long it is."""

from __future__ import annotations

import time
from pathlib import Path

from holmes.core.messages import ResultId
from holmes.stores.result_manifest import ManifestEntry, ResultManifest


def test_finding_an_id_reads_only_what_is_new(tmp_path: Path) -> None:
    manifest = ResultManifest(tmp_path / "manifest.jsonl")
    for number in range(3_000):
        name = f"{number}.txt"
        manifest.append(
            ManifestEntry(id=ResultId(f"{number:012}"), sha256="0" * 64, name=name, media_type="a/b", size_bytes=1)
        )
    manifest.find(ResultId("0"))
    started = time.process_time()
    for number in range(500):
        assert manifest.find(ResultId(f"{number:012}")) is not None
    one_by_one = time.process_time() - started
    started = time.process_time()
    for _ in range(5):
        ResultManifest(tmp_path / "manifest.jsonl").find(ResultId("0"))
    assert one_by_one / 500 < (time.process_time() - started) / 5 / 10
