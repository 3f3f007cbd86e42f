"""A folder of logs without objects. The pods and containers are known only from the names of files and folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.snapshot.collection import Collection
from holmes.snapshot.layouts import SnapshotFormat
from holmes.snapshot.log_files import add_logs, log_files

if TYPE_CHECKING:
    from holmes.snapshot.layouts import FileTree
    from holmes.snapshot.recording import Recording


def _recognises(tree: FileTree) -> bool:
    return any(True for _ in log_files(tree))


def _load(tree: FileTree) -> Recording:
    collection = Collection(tree)
    add_logs(collection, log_files(tree))
    return collection.recording("logs", {key.namespace for key in collection.logs})


FORMAT = SnapshotFormat(name="a folder of logs", precedence=60, recognises=_recognises, load=_load)
