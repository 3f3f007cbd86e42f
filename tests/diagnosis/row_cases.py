"""Reads the cases of the rules: small clusters in YAML, with faults and with similar healthy states.

`rows/<rule id>.yaml` is a list of cases:

    - case: the application exits with 1
      fires: true
      culprit: Deployment shop/checkout          # exactly, optional
      subject: Pod shop/checkout-7d9-x           # exactly, optional
      says: ["exit code 1", "CrashLoopBackOff"]  # must appear in title, cause, evidence or next check
      never_says: ["does not exist"]             # optional: must appear in none of them
      role: cause                                # optional
      fixes: ["/spec/replicas"]                  # optional: must appear in the steps of the fix; [] means no step
      because: ["Service shop/cart"]             # optional: must be among the finding's `because`
      never_because: ["Node a"]                  # optional: must not be among them
      namespaces: [shop]                         # optional: the namespaces that were read; default all
      gaps: ["Secret"]                           # optional: kinds that could not be read
      objects:
        - {kind: Pod, metadata: {name: checkout-7d9-x, owner: ReplicaSet/checkout-7d9}, spec: ..., status: ...}
      events:
        - {object: Pod/checkout-7d9-x, reason: BackOff, message: ..., type: Warning, age: 120, count: 3}
      logs:
        shop/checkout-7d9-x/checkout: "text"
        shop/checkout-7d9-x/checkout/previous: "text"

Omitted fields of an object get defaults: namespace `shop` for namespaced kinds, a uid, and an age of one hour
(`metadata.age` is in seconds). `metadata.owner: Kind/name` is the owner reference of the controller. Only custom
resources need `apiVersion`. `{ago: 90}` is a time 90 seconds ago, in any field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from holmes.kubernetes.cluster_object import ClusterEvent, ClusterObject
from holmes.kubernetes.cluster_state import ClusterState, Gap, LogKey, Reading
from holmes.kubernetes.fields import moment, text, written
from holmes.kubernetes.kinds import KINDS
from holmes.values.findings import ObjectRef
from holmes.values.json_types import JsonObject

ROWS: Final = Path(__file__).parent / "rows"
NOW: Final = moment("2026-11-22T05:00:00Z") or 0.0
_KNOWN: Final = {
    "case", "fires", "culprit", "subject", "says", "never_says", "role", "severity", "because", "namespaces", "gaps",
    "fixes", "never_because",
}  # fmt: skip
_CLUSTER: Final = {"objects", "events", "logs"}
_WITHOUT_NAMESPACE: Final = frozenset(kind.name for kind in KINDS if not kind.namespaced)
_OWN_KINDS: Final = frozenset((kind.name, kind.group) for kind in KINDS)


@dataclass(frozen=True, kw_only=True)
class RowCase:
    rule_id: str
    name: str
    fires: bool
    culprit: str
    subject: str
    says: tuple[str, ...]
    never_says: tuple[str, ...]
    role: str
    severity: str
    because: tuple[str, ...]
    never_because: tuple[str, ...]
    fixes: tuple[str, ...] | None
    state: ClusterState


def read_cases(path: Path) -> list[RowCase]:
    return [_case(path.stem, raw) for raw in raw_cases(path)]


@cache
def raw_cases(path: Path) -> tuple[dict[str, Any], ...]:
    """The cases of one file as written. Uses the fast YAML reader, because there are more than 10,000 lines."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(yaml.load(path.read_text(encoding="utf-8"), Loader=loader))  # noqa: S506  both are safe


def all_cases() -> list[RowCase]:
    return [case for path in sorted(ROWS.glob("*.yaml")) for case in read_cases(path)]


def _case(rule_id: str, raw: Mapping[str, Any]) -> RowCase:
    unknown = raw.keys() - _KNOWN - _CLUSTER
    assert not unknown, f"{rule_id}: unknown keys {unknown}"
    return RowCase(
        rule_id=rule_id,
        name=raw["case"],
        fires=raw["fires"],
        culprit=raw.get("culprit", ""),
        subject=raw.get("subject", ""),
        says=tuple(raw.get("says", ())),
        never_says=tuple(raw.get("never_says", ())),
        role=raw.get("role", ""),
        severity=raw.get("severity", ""),
        because=tuple(raw.get("because", ())),
        never_because=tuple(raw.get("never_because", ())),
        fixes=tuple(raw["fixes"]) if "fixes" in raw else None,
        state=state_of(raw),
    )


