"""The files of a source, and what a format has to provide. Formats recognise a source by its files alone."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from holmes.snapshot.recording import inside
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from holmes.redaction.redactor import Redactor
    from holmes.snapshot.recording import Recording

_MOST_FILES: Final = 200_000
_SHOWN: Final = 5
_IGNORED: Final = ("__MACOSX", "Thumbs.db", ".DS_Store")
"""Files that desktops add to folders. They are not part of what was collected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTree:
    """The regular files below a folder, without hidden files and links that lead out of it.

    `source` is the path that the user gave: the folder, a file or an archive. `files` are relative to `folder`, sorted.
    `left_out` are the hidden files and folders and those links, sorted. `redactor` masks secrets in the files of other
    tools.
    """

    source: Path
    folder: Path
    files: tuple[PurePosixPath, ...]
    left_out: tuple[PurePosixPath, ...] = ()
    redactor: Redactor | None = field(default=None, compare=False)

    @classmethod
    def of(cls, source: Path, folder: Path, redactor: Redactor | None = None) -> FileTree:
        """List the files of `folder`, which can be a single file. Raises `ConfigError` if there are too many."""
        if folder.is_file():
            files: tuple[PurePosixPath, ...] = (PurePosixPath(folder.name),)
            return cls(source=source.parent, folder=folder.parent, files=files, redactor=redactor)
        found: list[PurePosixPath] = []
        left_out: list[PurePosixPath] = []
        for file, is_used in _walk(folder):
            (found if is_used else left_out).append(PurePosixPath(file.relative_to(folder)))
            if len(found) + len(left_out) > _MOST_FILES:
                raise ConfigError(f"{source}: the folder has more than {_MOST_FILES:,} files; choose a folder in it")
        files, others = tuple(sorted(found)), tuple(sorted(left_out))
        return cls(source=source, folder=folder, files=files, left_out=others, redactor=redactor)

    def path(self, file: PurePosixPath) -> Path:
        return self.folder / file

    def shown(self, file: PurePosixPath) -> Path:
        """Return the path of a file for messages. It starts with what the user gave, also in an archive."""
        return self.source / file

    def below(self, part: PurePosixPath) -> FileTree:
        """Return the part of the tree in one folder."""
        files, left_out = (
            tuple(file.relative_to(part) for file in each if file.is_relative_to(part))
            for each in (self.files, self.left_out)
        )
        return replace(self, source=self.source / part, folder=self.folder / part, files=files, left_out=left_out)

    def unwrapped(self) -> FileTree:
        """Descend into the only folder, as long as there is only one, because archives often have one top folder."""
        top = {file.parts[0] for file in self.files}
        if len(top) != 1 or any(len(file.parts) == 1 for file in self.files):
            return self
        return self.below(PurePosixPath(top.pop())).unwrapped()

    def parents_of(self, name: str) -> tuple[PurePosixPath, ...]:
        """Return the folders that directly contain a folder of this name, the outermost only."""
        found: dict[PurePosixPath, None] = {}
        for file in self.files:
            if name in file.parts[:-1]:
                found[PurePosixPath(*file.parts[: file.parts.index(name)])] = None
        return tuple(found)

    def matching(self, pattern: str) -> Iterator[PurePosixPath]:
        """Yield the files whose whole path matches a pattern such as `*/pods.json`. `*` is one part of the path."""
        length = len(PurePosixPath(pattern).parts)
        return (file for file in self.files if len(file.parts) == length and file.match(pattern))

    def outline(self) -> str:
        """Describe the files for a person: the kinds of files, and the first names at the top."""
        if not self.files:
            return "no files"
        endings = Counter(file.suffix or "no ending" for file in self.files)
        listed = ", ".join(f"{count:,} {ending}" for ending, count in endings.most_common(_SHOWN))
        top = list(dict.fromkeys(file.parts[0] + ("/" if len(file.parts) > 1 else "") for file in self.files))
        more = f" and {len(top) - _SHOWN:,} more" if len(top) > _SHOWN else ""
        noun = "file" if len(self.files) == 1 else "files"
        return f"{len(self.files):,} {noun} ({listed}) in {some(top, _SHOWN)}{more}"


def some(names: Sequence[str], most: int) -> str:
    """Quote the first names."""
    return ", ".join(map(repr, names[:most]))


def _walk(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the files, and whether they are used. A hidden folder and a link to a folder elsewhere are one entry.

    Pipes and devices are not yielded.
    """
    for parent, folders, files in os.walk(folder):
        for name in files:
            file = Path(parent, name)
            leads_out = _leads_out(folder, file)
            if name not in _IGNORED and (leads_out or file.is_file()):
                yield file, not leads_out and not name.startswith(".")
        for name in folders:
            below = Path(parent, name)
            if name not in _IGNORED and (name.startswith(".") or _leads_out(folder, below)):
                yield below, False
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _IGNORED]


def _leads_out(folder: Path, path: Path) -> bool:
    try:
        return path.is_symlink() and not inside(folder, path)
    except RuntimeError:  # a link that leads to itself, before Python 3.13
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFormat:
    """One format of clusters as files. A module in `formats` defines it as `FORMAT`.

    `name` is for messages. The recognised format with the lowest `precedence` is used. `load` raises `ConfigError` for
    files that cannot be used at all.
    """

    name: str
    precedence: int
    recognises: Callable[[FileTree], bool]
    load: Callable[[FileTree], Recording]
