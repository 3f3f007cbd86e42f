"""The folders of servers that were killed go away with the next start, and no other ones."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import pytest

from holmes.assets import demo_recording
from holmes.snapshot.server.serving import serve_snapshot


async def test_folders_of_dead_owners_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    over = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await over.wait()
    dead = tmp_path / f"holmes-snapshot-{over.pid}-left"
    elsewhere, linked = tmp_path / "elsewhere", tmp_path / f"holmes-snapshot-{over.pid}-link"
    kept = [elsewhere, tmp_path / f"holmes-snapshot-{os.getppid()}-runs", tmp_path / "holmes-snapshot-someones-own"]
    for folder in (dead, *kept):
        folder.mkdir()
        (folder / "kubeconfig").touch()
    linked.symlink_to(elsewhere)

    async with serve_snapshot(demo_recording()) as server:
        assert server.kubeconfig.parent.name.startswith(f"holmes-snapshot-{os.getpid()}-")
        assert not dead.exists()
        assert all((folder / "kubeconfig").exists() for folder in kept)
