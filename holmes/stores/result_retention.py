"""Deletes stored results that exceed the age or size limit.

The least recently used results are deleted first. The modification time of a blob is its last use. Results that were
used within the last hour, or that a saved conversation refers to, are not deleted. A kill at any time is safe, because
the manifest records a removal before the files are deleted. The next run completes an interrupted removal. Only files
in the manifest and blobs without an entry are deleted.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holmes.stores.result_files import BLOBS_FOLDER
from holmes.stores.result_manifest import RemovedEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holmes.stores.result_manifest import ManifestEntry, ResultManifest
    from holmes.values.messages import ResultId

_GRACE_SECONDS: Final = 3_600.0
"""Results used within this time are never deleted, because a run may still need them."""

_MOST_REMOVED_AT_ONCE = 1_000
_REMEMBERED = 4_000
_WASTED_LINES = 1_000
_BLOB_NAME = re.compile(r"[0-9a-f]{64}|\.[0-9a-f]{32}\.tmp")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRules:
    """The limits of a store.

    `retention_seconds` is the maximum time since the last use. `quota_bytes` is the maximum total size. None means no
    limit. `protected` returns the results that must not be deleted. It reads every saved conversation, so it is called
    only before a removal.
    """

    retention_seconds: float | None
    quota_bytes: int | None
    protected: Callable[[], frozenset[ResultId]]

    @property
    def active(self) -> bool:
        return self.retention_seconds is not None or self.quota_bytes is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """The number of removed results, and the total sizes of the removed and the remaining results."""

    removed: int = 0
    freed_bytes: int = 0
    kept_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """A blob with all its manifest entries."""

    entries: tuple[ManifestEntry, ...]
    last_used: float
    size_bytes: int


def would_remove(folder: Path, manifest: ResultManifest, rules: RetentionRules, now: float) -> bool:
    """Return whether any result, protected or not, exceeds a limit.

    Reads the files without a lock and does not change them. Raises `OSError`.
    """
    return bool(_leaving(_contents(folder, manifest.entries()), rules, frozenset(), now))


def sweep(
    folder: Path, manifest: ResultManifest, rules: RetentionRules, protected_ids: frozenset[ResultId] | None, now: float
) -> SweepReport:
    """Delete results according to the rules, except for `protected_ids`.

    `protected_ids` is the return value of `rules.protected`. If `protected_ids` is None, only leftover files are
    deleted. The caller must have the exclusive lock. Raises `OSError`.
    """
    entries = manifest.entries()
    contents = _contents(folder, entries)
    leaving = [] if protected_ids is None else _leaving(contents, rules, protected_ids, now)
    gone = {entry.sha256 for each in leaving for entry in each.entries}
    living = {(entry.sha256, entry.name): entry for entry in entries if entry.sha256 not in gone}
    names = {entry.name for entry in living.values()}
    hashes = {entry.sha256 for entry in living.values()}
    remembered = [each for each in manifest.removed() if each.sha256 not in hashes]
    remembered += [
        RemovedEntry(id=entry.id, sha256=entry.sha256, name=entry.name, removed_at=now)
        for each in leaving
        for entry in each.entries
    ]
    remembered = remembered[-_REMEMBERED:]
    if leaving or len(entries) > len(living) + _WASTED_LINES:
        manifest.rewrite(living.values(), remembered)
    for each in remembered:
        if each.name not in names:
            _delete_name(folder, each.name)
        if _BLOB_NAME.fullmatch(each.sha256):
            (folder / BLOBS_FOLDER / each.sha256).unlink(missing_ok=True)
    _delete_orphans(folder, hashes, now)
    return SweepReport(
        removed=len(leaving),
        freed_bytes=sum(each.size_bytes for each in leaving),
        kept_bytes=sum(each.size_bytes for each in contents) - sum(each.size_bytes for each in leaving),
    )


def _contents(folder: Path, entries: Iterable[ManifestEntry]) -> list[_Stored]:
    """Return the stored contents, least recently used first.

    If a blob is missing, the time in its manifest entry is treated as its last use.
    """
    grouped: dict[str, list[ManifestEntry]] = {}
    for entry in entries:
        grouped.setdefault(entry.sha256, []).append(entry)
    contents = [_stored(folder, sha256, tuple(group)) for sha256, group in grouped.items()]
    return sorted(contents, key=lambda each: each.last_used)


def _stored(folder: Path, sha256: str, entries: tuple[ManifestEntry, ...]) -> _Stored:
    last_used, size_bytes, inode = max(entry.stored_at for entry in entries), 0, -1
    with suppress(OSError):
        status = (folder / BLOBS_FOLDER / sha256).stat()
        last_used, size_bytes, inode = max(last_used, status.st_mtime), status.st_size, status.st_ino
    for name in {entry.name for entry in entries if _is_plain(entry.name)}:
        with suppress(OSError):
            status = (folder / name).lstat()
            size_bytes += status.st_size if status.st_ino != inode else 0  # a view is a separate file, not a link
    return _Stored(entries=entries, last_used=last_used, size_bytes=size_bytes)


def _leaving(
    contents: Sequence[_Stored], rules: RetentionRules, protected_ids: frozenset[ResultId], now: float
) -> list[_Stored]:
    total = sum(each.size_bytes for each in contents)
    leaving: list[_Stored] = []
    for each in contents:
        too_old = rules.retention_seconds is not None and now - each.last_used > rules.retention_seconds
        too_many = rules.quota_bytes is not None and total > rules.quota_bytes
        recent = now - each.last_used < _GRACE_SECONDS
        if not (too_old or too_many) or recent or any(entry.id in protected_ids for entry in each.entries):
            continue
        leaving.append(each)
        total -= each.size_bytes
        if len(leaving) == _MOST_REMOVED_AT_ONCE:
            break
    return leaving


def _is_plain(name: str) -> bool:
    """Return whether `name` can be the name of a file that the store created directly in its folder."""
    return name not in {"", ".", ".."} and "/" not in name and "\0" not in name and not name.startswith(".")


def _delete_name(folder: Path, name: str) -> None:
    if _is_plain(name) and name != "manifest.jsonl":
        with suppress(IsADirectoryError, PermissionError):
            (folder / name).unlink(missing_ok=True)


def _delete_orphans(folder: Path, living: set[str], now: float) -> None:
    """Delete blobs without an entry and incomplete files, which a killed process did not remove."""
    inodes: set[int] = set()
    with os.scandir(folder / BLOBS_FOLDER) as files:
        for file in files:
            if file.name in living or not _BLOB_NAME.fullmatch(file.name):
                continue
            with suppress(FileNotFoundError):
                status = file.stat(follow_symlinks=False)
                if now - status.st_mtime > _GRACE_SECONDS:
                    if status.st_nlink > 1:
                        inodes.add(status.st_ino)
                    Path(file.path).unlink()
    if not inodes:
        return
    with os.scandir(folder) as files:
        for file in files:
            if file.inode() in inodes and file.is_file(follow_symlinks=False):
                Path(file.path).unlink(missing_ok=True)
