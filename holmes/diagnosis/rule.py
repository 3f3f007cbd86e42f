"""Defines a rule: a description for `holmes rules` and the documentation, and a pure function of the cluster state.

    @Row(
        id="P03",
        title="Container was restarted and is running again",
        severity="warning",
        kinds=("Pod",),
        reads=("status.containerStatuses[].restartCount", "status.containerStatuses[].lastState.terminated"),
        explanation="A container terminated within the last hour and is running again. ...",
    )
    def restarting(state: ClusterState) -> Iterator[Fault]:
        for pod in state.of("Pod"):
            ...
                yield Fault(subject=pod.ref, cause="...", evidence=(...), next_check="...")

The function yields a `Fault` for every faulty object. `holmes.diagnosis.engine` turns faults into findings. The engine
adds the defaults of the row. If a culprit is a pod, the engine replaces it with the pod's workload. It also merges
identical faults of several pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from holmes.kubernetes.cluster_state import ClusterState

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_state import LogKey
    from holmes.values.findings import Evidence, FixStep, ObjectRef, Role, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault that a rule found in one object.

    `subject` is the object that shows the fault. `culprit` is the object to change or create, by default the workload
    that owns the subject. The first item of `evidence` is the decisive wrong field with its value. `cause` is
    one sentence that names the culprit, the field and the value. `because` contains objects whose own faults would
    explain this fault, for example the Service that a crashing pod cannot reach. The role `symptom` marks a failure
    without its cause (not ready, not available, no endpoints). A symptom ranks below every cause in the same workload.
    `logs` contains the logs that can add detail, the most useful first. `fix` contains steps (`facts.fixes`) if the
    rule knows what is right; steps that do not fit the state are dropped.
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
    fix: tuple[FixStep | None, ...] = ()


Check: TypeAlias = Callable[[ClusterState], Iterable[Fault]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A row of the catalogue with the function that detects its fault.

    Decorating a function with a `Row` creates a rule.
    """

    row: Row
    check: Check

    @property
    def id(self) -> str:
        return self.row.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the catalogue.

    If a row has several rules, each id ends with a letter. `severity` is the default severity. `kinds` contains the
    kinds that the rule judges. `needs` contains other kinds that the rule must be able to list. If one of these kinds
    cannot be listed, the report lists the rule as not checked. `reads` contains the fields and event reasons that the
    rule reads. `explanation` describes the fault, how it differs from similar states, and the usual fix.
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
