"""Finds running chaos experiments, the workloads that they disturb, and whether they explain the faults of these.

Chaos Mesh and Litmus have custom resources. A run of Kraken is a pod whose environment names its targets. An
experiment does not explain faults that began before it, that it does not make, or that a container explains itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.diagnosis.facts.chaos_selection import environment_of, of_chaos_mesh, of_kraken, of_litmus, records_of
from holmes.diagnosis.facts.crashes import began, crash_of, unhealthy
from holmes.diagnosis.facts.line_kinds import kind_of
from holmes.diagnosis.facts.logs import last_words
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.status import pod_ready
from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import moment, text, text_map, texts
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.diagnosis.facts.crashes import Crash
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef

CHAOS_MESH: Final = "chaos-mesh.org"
LITMUS: Final = "litmuschaos.io"
CHAOS_GROUPS: Final = frozenset({CHAOS_MESH, LITMUS})
_OF_PODS: Final = frozenset(
    {
        "PodChaos", "NetworkChaos", "StressChaos", "IOChaos", "TimeChaos", "DNSChaos", "HTTPChaos", "JVMChaos",
        "KernelChaos", "BlockChaos",
    }
)  # fmt: skip
_NOT_INJECTED: Final = (("AllInjected", "False"), ("Selected", "False"), ("Paused", "True"), ("AllRecovered", "True"))
_STOPPED: Final = (
    (("status", "experiment", "desiredPhase"), frozenset({"Stop"})),
    (("spec", "engineState"), frozenset({"stop"})),
    (("status", "engineStatus"), frozenset({"completed", "stopped"})),
)
_KRAKEN: Final = expression(
    r"(?:^|/)krkn(?:-hub)?(?:[:@]|$)"
    r"|(?:^|/)(?:krkn-chaos|redhat-chaos|chaos-kubox|cloud-bulldozer|openshift-scale)/kraken(?:-hub)?(?:[:@]|$)"
)
_OF_KRAKEN: Final = ("pod-scenarios", "container-scenarios", "pod-network-chaos", "application-outages")
"""The scenarios whose environment selects pods. The labels of others are those of nodes."""

Effect: TypeAlias = Literal["restart", "out of memory", "slow", "timeout", "unknown host", "file error"]

_OF_KINDS: Final[dict[str, Effect]] = {"NetworkChaos": "timeout", "DNSChaos": "unknown host", "IOChaos": "file error"}
_OF_ACTIONS: Final[dict[str, Effect]] = {
    "pod-kill": "restart",
    "pod-failure": "restart",
    "container-kill": "restart",
    "pod-delete": "restart",
    "pod-memory-hog": "out of memory",
    "pod-memory-hog-exec": "out of memory",
    "pod-cpu-hog": "slow",
    "pod-cpu-hog-exec": "slow",
    "pod-network-latency": "timeout",
    "pod-network-loss": "timeout",
    "pod-network-partition": "timeout",
    "pod-dns-error": "unknown host",
    "pod-scenarios": "restart",
    "container-scenarios": "restart",
    "pod-network-chaos": "timeout",
    "application-outages": "timeout",
}
_BEFORE_SECONDS: Final = 60.0
_AFTER_SECONDS: Final = 3600.0
"""Faults that begin longer after an experiment has begun are not attributed to it."""
_KILL_CODES: Final = frozenset({0, 1, 137, 143})
_FIRST_WAIT_SECONDS: Final = 10.0
_LONGEST_WAIT_SECONDS: Final = 300.0
_MOST_WAITS: Final = 100
_WAITS: Final = frozenset({"", "CrashLoopBackOff", "PodInitializing"})
_SPAN: Final = expression(r"(\d{1,9}(?:\.\d{1,9})?)(ms|h|m|s)")
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@once_per_state
def kraken_runs(state: ClusterState) -> tuple[ClusterObject, ...]:
    """Return the pods in which Kraken runs without having failed before. The result is cached for each state."""
    pods = (pod for pod in state.of("Pod") if pod.text("status", "phase") == "Running" and _scenario(pod))
    return tuple(pod for pod in pods if all(_runs(each) for each in containers_of(pod)))


def _runs(container: Container) -> bool:
    return container.kind != "main" or (container.running and not container.restarts)


def is_injected(experiment: ClusterObject) -> bool:
    """Return whether nothing says that an experiment is paused, has stopped or was not injected."""
    paused = text_map(experiment.body, "metadata", "annotations").get("experiment.chaos-mesh.org/pause") == "true"
    refuted = any(experiment.condition(kind).get("status") == status for kind, status in _NOT_INJECTED)
    return not paused and not refuted and not any(experiment.text(*path) in ends for path, ends in _STOPPED)


def targets_of(state: ClusterState, each: ClusterObject) -> tuple[ObjectRef, ...]:
    """Return the workloads that a chaos experiment or a run of Kraken disturbs. Empty for other objects.

    A workload with a fault that the experiment does not explain is left out.
    """
    workloads = {found.ref: found for found in map(state.workload_of, _disturbed_pods(state, each))}
    return tuple(
        ref for ref, found in workloads.items() if not _sick_pods(state, found) or explains(state, each, found)
    )


def _disturbed_pods(state: ClusterState, each: ClusterObject) -> tuple[ClusterObject, ...]:
    """Return the pods that an experiment or a run of Kraken may disturb. Empty for other objects.

    Also empty if it disturbs only some pods, and these may be those of another workload.
    """
    some = False
    if each.group == CHAOS_MESH and each.kind in _OF_PODS and is_injected(each):
        some = each.text("spec", "mode") not in {"", "all"} and not records_of(each)
        found = of_chaos_mesh(state, each)
    elif each.group == LITMUS and each.kind == "ChaosEngine" and is_injected(each):
        some = environment_of(each).get("PODS_AFFECTED_PERC") != "100"
        found = of_litmus(state, each)
    elif each.kind == "Pod" and _scenario(each) in _OF_KRAKEN:
        some = _scenario(each) == "pod-scenarios"
        found = (pod for pod in of_kraken(state, environment_of(each)) if not _scenario(pod))
    else:
        return ()
    pods = tuple(found)
    return () if some and len({state.workload_of(pod).ref for pod in pods}) > 1 else pods


def kraken_image(pod: ClusterObject) -> str:
    """Return the image of Kraken that a pod runs, or an empty string for another pod."""
    images = (text(each, "image") for each in pod.children("spec", "containers"))
    return next((image for image in images if _KRAKEN.search(image)), "")


def action_of(each: ClusterObject) -> str:
    """Return what an experiment does: `pod-kill`, or the scenario of a run of Kraken."""
    return each.text("spec", "action") or (_scenario(each) if each.kind == "Pod" else "")


def _scenario(pod: ClusterObject) -> str:
    """Return the tag of the image of Kraken, which names the scenario, or an empty string for another pod."""
    image = kraken_image(pod)
    return image.rpartition("/")[2].partition("@")[0].partition(":")[2] or "Kraken" if image else ""


def is_over(state: ClusterState, experiment: ClusterObject) -> bool:
    """Return whether the duration of an experiment has passed."""
    spans = _SPAN.findall(experiment.text("spec", "duration"))
    return bool(spans) and state.age_seconds(experiment) > sum(float(size) * _UNITS[unit] for size, unit in spans)


def explains(state: ClusterState, experiment: ClusterObject, workload: ClusterObject) -> bool:
    """Return whether all present faults in the pods of a workload are effects of an experiment."""
    hit = {pod.ref for pod in _disturbed_pods(state, experiment)}
    sick = _sick_pods(state, workload)
    effects = _effects_of(experiment)
    if not sick or not effects or is_over(state, experiment):
        return False
    made = all(pod.ref in hit and _fits(state, pod, experiment, effects) for pod in sick)
    first = min(_beginnings(state, workload, sick), default=None) if made else None
    return first is not None and -_BEFORE_SECONDS <= first - experiment.created <= _AFTER_SECONDS


def _effects_of(experiment: ClusterObject) -> frozenset[Effect]:
    """Return the faults that an experiment makes. Empty if they are not known."""
    if experiment.group == LITMUS:
        actions = [text(each, "name") for each in experiment.children("spec", "experiments")]
        known = [_OF_ACTIONS[each] for each in actions if each in _OF_ACTIONS]
        return frozenset(known) if len(known) == len(actions) else frozenset()
    if experiment.kind == "StressChaos":
        stressors = experiment.child("spec", "stressors")
        made: dict[str, Effect] = {"memory": "out of memory", "cpu": "slow"}
        return frozenset(made[each] for each in stressors if each in made)
    # An experiment that disturbs only the way to a target may be innocent of failures on other ways.
    if experiment.child("spec", "target") or texts(experiment.body, "spec", "externalTargets"):
        return frozenset()
    of_kinds = experiment.group == CHAOS_MESH and experiment.kind != "PodChaos"
    effect = _OF_KINDS.get(experiment.kind) if of_kinds else _OF_ACTIONS.get(action_of(experiment))
    return frozenset({effect}) if effect else frozenset()


def _sick_pods(state: ClusterState, workload: ClusterObject) -> list[ClusterObject]:
    return [pod for pod in state.pods_of(workload) if _is_sick(state, pod)]


def _is_sick(state: ClusterState, pod: ClusterObject) -> bool:
    """Return whether a pod is not ready after the grace period, or has failed within the last hour."""
    if pod.deleted is not None or pod.text("status", "phase") == "Succeeded":
        return False
    late = not pod_ready(pod) and state.age_seconds(pod) >= state.grace_seconds
    return late or any(crash_of(container, state) for container in containers_of(pod))


def _fits(state: ClusterState, pod: ClusterObject, experiment: ClusterObject, effects: frozenset[Effect]) -> bool:
    """Return whether each container that fails does so as the experiment makes containers fail."""
    containers = [each for each in containers_of(pod) if each.kind != "ephemeral"]
    if pod.text("status", "reason") or any(text(each.waiting, "reason") not in _WAITS for each in containers):
        return False
    named = texts(experiment.body, "spec", "containerNames")
    ill = [each for each in containers if crash_of(each, state) or (each.kind == "main" and not each.ready)]
    started = [each for each in ill if text(each.waiting, "reason") != "PodInitializing"]
    return bool(started) and all(
        each.name in (named or (each.name,)) and _is_effect(state, each, effects) for each in started
    )


def _is_effect(state: ClusterState, container: Container, effects: frozenset[Effect]) -> bool:
    crash = crash_of(container, state)
    if crash is None or crash.ending in {"liveness", "startup"}:
        probes = unhealthy(container, state)
        late = bool(probes) and kind_of(probes[-1].message) == "connection timeout"
        return late and not effects.isdisjoint({"slow", "timeout"})
    if crash.ending == "memory":
        return "out of memory" in effects
    return crash.ending == "application" and _is_exit_of(state, crash, effects)


def _is_exit_of(state: ClusterState, crash: Crash, effects: frozenset[Effect]) -> bool:
    """Return whether a program was killed by the experiment, or exited because of what it did."""
    words = last_words(crash.container, state)
    line = words.first.line if words is not None else ""
    if "restart" in effects and (words is None or words.first.kind == "last words" or crash.exit_code in {137, 143}):
        return crash.exit_code in _KILL_CODES
    kind = kind_of(line)
    if kind == "connection timeout":
        return "timeout" in effects
    if kind == "unknown host":
        return "unknown host" in effects
    return "file error" in effects and "input/output error" in line.lower()


def _beginnings(state: ClusterState, workload: ClusterObject, sick: Sequence[ClusterObject]) -> Iterator[float]:
    """Yield the times at which the faults of a workload began or had begun."""
    for condition in (workload.condition("Available"), *(pod.condition("Ready") for pod in sick)):
        changed = moment(text(condition, "lastTransitionTime"))
        if text(condition, "status") == "False" and changed is not None:
            yield changed
    crashes = (crash_of(container, state) for pod in sick for container in containers_of(pod))
    for crash in (each for each in crashes if each is not None):
        known = began(crash, state)
        if known is not None:
            yield known
        if crash.again and crash.finished is not None:
            yield crash.finished - _waited_seconds(crash.container.restarts)


def _waited_seconds(restarts: int) -> float:
    """Return how long the kubelet waits at least before all these restarts together. It does not wait for the first."""
    waits = range(min(restarts - 1, _MOST_WAITS))
    return sum(min(_FIRST_WAIT_SECONDS * 2.0 ** min(each, 9), _LONGEST_WAIT_SECONDS) for each in waits)
