"""The folder of a recording holds everything that is written, wherever the names come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from holmes.snapshot.discovery import ResourceType
from holmes.snapshot.recording import LogKey
from holmes.snapshot.writer import RecordingWriter
from holmes.values.errors import HolmesError


async def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    target = tmp_path / "a" / "recording"
    up = ResourceType(group="", version="v1", plural="../../../out", kind="Out", namespaced=False)
    with pytest.raises(HolmesError, match="is outside the recording"):
        async with RecordingWriter.open(target) as writer:
            await writer.write_objects(up, [])
    with pytest.raises(HolmesError, match="is outside the recording"):
        async with RecordingWriter.open(target) as writer:
            await writer.write_log(LogKey(namespace="..", pod="..", container="out"), b"stolen")
    assert _files_in(tmp_path) == []


def _files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
