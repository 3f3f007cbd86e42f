"""Rule for files that a workload misses because the producer with the same volume is stopped or fails."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import log_line, value
from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.logs import quoted
from holmes.diagnosis.facts.stops import stop_of_producer
from holmes.diagnosis.facts.templates import pod_templates
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import boolean, children, moment, text
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.line_groups import LogGroup
    from holmes.diagnosis.facts.stops import Stop
    from holmes.diagnosis.facts.templates import PodTemplate
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState, LogKey
    from holmes.values.findings import Evidence

_LACKS: Final = expression(
    r"(?i)\bno such file|\bnot found\b|\bmissing\b(?!-)|\bdoes not exist\b|\bENOENT\b|\bstale\b"
    r"|\bout ?dated\b|\btoo old\b|\bolder than\b|\bis empty\b|\b(?:no|without) (?:new|fresh|recent|current)\b"
    r"|\bnot updated\b|\bunchanged since\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _User:
    """A workload with the volume of a claim. `paths` are its mount paths, `writes` whether one allows writing."""

    workload: ClusterObject
    paths: tuple[str, ...]
    writes: bool
    place: Evidence


@Row(
    id="W16",
    title="Workload misses files of a producer that is stopped",
    severity="critical",
    kinds=("CronJob", "Job", "Deployment", "StatefulSet"),
    reads=(
        "logs of the workload",
        "spec.volumes[].persistentVolumeClaim",
        "spec.suspend",
        "spec.replicas",
        "Job status",
    ),
    explanation="The log of a workload reports missing or old files below a mount of a claim. Another workload that "
    "writes to the same claim is suspended, scaled to zero, or its last Job failed. Resume or repair the producer. If "
    "another CronJob with the claim still succeeds, the rule does not report it.",
)
def producer_is_stopped(state: ClusterState) -> Iterator[Fault]:
    for (namespace, claim), users in _users_of_claims(state).items():
        producers = [
            (each, stop)
            for each in users
            if each.writes and (stop := stop_of_producer(state, each.workload)) is not None
        ]
        for user in users if producers else ():
            for producer, stop in producers:
                if user.workload is not producer.workload:
                    yield from _missed(state, f"{namespace}/{claim}", user, (producer, stop), users)


def _users_of_claims(state: ClusterState) -> dict[tuple[str, str], list[_User]]:
    found: dict[tuple[str, str], list[_User]] = defaultdict(list)
    for template in pod_templates(state):
        for index, volume in enumerate(children(template.spec, "volumes")):
            claim = text(volume, "persistentVolumeClaim", "claimName")
            user = _user(template, index, text(volume, "name"), claim) if claim else None
            if user is not None:
                found[template.workload.namespace, claim].append(user)
    return {key: users for key, users in found.items() if len(users) > 1}


def _user(template: PodTemplate, index: int, name: str, claim: str) -> _User | None:
    mounts = [
        mount
        for kind in ("initContainers", "containers")
        for container in children(template.spec, kind)
        for mount in children(container, "volumeMounts")
        if text(mount, "name") == name
    ]
    return _User(
        workload=template.workload,
        paths=tuple(dict.fromkeys(text(mount, "mountPath").rstrip("/") for mount in mounts)),
        writes=not mounts or any(not boolean(mount, "readOnly") for mount in mounts),
        place=value(template.workload, f"{template.path}.volumes[{index}].persistentVolumeClaim.claimName", claim),
    )


def _missed(
    state: ClusterState, claim: str, user: _User, stopped: tuple[_User, Stop], users: list[_User]
) -> Iterator[Fault]:
    producer, stop = stopped
    for key, group in _lacking(state, user):
        if any(_works(each.workload, group.first) for each in users if each is not producer):
            continue
        pod = state.find(key.pod)
        proof = (log_line(pod, key.container, group.record, previous=False),) if pod is not None else ()
        yield Fault(
            subject=user.workload.ref,
            culprit=producer.workload.ref,
            cause=f"{user.workload.ref} misses files in the volume of PersistentVolumeClaim {claim}: "
            f"{quoted(group.record)}; {producer.workload.ref}, which writes to this claim, {stop.words}",
            evidence=(stop.proof, *proof, producer.place),
            next_check=f"kubectl -n {producer.workload.namespace} describe {producer.workload.kind.lower()} "
            f"{producer.workload.name}",
            role="symptom" if stop.because else "cause",
            because=stop.because,
            since=group.first or None,
        )
        return


def _lacking(state: ClusterState, user: _User) -> Iterator[tuple[LogKey, LogGroup]]:
    """Yield the lines of a workload that report missing or old files below its mounts of the claim."""
    for key, story in stories_of(state, user.workload):
        for group in story.groups:
            names_file = any(f"{path}/" in group.record for path in user.paths if path)
            lacks = group.kind == "file missing" or _LACKS.search(group.record) is not None
            if names_file and lacks and group.is_evidence(state.now):
                yield key, group


def _works(workload: ClusterObject, since: float) -> bool:
    """Return whether the workload is a CronJob that succeeded after files began to be missing."""
    last = moment(workload.text("status", "lastSuccessfulTime"))
    return workload.kind == "CronJob" and last is not None and last > since
