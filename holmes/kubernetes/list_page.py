"""Checks the pages of a list, so that no other response counts as a list and no list is read without end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.errors import ApiPath
from holmes.kubernetes.fields import child, children, integer, text
from holmes.kubernetes.kinds import EVENT, KINDS

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject

_LIST_KINDS: Final = {(kind.group, kind.resource): f"{kind.name}List" for kind in (EVENT, *KINDS)}
_ANY_KIND: Final = ("", "List", "PartialObjectMetadataList")
NOT_RECORDED: Final = "notRecorded"
"""The field of a list's metadata in which the server of a recording states what is missing of the list."""

_FREE_PAGES: Final = 100
_FEW_OBJECTS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """One page of a list. `token` is the position of the next page, and `remaining` the objects after this page.

    `fault` states why the response is not a valid page. It is empty for a valid page. `items` are the objects that can
    be used anyway. `missing` are the namespaces of a recording in which the list is incomplete, each with the reason.
    An empty namespace stands for the whole cluster.
    """

    items: tuple[JsonObject, ...]
    token: str
    remaining: int | None
    fault: str
    missing: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, path: str, answer: JsonObject) -> ListPage:
        """Check the response to a request for `path`. An empty list may be null. A `Status` is not a list."""
        kind, items, metadata = text(answer, "kind"), answer.get("items", ""), child(answer, "metadata")
        fault = ""
        if not _is_expected(path, kind):
            fault = f"GET {path}: the API server did not return a list of objects of this kind, but {kind!r}"
        elif items is not None and not (isinstance(items, list) and all(isinstance(item, dict) for item in items)):
            fault = f"GET {path}: the API server did not return a list of objects"
        return cls(
            items=children(answer, "items") if _is_expected(path, kind) else (),
            token=text(metadata, "continue"),
            remaining=integer(metadata, "remainingItemCount") or None,
            fault=fault,
            missing=tuple((text(each, "namespace"), text(each, "why")) for each in children(metadata, NOT_RECORDED)),
        )


def _is_expected(path: str, kind: str) -> bool:
    """Return whether a response of `kind` can be the list at `path`. The list of a custom kind can have any name."""
    parts = ApiPath.parse(path)
    expected = _LIST_KINDS.get((parts.group, parts.resource))
    return kind in _ANY_KIND or (kind == expected if expected else kind.endswith("List"))


class PageGuard:
    """Detects a list that never ends: a position that the server returned before, or many pages with few objects."""

    def __init__(self, path: str, token: str = "") -> None:
        self._path = path
        self._seen = {token}
        self._pages = 0

    def fault_after(self, page: ListPage, count: int) -> str:
        """Return why the list does not end, or an empty string. `count` is the number of objects read so far."""
        self._pages += 1
        if not page.token:
            return ""
        if page.token in self._seen:
            return f"GET {self._path}: the API server returned the same page twice; {count:,} objects were read"
        self._seen.add(page.token)
        if self._pages > _FREE_PAGES and count < self._pages * _FEW_OBJECTS:
            pages = f"{self._pages:,} pages with only {count:,} objects"
            return f"GET {self._path}: the API server returned {pages}, and the list does not end"
        return ""
