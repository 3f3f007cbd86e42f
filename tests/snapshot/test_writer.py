"""The folder of a recording holds everything that is written, wherever the names come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from holmes.snapshot.discovery import ResourceType
from holmes.snapshot.recorded_logs import LogKey
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


def _names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_the_folder_of_a_running_recording_is_left_alone(tmp_path: Path) -> None:
    async with RecordingWriter.open(tmp_path / "shop") as first:
        await first.write_log(LogKey(namespace="shop", pod="web", container="app"), b"first")
        async with RecordingWriter.open(tmp_path / "shop"):
            assert [path.read_bytes() for path in _files_in(tmp_path)] == [b"first"]
        await first.write_manifest({})
        await first.publish()
    assert (tmp_path / "shop" / "logs" / "shop" / "web" / "app.log").read_bytes() == b"first"


async def test_only_folders_of_the_same_recording_are_removed(tmp_path: Path) -> None:
    others = [tmp_path / name for name in (".shop.eu.abc.partial", ".cart.abc.partial", "shop.partial", ".shop.abc")]
    for other in (*others, tmp_path / ".shop.abc.partial"):
        other.mkdir()
    (tmp_path / ".shop.def.partial").write_text("a file")
    (tmp_path / ".shop.ghi.partial").symlink_to(others[0])
    async with RecordingWriter.open(tmp_path / "shop"):
        pass
    left = {".shop.def.partial", ".shop.ghi.partial", *(other.name for other in others)}
    assert _names_in(tmp_path) == left


async def test_a_recording_that_a_killed_run_had_moved_is_back_before_the_next_begins(tmp_path: Path) -> None:
    (tmp_path / ".shop.abc.old").mkdir()
    (tmp_path / ".shop.abc.old" / "recording.json").write_text("{}")
    async with RecordingWriter.open(tmp_path / "shop"):
        assert (tmp_path / "shop" / "recording.json").read_text() == "{}"
    assert _names_in(tmp_path) == {"shop"}
