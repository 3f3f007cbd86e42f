"""Responds to get and list requests, in pages, with the objects of a recording.

Requests for resources that were not recorded fail with an error that states why. They never return an empty list.
Events of `events.k8s.io/v1` are converted from core events, because only core events are recorded.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import child, children, text, text_map
from holmes.kubernetes.list_page import NOT_RECORDED
from holmes.snapshot.discovery import crd_of
from holmes.snapshot.server.responses import ApiFailure, bad_request, no_such_object, not_recorded
from holmes.snapshot.server.selectors import parse_field_selector, parse_label_selector
from holmes.snapshot.server.table_layout import partial

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holmes.snapshot.discovery import ResourceType
    from holmes.snapshot.recording import Recording, Unread
    from holmes.snapshot.server.responses import Form
    from holmes.values.json_types import JsonObject, JsonValue

_CORE_EVENTS: Final = ("", "events")
_NEW_EVENTS: Final = ("events.k8s.io", "events")
_RENAMED: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}


def _is_new_event(kind: ResourceType) -> bool:
    return (kind.group, kind.plural) == _NEW_EVENTS


def _new_event(event: JsonObject) -> JsonObject:
    """Convert a core event to `events.k8s.io/v1`."""
    return {_RENAMED.get(key, key): value for key, value in event.items()}


_STALE = "The provided continue parameter is too old or belongs to another list; list again without it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a list. `token` is empty on the last page. `remaining` is the number of objects after this page."""

    items: Sequence[JsonObject]
    token: str
    remaining: int


def page_of(items: Sequence[JsonObject], limit: str, token: str, *, of: str) -> Page:
    """Select the page for `limit` and `token`. `of` identifies the list, because each token is valid for only one list.

    Raises `ApiFailure`: 400 for a limit that is not a number, 410 for a token that is not valid.
    """
    if limit and not limit.lstrip("-").isdigit():
        raise bad_request(f"limit: {limit!r} is not a number")
    start = _start(token, of) if token else 0
    if start > len(items):
        raise ApiFailure(410, "Expired", _STALE)
    size = int(limit or 0)
    end = start + size if size > 0 else len(items)
    remaining = max(0, len(items) - end)
    return Page(items=items[start:end], token=_token(end, of) if remaining else "", remaining=remaining)


def _token(position: int, of: str) -> str:
    return base64.urlsafe_b64encode(f"{position}|{of}".encode()).decode()


def _start(token: str, of: str) -> int:
    try:
        position, _, name = base64.urlsafe_b64decode(token).decode().partition("|")
    except (binascii.Error, ValueError):
        raise ApiFailure(410, "Expired", _STALE) from None
    if name != of or not position.isdigit():
        raise ApiFailure(410, "Expired", _STALE)
    return int(position)


_REMEMBERED_SELECTIONS: Final = 16
_NODE_LEASES: Final = ("coordination.k8s.io", "leases", "kube-node-lease")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRequest:
    """A request for objects. `name` is empty for a list.

    `namespace` is empty for all namespaces and for cluster-scoped objects.
    """

    kind: ResourceType
    namespace: str
    name: str
    form: Form
    query: Mapping[str, str]


