"""What a diagnosis found: the values behind `holmes scan`, the tool `kubernetes_diagnose` and `builtin/triage`.

Made by `holmes.diagnosis`; written as JSON and read back by `holmes.values.findings_json`. No I/O, no rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Severity: TypeAlias = Literal["critical", "warning", "info"]
Role: TypeAlias = Literal["cause", "symptom"]

SEVERITIES: Final[tuple[Severity, ...]] = ("critical", "warning", "info")
"""From worst to mildest."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ObjectRef:
    """Names one object, which may also be one that is missing.

    `namespace` is empty for what has none, `group` for everything that Kubernetes itself brings.
    """

    kind: str
    name: str
    namespace: str = ""
    group: str = ""

    def __str__(self) -> str:
        """For example `Deployment shop/checkout`, or `Node worker-1`."""
        return f"{self.kind} {self.path}"

    @property
    def path(self) -> str:
        """For example `shop/checkout`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A value as the cluster gave it.

    `path` is the field of `object` (`spec.containers[0].image`), or `log of container web (previous)`, or
    `event FailedMount`.
    """

    object: ObjectRef
    path: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one rule says about one object.

    `subject` is where the fault shows; `culprit` what must be changed or created, usually the workload that owns the
    subject. `cause` is one sentence, `next_check` one command or look. `because` are objects whose own faults would
    explain this one; a `symptom` steps back behind any cause that is found for the same workload. `since` is RFC 3339,
    empty when unknown. `subjects` counts objects with the same finding, of which `subject` is one.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that was changed shortly before; a correlation in time, not a proof. `at` is RFC 3339."""

    object: ObjectRef
    what: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One root cause with everything that follows from it.

    `id` is the same in every scan that finds the same cause at the same culprit. The first of `findings` is the root
    cause, the others say more about it; `symptoms` follow from it. `affected` are the workloads, Services and so on
    that suffer, `affected_pods` counts pods. `since` is RFC 3339, empty when unknown.
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

    @property
    def rule_id(self) -> str:
        """The rule that found the root cause."""
        return self.findings[0].rule_id

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence of the root cause, the most telling first."""
        return tuple(dict.fromkeys(each for finding in self.findings for each in finding.evidence))

    @property
    def next_checks(self) -> tuple[str, ...]:
        """What to look at next, the most useful first."""
        return tuple(dict.fromkeys(finding.next_check for finding in self.findings if finding.next_check))


@dataclass(frozen=True, slots=True, kw_only=True)
class NotChecked:
    """Something that could not be looked at: never to be read as healthy.

    `rules` are those that need it; `kinds` the kinds of objects that are missing, if it is about objects.
    """

    what: str
    why: str
    rules: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KindCount:
    """How many objects of a kind were looked at, and how many of them an incident of at least a warning names."""

    kind: str
    total: int
    affected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanCost:
    """What the scan took. `list_calls` counts lists, `requests` every page, object and log that was read."""

    list_calls: int
    requests: int
    logs_read: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisReport:
    """Everything that one scan says. `namespaces` is empty for the whole cluster; `taken_at` is RFC 3339.

    Incidents come in order of importance. `omitted` counts incidents that were left out for want of room.
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

    @property
    def complete(self) -> bool:
        """Whether everything could be looked at; without that, nothing may be called healthy without a reservation."""
        return not self.not_checked
