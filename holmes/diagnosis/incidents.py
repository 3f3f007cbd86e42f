"""Merges findings into ranked incidents, each with one root cause and the symptoms that follow from it.

A finding's `because` lists objects whose findings explain this finding. A symptom is also explained by every cause in
the same workload. If explanations form a cycle, the most specific finding is the root. The same findings always
produce the same incidents, ids and order.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.engine import workload_ref
from holmes.diagnosis.facts.changes import all_changes, recent_changes
from holmes.diagnosis.facts.chaos import CHAOS_GROUPS
from holmes.diagnosis.facts.fixes import kept_steps, rolled_back
from holmes.diagnosis.facts.producers import all_producers
from holmes.diagnosis.facts.templates import serving_workloads
from holmes.diagnosis.rule_ids import DECISIVE_RULES, FORESEEN_RULES, GENERIC_RULES
from holmes.kubernetes.fields import boolean, moment
from holmes.kubernetes.kinds import WORKLOADS
from holmes.values.findings import SEVERITIES, Incident, ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Change, Evidence, Finding, FixStep


def _rank(finding: Finding) -> tuple[bool, int, int, str, ObjectRef]:
    """Return a sort key that puts the most specific finding first."""
    return (
        finding.role == "symptom",
        SEVERITIES.index(finding.severity),
        (finding.rule_id in GENERIC_RULES) - (finding.rule_id in DECISIVE_RULES),
        finding.rule_id,
        finding.subject,
    )


class _Links:
    """Graph of the findings in one cluster state, with edges from each finding to the findings that explain it."""

    def __init__(self, findings: Sequence[Finding], state: ClusterState) -> None:
        self._findings = tuple(findings)
        self._state = state
        self._workloads: dict[ObjectRef, ObjectRef] = {}
        self._at: dict[ObjectRef, list[int]] = defaultdict(list)
        for index, finding in enumerate(self._findings):
            for ref in self._anchors(finding):
                self._at[ref].append(index)
        self._explained_by = [self._edges(index) for index in range(len(self._findings))]

    def roots(self) -> list[int]:
        """Return the index of each finding's root. A finding without an explanation is its own root."""
        return [self._root(index) for index in range(len(self._findings))]

    def _root(self, index: int) -> int:
        """Follow the most specific explanations to the root. In a cycle, the most specific finding is the root."""
        path: list[int] = []
        while self._explained_by[index]:
            if index in path:
                return min(path[path.index(index) :], key=self._rank)
            path.append(index)
            index = min(self._explained_by[index], key=self._rank)
        return index

    def _rank(self, index: int) -> tuple[bool, int, int, str, ObjectRef]:
        return _rank(self._findings[index])

    def workload(self, ref: ObjectRef) -> ObjectRef:
        if ref not in self._workloads:
            self._workloads[ref] = workload_ref(ref, self._state)
        return self._workloads[ref]

    def _anchors(self, finding: Finding) -> set[ObjectRef]:
        return {finding.subject, finding.culprit, self.workload(finding.subject), self.workload(finding.culprit)}

    def _edges(self, index: int) -> set[int]:
        finding = self._findings[index]
        named = {ref for written in finding.because for ref in self._behind(written)}
        found = {other for ref in named for other in self._at[ref] if self._can_explain(other)}
        if finding.role == "symptom":
            places = (self.workload(finding.subject), finding.culprit)
            found |= {
                other
                for ref in places
                for other in self._at[ref]
                if self._can_explain(other) and self._findings[other].role == "cause"
            }
        return (found or self._at_producers(finding)) - {index}

    def _at_producers(self, finding: Finding) -> set[int]:
        """Return the findings at the producers of the culprit.

        A custom resource explains a product that is missing or wrong. An operator explains only what happened after it
        had stopped working completely.
        """
        return {
            other
            for ref in (all_producers(self._state, finding.culprit) if finding.culprit.kind != "Node" else ())
            for other in self._at[ref]
            if self._can_explain(other)
            and (not (ref.kind in WORKLOADS or ref.group in CHAOS_GROUPS) or self._stopped_before(other, finding))
        }

    def _stopped_before(self, other: int, finding: Finding) -> bool:
        stopped = self._findings[other]
        began = moment(stopped.since)
        return stopped.severity == "critical" and (began is None or began <= (moment(finding.since) or began))

    def _behind(self, ref: ObjectRef) -> set[ObjectRef]:
        """Return the object, its workload and, for a Service, the workloads whose pods the Service selects."""
        found = {ref, self.workload(ref)}
        service = self._state.find(ref) if ref.kind == "Service" else None
        if service is not None:
            found |= {self.workload(each.ref) for each in serving_workloads(self._state, service)}
        return found

    def _can_explain(self, index: int) -> bool:
        finding = self._findings[index]
        if finding.severity == "info":
            return False
        workload = self._state.find(finding.subject) if finding.rule_id in FORESEEN_RULES else None
        return workload is None or not self._state.pods_of(workload)


_ID_CHARACTERS: Final = 8
_MOST_CHANGES: Final = 5


