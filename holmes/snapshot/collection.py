"""Collects the objects and logs of a source in another tool's format, file by file.

A file that is not valid is named and skipped, and the rest is used. Its kind is then reported as not recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeGuard

from holmes.kubernetes.fields import at, text
from holmes.snapshot.assembly import Assembly, assemble
from holmes.snapshot.coverage import NAMESPACE, Coverage
from holmes.snapshot.documents import documents_of
from holmes.snapshot.layouts import some
from holmes.snapshot.recorded_logs import LOG_LIMIT_BYTES, found_log, last_seconds
from holmes.snapshot.recording import Unread
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import PurePosixPath

    from holmes.snapshot.coverage import GroupKind
    from holmes.snapshot.layouts import FileTree
    from holmes.snapshot.recorded_logs import LogKey, RecordedLog
    from holmes.snapshot.recording import Recording
    from holmes.values.json_types import JsonObject, JsonValue

_TOTAL_LIMIT_BYTES: Final = 1024 * 1024 * 1024
_SHOWN_FILES: Final = 3
NO_KIND: Final = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The objects in one file. `listed` are the kinds that occur in lists, as opposed to documents of their own.

    `lists` are the lists of the file one by one, because several runs of kubectl can write to one file.
    """

    objects: tuple[JsonObject, ...]
    listed: frozenset[GroupKind]
    lists: tuple[Content, ...] = ()


class Collection:
    """The objects and logs in the files of one source."""

    def __init__(self, tree: FileTree) -> None:
        self.tree = tree
        self.coverage = Coverage()
        self.objects: list[JsonObject] = []
        self.logs: dict[LogKey, RecordedLog] = {}
        self.unread: list[Unread] = []
        self.notes: list[str] = []
        self.broken: list[ConfigError] = []
        self._skipped: dict[str, list[str]] = {}
        self._used: set[PurePosixPath] = set()
        self._read_bytes = 0
        self._newest_seconds = 0.0
        self._cut_logs = 0

    def read(self, file: PurePosixPath, default: GroupKind = NO_KIND) -> Content | None:
        """Add the objects of a file. `default` is the kind of objects that do not state it. None if it is not valid.

        Raises `ConfigError` only if all files together are too large.
        """
        path = self.tree.path(file)
        self._used.add(file)
        found: list[Content] = []
        try:
            stated = path.stat()
            self._read_bytes += stated.st_size
            self._newest_seconds = max(self._newest_seconds, stated.st_mtime)
            self._check_total()
            for document in documents_of(path, self.tree.shown(file)):
                parts = document if _is_list_of_lists(document) else (document,)
                # A document can have no content, as between two `---`.
                found += [_content(each, default, str(file), self._skipped) for each in parts if each is not None]
        except OSError as error:
            self.broken.append(ConfigError(f"{self.tree.shown(file)}: cannot read the file: {error.strerror}"))
            return None
        except RecursionError:
            self.broken.append(ConfigError(f"{self.tree.shown(file)}: the file is nested too deeply"))
            return None
        except _TooLargeError:
            raise
        except ConfigError as error:
            self.broken.append(error)
            return None
        objects = tuple(item for each in found for item in each.objects)
        self.objects += objects
        listed = frozenset(kind for each in found for kind in each.listed)
        return Content(objects=objects, listed=listed, lists=tuple(found))

    def ignore(self, files: Iterable[PurePosixPath]) -> None:
        """Count files as used that have neither objects nor logs, but belong to the format."""
        self._used.update(files)

    def add_list(self, file: PurePosixPath, kind: GroupKind, namespace: str) -> None:
        """Add a file that lists all objects of one kind in a namespace, or in the cluster if it is empty."""
        content = self.read(file, kind)
        if content is None:
            self.coverage.add_fault(kind, namespace, f"the file is not valid: {self.broken[-1]}")
            return
        for listed in content.listed or {kind}:
            self.coverage.add(listed, namespace)

    def add_log(self, file: PurePosixPath, key: LogKey) -> None:
        self._used.add(file)
        try:
            log = found_log(self.tree.path(file))
        except OSError as error:
            self.broken.append(ConfigError(f"{self.tree.shown(file)}: cannot read the file: {error.strerror}"))
            return
        self._cut_logs += log.offset_bytes > 0
        self._newest_seconds = max(self._newest_seconds, last_seconds(log))
        known = self.logs.get(key)
        # A pod that was made again has a folder for each of its ids.
        if known is None or last_seconds(known) <= last_seconds(log):
            self.logs[key] = log

    def add_unread_log(self, key: LogKey, why: str) -> None:
        """Record why a log could not be collected."""
        which = f"{key.pod}/{key.container}{' (previous)' if key.previous else ''}"
        reason = f"{which}: {' '.join(why.split())}"
        unread = Unread(resource="pods/log", namespace=key.namespace, forbidden=False, reason=reason, partly=True)
        self.unread.append(unread)

    def recording(
        self, context: str, namespaces: Iterable[str] = (), *, version: JsonObject | None = None, complete: bool = False
    ) -> Recording:
        """Return the recording. With `complete`, the objects are taken for all objects of their kinds.

        Raises `ConfigError` if there is neither an object nor a log.
        """
        if not self.objects and not self.logs and self.broken:
            raise self.broken[0]
        if not self.objects and not self.logs and not self.coverage.lists:
            raise ConfigError(f"{self.tree.source}: the {context} has neither objects nor logs")
        if not complete and not self.coverage.lists.get(NAMESPACE):
            self.coverage.add_fault(NAMESPACE, "", "the namespaces are known only from their objects")
        found = Assembly(
            source=self.tree.source,
            context=context,
            objects=self.objects,
            changed_at=datetime.fromtimestamp(int(self._newest_seconds), UTC),
            notes=(*self.notes, *self.content_notes()),
            namespaces=tuple(sorted(namespaces)),
            logs=self.logs,
            coverage=None if complete else self.coverage,
            version=version or {},
            unread=tuple(self.unread),
        )
        return assemble(found, self.tree.redactor)

    def _check_total(self) -> None:
        if self._read_bytes > _TOTAL_LIMIT_BYTES:
            size = f"{_TOTAL_LIMIT_BYTES // 1024 // 1024:,} MB"
            raise _TooLargeError(f"{self.tree.source}: the objects have more than {size}; remove the largest files")

    def content_notes(self) -> Iterator[str]:
        """Yield one line about each reason why content cannot be used."""
        if self.broken:
            verb = "file is not valid and was" if len(self.broken) == 1 else "files are not valid and were"
            more = f" and {len(self.broken) - _SHOWN_FILES:,} more" if len(self.broken) > _SHOWN_FILES else ""
            yield f"{len(self.broken):,} {verb} skipped: {'; '.join(map(str, self.broken[:_SHOWN_FILES]))}{more}"
        unknown = [str(file) for file in self.tree.files if file not in self._used]
        if unknown:
            verb = "is not of a known kind and was" if len(unknown) == 1 else "are not of a known kind and were"
            yield f"{len(unknown):,} of {len(self.tree.files):,} files {verb} not read: {_files(unknown)}"
        left_out = [str(file) for file in self.tree.left_out]
        if left_out:
            kind = "entry is hidden or a link" if len(left_out) == 1 else "entries are hidden or links"
            verb = "leads out of the folder and was" if len(left_out) == 1 else "lead out of the folder and were"
            yield f"{len(left_out):,} {kind} that {verb} not read: {_files(left_out)}"
        if self._skipped:
            reasons = "; ".join(f"{len(names)} {why} in {_files(names)}" for why, names in self._skipped.items())
            total = sum(map(len, self._skipped.values()))
            noun = (
                "entry is not a valid Kubernetes object" if total == 1 else "entries are not valid Kubernetes objects"
            )
            yield f"{total:,} {noun} and cannot be used ({reasons})"
        if self._cut_logs:
            noun = "log is" if self._cut_logs == 1 else "logs are"
            yield f"{self._cut_logs:,} {noun} long; only the last {LOG_LIMIT_BYTES // 1024 // 1024} MB of each are read"


