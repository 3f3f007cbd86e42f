"""Takes a second look at a cause before it is given, and returns what in the cluster speaks against it.

A cause must be connected to the subject, come before its symptom, explain its other faults, and not be true of healthy
siblings. The same checks apply to causes of the rules and to causes that a model names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import moment, written
from holmes.kubernetes.kinds import KINDS, WORKLOADS
from holmes.kubernetes.state_reader import SYSTEM_NAMESPACE
from holmes.triage.connections import connections, identity
from holmes.triage.conversation import SHOWN
from holmes.triage.names import names_of
from holmes.triage.states import is_ready
from holmes.triage.users import users_of
from holmes.triage.vocabulary import symptoms_of_text
from holmes.values.expressions import expression
from holmes.values.first_look import FirstLook

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.values.findings import Incident, ObjectRef

_MOST_OBJECTIONS: Final = 3
_MOST_CLAIMED: Final = 6
_LEAST_SIBLINGS: Final = 2
_LATE_SECONDS: Final = 60
_KINDS: Final = {word.lower(): kind.name for kind in KINDS for word in (kind.name, kind.resource)}
_NAME: Final = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"
_PATH: Final = expression(
    rf"(?<![\w./-])(?:(?P<kind>{'|'.join(sorted(_KINDS, key=len, reverse=True))})[ /`\"']{{1,3}})"
    rf"(?:(?P<namespace>{_NAME})/)?(?P<name>{_NAME})(?![\w/-])",
    re.IGNORECASE,
)
_BARE: Final = expression(rf"(?<![\w./-]){_NAME}(?![\w/-])|(?<=`){_NAME}(?=`)")
_SHARED: Final = frozenset({"ConfigMap", "Secret", "Node", "PersistentVolumeClaim", "ServiceAccount"})
_CLIENTS: Final = frozenset({*WORKLOADS, "Pod"})
"""Kinds that use a subject without serving it."""
_OF_NODES: Final = frozenset({"memory", "disk", "slow", "evicted", "start"})
"""Symptoms that an object causes for its neighbours on the same node."""
_CONTENT: Final = frozenset({"ConfigMap", "Secret", "ServiceAccount"})
"""Kinds without a state of their own: an object that uses them can be at fault while others are healthy."""


def second_look(asked: Asked, claim: str) -> FirstLook:
    """Check the sentence of an answer that names a cause. The verdict is *inconclusive* if the cause cannot hold.

    `claim` may repeat after `SHOWN` what cited lines show. Such a line can connect an object with the subject.
    """
    claim, *shown = claim.split(SHOWN)
    claimed, impossible = _claimed(asked, claim)
    impossible = (*impossible, *(text for each in claimed for text in _unconnected(asked, each, claim, shown)))
    against = (*impossible, *(text for each in claimed for text in _objections(asked, each)))
    return FirstLook(
        verdict="inconclusive" if impossible else "cause_found",
        summary=claim,
        subject=tuple(str(each.ref) for each in asked.subject.objects[:4]),
        scope=asked.subject.place,
        against=tuple(dict.fromkeys(against))[:_MOST_OBJECTIONS],
        taken_at=asked.report.taken_at,
    )


def objections(asked: Asked, look: FirstLook) -> tuple[str, ...]:
    """Return what speaks against the culprit of a look. Evidence of the culprit in the look shows its fault."""
    each = asked.state.written(look.culprit)
    if each is None:
        return ()
    parts = {str(part.ref) for part in (each, *asked.state.pods_of(each))}
    shown = any(line.partition(",")[0] in parts for line in look.evidence)
    return tuple(_objections(asked, each, shown=shown))[:_MOST_OBJECTIONS]


def _claimed(asked: Asked, claim: str) -> tuple[tuple[ClusterObject, ...], tuple[str, ...]]:
    """Return the objects that `claim` names, and a sentence for each object that does not exist."""
    state, names = asked.state, names_of(asked.state)
    spaces = tuple(dict.fromkeys(each.namespace for each in asked.subject.objects if each.namespace))
    found: dict[ObjectRef, ClusterObject] = {}
    invented: list[str] = []
    for match in _PATH.finditer(claim):
        kind, name = _KINDS[match["kind"].lower()], match["name"]
        within = (match["namespace"],) if match["namespace"] else ()
        objects = names.named(name, kind, within)
        if objects:
            nearest = min(objects, key=lambda each: each.namespace not in spaces)
            found.setdefault(nearest.ref, nearest)
        elif match["namespace"] and match["namespace"] in names.namespaces and state.covers(kind, match["namespace"]):
            invented.append(f"{kind} {match['namespace']}/{name} does not exist")
    for word in _BARE.findall(claim):
        objects = names.named(word, "", spaces) if "-" in word else ()
        if objects and not any(each.name == word for each in found.values()):
            found.setdefault(objects[0].ref, objects[0])
    missing = re.search(r"\b(?:miss|not exist|not found|absent|deleted|no such)", claim, re.IGNORECASE)
    return tuple(found.values())[:_MOST_CLAIMED], () if missing else tuple(invented)


def _unconnected(asked: Asked, each: ClusterObject, claim: str, shown: Sequence[str]) -> Iterator[str]:
    """Yield an objection if an object neither serves the subject nor is connected with it by a cited line."""
    subjects = asked.subject.objects
    if not subjects or not each.namespace:
        return
    serving = connections(asked.state, subjects)
    incidents = asked.report.incidents
    of_system = each.namespace == SYSTEM_NAMESPACE and any(_involves(one, each.ref) for one in incidents)
    if of_system or identity(asked.state, each) & serving.keys():
        return
    own = {ref for subject in subjects for ref in identity(asked.state, subject)}
    if each.kind not in _CLIENTS and own & connections(asked.state, (each,)).keys():
        return
    if symptoms_of_text(claim) & _OF_NODES and any(_nodes(asked, one) & _nodes(asked, each) for one in subjects):
        return
    if not any(each.name in line and any(ref.name in line for ref in own) for line in shown):
        yield f"{each.ref} is not connected to {subjects[0].ref}"


def _nodes(asked: Asked, each: ClusterObject) -> set[str]:
    pods = (each,) if each.kind == "Pod" else asked.state.pods_of(each) if each.kind in WORKLOADS else ()
    return {node for pod in pods if (node := pod.text("spec", "nodeName"))}


def _objections(asked: Asked, each: ClusterObject, *, shown: bool = False) -> Iterator[str]:
    """Yield what speaks against an object. `shown` means that its fault is shown, so it need not have an incident."""
    own = {ref for subject in asked.subject.objects for ref in identity(asked.state, subject)}
    if each.ref in own:
        return
    incidents = asked.report.incidents
    begun = _begun(incidents, own)
    created = moment(each.text("metadata", "creationTimestamp"))
    if begun and created and created > begun + _LATE_SECONDS:
        yield f"{each.ref} was created at {written(created)}, after the trouble began at {written(begun)}"
    if each.kind in _SHARED:
        yield from _healthy_siblings(asked, each, own)
    quiet = not shown and each.kind not in _CONTENT and is_ready(each)
    if quiet and not any(_involves(one, each.ref) for one in incidents):
        yield f"{each.ref} itself shows no fault"


def _begun(incidents: Sequence[Incident], own: set[ObjectRef]) -> float | None:
    """Return when the first fault of the subject began."""
    times = [begun for each in incidents if any(_involves(each, ref) for ref in own) if (begun := moment(each.since))]
    return min(times, default=None)


def _healthy_siblings(asked: Asked, each: ClusterObject, own: set[ObjectRef]) -> Iterator[str]:
    """Yield an objection if other workloads use the same object and are healthy."""
    state, incidents = asked.state, asked.report.incidents
    users = {user.ref: user for user in (state.workload_of(found.object) for found in users_of(state, each))}
    siblings = [user for ref, user in users.items() if ref not in own and user.kind in WORKLOADS]
    healthy = [user for user in siblings if is_ready(user) and not any(_involves(one, user.ref) for one in incidents)]
    if len(healthy) >= _LEAST_SIBLINGS and len(healthy) == len(siblings):
        names = ", ".join(str(one.ref) for one in healthy[:2])
        yield f"{len(healthy)} other workloads use {each.ref} and are healthy, for example {names}"


def _involves(incident: Incident, ref: ObjectRef) -> bool:
    found = (*incident.findings, *incident.symptoms)
    return ref in (incident.culprit, *incident.affected, *(each.subject for each in found))