class ObjectAnswers:
    """Responds with the objects of one recording. Several threads can use it concurrently.

    It caches the selected objects for the pages of a long list.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._newest = _newest_version(recording)
        self._selection = lru_cache(maxsize=_REMEMBERED_SELECTIONS)(self._select)

    @property
    def resource_version(self) -> str:
        """The resource version that every list reports: the version of the newest object."""
        return self._newest

    def one(self, request: ObjectRequest) -> JsonObject:
        """Return one object, or its table. Raises `ApiFailure`."""
        item = self.find(request.kind, request.namespace, request.name)
        if request.form == "table":
            metadata = {"resourceVersion": text(item, "metadata", "resourceVersion")}
            return self._table(request, [item], metadata)
        return partial(item) if request.form == "metadata" else self._shown(request.kind, item)

    def find(self, kind: ResourceType, namespace: str, name: str) -> JsonObject:
        """Return the complete object with this name. Raises `ApiFailure`."""
        for item in self._recorded(kind, namespace):
            if text(item, "metadata", "name") == name and text(item, "metadata", "namespace") == namespace:
                return {"kind": kind.kind, "apiVersion": kind.group_version, **item}
        missing = self.missing(kind, namespace)
        if missing:
            raise not_recorded(kind.group, kind.plural, missing[0].reason)
        raise no_such_object(kind.group, kind.plural, name)

    def missing(self, kind: ResourceType, namespace: str) -> tuple[Unread, ...]:
        """Return what is missing of a kind that was recorded partly, in one namespace or in all namespaces."""
        group, plural = _key_of(kind)
        resource = f"{plural}.{group}" if group else plural
        return tuple(
            each
            for each in self._recording.unread
            if each.partly and each.resource == resource and (not namespace or each.namespace in ("", namespace))
        )

    def many(self, request: ObjectRequest) -> JsonObject:
        """Return one page of the selected objects, or its table. Raises `ApiFailure`."""
        items, missing = self.selected(request), self.missing(request.kind, request.namespace)
        where = f"{request.kind.qualified}/{request.namespace}"
        limit, token = request.query.get("limit", ""), request.query.get("continue", "")
        page = page_of(items, limit, token, of=where)
        metadata: dict[str, JsonValue] = {"resourceVersion": self._newest}
        if missing:
            metadata[NOT_RECORDED] = [{"namespace": each.namespace, "why": each.reason} for each in missing]
        if page.token:
            metadata["continue"] = page.token
            if not request.query.get("labelSelector") and not request.query.get("fieldSelector"):
                metadata["remainingItemCount"] = page.remaining
        if request.form == "table":
            return self._table(request, page.items, metadata)
        if request.form == "metadata":
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            return {**head, "metadata": metadata, "items": [partial(item) for item in page.items]}
        head = {"kind": f"{request.kind.kind}List", "apiVersion": request.kind.group_version}
        return {**head, "metadata": metadata, "items": [self._listed(request.kind, item) for item in page.items]}

    def selected(self, request: ObjectRequest) -> Sequence[JsonObject]:
        """Return the recorded objects that match the selectors of `request`. Raises `ApiFailure`."""
        query = request.query
        return self._selection(
            request.kind, request.namespace, query.get("labelSelector", ""), query.get("fieldSelector", "")
        )

    def _select(self, kind: ResourceType, namespace: str, labels: str, fields: str) -> Sequence[JsonObject]:
        items = self._recorded(kind, namespace)
        if namespace:
            items = [item for item in items if text(item, "metadata", "namespace") == namespace]
        if labels:
            requirements = parse_label_selector(labels)
            items = [
                item
                for item in items
                if all(each.matches(text_map(item, "metadata", "labels")) for each in requirements)
            ]
        if fields:
            tests = parse_field_selector(fields, kind, self._selectable_fields(kind))
            items = [item for item in items if all(each.matches(self._in_words_of(kind, item)) for each in tests)]
        return items

    def event(self, request: ObjectRequest, item: JsonObject) -> JsonObject:
        """Return one object in the form that a watch of `request` sends."""
        if request.form == "table":
            return self._table(request, [{**self._head(request.kind), **item}], {})
        return partial(item) if request.form == "metadata" else self._shown(request.kind, item)

    def _table(self, request: ObjectRequest, items: Sequence[JsonObject], metadata: JsonObject) -> JsonObject:
        from holmes.snapshot.server.tables import layout_of, table  # only kubectl asks for tables

        include = request.query.get("includeObject", "Metadata")
        if include == "Object":
            items = [{**self._head(request.kind), **item} for item in items]
        layout = layout_of(self._recording, request.kind)
        return table(layout, items, now=self._recording.recorded_at, metadata=metadata, include=include)

    def _head(self, kind: ResourceType) -> JsonObject:
        return {"kind": kind.kind, "apiVersion": kind.group_version}

    def _shown(self, kind: ResourceType, item: JsonObject) -> JsonObject:
        return {**self._head(kind), **self._in_words_of(kind, self._listed(kind, item))}

    def _listed(self, kind: ResourceType, item: JsonObject) -> JsonObject:
        """Return an object as a list item. Only custom resources repeat kind and version in each item."""
        item = self._in_words_of(kind, item)
        return {**item, "apiVersion": kind.group_version} if "apiVersion" in item else item

    def _in_words_of(self, kind: ResourceType, item: JsonObject) -> JsonObject:
        return _new_event(item) if _is_new_event(kind) else item

    def _recorded(self, kind: ResourceType, namespace: str) -> Sequence[JsonObject]:
        """Return all objects of `kind`. Raises `ApiFailure` if they were not recorded, or not in `namespace`."""
        key = _key_of(kind)
        missed = next((each for each in self._recording.unread if _concerns(each, key, namespace)), None)
        if missed is not None:
            raise not_recorded(*key, f"it could not be recorded: {missed.reason}")
        recorded = self._recording.objects.get(key)
        if recorded is None:
            raise not_recorded(*key, "it is not part of this recording")
        self._check_version(kind, recorded.type)
        self._check_namespace(kind, namespace)
        self._check_parts(kind, namespace, recorded.items)
        return recorded.items

    def _check_parts(self, kind: ResourceType, namespace: str, items: Sequence[JsonObject]) -> None:
        """Raise `ApiFailure` if nothing of a namespace was recorded, although other namespaces were."""
        missing = next((each for each in self.missing(kind, namespace) if namespace), None)
        if missing and not any(text(item, "metadata", "namespace") == namespace for item in items):
            raise not_recorded(kind.group, kind.plural, missing.reason)

    def _check_version(self, kind: ResourceType, recorded: ResourceType) -> None:
        if kind.version == recorded.version or _is_new_event(kind) or self._definition(kind):
            return
        message = f"{kind.qualified} were recorded as {recorded.group_version}, not as {kind.group_version}"
        raise ApiFailure(404, "NotFound", message)

    def _check_namespace(self, kind: ResourceType, namespace: str) -> None:
        scope = self._recording.namespaces
        if not namespace or not scope or namespace in scope or (kind.group, kind.plural, namespace) == _NODE_LEASES:
            return
        why = f'namespace "{namespace}" is not part of this recording (recorded: {", ".join(scope)})'
        raise not_recorded(kind.group, kind.plural, why)

    def _selectable_fields(self, kind: ResourceType) -> Sequence[str]:
        versions = children(self._definition(kind) or {}, "spec", "versions")
        return [
            text(field, "jsonPath").removeprefix(".")
            for version in versions
            if text(version, "name") == kind.version
            for field in children(version, "selectableFields")
        ]

    def _definition(self, kind: ResourceType) -> JsonObject | None:
        definitions = self._recording.items("apiextensions.k8s.io", "customresourcedefinitions")
        return next((each for each in definitions if crd_of(each) == (kind.group, kind.plural)), None)


def _key_of(kind: ResourceType) -> tuple[str, str]:
    return _CORE_EVENTS if _is_new_event(kind) else (kind.group, kind.plural)


def _concerns(unread: Unread, key: tuple[str, str], namespace: str) -> bool:
    group, plural = key
    if unread.partly or unread.resource != (f"{plural}.{group}" if group else plural):
        return False
    return not unread.namespace or not namespace or unread.namespace == namespace


def _newest_version(recording: Recording) -> str:
    versions = (
        text(child(item, "metadata"), "resourceVersion")
        for recorded in recording.objects.values()
        for item in recorded.items
    )
    return str(max((int(version) for version in versions if version.isdigit()), default=1))
