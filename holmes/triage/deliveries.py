"""Finds why a change does not arrive: the source that a GitOps tool applies to an object is not ready.

Only questions about something old or not deployed are answered so: a source that is not ready changes nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import text
from holmes.triage.blame import with_cause
from holmes.triage.connections import connections
from holmes.triage.intended import says_outdated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.triage.subjects import Named
    from holmes.values.first_look import FirstLook

_FLUX, _HELM = "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io"
_SOURCES: Final = (
    (f"Kustomization.{_FLUX}", f"{_FLUX}/name", f"{_FLUX}/namespace"),
    (f"HelmRelease.{_HELM}", f"{_HELM}/name", f"{_HELM}/namespace"),
    ("Application.argoproj.io", "argocd.argoproj.io/instance", ""),
)
"""The kinds of sources, each with the labels of the objects that it makes: its name and its namespace."""
_NOT_APPLIED: Final = frozenset({
    "ArtifactFailed", "BuildFailed", "DependencyNotReady", "InstallFailed", "PruneFailed", "ReconciliationFailed",
    "RollbackSucceeded", "SourceNotReady", "UpgradeFailed",
})  # fmt: skip
"""The reasons of a source that did not apply its newest revision. A failed health check comes after that."""
_RANK: Final = ("critical", "warning")


def undelivered(asked: Asked, named: Named) -> FirstLook | None:
    """Return the fault of the source of a subject, if the question misses a change and the subject has no fault."""
    if not asked.question.wants_cause or not (says_outdated(asked) or "rollout" in asked.question.symptoms):
        return None
    sources = tuple(
        source for each in named.objects for source in sources_of(asked.state, each) if not _is_applied(source)
    )
    found = connections(asked.state, sources)
    known = [each for each in asked.report.incidents if each.severity in _RANK and each.culprit in found]
    cause = min(known, key=lambda each: (found[each.culprit].hops, _RANK.index(each.severity)), default=None)
    if cause is None:
        return None
    return with_cause(asked, cause, named, (named.objects[0].ref, *found[cause.culprit].path))


def _is_applied(source: ClusterObject) -> bool:
    """Return whether a source applied its newest revision, whatever the health of the objects that it made."""
    if source.text("status", "sync", "status"):
        return source.text("status", "sync", "status") == "Synced"
    ready, applied = source.condition("Ready"), source.text("status", "lastAppliedRevision")
    same = applied == source.text("status", "lastAttemptedRevision") or not applied
    return text(ready, "status") != "False" or (same and text(ready, "reason") not in _NOT_APPLIED)


def sources_of(state: ClusterState, each: ClusterObject) -> Iterator[ClusterObject]:
    """Yield the objects of GitOps tools that made an object, according to its labels."""
    for kind, name, namespace in _SOURCES:
        wanted = each.labels.get(name)
        for source in state.of(kind) if wanted else ():
            if source.name == wanted and source.namespace == each.labels.get(namespace, source.namespace):
                yield source
