"""Waits until the cluster is in the state that a scenario expects."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, assert_never

import jq

from holmes.kubernetes.fields import at, children, integer, text
from holmes.values.json_types import JsonObject
from tests.diagnosis.scenarios.api import Api
from tests.diagnosis.scenarios.model import (
    Condition,
    LogCondition,
    ObjectCondition,
    Pause,
    Places,
    ReadyCondition,
)

INTERVAL_SECONDS: Final = 0.7
LIBRARY: Final = """
def containers: ((.status.containerStatuses // []) + (.status.initContainerStatuses // []))[];
def waits($why): any(containers; .state.waiting.reason == $why);
def ended($why): any(containers; .state.terminated.reason == $why or .lastState.terminated.reason == $why);
def restarts: [containers | .restartCount] | add // 0;
def running: any(containers; .state.running != null);
def is($type; $status): any(.status.conditions[]?; .type == $type and .status == $status);
def because($type; $reason): any(.status.conditions[]?; .type == $type and .reason == $reason);
def ready: is("Ready"; "True");
def event($reason; $about): .reason == $reason and (.involvedObject | "\\(.kind) \\(.name)" | test($about));
def endpoints: [.endpoints[]? | select(.conditions.ready)] | length;
"""


class DidNotShowError(Exception):
    """The state was not reached in time; the text says which state."""


@dataclass(frozen=True)
class Observer:
    """Waits for conditions in the namespaces of one scenario until its deadline (`time.monotonic()`)."""

    api: Api
    places: Places
    deadline: float

    def wait(self, condition: Condition) -> None:
        """Returns when the condition holds; raises DidNotShowError after the deadline."""
        if isinstance(condition, Pause):
            time.sleep(condition.seconds)
            return
        check = self._check(condition)
        while not check():
            if time.monotonic() > self.deadline:
                raise DidNotShowError(f"did not show in time: {condition}")
            time.sleep(INTERVAL_SECONDS)

    def place(self, alias: str | None) -> str:
        """The namespace with this alias; the first without an alias."""
        return self.places[alias] if alias else next(iter(self.places.values()))

    def _check(self, condition: ObjectCondition | LogCondition | ReadyCondition) -> Check:
        match condition:
            case ObjectCondition():
                return ObjectCheck(self, condition)
            case LogCondition():
                return LogCheck(self, condition)
            case ReadyCondition():
                return ReadyCheck(self, condition)
        assert_never(condition)


class ObjectCheck:
    """Compiles the expression once."""

    def __init__(self, observer: Observer, condition: ObjectCondition) -> None:
        self._observer, self._condition = observer, condition
        self._program = jq.compile(LIBRARY + condition.that)

    def __call__(self) -> bool:
        found = self._observer.api.objects(self._condition.kind, self._observer.place(self._condition.namespace))
        named = [each for each in found if fnmatchcase(text(each, "metadata", "name"), self._condition.name)]
        fitting = sum(1 for each in named if self._program.input_value(each).first())
        return fitting == 0 if self._condition.absent else fitting >= self._condition.count


class LogCheck:
    """Reads the logs of all containers of the pods."""

    def __init__(self, observer: Observer, condition: LogCondition) -> None:
        self._observer, self._condition = observer, condition

    def __call__(self) -> bool:
        namespace = self._observer.place(self._condition.namespace)
        pods = self._observer.api.objects("Pod", namespace)
        return any(
            self._condition.log in self._observer.api.log(namespace, pod, container, previous=previous)
            for pod, container in self._containers(pods)
            for previous in (False, True)
        )

    def _containers(self, pods: tuple[JsonObject, ...]) -> list[tuple[str, str]]:
        return [
            (text(pod, "metadata", "name"), text(container, "name"))
            for pod in pods
            if fnmatchcase(text(pod, "metadata", "name"), self._condition.pod)
            for field in ("initContainers", "containers")
            for container in children(pod, "spec", field)
            if self._condition.container in {"", text(container, "name")}
        ]


class ReadyCheck:
    """Reads Deployments, StatefulSets and DaemonSets."""

    def __init__(self, observer: Observer, condition: ReadyCondition) -> None:
        self._observer, self._condition = observer, condition

    def __call__(self) -> bool:
        namespace = self._observer.place(self._condition.namespace)
        found = [
            each
            for kind in ("Deployment", "StatefulSet", "DaemonSet")
            for each in self._observer.api.objects(kind, namespace)
        ]
        complete = {text(each, "metadata", "name") for each in found if is_complete(each)}
        return set(self._condition.ready) <= complete


Check = ObjectCheck | LogCheck | ReadyCheck


def is_complete(workload: JsonObject) -> bool:
    """Whether the latest version is completely rolled out and available."""
    if integer(workload, "status", "observedGeneration") < integer(workload, "metadata", "generation"):
        return False
    if at(workload, "status", "desiredNumberScheduled") is not None:
        wanted = integer(workload, "status", "desiredNumberScheduled")
        return wanted > 0 and integer(workload, "status", "numberAvailable") == wanted
    wanted = integer(workload, "spec", "replicas")
    return all(
        integer(workload, "status", field) == wanted for field in ("replicas", "updatedReplicas", "availableReplicas")
    )
