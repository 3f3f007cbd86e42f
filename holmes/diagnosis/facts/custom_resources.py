"""Finds failures in the status of custom resources.

Reads only conditions with known names, because an unknown condition may be True while the resource works.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.evidence import edited_at
from holmes.kubernetes.fields import boolean, duration, moment, text
from holmes.kubernetes.kinds import KINDS
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, Severity
    from holmes.values.json_types import JsonObject, JsonValue

_GOOD: Final[dict[str, Severity]] = {
    "Ready": "critical", "Available": "critical", "Healthy": "critical", "Programmed": "critical",
    "Accepted": "critical", "Succeeded": "warning", "Synced": "warning", "Reconciled": "warning",
}  # fmt: skip
"""Condition types that are False on failure, with the severity of the failure."""
_BAD: Final[dict[str, Severity]] = {
    "Failed": "critical", "Error": "critical", "Stalled": "critical", "Degraded": "warning",
    "ReconcileError": "warning",
}  # fmt: skip
"""Condition types that are True on failure, with the severity of the failure."""
_BAD_PHASES: Final[dict[str, Severity]] = {"failed": "critical", "error": "critical", "degraded": "warning"}
_BY_DESIGN: Final = re.compile(
    r"complete|succeeded|finished|suspend|paus|disabled|inactive|stopped|hibernat|scaledtozero|superseded|vminotexists",
    re.IGNORECASE,
)
_DEFINITE: Final = re.compile(r"fail|error|invalid|notfound|missing|denied|forbidden|unauthorized", re.IGNORECASE)
_GOING_ON: Final = re.compile(
    r"creat|pending|progress|reconcil|provision|install|upgrad|updat|wait|initiali|starting|deploying", re.IGNORECASE
)
_RUN: Final = re.compile(r"(?:Run|Workflow|Job|Backup|Restore|Operation|Snapshot|Build|InstallPlan)$")
_ATTEMPTS: Final = frozenset({"CertificateRequest", "Order", "Challenge", "Revision"})
"""Kinds whose owner creates an object for each attempt. The owner's status shows whether a later attempt succeeded."""
_FINISHED: Final = ("completionTime", "finishedAt", "completionTimestamp", "stoppedAt")
_PAUSES: Final = ("suspend", "suspended", "paused", "pause", "stopped")
_PAUSE_ANNOTATIONS: Final = re.compile(r"(?:^|[/.])(?:paused?|suspended?|skip-reconcile|hibernation)$", re.IGNORECASE)
_LONG_GRACES: Final = 5
_PATIENT_GRACES: Final = 30
_DAY: Final = 86_400.0
_DEEPEST: Final = 12
_KIND_NAMES: Final = {written: kind for kind in KINDS for written in (kind.resource, kind.name.lower())}
_MISSING: Final = re.compile(
    r"(?P<kind>[a-z]+)(?:\.[a-z0-9.]+)? [\"'`]?(?:(?P<namespace>[a-z0-9][a-z0-9-]*)/)?"
    r"(?P<name>[a-z0-9][a-z0-9.-]*[a-z0-9])[\"'`]?(?: in namespace [\"'`]?[\w-]+[\"'`]?)?"
    r"(?: is| was| could)? (?:not (?:be )?found|does not exist|doesn't exist)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A failure that the status of a custom resource reports."""

    title: str
    why: str
    severity: Severity
    proof: tuple[Evidence, ...]
    since: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingObject:
    """A missing object that is mentioned in a message.

    `written` is the field that refers to the object, or None if that field was not found.
    """

    ref: ObjectRef
    written: Evidence | None


def is_paused(each: ClusterObject) -> bool:
    """Return whether the object is paused, suspended or scaled to zero.

    Its controller does not process it in this state.
    """
    if any(boolean(each.body, "spec", key) for key in _PAUSES) or each.at("spec", "replicas") == 0:
        return True
    return any(
        _PAUSE_ANNOTATIONS.search(key) and value.lower() not in {"false", "off"}
        for key, value in each.annotations.items()
    ) or any(key.endswith("/reconcile") and value == "disabled" for key, value in each.annotations.items())


def trouble_of(state: ClusterState, each: ClusterObject) -> Trouble | None:
    """Return the failure that the object reports.

    Returns None if the object reports no failure, or is paused, being deleted or younger than the grace period.
    """
    if each.deleted is not None or is_paused(each) or state.age_seconds(each) < state.grace_seconds:
        return None
    conditions = (_of_condition(state, each, condition) for condition in each.children("status", "conditions"))
    found = next((trouble for trouble in conditions if trouble), None) or _of_phase(each)
    if found is None or not _RUN.search(each.kind):
        return found or _of_generation(state, each)
    return None if _is_history(state, each) else replace(found, severity="warning")


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


def _of_condition(state: ClusterState, each: ClusterObject, condition: JsonObject) -> Trouble | None:
    kind, status, reason = (text(condition, key) for key in ("type", "status", "reason"))
    severity = _GOOD.get(kind) if status == "False" else _BAD.get(kind) if status == "True" else None
    if severity is None or _BY_DESIGN.search(reason) or text(condition, "severity") == "Info":
        return None
    changed = moment(text(condition, "lastTransitionTime"))
    lasted = state.now - (changed if changed is not None else each.created)
    message = text(condition, "message")
    going_on = not _DEFINITE.search(reason) and _GOING_ON.search(reason) is not None
    graces = 1 if _DEFINITE.search(reason) else _PATIENT_GRACES if going_on else _LONG_GRACES
    if lasted < graces * state.grace_seconds:
        return None
    path = f"status.conditions[type={kind}]"
    return Trouble(
        title=f"{each.kind} is {'not ' if status == 'False' else ''}{_words(kind)}",
        why=": ".join(filter(None, (f"{kind} is {status}", reason, message))),
        severity="warning" if going_on else severity,
        proof=tuple(
            evidence.value(each, f"{path}.{key}", condition[key])
            for key in ("message", "status", "reason")
            if condition.get(key)
        ),
        since=changed,
    )


def _words(kind: str) -> str:
    named = {
        "Error": "in error",
        "Failed": "in a failed state",
        "Succeeded": "successful",
        "ReconcileError": "not reconciled",
    }
    return named.get(kind, kind.lower())


def _of_phase(each: ClusterObject) -> Trouble | None:
    for key in ("phase", "state"):
        phase = each.text("status", key)
        severity = _BAD_PHASES.get(phase.lower())
        if severity is not None:
            why = next((told for name in ("message", "reason", "error") if (told := each.text("status", name))), "")
            proof = tuple(
                evidence.field(each, "status", name)
                for name in ("message", "reason", "error")
                if each.at("status", name)
            )
            return Trouble(
                title=f"{each.kind} has {key} {phase}",
                why=": ".join(filter(None, (f"{key} is {phase}", why))),
                severity=severity,
                proof=(evidence.field(each, "status", key), *proof),
            )
    return None


def _of_generation(state: ClusterState, each: ClusterObject) -> Trouble | None:
    """Return a failure if the controller has not processed the latest change for a long time, otherwise None."""
    wanted, seen = each.integer("metadata", "generation"), each.at("status", "observedGeneration")
    lasted = state.now - edited_at(each)
    if not isinstance(seen, int) or not 0 < seen < wanted or lasted < _LONG_GRACES * state.grace_seconds:
        return None
    return Trouble(
        title=f"Controller has not processed the latest change to {each.kind}",
        why=f"its controller has observed generation {seen} of {wanted}, and the last change is {duration(lasted)} "
        "old; the controller is probably not running",
        severity="warning",
        proof=(evidence.field(each, "status", "observedGeneration"), evidence.field(each, "metadata", "generation")),
    )


def describe(state: ClusterState, each: ClusterObject) -> str:
    plural = next(
        (
            found.text("spec", "names", "plural")
            for found in state.of("CustomResourceDefinition")
            if found.text("spec", "group") == each.group and found.text("spec", "names", "kind") == each.kind
        ),
        each.kind.lower(),
    )
    place = f" -n {each.namespace}" if each.namespace else ""
    return f"kubectl{place} describe {plural}.{each.group} {each.name}"


def missing_object(state: ClusterState, each: ClusterObject, message: str) -> MissingObject | None:
    """Return the object that a message reports as missing.

    Returns None if the state does not confirm that the object is missing.
    """
    for found in _MISSING.finditer(message):
        kind = _KIND_NAMES.get(found["kind"].lower())
        if kind is None:
            continue
        name, namespace = found["name"], (found["namespace"] or each.namespace) if kind.namespaced else ""
        if state.is_missing(kind.name, namespace, name):
            place = next(_places(each.at("spec"), name, "spec", _DEEPEST), None)
            return MissingObject(
                ref=ObjectRef(kind=kind.name, namespace=namespace, name=name),
                written=evidence.value(each, place, name) if place else None,
            )
    return None


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
