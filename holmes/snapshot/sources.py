"""Loads a cluster from files. The format is recognised by the layout of the files, never by an option.

Each module in `formats` is one format. Archives are unpacked first.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from holmes.snapshot import formats
from holmes.snapshot.archives import is_archive, unpack
from holmes.snapshot.layouts import FileTree, SnapshotFormat
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.redaction.redactor import Redactor
    from holmes.snapshot.recording import Recording


def load_snapshot(path: Path, *, scratch: Path | None = None, redactor: Redactor | None = None) -> Recording:
    """Load the folder, file or archive at `path`. Reads files, so call it in a thread.

    An archive is unpacked into the folder `scratch`, which must exist as long as the recording is used. `redactor`
    masks secrets in files of other tools. Raises `ConfigError` with a one-line message that contains the file and, if
    known, the position.
    """
    try:
        if not path.exists():
            raise ConfigError(f"{str(path)!r} does not exist; expected {known_formats()}")
        notes: tuple[str, ...] = ()
        folder = path
        if scratch is not None and is_archive(path):
            folder = scratch / "unpacked"
            folder.mkdir()
            notes = unpack(path, folder)
        elif not path.is_dir() and not path.is_file():
            raise ConfigError(f"{str(path)!r} is not a folder or a regular file; expected {known_formats()}")
        return _loaded(path, FileTree.of(path, folder, redactor), notes)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"{error.filename or path}: cannot read the file: {reason}") from error


def _loaded(path: Path, tree: FileTree, notes: tuple[str, ...]) -> Recording:
    found = next((each for each in _formats() if each.recognises(tree)), None)
    if found is None:
        raise ConfigError(
            f"{str(path)!r} is not in a known format: it has {tree.outline()}; expected {known_formats()}"
        )
    recording = found.load(tree)
    return replace(recording, source=path, notes=(*notes, *recording.notes))


def known_formats() -> str:
    """Return the names of the formats for a message."""
    names = [each.name for each in _formats()]
    return f"{', '.join(names[:-1])} or {names[-1]}"


@cache
def _formats() -> tuple[SnapshotFormat, ...]:
    """Return the formats of all modules in `formats`, the most specific first."""
    names = sorted(module.name for module in pkgutil.iter_modules(formats.__path__))
    modules = [importlib.import_module(f"{formats.__name__}.{name}") for name in names]
    found: list[SnapshotFormat] = [module.FORMAT for module in modules]
    return tuple(sorted(found, key=lambda each: each.precedence))
