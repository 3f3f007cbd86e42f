"""The findings of a diagnosis, for `holmes scan`, the tool `kubernetes_diagnose` and `builtin/triage`.

`holmes.diagnosis` creates them. `holmes.values.findings_json` converts them to and from JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Severity: TypeAlias = Literal["critical", "warning", "info"]
Role: TypeAlias = Literal["cause", "symptom"]
FixKind: TypeAlias = Literal["command", "patch", "instruction"]

SEVERITIES: Final[tuple[Severity, ...]] = ("critical", "warning", "info")
"""Severities, highest first."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ObjectRef:
    """The kind and name of an object, which might not exist.

    `namespace` is empty for cluster-scoped objects. `group` is empty for built-in resources.
    """

    kind: str
    name: str
    namespace: str = ""
    group: str = ""

    def __str__(self) -> str:
        """Return the kind and the path, for example `Deployment shop/checkout` or `Node worker-1`."""
        return f"{self.kind} {self.path}"

    @property
    def path(self) -> str:
        """The namespace and the name, for example `shop/checkout`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A value that was read from the cluster.

    `path` is the field of `object`, for example `spec.containers[0].image`, `log of container web (previous)` or `event
    FailedMount`.
    """

    object: ObjectRef
    path: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Precondition:
    """A state of the cluster without which a step of a fix is wrong.

    `path` is a JSON pointer. If it is not empty, the field must have the JSON value `value`, or be unset if `value` is
    empty.
    """

    object: ObjectRef
    exists: bool = True
    path: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixStep:
    """One step of a fix, which Holmes never runs. `object` is what the step changes or creates.

    `action` contains the arguments of kubectl without the namespace, quoted for a shell; the new value of a patched
    field in JSON; or the sentence of an instruction. `path` is the JSON pointer of the patched field, and `old` is its
    value in JSON, or empty if the field is not set. `requires` was true of the cluster that the rule saw. `check` is a
    command that shows whether the step worked.
    """

    kind: FixKind
    object: ObjectRef
    action: str
    path: str = ""
    old: str = ""
    requires: tuple[Precondition, ...] = ()
    check: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A fault that one rule detected in one object.

    `subject` is the object with the fault. `culprit` is the object to change or create, usually the workload that owns
    the subject. `cause` is one sentence. `next_check` is one command or check. Faults of the objects in `because` would
    explain this finding. Every finding with the role `cause` explains the symptoms of the same workload. `since` is in
    RFC 3339 format, or empty if unknown. `subjects` is the number of objects with the same finding. `fix` is empty if
    the rule does not know what is right.
    """

    rule_id: str
    severity: Severity
    title: str
    subject: ObjectRef
    culprit: ObjectRef
    cause: str
    evidence: tuple[Evidence, ...]
    next_check: str
    role: Role = "cause"
    because: tuple[ObjectRef, ...] = ()
    since: str = ""
    subjects: int = 1
    fix: tuple[FixStep, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A recent change. It correlates with an incident in time but is not a proven cause.

    `at` is in RFC 3339 format.
    """

    object: ObjectRef
    what: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One root cause and everything that follows from it.

    `id` is the same in every scan that detects the same cause and culprit. The first of `findings` is the root cause,
    and the other findings add details. `symptoms` follow from the root cause. `affected` contains the affected
    workloads, Services and other objects. `affected_pods` is the number of affected pods. `since` is in RFC 3339
    format, or empty if unknown. `fix` contains the steps that would repair the root cause, if they are known.
    """

    id: str
    severity: Severity
    title: str
    culprit: ObjectRef
    cause: str
    findings: tuple[Finding, ...]
    symptoms: tuple[Finding, ...] = ()
    affected: tuple[ObjectRef, ...] = ()
    affected_pods: int = 0
    since: str = ""
    changed_before: tuple[Change, ...] = ()
    fix: tuple[FixStep, ...] = ()

    @property
    def rule_id(self) -> str:
        """The id of the rule that detected the root cause."""
        return self.findings[0].rule_id

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence of the root cause, strongest first."""
        return tuple(dict.fromkeys(each for finding in self.findings for each in finding.evidence))

    @property
    def next_checks(self) -> tuple[str, ...]:
        """The next checks, most useful first."""
        return tuple(dict.fromkeys(finding.next_check for finding in self.findings if finding.next_check))


@dataclass(frozen=True, slots=True, kw_only=True)
class NotChecked:
    """A check that could not run. The objects that it covers may be unhealthy.

    `rules` are the rules that need this check. `kinds` are the kinds of the objects that could not be read, if any.
    """

    what: str
    why: str
    rules: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KindCount:
    """The number of checked objects of a kind, and the number with an incident of severity `warning` or higher."""

    kind: str
    total: int
    affected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TooYoung:
    """Objects without an incident that may still be starting, because they are younger than the grace period.

    `objects` contains the first of them.
    """

    total: int
    grace_seconds: float
    objects: tuple[ObjectRef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanCost:
    """The number of requests and the time that a scan needed.

    `list_calls` is the number of resource lists that were read. `requests` is the number of requests for pages, objects
    and logs.
    """

    list_calls: int
    requests: int
    logs_read: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisReport:
    """The complete result of one scan.

    `namespaces` is empty for the whole cluster. `taken_at` is in RFC 3339 format. The most important incidents come
    first. `omitted` is the number of incidents that were left out because of the report's limit. `objects` is the
    number of objects in the scope that rules can judge. `too_young` is None if no object was left out for its age.
    `cluster` is the name of the cluster in the configuration, or empty.
    """

    taken_at: str
    namespaces: tuple[str, ...]
    incidents: tuple[Incident, ...]
    checked: tuple[KindCount, ...]
    not_checked: tuple[NotChecked, ...]
    rules_run: int
    cost: ScanCost
    resource: str = ""
    omitted: int = 0
    objects: int | None = None
    too_young: TooYoung | None = None
    cluster: str = ""

    @property
    def complete(self) -> bool:
        """Whether every check ran. An incomplete report without incidents does not mean a healthy cluster."""
        return not self.not_checked