def state_of(raw: Mapping[str, Any]) -> ClusterState:
    """The cluster of `objects`, `events` and `logs`."""
    reading = Reading(
        now=NOW,
        namespaces=frozenset(raw.get("namespaces", ())),
        gaps=tuple(Gap(kind=kind, why="forbidden") for kind in raw.get("gaps", ())),
    )
    return state_of_bodies(reading, bodies_of(raw), event_bodies_of(raw), log_texts_of(raw))


def state_of_bodies(
    reading: Reading, bodies: Iterable[JsonObject], events: Iterable[JsonObject], logs: Mapping[LogKey, str]
) -> ClusterState:
    """The cluster of objects and events as the API server returns them."""
    return ClusterState(reading, map(_object, bodies), map(ClusterEvent.of, events), logs)


def bodies_of(raw: Mapping[str, Any]) -> tuple[JsonObject, ...]:
    """The objects as the API server returns them, with all defaults."""
    return tuple(_body(each) for each in raw.get("objects", ()))


def event_bodies_of(raw: Mapping[str, Any]) -> tuple[JsonObject, ...]:
    """The events as the API server returns them."""
    objects = [_object(body) for body in bodies_of(raw)]
    uids = {(each.kind, each.namespace, each.name): each.uid for each in objects}
    return tuple(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"event-{number}", "namespace": each.get("namespace", "shop")},
            **_event(each, uids),
        }
        for number, each in enumerate(raw.get("events", ()))
    )


def log_texts_of(raw: Mapping[str, Any]) -> Mapping[LogKey, str]:
    """The logs of the containers."""
    return {_log_key(path): said for path, said in raw.get("logs", {}).items()}


def _body(raw: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = _resolved(raw)
    kind, metadata = body["kind"], body.setdefault("metadata", {})
    if kind not in _WITHOUT_NAMESPACE and not metadata.pop("cluster_scoped", False):
        metadata.setdefault("namespace", "shop")
    namespace = metadata.get("namespace", "")
    metadata.setdefault("uid", _uid(kind, namespace, metadata["name"]))
    metadata.setdefault("creationTimestamp", written(NOW - metadata.pop("age", 3600)))
    owner = metadata.pop("owner", None)
    if owner:
        owner_kind, _, name = owner.partition("/")
        place = "" if owner_kind in _WITHOUT_NAMESPACE else namespace
        metadata["ownerReferences"] = [
            {"kind": owner_kind, "name": name, "uid": _uid(owner_kind, place, name), "controller": True}
        ]
    return body


def _object(body: JsonObject) -> ClusterObject:
    kind, version = text(body, "kind"), text(body, "apiVersion")
    group = version.partition("/")[0] if "/" in version else ""
    return ClusterObject.of(body, group="" if (kind, group) in _OWN_KINDS else group)


def _uid(kind: str, namespace: str, name: str) -> str:
    return f"uid-{kind}-{namespace}-{name}"


def _event(raw: Mapping[str, Any], uids: Mapping[tuple[str, str, str], str]) -> JsonObject:
    kind, _, name = raw["object"].partition("/")
    namespace = "" if kind in _WITHOUT_NAMESPACE else raw.get("namespace", "shop")
    at = written(NOW - raw.get("age", 60))
    uid = uids.get((kind, namespace, name), f"uid-{kind}-{namespace}-{name}")
    return {
        "type": raw.get("type", "Warning"),
        "reason": raw["reason"],
        "message": raw.get("message", ""),
        "count": raw.get("count", 1),
        "source": {"component": raw.get("component", "kubelet")},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "involvedObject": {
            "kind": kind,
            "namespace": namespace,
            "name": name,
            "uid": uid,
            "fieldPath": raw.get("field_path", ""),
        },
    }


def _log_key(path: str) -> LogKey:
    namespace, pod, container, *rest = path.split("/")
    return LogKey(pod=ObjectRef(kind="Pod", namespace=namespace, name=pod), container=container, previous=bool(rest))


def _resolved(value: Any) -> Any:  # noqa: ANN401  whatever YAML holds
    """`{ago: 90}` as a time."""
    if isinstance(value, dict):
        if value.keys() == {"ago"}:
            return written(NOW - value["ago"])
        return {key: _resolved(item) for key, item in value.items()}
    return [_resolved(item) for item in value] if isinstance(value, list) else value
