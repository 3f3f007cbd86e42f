"""Finds the ConfigMaps and Secrets that changed after the containers started that read them only at their start."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import edited_at
from holmes.diagnosis.facts.fixes import command, restarted
from holmes.diagnosis.facts.host_mentions import settings_of
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.references import references_of
from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.fields import children, moment, text, text_map, written
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.references import Reference
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import FixStep, ObjectRef
    from holmes.values.json_types import JsonObject


_PAIR: Final = expression(r"(?<![\w.-])([A-Za-z][\w.-]{2,60})[\"']?[ \t]?[=:][ \t]?[\"']?([^\s\"',;()]{1,60})")
_BLAMES: Final = expression(
    r"(?i)\b(?:exceed\w*|than|above|below|beyond|over|under|limit(?: of| is)?|invalid|unknown|unsupported|no such)"
    r"(?: the)?[ :]{1,2}$"
)
"""Words before a value that a line calls exceeded or invalid."""
_SEVERAL_WORDS: Final = expression(r"[a-z0-9][A-Z]|[A-Za-z0-9][_.-][A-Za-z]")


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleSetting:
    """An object that is newer than the pod's containers. `path` is the field of the pod that refers to it.

    `reading` tells why the containers still have the old content. `edited` is in seconds since the epoch.
    """

    ref: ObjectRef
    path: str
    reading: str
    edited: float


def stale_settings(state: ClusterState, pod: ClusterObject) -> Iterator[StaleSetting]:
    """Yield the objects that changed after all containers of the pod started, in the order of the spec."""
    started = _started(pod)
    if not started:
        return
    spec = pod.child("spec")
    for reference in references_of(spec):
        reading = _reading(spec, reference)
        found = state.get(reference.kind, pod.namespace, reference.name) if reading else None
        edited = edited_at(found) if found is not None else 0.0
        if found is not None and edited > max(started, found.created + 1):
            yield StaleSetting(ref=found.ref, path=f"spec.{reference.path}", reading=reading, edited=edited)


def visible_edits(state: ClusterState, workload: ClusterObject) -> Iterator[tuple[ObjectRef, float]]:
    """Yield the ConfigMaps and Secrets of a workload that were edited, and when, if its running containers can see it.

    The kubelet alone reads a pull secret, and variables keep the value that they had at the start.
    """
    pods = state.pods_of(workload)
    unseen = [{each.ref for each in stale_settings(state, pod)} for pod in pods]
    for reference in references_of(template_of(workload).spec):
        if reference.kind not in ("ConfigMap", "Secret") or reference.use == "pull secret":
            continue
        found = state.get(reference.kind, workload.namespace, reference.name)
        if found is None or edited_at(found) <= found.created + 1:
            continue
        if not pods or not all(found.ref in each for each in unseen):
            yield found.ref, edited_at(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class OldSetting:
    """A host or a value that a pod still uses, although no current setting of its workload contains it.

    `culprit` is the object that explains it, and `words` a clause that tells why. `path` is a field of the culprit.
    """

    culprit: ObjectRef
    words: str
    path: str
    value: str
    fix: FixStep | None


def old_host(state: ClusterState, pod: ClusterObject, host: str) -> OldSetting | None:
    """Return why a pod uses a host that its workload's current settings do not contain, or None."""
    workload = state.workload_of(pod)
    word = re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w-])")
    if workload.ref == pod.ref or any(word.search(setting.text) for setting in settings_of(state, workload)):
        return None
    if workload.boolean("spec", "paused"):
        words = f"the rollout of {workload.ref} is paused (spec.paused), so its pods still have an older template"
        return OldSetting(
            culprit=workload.ref,
            words=words,
            path="spec.paused",
            value="true",
            fix=command(workload.ref, "rollout", "resume", ""),
        )
    stale = next(stale_settings(state, pod), None)
    if stale is None:
        return None
    words = f"{stale.ref} was changed at {written(stale.edited)}, after its containers started, which {stale.reading}"
    return OldSetting(
        culprit=stale.ref,
        words=words,
        path="metadata.managedFields",
        value=written(stale.edited),
        fix=restarted(workload.ref),
    )


def old_value(state: ClusterState, pod: ClusterObject, line: str) -> OldSetting | None:
    """Return the ConfigMap with another value now for the key that a line of the pod's log blames, or None.

    The line must call the value exceeded or invalid: "larger than max_body=20m". Only keys of several words count.
    Others, for example `level`, are also names of fields of log lines.
    """
    pairs = (each for each in _PAIR.finditer(line) if _BLAMES.search(line[: each.start()]))
    told = {each[1]: each[2].rstrip("}].") for each in pairs if _SEVERAL_WORDS.search(each[1])}
    for stale in stale_settings(state, pod) if told else ():
        found = state.find(stale.ref) if stale.ref.kind == "ConfigMap" else None
        data = text_map(found.body, "data") if found is not None else {}
        now = [
            (each[1], each[2]) for each in _PAIR.finditer("\n".join(f"{key}={data[key]}\n{data[key]}" for key in data))
        ]
        for key, value in now:
            if key in told and (key, told[key]) not in now and _unit(value) == _unit(told[key]):
                words = (
                    f"its containers still have {key}={told[key]}, because {stale.ref} was changed to {value} at "
                    f"{written(stale.edited)}, after they started, and they {stale.reading}"
                )
                return OldSetting(
                    culprit=stale.ref,
                    words=words,
                    path="metadata.managedFields",
                    value=written(stale.edited),
                    fix=restarted(state.workload_of(pod).ref),
                )
    return None


def _unit(value: str) -> str:
    """Return what follows a number. Values with different units can be the same amount."""
    return value.lstrip("0123456789.")


def _started(pod: ClusterObject) -> float:
    """Return the start time of the pod or of its last started container, whichever is later, or 0."""
    times = [moment(text(container.status, "state", "running", "startedAt")) for container in containers_of(pod)]
    return max(filter(None, (moment(pod.text("status", "startTime")), *times)), default=0.0)


def _reading(spec: JsonObject, reference: Reference) -> str:
    """Return how the containers read the object, or an empty string if they get its changes."""
    if reference.kind not in ("ConfigMap", "Secret"):
        return ""
    if reference.use in ("variable", "variables"):
        return "read environment variables only at startup"
    name = reference.user.removeprefix("volume ")
    mounts = (mount for container in children(spec, "containers") for mount in children(container, "volumeMounts"))
    if reference.use == "volume" and any(text(each, "name") == name and text(each, "subPath") for each in mounts):
        return "mount it with subPath, which is never updated"
    return ""
