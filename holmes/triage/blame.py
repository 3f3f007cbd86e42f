"""Builds the looks that name a cause: an incident, the lines of a log, or a setting that stops an object on purpose."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.fixes import kept_steps, restarted
from holmes.diagnosis.facts.stale_settings import stale_settings
from holmes.kubernetes.fields import text, written
from holmes.triage.asked import look_about, one_sentence
from holmes.triage.connections import connections, identity
from holmes.triage.states import stop_of
from holmes.values.fixes import fix_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.triage.log_evidence import LogCause
    from holmes.triage.log_reasons import Reason
    from holmes.triage.subjects import Named
    from holmes.values.findings import Finding, FixStep, Incident, ObjectRef
    from holmes.values.first_look import FirstLook

ONLY_LOGS: Final = "Kubernetes itself reports nothing wrong; only the logs do."
_MOST_EVIDENCE: Final = 3
_JUMP: Final = 2
"""The length of a path that leads from the subject to the culprit without the objects between them."""
_VALUE_CHARACTERS: Final = 260


def with_cause(asked: Asked, incident: Incident, named: Named | None, path: tuple[ObjectRef, ...] = ()) -> FirstLook:
    """Return the look that names an incident as the cause. `path` leads from the subject to the culprit."""
    path = _whole(asked.state, path, incident.culprit)
    hop = _hop(asked, incident, named) if len(path) <= 1 else None
    between = (named.objects[0].ref, hop.culprit) if hop is not None and named is not None else ()
    chain = tuple(dict.fromkeys(map(str, (*path, *between, incident.culprit))))
    look = look_about(asked, named, "cause_found", one_sentence(incident.cause or incident.title), told=incident)
    return replace(
        look,
        severity=incident.severity,
        culprit=str(incident.culprit),
        since=incident.since,
        evidence=(
            *((one_sentence(hop.cause),) if hop is not None else _symptom(asked, incident, path)),
            *_evidence(incident),
        ),
        chain=chain if len(chain) > 1 else (),
        fix=fix_lines(incident.fix),
    )


def _hop(asked: Asked, incident: Incident, named: Named | None) -> Finding | None:
    """Return what the cause does to the subject through a third object, for example through a webhook."""
    own = {ref for each in named.objects for ref in identity(asked.state, each)} if named is not None else set()
    ends = own | {incident.culprit}
    through = (each for each in incident.symptoms if each.role == "cause" and each.culprit not in ends)
    return next((each for each in through if each.subject in own), None) if incident.culprit not in own else None


def _whole(state: ClusterState, path: tuple[ObjectRef, ...], culprit: ObjectRef) -> tuple[ObjectRef, ...]:
    """Return the path with the objects between its first one and the culprit, which a log does not name."""
    first = state.find(path[0]) if len({*path, culprit}) == _JUMP else None
    found = connections(state, (first,)).get(culprit) if first is not None and first.ref != culprit else None
    return found.path if found is not None else path


def _symptom(asked: Asked, incident: Incident, path: tuple[ObjectRef, ...]) -> tuple[str, ...]:
    """Return what the cause does to the namespace of the question, or to a custom resource that leads to the cause.

    This is for example that the namespace cannot be deleted, or that a certificate has expired.
    """
    for each in incident.symptoms:
        of_namespace = each.subject.kind == "Namespace" and each.subject.name in asked.subject.namespaces
        if of_namespace or (each.subject.group and each.subject in path and each.subject != incident.culprit):
            return (one_sentence(each.cause),)
    return ()


def _evidence(incident: Incident) -> Iterator[str]:
    for each in incident.evidence[:_MOST_EVIDENCE]:
        value = " ".join(each.value.split())
        shown = value if len(value) <= _VALUE_CHARACTERS else f"{value[:_VALUE_CHARACTERS]}…"
        yield f"{each.object}, {each.path}: {shown or '(empty)'}"


def from_logs(asked: Asked, named: Named | None, found: LogCause) -> FirstLook:
    """Return the look that quotes the trouble that logs report."""
    if found.doubtful:
        text = f"{one_sentence(found.sentence)} {found.doubt}"
        return replace(look_about(asked, named, "inconclusive", text), evidence=found.evidence)
    begun = found.troubles[0].group.first
    told = one_sentence(found.sentence)
    if found.culprit != found.troubles[-1].workload.ref:  # the culprit first: the lines of others are long
        told = f"{found.culprit}: {told[0].lower()}{told[1:]}"
    look = look_about(asked, named, "cause_found", told)
    return replace(
        look,
        severity="warning",
        culprit=str(found.culprit),
        since=written(begun) if begun else "",
        evidence=found.evidence,
        chain=tuple(map(str, found.path)) if len(found.path) > 1 else (),
        fix=fix_lines(_restart(asked.state, found)),
        notes=look.notes if _is_reported(asked, found) else (ONLY_LOGS, *look.notes),
    )


def _is_reported(asked: Asked, found: LogCause) -> bool:
    """Return whether an incident is about an object on the way to the cause."""
    for incident in asked.report.incidents:
        about = {incident.culprit, *incident.affected, *(each.subject for each in incident.findings)}
        objects = [each for each in map(asked.state.find, about) if each is not None]
        about.update(asked.state.workload_of(each).ref for each in objects if each.kind == "Pod")
        if incident.severity != "info" and not about.isdisjoint(found.path):
            return True
    return False


def _restart(state: ClusterState, found: LogCause) -> Iterator[FixStep]:
    """Yield the restart of a workload whose pods still have the old content of the culprit."""
    users = [each for each in map(state.find, found.path) if each is not None]
    for pod in (pod for user in users for pod in state.pods_of(user)):
        step = restarted(state.workload_of(pod).ref)
        if step is not None and any(each.ref == found.culprit for each in stale_settings(state, pod)):
            yield from kept_steps((step,), state)
            return


def from_reason(asked: Asked, named: Named | None, found: Reason, path: tuple[ObjectRef, ...] = ()) -> FirstLook:
    """Return the look that names a setting or an object which no rule judges on its own. `path` leads to it."""
    look = look_about(asked, named, "cause_found", one_sentence(found.words))
    chain = tuple(map(str, path)) if len(path) > 1 else ()
    return replace(look, severity="warning", culprit=str(found.culprit), evidence=found.evidence, chain=chain)


def _idle_scaler(asked: Asked, each: ClusterObject) -> ClusterObject | None:
    """Return the ScaledObject of KEDA that keeps a workload at zero because no trigger is active, or None."""
    targets = (
        scaler
        for scaler in asked.state.of("ScaledObject.keda.sh", each.namespace)
        if scaler.text("spec", "scaleTargetRef", "name") == each.name
        and (scaler.text("spec", "scaleTargetRef", "kind") or "Deployment") == each.kind
    )
    if each.at("spec", "replicas") != 0:
        return None
    return next((one for one in targets if _may_idle(one) and text(one.condition("Active"), "status") == "False"), None)


def _may_idle(scaler: ClusterObject) -> bool:
    """Return whether a ScaledObject works, is not paused, and may scale to zero."""
    paused = any(key.startswith("autoscaling.keda.sh/paused") for key in scaler.annotations)
    works = (
        text(scaler.condition("Ready"), "status") != "False" and text(scaler.condition("Paused"), "status") != "True"
    )
    return works and not paused and not scaler.integer("spec", "minReplicaCount")


def stopped(asked: Asked, named: Named, each: ClusterObject) -> FirstLook:
    """Return the look that names a setting which stops an object on purpose."""
    setting, effect = stop_of(each)
    scaler = _idle_scaler(asked, each)
    if scaler is not None:
        told = f"{scaler.ref} of KEDA scales {each.ref} to zero while none of its triggers is active."
        look = look_about(asked, named, "cause_found", told)
        shown = (f"{scaler.ref}, status.conditions[type=Active].status: False", f"{each.ref}, {setting}")
        return replace(look, severity="info", culprit=str(scaler.ref), evidence=shown)
    look = look_about(asked, named, "cause_found", f"{each.ref} {effect} ({setting}).")
    return replace(look, severity="info", culprit=str(each.ref), evidence=(f"{each.ref}, {setting}",))
