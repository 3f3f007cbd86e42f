"""Finds who changed an object: a workload whose command or log shows it, or the controller that wrote a field.

A command or a line counts only if it ran at the time of the change.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.evidence import log_line, value
from holmes.diagnosis.facts.line_kinds import reports_success
from holmes.diagnosis.facts.object_mentions import NAMESPACE_OPTION, objects_in
from holmes.diagnosis.facts.templates import pod_templates
from holmes.kubernetes.cluster_state import LOG_TIME, LogKey, once_per_state
from holmes.kubernetes.fields import children, moment, text, text_map, texts
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.diagnosis.facts.templates import PodTemplate
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, ObjectRef

_ENDS: Final = expression(r"[;&|\n]+")
_VERB: Final = expression(
    r"\bkubectl\b.*?\s(?P<verb>rollout (?:restart|undo|pause)|scale|set (?:image|env|resources)|patch|delete|annotate"
    r"|label|drain|cordon|taint|replace)\s"
)
_NODE: Final = expression(r"\b(?:drain|cordon) +(?:-\S+ +)*(?P<name>[a-z0-9][\w.-]{0,80})")
_POD_LABEL: Final = expression(
    r"\bpo(?:ds?)?\b.{0,80}(?:-l|--selector)[ =](?P<key>[\w./-]{1,80})={1,2}(?P<label>[\w.-]{1,63})"
)
_CHANGED: Final = expression(
    r"(?i)\b(?:delet(?:ed|ing)|remov(?:ed|ing)|prun(?:ed|ing)|scal(?:ed|ing)|patch(?:ed|ing)|updat(?:ed|ing)"
    r"|replac(?:ed|ing)|restart(?:ed|ing)|evict(?:ed|ing)|drain(?:ed|ing)|cordon(?:ed|ing)|revok(?:ed|ing)"
    r"|clean(?:ed|ing)|purg(?:ed|ing)|stripp(?:ed|ing)|set to|configured)(?![\w-])"
)
_UNCHANGED: Final = expression(r"(?i)\b(?:dry.?run|would|skip\w*|kept|keep(?:s|ing)?|unchanged)\b")
_FAILED: Final = expression(r"(?i)\b(?:not|failed|error|cannot)\b")
_WORD: Final = expression(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_SLACK_SECONDS: Final = 120.0
_LOG_SLACK_SECONDS: Final = 600.0
_SHORTEST_MANAGER: Final = 6
_MOST_RUNS: Final = 3
_DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A kubectl command in the pod template of a workload. `target` is the object that it changes."""

    actor: ClusterObject
    verb: str
    target: ObjectRef
    place: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who changed an object. `words` is a clause for a cause. `proved` means that a command or a log shows it."""

    ref: ObjectRef
    words: str
    evidence: tuple[Evidence, ...]
    proved: bool = True


@once_per_state
def commands(state: ClusterState) -> Mapping[ObjectRef, tuple[Command, ...]]:
    """Return the commands of CronJobs, Jobs and other workloads by the object that they change. Cached."""
    found: dict[ObjectRef, list[Command]] = defaultdict(list)
    for template in pod_templates(state):
        for each in _commands_of(state, template):
            found[each.target].append(each)
    return {target: tuple(group) for target, group in found.items()}


def _commands_of(state: ClusterState, template: PodTemplate) -> Iterator[Command]:
    for owner, path, script in _scripts(state, template):
        for statement in _ENDS.split(script) if "kubectl" in script else ():
            verb = _VERB.search(statement)
            for target in _targets(state, statement, template.workload.namespace) if verb is not None else ():
                place = value(owner, path, statement.strip())
                yield Command(actor=template.workload, verb=verb["verb"] if verb else "", target=target, place=place)


def _scripts(state: ClusterState, template: PodTemplate) -> Iterator[tuple[ClusterObject, str, str]]:
    """Yield the commands of the containers, and the scripts in mounted ConfigMaps, with their objects and fields."""
    for index, container in enumerate(children(template.spec, "containers")):
        command = " ".join((*texts(container, "command"), *texts(container, "args")))
        yield template.workload, f"{template.path}.containers[{index}].command", command
    for volume in children(template.spec, "volumes"):
        found = state.get("ConfigMap", template.workload.namespace, text(volume, "configMap", "name"))
        for key, content in text_map(found.body, "data").items() if found is not None else ():
            if found is not None:
                yield found, f"data.{key}", content


def _targets(state: ClusterState, statement: str, namespace: str) -> Iterator[ObjectRef]:
    node = _NODE.search(statement)
    if node is not None:
        yield from objects_in(f"node/{node['name']}", "")
    option, label = NAMESPACE_OPTION.search(statement), _POD_LABEL.search(statement)
    for pod in state.selected("Pod", option[1] if option else namespace, {label[1]: label[2]}) if label else ():
        yield state.workload_of(pod).ref
    yield from objects_in(statement, namespace, short_words=True)


def runs_of(state: ClusterState, actor: ClusterObject) -> tuple[tuple[float, float], ...]:
    """Return when a workload ran, from start to end in seconds. A Deployment runs since its creation."""
    if actor.kind not in ("CronJob", "Job"):
        return ((actor.created, state.now),)
    jobs = state.owned_by(actor, "Job") if actor.kind == "CronJob" else (actor,)
    found = [
        (moment(job.text("status", "startTime")) or job.created, moment(job.text("status", "completionTime")) or 0.0)
        for job in jobs
    ]
    last = moment(actor.text("status", "lastScheduleTime"))
    runs = [(start, end or state.now) for start, end in found]
    return (*runs, (last, last)) if last is not None and last not in [start for start, _ in found] else tuple(runs)


def _ran_at(state: ClusterState, actor: ClusterObject, at: float, slack: float = _SLACK_SECONDS) -> bool:
    return any(start - _SLACK_SECONDS / 2 <= at <= end + slack for start, end in runs_of(state, actor))


def who_changed(state: ClusterState, target: ObjectRef, at: float | None, verbs: tuple[str, ...]) -> Actor | None:
    """Return the workload whose command, or whose log, shows that it changed the object at a time.

    If the time is None, any command or line counts.
    """
    for each in commands(state).get(target, ()):
        ran = bool(runs_of(state, each.actor)) if at is None else _ran_at(state, each.actor, at)
        if each.verb.startswith(verbs) and ran and each.actor.ref != target:
            schedule = each.actor.text("spec", "schedule")
            when = f" (schedule {schedule})" if schedule else ""
            words = f"{each.actor.ref} runs `kubectl {each.verb}` for {target}{when}"
            return Actor(ref=each.actor.ref, words=words, evidence=(each.place,))
    return _who_said(state, target, at)


def _who_said(state: ClusterState, target: ObjectRef, at: float | None) -> Actor | None:
    """Return the workload whose log says that it changed the object."""
    others = {each.name for each in state.of("Namespace")} | {pod.namespace for pod in state.of("Pod")}
    others -= {target.namespace}
    for key, log in state.timed_logs.items():
        if target.name not in log:
            continue
        pod = state.find(key.pod)
        actor = state.workload_of(pod) if pod is not None else None
        if pod is None or actor is None or actor.ref == target or not _CHANGED.search(log):
            continue
        lines = (line for line in log.splitlines() if _says(line, target, at))
        line = next((line for line in lines if not _is_about(line, others, target)), None)
        if line is not None:
            said = log_line(pod, key.container, LOG_TIME.sub("", line).strip(), previous=key.previous)
            return Actor(ref=actor.ref, words=f"the log of {actor.ref} says: {said.value}", evidence=(said,))
    return None


def _is_about(line: str, others: set[str], target: ObjectRef) -> bool:
    """Return whether a line names another namespace than that of the object."""
    words = set(_WORD.findall(line))
    return target.namespace not in words and not others.isdisjoint(words)


def _says(line: str, target: ObjectRef, at: float | None) -> bool:
    """Return whether a line says that the object was changed, not that it was kept or could not be changed."""
    if target.name not in line or not _CHANGED.search(line):
        return False
    stamp = LOG_TIME.match(line)
    plain = line[stamp.end() :] if stamp is not None else line
    when = moment(stamp[1]) if stamp is not None else None
    if at is not None and when is not None and not at - _LOG_SLACK_SECONDS <= when <= at + _SLACK_SECONDS:
        return False
    if _UNCHANGED.search(plain) or (_FAILED.search(plain) and not reports_success(plain)):
        return False
    named = any(ref.kind == target.kind and ref.name == target.name for ref in objects_in(plain, target.namespace))
    word = re.search(rf"(?<![\w-]){re.escape(target.name)}(?![\w-])", plain)
    space = re.search(rf"(?<![\w-]){re.escape(target.namespace)}(?![\w-])", plain)
    return named or (word is not None and bool(target.namespace) and space is not None)


def suspects(state: ClusterState, at: float | None) -> tuple[LogKey, ...]:
    """Return the logs of the Jobs that ran just before a time, which may tell what they changed, the newest first.

    If the time is None, all Jobs of the last day count.
    """
    earliest, latest = (
        (state.now - _DAY, state.now) if at is None else (at - _LOG_SLACK_SECONDS, at + _SLACK_SECONDS / 2)
    )
    near = [
        job for job in state.of("Job") if any(start <= latest and earliest <= end for start, end in runs_of(state, job))
    ]
    near.sort(key=lambda job: -job.created)
    return tuple(
        LogKey(pod=pod.ref, container=text(container, "name"), previous=False)
        for job in near
        for pod in state.pods_of(job)[:_MOST_RUNS]
        for container in pod.children("spec", "containers")
    )


def last_write(each: ClusterObject, field: str) -> tuple[float, str]:
    """Return when a field such as `f:replicas` was last written, in seconds, and by which manager. Zero if unknown."""
    writers = [
        (moment(str(entry.get("time", ""))) or 0.0, str(entry.get("manager", "")))
        for entry in each.children("metadata", "managedFields")
        if field in str(entry.get("fieldsV1", ""))
    ]
    return max(writers, default=(0.0, ""))


def scaled_by(state: ClusterState, workload: ClusterObject) -> Actor | None:
    """Return who last wrote the number of replicas, or None if it is unknown."""
    at, manager = last_write(workload, "f:replicas")
    found = who_changed(state, workload.ref, at or None, ("scale", "patch", "replace"))
    if found is not None or not manager:
        return found
    named = deployment_named(state, manager, workload)
    by = f"{manager} ({named.ref})" if named is not None else manager
    return Actor(ref=(named or workload).ref, words=f"last scaled by {by}", evidence=(), proved=False)


def deployment_named(state: ClusterState, manager: str, target: ClusterObject) -> ClusterObject | None:
    """Return the Deployment whose name contains the name of a field manager."""
    plain = manager.replace("-", "")
    every = (each for each in state.of("Deployment") if plain in each.name.replace("-", "") and each is not target)
    return next(every, None) if len(plain) >= _SHORTEST_MANAGER else None