def incidents_of(findings: Sequence[Finding], state: ClusterState) -> tuple[Incident, ...]:
    """Group all findings into incidents, the most important incident first."""
    ordered = sorted(findings, key=_rank)
    links = _Links(ordered, state)
    members: dict[ObjectRef, list[int]] = defaultdict(list)
    roots = links.roots()
    for index, root in enumerate(roots):
        members[_trouble(ordered[root])].append(index)
    incidents = [
        _incident(
            causes=[ordered[index] for index in indexes if roots[index] == index],
            symptoms=[ordered[index] for index in indexes if roots[index] != index],
            links=links,
            state=state,
        )
        for indexes in members.values()
    ]
    return tuple(sorted(incidents, key=_importance))


def _importance(incident: Incident) -> tuple[int, int, int, float, str]:
    """Return a sort key: severity, then the number of affected objects and pods, then the newest incident first."""
    return (
        SEVERITIES.index(incident.severity),
        -len(incident.affected),
        -incident.affected_pods,
        -(moment(incident.since) or 0.0),
        incident.id,
    )


def _is_log(proof: Evidence) -> bool:
    """Return whether a line of a pod's log is the evidence, so that the pod suffers from the fault."""
    return proof.object.kind == "Pod" and proof.path.startswith("log of container ")


def _trouble(root: Finding) -> ObjectRef:
    """Return the key by which root findings are grouped into incidents.

    Root findings with the same culprit form one incident, but `info` findings form a separate incident.
    """
    if root.severity != "info":
        return root.culprit
    return ObjectRef(kind=f"info {root.culprit.kind}", namespace=root.culprit.namespace, name=root.culprit.name)


def _incident(causes: list[Finding], symptoms: list[Finding], links: _Links, state: ClusterState) -> Incident:
    first = causes[0]
    everything = [*causes, *symptoms]
    affected = {links.workload(finding.subject) for finding in everything}
    affected |= {finding.culprit for finding in causes if state.find(finding.culprit) is not None}
    affected |= {links.workload(each.object) for finding in everything for each in finding.evidence if _is_log(each)}
    severity = min((finding.severity for finding in everything), key=SEVERITIES.index)
    since = min((finding.since for finding in everything if finding.since), default="")
    changes = _changes(first, links, state, since) if severity != "info" else ()
    beside = tuple(_beside(causes))
    return Incident(
        id=_incident_id(first),
        severity=severity,
        title=first.title,
        culprit=first.culprit,
        cause="; besides, ".join((first.cause, *(each.cause for each in beside))),
        findings=tuple(causes),
        symptoms=tuple(symptoms),
        affected=tuple(sorted(affected)),
        affected_pods=_affected_pods(affected, everything, state),
        since=since,
        changed_before=changes,
        fix=(*_fix(first, changes, state), *(step for each in beside for step in each.fix)),
    )


def _beside(causes: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the causes that are wrong fields of the same object, so that the fix of the first one leaves them."""
    first = causes[0]
    patched = {each.path for each in first.fix if each.kind == "patch"}
    for other in causes[1:] if patched else ():
        paths = {each.path for each in other.fix if each.kind == "patch"}
        own = other.subject == first.subject and all(each.object == first.culprit for each in other.fix)
        if own and paths and not paths & patched and other.severity == first.severity:
            patched |= paths
            yield other


def _fix(first: Finding, changes: Iterable[Change], state: ClusterState) -> tuple[FixStep, ...]:
    """Return the fix of the rule, or the step back to the template before a rollout just before the trouble."""
    culprit = state.find(first.culprit)
    if culprit is None or not first.evidence or any(each.kind != "instruction" for each in first.fix):
        return first.fix
    rollouts = {each.change for each in all_changes(state, culprit) if each.sort == "rollout"}
    if not any(each.object == first.culprit and each in rollouts for each in changes):
        return first.fix
    return kept_steps((rolled_back(state, culprit, first.evidence[0]),), state) or first.fix


def _incident_id(finding: Finding) -> str:
    """Return the id of an incident. It stays the same in every scan for the same rule and culprit."""
    culprit = finding.culprit
    note = "info\n" if finding.severity == "info" else ""
    written = f"{note}{finding.rule_id}\n{culprit.group}\n{culprit.kind}\n{culprit.namespace}\n{culprit.name}"
    digest = hashlib.sha256(written.encode("utf-8", "replace")).hexdigest()[:_ID_CHARACTERS]
    return f"{finding.rule_id}-{digest}"


def _affected_pods(affected: Iterable[ObjectRef], findings: Sequence[Finding], state: ClusterState) -> int:
    """Return the number of affected pods.

    These are the pods that are subjects of findings, and the pods of affected workloads that are not ready.
    """
    uids = {finding.subject for finding in findings if finding.subject.kind == "Pod"}
    for ref in affected:
        workload = state.find(ref)
        if workload is not None and workload.kind != "Pod":
            uids |= {pod.ref for pod in state.pods_of(workload) if _fails(pod)}
    return len(uids)


def _fails(pod: ClusterObject) -> bool:
    if pod.text("status", "phase") == "Succeeded":
        return False
    return not all(boolean(status, "ready") for status in pod.children("status", "containerStatuses")) or not (
        pod.children("status", "containerStatuses")
    )


def _changes(first: Finding, links: _Links, state: ClusterState, since: str) -> tuple[Change, ...]:
    """Return at most five recent changes to the culprit and to the workload that shows the failure, newest first."""
    about = dict.fromkeys((first.culprit, links.workload(first.subject)))
    found = {change: None for ref in about for change in recent_changes(state, ref, moment(since))}
    return tuple(sorted(found, key=lambda change: change.at, reverse=True))[:_MOST_CHANGES]
