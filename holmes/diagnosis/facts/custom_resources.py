"""Decides which failures of custom resources are reported, and which missing object a message names.

`custom_health` reads the status itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.custom_health import Trouble, of_generation, trouble_in_status
from holmes.diagnosis.facts.custom_table import row_of
from holmes.diagnosis.facts.producers import controllers_of
from holmes.kubernetes.fields import boolean, moment, text
from holmes.kubernetes.kinds import KINDS
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef
from holmes.values.texts import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence
    from holmes.values.json_types import JsonValue

_RUN: Final = expression(
    r"(?<!Cron)(?<!Scaled)(?<!Scheduled)(?:Run|Workflow|Job|Backup|Restore|Operation|Snapshot|Build|InstallPlan|Migration)$"
)
_ATTEMPTS: Final = frozenset({"CertificateRequest", "Order", "Challenge", "Revision"})
"""Kinds whose owner creates an object for each attempt. The owner's status shows whether a later attempt succeeded."""
_FINISHED: Final = ("completionTime", "finishedAt", "completionTimestamp", "stoppedAt", "terminationTime", "endTime")
_PAUSES: Final = ("suspend", "suspended", "paused", "pause", "stopped")
_PAUSE_ANNOTATIONS: Final = expression(r"(?:^|[/.])(?:paused?|suspended?|skip-reconcile|hibernation)$", re.IGNORECASE)
_RECONCILES: Final = ("/reconcile", "/reconciliation")
_DAY: Final = 86_400.0
_DEEPEST: Final = 12
_NOTICED_SECONDS: Final = 360.0
"""A store is validated again every five minutes, so its readers may fail so much earlier."""
_KIND_NAMES: Final = {written: kind for kind in KINDS for written in (kind.resource, kind.name.lower())}
_MISSING: Final = expression(
    r"(?P<kind>[a-z]+)(?:\.[a-z0-9.]+)? [\"'`]?(?:(?P<namespace>[a-z0-9][a-z0-9-]*)/)?"
    r"(?P<name>[a-z0-9][a-z0-9.-]*[a-z0-9])[\"'`]?(?: in namespace [\"'`]?[\w-]+[\"'`]?)?"
    r"(?: is| was| could)? (?:not (?:be )?found|does not exist|doesn't exist)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingObject:
    """A missing object that is mentioned in a message.

    `written` is the field that refers to the object, or None if that field was not found.
    """

    ref: ObjectRef
    written: Evidence | None


def _pause_of(each: ClusterObject) -> Evidence | None:
    """Return the setting with which a person paused or suspended the object, or None.

    Its controller does not process it in this state.
    """
    for key in _PAUSES:
        if boolean(each.body, "spec", key):
            return evidence.field(each, "spec", key)
    for key, found in each.annotations.items():
        paused = _PAUSE_ANNOTATIONS.search(key) is not None and found.lower() not in {"false", "off"}
        if paused or (key.endswith(_RECONCILES) and found == "disabled"):
            return evidence.value(each, f"metadata.annotations[{key}]", found)
    return None


def is_paused(each: ClusterObject) -> bool:
    """Return whether the object is paused, suspended or scaled to zero."""
    return each.at("spec", "replicas") == 0 or _pause_of(each) is not None


def trouble_of(state: ClusterState, each: ClusterObject) -> Trouble | None:
    """Return the failure that the object reports.

    Returns None if the object reports no failure, or is paused, being deleted or younger than the grace period.
    """
    if each.deleted is not None or is_paused(each) or state.age_seconds(each) < state.grace_seconds:
        return None
    row = row_of(each.kind, each.group)
    found = trouble_in_status(state, each, row)
    if found is not None and found.intended:
        return None
    if found is None or not (row.run or _RUN.search(each.kind)):
        return found or of_generation(state, each)
    return None if _is_history(state, each) else replace(found, severity="warning")


def intent_of(state: ClusterState, each: ClusterObject) -> Trouble | None:
    """Return what a person did to the object on purpose, such as suspending it, or None."""
    if each.deleted is not None or _RUN.search(each.kind):
        return None
    setting = _pause_of(each)
    if setting is None:
        found = trouble_in_status(state, each, row_of(each.kind, each.group))
        return found if found is not None and found.intended else None
    return Trouble(
        title=f"{each.kind} is suspended",
        head=f"its controller does not process it because {setting.path} is {setting.value}",
        severity="info",
        proof=(setting,),
        intended=True,
    )


def is_superseded(state: ClusterState, each: ClusterObject) -> bool:
    """Return whether a failed attempt is obsolete because its owner is ready."""
    seen: set[str] = set()
    while each.kind in _ATTEMPTS and each.owner is not None and each.uid not in seen:
        seen.add(each.uid)
        owner = state.by_uid(each.owner.uid)
        if owner is None:
            return False
        if text(owner.condition("Ready"), "status") == "True" and owner.kind not in _ATTEMPTS:
            return True
        each = owner
    return False


def _is_history(state: ClusterState, each: ClusterObject) -> bool:
    """Return whether a run ended more than a day ago. The failure of such a run is not reported."""
    ends = (moment(each.text("status", key)) for key in _FINISHED)
    ended = next((end for end in ends if end is not None), each.created)
    return state.now - ended > _DAY


def resource_of(state: ClusterState, kind: str, group: str) -> str:
    """Return the plural of a custom kind in requests. Without its definition it is that of an English noun."""
    definitions = (found for found in state.of("CustomResourceDefinition") if found.text("spec", "group") == group)
    names = (found.child("spec", "names") for found in definitions)
    return next((text(each, "plural") for each in names if text(each, "kind") == kind), plural(kind.lower()))


def describe(state: ClusterState, each: ClusterObject) -> str:
    place = f" -n {each.namespace}" if each.namespace else ""
    return f"kubectl{place} describe {resource_of(state, each.kind, each.group)}.{each.group} {each.name}"


def missing_object(state: ClusterState, each: ClusterObject, message: str) -> MissingObject | None:
    """Return the object that a message reports as missing.

    Returns None if the state does not confirm that the object is missing.
    """
    for found in _MISSING.finditer(message):
        kind = _KIND_NAMES.get(found["kind"].lower())
        if kind is None:
            continue
        name, namespace = found["name"], (found["namespace"] or _place_of(state, each)) if kind.namespaced else ""
        if namespace == "" and kind.namespaced:
            continue
        if state.is_missing(kind.name, namespace, name):
            place = next(_places(each.at("spec"), name, "spec", _DEEPEST), None)
            return MissingObject(
                ref=ObjectRef(kind=kind.name, namespace=namespace, name=name),
                written=evidence.value(each, place, name) if place else None,
            )
    return None


def _place_of(state: ClusterState, each: ClusterObject) -> str:
    """Return the namespace in which an object looks for others. Without its own, it is that of its operator."""
    operators = () if each.namespace else controllers_of(state, each.kind, each.group)
    return each.namespace or next((ref.namespace for ref in operators), "")


def _places(value: JsonValue, wanted: str, path: str, depth: int) -> Iterator[str]:
    """Yield the paths of all fields under `value` whose content is exactly the string `wanted`."""
    if value == wanted:
        yield path
    elif isinstance(value, dict) and depth:
        for key, item in value.items():
            yield from _places(item, wanted, f"{path}.{key}", depth - 1)
    elif isinstance(value, list) and depth:
        for index, item in enumerate(value):
            yield from _places(item, wanted, f"{path}[{index}]", depth - 1)


def failed_later(state: ClusterState, ref: ObjectRef, trouble: Trouble) -> bool:
    """Return whether the trouble of a store began too late to explain that of an object that reads from it."""
    store = state.find(ref)
    own = trouble_of(state, store) if store is not None else None
    began = own.since if own is not None else None
    return bool(began and trouble.since and began > trouble.since + _NOTICED_SECONDS)
