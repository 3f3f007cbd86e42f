"""Which finding explains which: the edges between findings, and the root of each. Called by `incidents`.

A finding is explained by those at the objects it names in `because`, and a mere symptom by every cause of the same
workload. What explains itself in a circle has its most telling member as the root.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.engine import workload_ref
from holmes.kubernetes.fields import text_map
from holmes.values.findings import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Finding, ObjectRef

GENERIC_RULES: Final = frozenset({"P01", "P03", "P08a", "P09", "P10", "W01", "W02", "N-S02"})
"""Rules that say that something fails, and not what is wrong: behind every other at the same culprit."""


def rank(finding: Finding) -> tuple[bool, int, bool, str, ObjectRef]:
    """The most telling finding sorts first."""
    return (
        finding.role == "symptom",
        SEVERITIES.index(finding.severity),
        finding.rule_id in GENERIC_RULES,
        finding.rule_id,
        finding.subject,
    )


class Links:
    """The graph of findings of one state."""

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
        """For each finding the index of its root, its own when nothing explains it."""
        return [self._root(index) for index in range(len(self._findings))]

    def _root(self, index: int) -> int:
        """Follows the most telling explanation to its end; in a circle its most telling member is the end."""
        path: list[int] = []
        while self._explained_by[index]:
            if index in path:
                return min(path[path.index(index) :], key=self._rank)
            path.append(index)
            index = min(self._explained_by[index], key=self._rank)
        return index

    def _rank(self, index: int) -> tuple[bool, int, bool, str, ObjectRef]:
        return rank(self._findings[index])

    def workload(self, ref: ObjectRef) -> ObjectRef:
        """The outermost owner of an object."""
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
        return found - {index}

    def _behind(self, ref: ObjectRef) -> set[ObjectRef]:
        """The object, its workload, and behind a Service the workloads that it sends to."""
        found = {ref, self.workload(ref)}
        service = self._state.find(ref) if ref.kind == "Service" else None
        if service is not None:
            pods = self._state.selected("Pod", service.namespace, text_map(service.body, "spec", "selector"))
            found |= {self.workload(pod.ref) for pod in pods}
        return found

    def _can_explain(self, index: int) -> bool:
        return self._findings[index].severity != "info"
