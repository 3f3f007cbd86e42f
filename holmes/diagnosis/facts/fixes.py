"""Builds the steps of a fix, and drops the steps that do not fit the state of the cluster.

A rule gives a step only if it knows what is right. Nothing is created that exists, nothing is changed that does not
exist, and nothing is changed that another object controls or that already has the right value.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import last_rollout
from holmes.diagnosis.facts.evidence import keys_of
from holmes.kubernetes.fields import at, children
from holmes.values.expressions import expression
from holmes.values.findings import FixStep, Precondition
from holmes.values.fixes import check_of, resource_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holmes.diagnosis.facts.network import ContainerPort
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, ObjectRef
    from holmes.values.json_types import JsonValue

_UNCHANGEABLE: Final = frozenset({"Pod", "Event", "ReplicaSet"})
"""Kinds whose specs cannot be changed, or for which a change has no lasting effect."""
_FIXED_FIELDS: Final = {
    "StatefulSet": ("/spec/volumeClaimTemplates", "/spec/serviceName", "/spec/selector", "/spec/podManagementPolicy"),
    "Deployment": ("/spec/selector",),
    "DaemonSet": ("/spec/selector",),
    "PersistentVolumeClaim": ("/spec/accessModes", "/spec/selector", "/spec/volumeName", "/spec/volumeMode"),
    "RoleBinding": ("/roleRef",),
    "ClusterRoleBinding": ("/roleRef",),
}
_SCALED_DOWN: Final = expression(r"Scaled down replica set \S+ (?:from (\d{1,9}) to 0|to 0 from (\d{1,9}))")
_POSITION: Final = expression(r"[0-9]{1,9}")
_RESTARTED: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet"})
_LONGEST_CHARACTERS: Final = 200
_TEMPLATE: Final = "spec.template."
_PROVEN_SECONDS: Final = 600.0
"""A template that was current for this time served."""
_SOURCES: Final = (
    ("annotations", "argocd.argoproj.io/tracking-id", "Argo CD"),
    ("labels", "argocd.argoproj.io/instance", "Argo CD"),
    ("labels", "kustomize.toolkit.fluxcd.io/name", "Flux"),
    ("labels", "helm.toolkit.fluxcd.io/name", "Flux"),
    ("annotations", "meta.helm.sh/release-name", "Helm"),
)
"""Labels and annotations of tools that undo a change that is not made in their source."""


def corrected(wrong: Evidence, right: JsonValue, *keys: str) -> FixStep:
    """Set the field of the evidence, or the field `keys` below it, to the right value."""
    return changed(wrong.object, wrong.path, right, *keys)


def changed(ref: ObjectRef, path: str, right: JsonValue, *keys: str) -> FixStep:
    """Set a field to a value. `path` is written as in evidence; `keys` are names that may contain dots."""
    pointer = "".join(f"/{each.replace('~', '~0').replace('/', '~1')}" for each in (*keys_of(path), *keys))
    return FixStep(kind="patch", object=ref, path=pointer, action=json.dumps(right, ensure_ascii=False))


def command(ref: ObjectRef, *arguments: str, requires: tuple[Precondition, ...] = ()) -> FixStep:
    """Run kubectl on an existing object. An empty argument stands for the object."""
    words = (each or resource_path(ref) for each in arguments)
    return FixStep(kind="command", object=ref, action=shlex.join(words), requires=(Precondition(object=ref), *requires))


def relabelled(chosen: Evidence, selector: Mapping[str, str], labels: Mapping[str, str]) -> tuple[FixStep, ...]:
    """Set each wrong label of a selector to the label of the pods. A label that the pods lack may be wrong there."""
    wrong = [key for key, wanted in selector.items() if labels.get(key) != wanted]
    return tuple(corrected(chosen, labels[key], key) for key in wrong) if labels.keys() >= set(wrong) else ()


def retargeted(chosen: Evidence, protocol: str, declared: Iterable[ContainerPort]) -> FixStep | None:
    """Use the only port with the protocol that the pods declare."""
    fitting = {each.name or each.number for each in declared if each.protocol == protocol}
    return corrected(chosen, fitting.pop()) if len(fitting) == 1 and chosen.path.endswith(".targetPort") else None


def created(ref: ObjectRef, *arguments: str) -> FixStep:
    """Create an object that does not exist, with the arguments of `kubectl create`."""
    missing = Precondition(object=ref, exists=False)
    return FixStep(kind="command", object=ref, action=shlex.join(("create", *arguments)), requires=(missing,))


def instruction(ref: ObjectRef, sentence: str, *, exists: bool = True) -> FixStep:
    """Say what to do if the rule knows the object and the field, but not the value."""
    requires = (Precondition(object=ref, exists=exists),)
    return FixStep(kind="instruction", object=ref, action=" ".join(sentence.split()), requires=requires)


def uncordoned(node: ClusterObject) -> FixStep:
    """Let a ready node accept pods again."""
    requires = (Precondition(object=node.ref, path="/spec/unschedulable", value="true"),)
    return command(node.ref, "uncordon", node.name, requires=requires)


def restarted(workload: ObjectRef) -> FixStep | None:
    """Restart the pods of a workload, so that they read their configuration again."""
    return command(workload, "rollout", "restart", "") if workload.kind in _RESTARTED else None


def replaced(setting: Evidence, wrong: str, right: str, user: ObjectRef) -> tuple[FixStep | None, ...]:
    """Replace a word in a setting, and restart the workload that reads the setting from another object."""
    text = setting.value
    if "\n" in text or len(text) > _LONGEST_CHARACTERS:
        sentence = f"Replace {wrong!r} with {right!r} in {setting.path} of {setting.object}."
        return (instruction(setting.object, sentence),)
    repaired = re.sub(rf"(?<![\w.-]){re.escape(wrong)}(?![\w-])", lambda _: right, text)
    step = replace(corrected(setting, repaired), old=json.dumps(text, ensure_ascii=False))
    return (step, restarted(user) if setting.object.kind == "ConfigMap" else None) if repaired != text else ()


def exposed(missing: ObjectRef, workload: ClusterObject) -> FixStep | None:
    """Create the missing Service of a Deployment from the ports that its pods declare."""
    declared = workload.children("spec", "template", "spec", "containers")
    if workload.kind != "Deployment" or not any(children(each, "ports") for each in declared):
        return None
    requires = (Precondition(object=missing, exists=False),)
    return command(workload.ref, "expose", "", f"--name={missing.name}", requires=requires)


def provided(missing: ObjectRef, user: ObjectRef) -> FixStep:
    """Create an object that a workload needs. Only a person knows the content of most objects."""
    if missing.kind == "ServiceAccount":
        return created(missing, "serviceaccount", missing.name)
    return instruction(missing, f"Create {missing}, or correct its name in {user}.", exists=False)


def scaled_up(state: ClusterState, workload: ClusterObject) -> FixStep:
    """Scale a workload that has no replicas to the number that it had, or to 1 if that is unknown."""
    zero = Precondition(object=workload.ref, path="/spec/replicas", value="0")
    return command(workload.ref, "scale", "", f"--replicas={_earlier_replicas(state, workload)}", requires=(zero,))


def _earlier_replicas(state: ClusterState, workload: ClusterObject) -> int:
    told = [_SCALED_DOWN.search(each.message) for each in state.events_of(workload, "ScalingReplicaSet")]
    numbers = [int(match[1] or match[2]) for match in told if match is not None]
    return next((number for number in reversed(numbers) if number > 0), 1)


def rolled_back(state: ClusterState, deployment: ClusterObject, proof: Evidence) -> FixStep | None:
    """Return to the previous template if it served, and if the last rollout changed what the evidence shows."""
    rollout = last_rollout(state, deployment)
    if rollout is None or deployment.boolean("spec", "paused"):
        return None
    newest, before, differences = rollout
    paths = [each.path for each in differences if not each.path.startswith(f"{_TEMPLATE}metadata.annotations")]
    shown = proof.object == deployment.ref and proof.path.startswith(_TEMPLATE)
    touched = [each for each in paths if not shown or each.startswith(proof.path) or proof.path.startswith(each)]
    served = before.integer("status", "readyReplicas") or newest.created - before.created > _PROVEN_SECONDS
    if not touched or not served:
        return None
    return command(deployment.ref, "rollout", "undo", "", requires=(Precondition(object=before.ref),))


def kept_steps(steps: Iterable[FixStep | None], state: ClusterState) -> tuple[FixStep, ...]:
    """Return the steps that fit the state, each with its check, and what to do about a tool that would undo them."""
    kept = [step for each in steps if each is not None and (step := _completed(each, state)) is not None]
    notes = (_source_note(step, state) for step in kept if step.kind != "instruction")
    return (*dict.fromkeys(kept), *dict.fromkeys(note for note in notes if note is not None))


def _completed(step: FixStep, state: ClusterState) -> FixStep | None:
    found = state.find(step.object)
    if found is not None and found.owner is not None and not step.action.startswith("delete "):
        return None  # its controller would undo the change
    if step.kind == "patch":
        if found is None or _is_fixed(found, step.path):
            return None
        old = _at_pointer(found.body, step.path)
        place, _, last = step.path.rpartition("/")
        has_place = isinstance(_at_pointer(found.body, place), list if last == "-" else dict) or old is not None
        written = "" if old is None else json.dumps(old, ensure_ascii=False)
        if not has_place or written == step.action or step.old not in ("", written):
            return None
        step = replace(step, old=written, requires=(*step.requires, Precondition(object=found.ref)))
    if not all(_holds(each, state) for each in step.requires):
        return None
    return step if step.check or step.kind == "instruction" else replace(step, check=check_of(step.object))


def _is_fixed(found: ClusterObject, pointer: str) -> bool:
    """Return whether the API server refuses a change of the field, or a controller would undo it."""
    if found.kind in _UNCHANGEABLE or (found.kind == "Job" and pointer != "/spec/suspend"):
        return True
    return pointer.startswith(_FIXED_FIELDS.get(found.kind, ("//",)))


def _holds(each: Precondition, state: ClusterState) -> bool:
    found = state.find(each.object)
    if not each.exists:
        return found is None and state.is_missing(each.object.kind, each.object.namespace, each.object.name)
    if found is None or found.deleted is not None:
        return False
    value = _at_pointer(found.body, each.path)
    return not each.path or (json.dumps(value) if value is not None else "") == each.value


def _at_pointer(value: JsonValue, pointer: str) -> JsonValue:
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            value = value[int(key)] if _POSITION.fullmatch(key) and int(key) < len(value) else None
        else:
            value = at(value, key)
    return value


def _source_note(step: FixStep, state: ClusterState) -> FixStep | None:
    found = state.find(step.object)
    tools = () if found is None else tuple(_tools(found))
    if found is None or not tools:
        return None
    return instruction(found.ref, f"Make the change in the source, too: {found.ref} is managed by {tools[0]}.")


def _tools(found: ClusterObject) -> Iterator[str]:
    for place, name, tool in _SOURCES:
        if name in (found.labels if place == "labels" else found.annotations):
            yield tool
