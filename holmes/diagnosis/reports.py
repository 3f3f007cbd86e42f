"""Filters, compares and masks the incidents in reports.

An incident belongs to every namespace that contains one of its objects, because the culprit and the failure can be in
different namespaces.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import matches_map, text_map
from holmes.values.findings import SEVERITIES
from holmes.values.fixes import fix_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import DiagnosisReport, Finding, Incident, ObjectRef, Severity


_SHORT_NAMES: Final = {
    "po": "pod", "deploy": "deployment", "rs": "replicaset", "sts": "statefulset", "ds": "daemonset",
    "cj": "cronjob", "svc": "service", "ing": "ingress", "cm": "configmap", "sa": "serviceaccount",
    "pvc": "persistentvolumeclaim", "pv": "persistentvolume", "sc": "storageclass", "hpa": "horizontalpodautoscaler",
    "pdb": "poddisruptionbudget", "netpol": "networkpolicy", "no": "node", "ns": "namespace", "quota": "resourcequota",
    "limits": "limitrange",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentFilter:
    """Criteria for the incidents to include. An empty field matches every incident.

    `severity` is the lowest severity to include. `labels` must match at least one object of the incident. `resource` is
    `kind/name` or a name.
    """

    severity: Severity = "info"
    kinds: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    resource: str = ""


def in_scope(incident: Incident, state: ClusterState, namespaces: Sequence[str], wanted: IncidentFilter) -> bool:
    if SEVERITIES.index(incident.severity) > SEVERITIES.index(wanted.severity):
        return False
    refs = _involved(incident)
    if namespaces and not any((ref.name if ref.kind == "Namespace" else ref.namespace) in namespaces for ref in refs):
        return False
    if wanted.kinds and not {plain_kind(kind) for kind in wanted.kinds} & {ref.kind.lower() for ref in refs}:
        return False
    if wanted.labels and not any(_has_labels(ref, state, dict(wanted.labels)) for ref in refs):
        return False
    return not wanted.resource or any(_is_named(ref, wanted.resource) for ref in refs)


def at_least(severity: Severity, report: DiagnosisReport) -> DiagnosisReport:
    """Return the report with only the incidents of this severity or higher."""
    lowest = SEVERITIES.index(severity)
    kept = tuple(each for each in report.incidents if SEVERITIES.index(each.severity) <= lowest)
    return replace(report, incidents=kept)


def _involved(incident: Incident) -> tuple[ObjectRef, ...]:
    refs = [incident.culprit, *incident.affected]
    for finding in (*incident.findings, *incident.symptoms):
        refs += [finding.subject, finding.culprit, *finding.because]
    return tuple(dict.fromkeys(refs))


def plain_kind(written: str) -> str:
    """Convert a kind in any form that kubectl accepts (`deploy`, `deployments`) to one lower-case word."""
    plain = written.strip().lower().partition(".")[0]
    if plain in _SHORT_NAMES:
        return _SHORT_NAMES[plain]
    for plural, singular in (("ies", "y"), ("sses", "ss"), ("ss", "ss"), ("s", "")):
        if plain.endswith(plural):
            return plain.removesuffix(plural) + singular
    return plain


def _is_named(ref: ObjectRef, resource: str) -> bool:
    kind, slash, name = resource.partition("/")
    if not slash:
        kind, name = "", resource
    if kind and plain_kind(kind) != ref.kind.lower():
        return False
    return ref.name == name


def _has_labels(ref: ObjectRef, state: ClusterState, labels: dict[str, str]) -> bool:
    found = state.find(ref)
    if found is None:
        return False
    template = text_map(found.body, "spec", "template", "metadata", "labels")
    return matches_map(labels, found.labels) or matches_map(labels, template)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The differences between the incidents of an earlier and a later report.

    `gone` contains earlier incidents that the later report checked for and did not find. `unknown` contains earlier
    incidents that the later report did not check for.
    """

    new: tuple[Incident, ...]
    gone: tuple[Incident, ...]
    unknown: tuple[Incident, ...]


def compare(earlier: DiagnosisReport, later: DiagnosisReport, *, narrowed: bool = False) -> Comparison:
    """Compare two reports.

    Each list keeps the order of its source report. `narrowed` means that the later report covers only some rules, kinds
    or objects.
    """
    missing = [incident for incident in earlier.incidents if incident.id not in {each.id for each in later.incidents}]
    before = {incident.id for incident in earlier.incidents}
    return Comparison(
        new=tuple(incident for incident in later.incidents if incident.id not in before),
        gone=tuple(incident for incident in missing if not narrowed and _was_looked_at(incident, later)),
        unknown=tuple(incident for incident in missing if narrowed or not _was_looked_at(incident, later)),
    )


def _was_looked_at(incident: Incident, report: DiagnosisReport) -> bool:
    """Return whether the report would contain the incident if it still existed."""
    namespace = incident.culprit.namespace
    if report.namespaces and namespace and namespace not in report.namespaces:
        return False
    return not any(incident.rule_id in each.rules for each in report.not_checked)


def masked_report(report: DiagnosisReport, mask: Callable[[str], str]) -> DiagnosisReport:
    """Return the report with `mask` applied to all text from the cluster. Identical texts are masked only once.

    Steps of a fix that contain a secret are dropped.
    """
    mask = cache(mask)
    return replace(
        report,
        incidents=tuple(_masked_incident(incident, mask) for incident in report.incidents),
        not_checked=tuple(replace(gap, why=mask(gap.why)) for gap in report.not_checked),
    )


def _masked_incident(incident: Incident, mask: Callable[[str], str]) -> Incident:
    return replace(
        incident,
        cause=mask(incident.cause),
        findings=tuple(_masked_finding(finding, mask) for finding in incident.findings),
        symptoms=tuple(_masked_finding(finding, mask) for finding in incident.symptoms),
        changed_before=tuple(replace(change, what=mask(change.what)) for change in incident.changed_before),
        fix=tuple(step for step in incident.fix if mask(fix_line(step)) == fix_line(step)),
    )


def _masked_finding(finding: Finding, mask: Callable[[str], str]) -> Finding:
    """Mask a value together with its path, because a field name can show that its value is secret."""
    evidence = tuple(
        replace(each, value=mask(f"{each.path}: {each.value}").removeprefix(f"{each.path}: "))
        for each in finding.evidence
    )
    return replace(finding, cause=mask(finding.cause), next_check=mask(finding.next_check), evidence=evidence)
