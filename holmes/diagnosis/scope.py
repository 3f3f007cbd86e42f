"""Chooses among incidents: by namespace, severity, kind, labels, or the object that somebody asks about.

Called by `holmes.diagnosis.scan`. An incident belongs to a namespace when anything in it does: the culprit of a fault
in `shop` may lie elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import text_map
from holmes.kubernetes.selectors import matches_map
from holmes.values.findings import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Incident, ObjectRef, Severity

_SHORT_NAMES: Final = {
    "po": "pod", "deploy": "deployment", "rs": "replicaset", "sts": "statefulset", "ds": "daemonset",
    "cj": "cronjob", "svc": "service", "ing": "ingress", "cm": "configmap", "sa": "serviceaccount",
    "pvc": "persistentvolumeclaim", "pv": "persistentvolume", "sc": "storageclass", "hpa": "horizontalpodautoscaler",
    "pdb": "poddisruptionbudget", "netpol": "networkpolicy", "no": "node", "ns": "namespace", "quota": "resourcequota",
    "limits": "limitrange",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentFilter:
    """Which incidents are wanted. Empty fields want everything.

    `severity` is the mildest that is wanted, `labels` those of the affected objects, `resource` is `kind/name` or a
    bare name.
    """

    severity: Severity = "info"
    kinds: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    resource: str = ""


def in_scope(incident: Incident, state: ClusterState, namespaces: Sequence[str], wanted: IncidentFilter) -> bool:
    """Whether the incident is one of those that were asked for."""
    if SEVERITIES.index(incident.severity) > SEVERITIES.index(wanted.severity):
        return False
    refs = involved(incident)
    if namespaces and not any(ref.namespace in namespaces for ref in refs):
        return False
    if wanted.kinds and not {plain_kind(kind) for kind in wanted.kinds} & {ref.kind.lower() for ref in refs}:
        return False
    if wanted.labels and not any(_has_labels(ref, state, dict(wanted.labels)) for ref in refs):
        return False
    return not wanted.resource or any(_is_named(ref, wanted.resource) for ref in refs)


def involved(incident: Incident) -> tuple[ObjectRef, ...]:
    """Every object that the incident names."""
    refs = [incident.culprit, *incident.affected]
    for finding in (*incident.findings, *incident.symptoms):
        refs += [finding.subject, finding.culprit, *finding.because]
    return tuple(dict.fromkeys(refs))


def plain_kind(written: str) -> str:
    """A kind as kubectl takes it (`deploy`, `deployments`, `Deployment`), as one lower-case word."""
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