class _TooLargeError(ConfigError):
    """All files together are too large."""


@dataclass(slots=True, kw_only=True)
class _Documents:
    """The objects in the documents of a file. `skipped` maps a reason to the files of entries that are not objects."""

    file: str
    skipped: dict[str, list[str]]
    objects: list[JsonObject] = field(default_factory=list)
    listed: set[GroupKind] = field(default_factory=set)

    def add(self, document: JsonValue, default: GroupKind = NO_KIND, *, in_list: bool = False) -> None:
        """Add the objects of a document. The kind of objects in a typed list is derived from the list."""
        if isinstance(document, list):
            for each in document:
                self.add(each, default, in_list=True)
            return
        version, kind = text(document, "apiVersion") or default[0], text(document, "kind") or default[1]
        items = at(document, "items")
        if kind.endswith("List") and (isinstance(items, list) or _is_empty_list(document)):
            member = kind.removesuffix("List")
            if member:
                self.listed.add((version, member))
            self.add(items or [], (version, member) if member else NO_KIND)
        elif isinstance(document, dict) and kind and version and text(document, "metadata", "name"):
            self.objects.append({"apiVersion": version, "kind": kind, **document})
            if in_list:
                self.listed.add((version, kind))
        else:
            missing = "kind" if not kind else "apiVersion" if not version else "metadata.name"
            why = f"without {missing}" if isinstance(document, dict) else "not an object"
            self.skipped.setdefault(why, []).append(self.file)


def _content(document: JsonValue, default: GroupKind, file: str, skipped: dict[str, list[str]]) -> Content:
    found = _Documents(file=file, skipped=skipped)
    found.add(document, default)
    return Content(objects=tuple(found.objects), listed=frozenset(found.listed))


def _is_list_of_lists(document: JsonValue) -> TypeGuard[list[JsonValue]]:
    """Return whether a document is an array of lists, as `jq --slurp` makes it of several runs of kubectl."""
    return isinstance(document, list) and all(text(each, "kind").endswith("List") for each in document)


def _is_empty_list(document: JsonValue) -> bool:
    return isinstance(document, dict) and document.get("items", "") is None


def _files(names: Iterable[str]) -> str:
    """Name the first files."""
    different = tuple(dict.fromkeys(names))
    more = f" and {len(different) - _SHOWN_FILES:,} more" if len(different) > _SHOWN_FILES else ""
    return some(different, _SHOWN_FILES) + more
