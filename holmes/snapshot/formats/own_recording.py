"""The recordings that `holmes snapshot create` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.snapshot.layouts import SnapshotFormat
from holmes.snapshot.recording import is_recording, load_recording

if TYPE_CHECKING:
    from holmes.snapshot.layouts import FileTree
    from holmes.snapshot.recording import Recording


def _recognises(tree: FileTree) -> bool:
    return is_recording(tree.folder) or is_recording(tree.unwrapped().folder)


def _load(tree: FileTree) -> Recording:
    return load_recording(tree.folder if is_recording(tree.folder) else tree.unwrapped().folder)


FORMAT = SnapshotFormat(
    name="a recording of `holmes snapshot create`", precedence=10, recognises=_recognises, load=_load
)
