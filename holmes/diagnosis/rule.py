"""What a rule is: data for people and for `holmes rules`, and a pure function of the cluster's state.

    @Row(
        id="P03",
        title="Container restarts although it runs",
        severity="warning",
        kinds=("Pod",),
        reads=("status.containerStatuses[].restartCount", "status.containerStatuses[].lastState.terminated"),
        explanation="A container ended within the last hour and runs again. ...",
    )
    def restarting(state: ClusterState) -> Iterator[Fault]:
        for pod in state.of("Pod"):
            ...
                yield Fault(subject=pod.ref, cause="...", evidence=(...), next_check="...")

The function yields a `Fault` for every object it finds; `holmes.diagnosis.engine` makes findings of them: fills in what
the rule says, replaces a pod by its workload as the culprit, and merges the same fault of many pods.
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
    """What a rule found at one object.

    `subject` is where it shows. `culprit` is what must be changed or created; left out, it is the workload that owns
    the subject. The first piece of `evidence` is the decisive one: the wrong field with its value. `cause` is one
    sentence that names culprit, field and value. `because` are objects that explain this fault if they have faults
    themselves (a Service that a crashing pod cannot reach; the PersistentVolumeClaim of a pending pod; the node).
    `symptom` is for what only says that something does not work (not ready, not available, no endpoints): it steps
    back behind every cause of the same workload. `logs` are worth reading to say more, in the order of their worth.
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
    """A row of the catalogue with the function that finds it. Made by decorating the function with a `Row`."""

    row: Row
    check: Check

    @property
    def id(self) -> str:
        """The row's id."""
        return self.row.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the catalogue, with a letter behind its id when it has several rules.

    `severity` is the usual one. `kinds` are those whose objects the rule judges, `needs` further ones that it must be
    able to list: when one of them is not covered, the report says that the rule could not be checked there. `reads` are
    the fields and event reasons it looks at. `explanation` says for `holmes rules explain` what the fault is, how it is
    told apart from what only looks like it, and what is usually done.
    """

    id: str
    title: str
    severity: Severity
    kinds: tuple[str, ...]
    reads: tuple[str, ...]
    explanation: str
    needs: tuple[str, ...] = ()

    def __call__(self, check: Check) -> Rule:
        """The rule: `@Row(...)` above the function."""
        return Rule(row=self, check=check)

    @property
    def needed_kinds(self) -> tuple[str, ...]:
        """Every kind that the rule reads."""
        return tuple(dict.fromkeys((*self.kinds, *self.needs)))
