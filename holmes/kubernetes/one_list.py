"""Reads one list of a cluster in pages, and keeps what was read when a page fails.

A list that failed can continue later at the page that failed. Fields that no rule reads are removed, so that a large
cluster fits into memory. For Secrets, only metadata is requested.
"""

from __future__ import annotations

import asyncio
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
from holmes.kubernetes.cluster_state import Gap
from holmes.kubernetes.custom_kinds import status_shape
from holmes.kubernetes.errors import Gone
from holmes.kubernetes.fields import LAST_APPLIED, child, children, text
from holmes.kubernetes.kinds import EVENT, KINDS, Kind, api_path
from holmes.kubernetes.list_page import ListPage, PageGuard
from holmes.values.texts import without_last_word

if TYPE_CHECKING:
    from holmes.kubernetes.client import ClusterClient
    from holmes.kubernetes.cluster_state import GapCategory
    from holmes.values.json_types import JsonObject, JsonValue

_LONGEST_VALUE_CHARACTERS: Final = 16_384


def slim(body: JsonObject, kind: str) -> JsonObject:
    """Remove large fields from an object.

    - `managedFields` keeps manager, operation, time and the names of the fields of the spec, except for pods. It also
      keeps that only metadata was written.
    - A ConfigMap keeps all keys, with at most 16,384 characters of each value.
    - The schema of a CustomResourceDefinition is removed, except for whether it has a status.
    - The last applied configuration is removed.
    """
    slimmer: dict[str, JsonValue] = dict(body)
    metadata: dict[str, JsonValue] = dict(child(body, "metadata"))
    annotations = child(metadata, "annotations")
    if LAST_APPLIED in annotations:
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    if "managedFields" in metadata:
        metadata["managedFields"] = [
            {key: entry[key] for key in ("manager", "operation", "time", "subresource") if key in entry}
            | (written_fields(entry) if kind != "Pod" else {})
            for entry in children(metadata, "managedFields")
        ]
    slimmer["metadata"] = metadata
    if kind == "ConfigMap":
        slimmer["data"] = {key: _cut(value) for key, value in child(body, "data").items()}
        slimmer["binaryData"] = dict.fromkeys(child(body, "binaryData"), "")
    elif kind == "CustomResourceDefinition":
        slimmer["spec"] = _without_schemas(child(body, "spec"))
    return slimmer


def written_fields(entry: JsonObject) -> dict[str, JsonValue]:
    """Return the outline of `fieldsV1`: which fields of the spec a manager wrote, without their inner fields.

    A manager that wrote only metadata, such as labels, keeps the name of this field.
    """
    if set(child(entry, "fieldsV1")) == {"f:metadata"}:
        return {"fieldsV1": {"f:metadata": {}}}
    names: dict[str, JsonValue] = {name: {} for name in child(entry, "fieldsV1", "f:spec") if name != "."}
    return {"fieldsV1": {"f:spec": names}} if names else {}


def _cut(value: JsonValue) -> JsonValue:
    if not isinstance(value, str) or len(value) <= _LONGEST_VALUE_CHARACTERS:
        return value
    return without_last_word(value[:_LONGEST_VALUE_CHARACTERS])


def _without_schemas(spec: JsonObject) -> dict[str, JsonValue]:
    versions: list[JsonValue] = [
        {**{key: value for key, value in version.items() if key != "schema"}, **status_shape(version)}
        for version in children(spec, "versions")
    ]
    kept: dict[str, JsonValue] = {key: value for key, value in spec.items() if key != "conversion"}
    return {**kept, "versions": versions, "group": text(spec, "group")}


_NAMES_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Media type for metadata only. A server that does not support this type cannot send Secret values instead."""


@dataclass(slots=True, kw_only=True)
class OneList:
    """A list of one kind in one namespace, or in the whole cluster if `place` is empty, and what was read of it.

    `gap` states why the list is incomplete, and `missing` what a recording lacks of it. `token` is the position of the
    next page. `requests`, `answers` and `failures` count the requests, the valid pages that were read, and the attempts
    that failed. `seconds` is the duration of the last attempt.
    """

    kind: Kind
    place: str
    objects: list[ClusterObject] = field(default_factory=list)
    events: list[ClusterEvent] = field(default_factory=list)
    gap: Gap | None = None
    missing: tuple[Gap, ...] = ()
    token: str = ""
    count: int = 0
    requests: int = 0
    answers: int = 0
    failures: int = 0
    seconds: float = 0.0
    attempted: bool = False

    @property
    def is_builtin(self) -> bool:
        return self.kind is EVENT or self.kind in KINDS

    @property
    def name(self) -> str:
        """The kind, in the form `Kind.group` if it is not built into Kubernetes."""
        return self.kind.name if self.is_builtin else f"{self.kind.name}.{self.kind.group}"

    async def read(self, client: ClusterClient, page_size: int, limit: int) -> None:
        """Read the list to its end or up to `limit` objects, from the page at which the last attempt failed.

        If the list expires between two pages, it is read again once.
        """
        again = self.failures > 0
        try:
            await self._pages(client, page_size, limit)
        except Gone:
            self.token, self.count, again = "", 0, True
            await self._pages(client, page_size, limit)
        finally:
            if again:
                self.objects = list({(each.namespace, each.name): each for each in self.objects}.values())
                self.events = list({astuple(each): each for each in self.events}.values())

    async def _pages(self, client: ClusterClient, page_size: int, limit: int) -> None:
        path = api_path(self.kind.group_version, self.kind.resource, namespace=self.place or None)
        accept = _NAMES_ONLY if self.kind.metadata_only else ""
        guard = PageGuard(path, self.token)
        while True:
            params = {"limit": str(page_size), **({"continue": self.token} if self.token else {})}
            self.requests += 1
            page = ListPage.of(path, await client.get(path, params, accept=accept))
            if page.fault:
                self.leave(page.fault)
            self.answers += not page.fault or bool(page.items)
            self.missing = tuple(
                Gap(kind=self.name, why=why, namespace=namespace, category="limit") for namespace, why in page.missing
            )
            await asyncio.to_thread(self._keep, page.items, client.scope)
            self.token, why = page.token, guard.fault_after(page, self.count)
            if not self.token:
                return None
            if why:
                return self.leave(why, "limit")
            if self.count >= limit:
                return self.leave(f"more than {limit:,} objects; the first {self.count:,} were read", "limit")

    def _keep(self, items: tuple[JsonObject, ...], scope: tuple[str, ...]) -> None:
        self.count += len(items)
        if self.kind is EVENT:
            self.events += [ClusterEvent.of(item) for item in items]
            return
        if self.kind.name == "Namespace" and scope:
            items = tuple(item for item in items if text(child(item, "metadata"), "name") in scope)
        name, group = self.kind.name, "" if self.is_builtin else self.kind.group
        self.objects += [ClusterObject.of(slim(item, name), kind=name, group=group) for item in items]

    def leave(self, why: str, category: GapCategory = "failed", read_in: tuple[str, ...] = ()) -> None:
        """Record why the list is incomplete."""
        self.gap = Gap(
            kind=self.name, why=" ".join(why.split()), namespace=self.place, category=category, read_in=read_in
        )
