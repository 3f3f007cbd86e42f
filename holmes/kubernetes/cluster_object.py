"""Wraps objects and events of the cluster for the rules.

A wrapper contains the raw JSON and the fields that rules need.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.kubernetes import fields
from holmes.kubernetes.fields import moment
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject, JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerView:
    """The controller of an object."""

    kind: str
    name: str
    uid: str


def owner_of(document: JsonObject) -> OwnerView | None:
    for reference in fields.children(document, "metadata", "ownerReferences"):
        if fields.boolean(reference, "controller"):
            return OwnerView(
                kind=fields.text(reference, "kind"),
                name=fields.text(reference, "name"),
                uid=fields.text(reference, "uid"),
            )
    return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterObject:
    """One object. `created` and `deleted` are times in seconds since the epoch. `body` is the JSON from the API."""

    kind: str
    group: str
    namespace: str
    name: str
    uid: str
    created: float
    deleted: float | None
    labels: dict[str, str]
    owner: OwnerView | None
    body: JsonObject

    @classmethod
    def of(cls, body: JsonObject, *, kind: str = "", group: str = "") -> ClusterObject:
        """Wrap `body`. Items of a list do not contain `kind` and `apiVersion`, so the kind and group are parameters."""
        metadata = fields.child(body, "metadata")
        return cls(
            kind=kind or fields.text(body, "kind"),
            group=group,
            namespace=sys.intern(fields.text(metadata, "namespace")),
            name=fields.text(metadata, "name"),
            uid=fields.text(metadata, "uid"),
            created=moment(fields.text(metadata, "creationTimestamp")) or 0.0,
            deleted=moment(fields.text(metadata, "deletionTimestamp")),
            labels=fields.text_map(metadata, "labels"),
            owner=owner_of(body),
            body=body,
        )

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(kind=self.kind, name=self.name, namespace=self.namespace, group=self.group)

    @property
    def annotations(self) -> dict[str, str]:
        return fields.text_map(self.body, "metadata", "annotations")

    def at(self, *path: str) -> JsonValue:
        """Return the value at `path`, or None if it is missing."""
        return fields.at(self.body, *path)

    def text(self, *path: str) -> str:
        """Return the string at `path`, or an empty string."""
        return fields.text(self.body, *path)

    def integer(self, *path: str) -> int:
        """Return the integer at `path`, or 0."""
        return fields.integer(self.body, *path)

    def boolean(self, *path: str) -> bool:
        return fields.boolean(self.body, *path)

    def child(self, *path: str) -> JsonObject:
        """Return the object at `path`, or an empty object."""
        return fields.child(self.body, *path)

    def children(self, *path: str) -> tuple[JsonObject, ...]:
        """Return the objects in the list at `path`, or an empty tuple."""
        return fields.children(self.body, *path)

    def condition(self, kind: str) -> JsonObject:
        """Return the entry of `status.conditions` with this type, or an empty object."""
        for condition in self.children("status", "conditions"):
            if fields.text(condition, "type") == kind:
                return condition
        return {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterEvent:
    """One event. `uid` is the uid of the involved object.

    `first` and `last` are the times of its first and last occurrence, in seconds since the epoch.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    type: str
    reason: str
    message: str
    component: str
    field_path: str
    count: int
    first: float
    last: float

    @classmethod
    def of(cls, body: JsonObject) -> ClusterEvent:
        """Wrap `body`, which is an event of the core API or of `events.k8s.io`."""
        involved = fields.child(body, "involvedObject") or fields.child(body, "regarding")
        times = (
            fields.text(body, "series", "lastObservedTime"),
            _string(body, "lastTimestamp") or _string(body, "deprecatedLastTimestamp"),
            _string(body, "eventTime"),
            fields.text(body, "metadata", "creationTimestamp"),
        )
        moments = [seconds for seconds in map(moment, filter(None, times)) if seconds is not None]
        first = moment(_string(body, "firstTimestamp") or _string(body, "deprecatedFirstTimestamp"))
        message = _string(body, "message") or _string(body, "note")
        return cls(
            kind=sys.intern(_string(involved, "kind")),
            namespace=sys.intern(_string(involved, "namespace")),
            name=sys.intern(_string(involved, "name")),
            uid=sys.intern(_string(involved, "uid")),
            type=sys.intern(_string(body, "type")),
            reason=sys.intern(_string(body, "reason")),
            message=sys.intern(" ".join(message.split())),
            component=sys.intern(fields.text(body, "source", "component") or _string(body, "reportingComponent")),
            field_path=sys.intern(_string(involved, "fieldPath")),
            count=max(1, fields.integer(body, "series", "count"), fields.integer(body, "count")),
            first=first if first is not None else min(moments, default=0.0),
            last=moments[0] if moments else 0.0,
        )

    @property
    def ref(self) -> ObjectRef:
        """The involved object."""
        return ObjectRef(kind=self.kind, name=self.name, namespace=self.namespace)


def _string(value: JsonObject, key: str) -> str:
    """Return the string at `key`. `fields.text` is too slow here, because a scan makes 50,000 of these calls."""
    found = value.get(key)
    return found if isinstance(found, str) else ""
