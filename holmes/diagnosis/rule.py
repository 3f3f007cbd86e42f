"""Rules: a description for `holmes rules` and the documents, and a pure function of the cluster state.

    @Row(
        id="P03",
        title="Container restarted and runs again",
        severity="warning",
        kinds=("Pod",),
        reads=("status.containerStatuses[].restartCount", "status.containerStatuses[].lastState.terminated"),
        explanation="A container terminated within the last hour and runs again. ...",
    )
    def restarting(state: ClusterState) -> Iterator[Fault]:
        for pod in state.of("Pod"):
            ...
                yield Fault(subject=pod.ref, cause="...", evidence=(...), next_check="...")

The function yields a `Fault` for every faulty object. `holmes.diagnosis.engine` turns faults into findings: it adds the
defaults of the row, replaces a pod as the culprit by its workload, and merges equal faults of several pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from holmes.kubernetes.cluster_state import ClusterState

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_state import LogKey
    from holmes.values.findings import Evidence, ObjectRef, Role, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault that a rule found at one object.

    `subject` is the object that shows the fault. `culprit` is the object to change or create, by default the workload
    that owns the subject. The first `evidence` is the decisive one: the wrong field with its value. `cause` is one
    sentence that names culprit, field and value. `because` are objects that explain this fault if they have faults
    themselves: a Service that a crashing pod cannot reach, the PersistentVolumeClaim of a pending pod, the node. The
    role `symptom` is for a failure without its cause (not ready, not available, no endpoints); it ranks behind every
    cause at the same workload. `logs` can add detail, the most useful first.
    """

    subject: ObjectRef
    cause: str
    evidence: tuple[Evidence, ...]
    next_check: str
    culprit: ObjectRef | None = None
    title: str | None = None
    severity: Severity | None = None
    role: Role = "cause"
    because: tuple[ObjectRef, ...] = ()
    since: float | None = None
    logs: tuple[LogKey, ...] = ()


Check: TypeAlias = Callable[[ClusterState], Iterable[Fault]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A row of the catalogue with the function that finds it. `Row` creates it as a decorator."""

    row: Row
    check: Check

    @property
    def id(self) -> str:
        return self.row.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the catalogue. A letter follows its id when the row has several rules.

    `severity` is the default. `kinds` are the kinds that the rule judges, `needs` further kinds that it must be able to
    list. When one of them cannot be listed, the report says that the rule was not checked there. `reads` are its fields
    and event reasons. `explanation` describes the fault for `holmes rules explain`, how to tell it from similar states,
    and the usual fix.
    """

    id: str
    title: str
    severity: Severity
    kinds: tuple[str, ...]
    reads: tuple[str, ...]
    explanation: str
    needs: tuple[str, ...] = ()

    def __call__(self, check: Check) -> Rule:
        return Rule(row=self, check=check)

    @property
    def needed_kinds(self) -> tuple[str, ...]:
        """Every kind that the rule reads."""
        return tuple(dict.fromkeys((*self.kinds, *self.needs)))
