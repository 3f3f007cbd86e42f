"""All rules together find the cause behind a cause, and leave similar healthy clusters alone.

Each file in `chains/` is a list of cases. `incidents` are the culprits of all incidents above the severity `info`. A
fault that another one explains has no incident of its own. `says` must be in their causes, `never_says` must not.

`made` are workloads with their pods: `{name: web, state: running}`. Other states are `crashing`, `oom`, `pending` and
`waiting`. The state `running` is the default. `container` and `pod` contain fields of the specs, and `objects`,
`events` and `logs` are as in `row_cases`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from holmes.diagnosis.engine import all_rules
from holmes.diagnosis.incidents import incidents_of
from holmes.diagnosis.scan import run_rules
from tests.diagnosis.row_cases import raw_cases, state_of

CHAINS: Final = Path(__file__).parent / "chains"
CASES: Final = [(path.stem, each) for path in sorted(CHAINS.glob("*.yaml")) for each in raw_cases(path)]
_KNOWN: Final = {"case", "incidents", "says", "never_says", "made", "objects", "events", "logs", "nodes"}
_AGO: Final = 1800


@pytest.mark.parametrize(("theme", "case"), CASES, ids=[f"{theme}: {each['case']}" for theme, each in CASES])
def test_the_cause_behind_a_cause_is_the_only_incident(theme: str, case: Mapping[str, Any]) -> None:
    assert case.keys() <= _KNOWN, f"{theme}: unknown keys {case.keys() - _KNOWN}"
    state = state_of(cluster_of_chain(case))

    found = incidents_of(run_rules(all_rules(), state).findings, state)

    told = [each for each in found if each.severity != "info"]
    assert sorted(str(each.culprit) for each in told) == sorted(case["incidents"]), [each.cause for each in told]
    causes = "\n".join(each.cause for each in told)
    for words in case.get("says", ()):
        assert words in causes
    for words in case.get("never_says", ()):
        assert words not in causes


def cluster_of_chain(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the compact cluster of a case, with its nodes and workloads."""
    made = [each for raw in case.get("made", ()) for each in _workload(raw)]
    nodes = [_node(name) for name in case.get("nodes", ["node-1"])]
    return {**case, "objects": [*nodes, *made, *case.get("objects", ())]}


def _node(name: str) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": name, "age": 864_000, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def _workload(raw: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A workload with one pod, and a Service if it has `port`."""
    name, kind, place = raw["name"], raw.get("kind", "Deployment"), raw.get("namespace", "shop")
    state, age = raw.get("state", "running"), raw.get("age", 86_400)
    ready = int(state == "running")
    labels = {"app": name}
    container = {"name": name, "image": f"registry.shop.example/{name}:1.4.2", **raw.get("container", {})}
    spec = {"containers": [container], **raw.get("pod", {})}
    template = {"metadata": {"labels": labels}, "spec": spec}
    status = {
        "replicas": 1, "readyReplicas": ready, "updatedReplicas": 1, "availableReplicas": ready,
        "numberReady": ready, "desiredNumberScheduled": 1, "currentNumberScheduled": 1, "observedGeneration": 1,
    }  # fmt: skip
    yield {
        "kind": kind,
        "metadata": {"name": name, "namespace": place, "age": age, "labels": labels, "generation": 1},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        "status": status,
    }
    owner = f"{kind}/{name}"
    if kind == "Deployment":
        owner = f"ReplicaSet/{name}-5d8f9"
        yield {
            "kind": "ReplicaSet",
            "metadata": {"name": f"{name}-5d8f9", "namespace": place, "age": age, "owner": f"{kind}/{name}"},
            "spec": {"replicas": 1, "template": template},
            "status": {"replicas": 1, "readyReplicas": ready},
        }
    pod_name = f"{name}-0" if kind == "StatefulSet" else f"{name}-5d8f9-x1"
    yield {
        "kind": "Pod",
        "metadata": {"name": pod_name, "namespace": place, "age": age, "labels": labels, "owner": owner},
        "spec": {**spec, **({} if state == "pending" else {"nodeName": raw.get("node", "node-1")})},
        "status": _pod_status(raw, name, state),
    }
    if "port" in raw:
        yield {
            "kind": "Service",
            "metadata": {"name": name, "namespace": place, "age": age},
            "spec": {"selector": labels, "clusterIP": "10.96.7.1", "ports": [{"port": raw["port"]}]},
        }


def _pod_status(raw: Mapping[str, Any], name: str, state: str) -> dict[str, Any]:
    ended = {"exitCode": 137, "reason": "OOMKilled"} if state == "oom" else {"exitCode": 1, "reason": "Error"}
    message = raw.get("message", "")
    if state == "pending":
        unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        return {"phase": "Pending", "conditions": [{**unscheduled, "lastTransitionTime": {"ago": _AGO}}]}
    states: dict[str, dict[str, Any]] = {
        "running": {"ready": True, "state": {"running": {"startedAt": {"ago": raw.get("age", 86_400) - 3}}}},
        "waiting": {"ready": False, "state": {"waiting": {"reason": raw.get("reason", ""), "message": message}}},
    }
    crash = {
        "ready": False,
        "restartCount": 12,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {**ended, "startedAt": {"ago": 94}, "finishedAt": {"ago": 90}}},
    }
    container = {"name": name, "restartCount": 0, **states.get(state, crash)}
    ready = {"type": "Ready", "status": str(state == "running"), "lastTransitionTime": {"ago": _AGO}}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": {"ago": raw.get("age", 86_400)}}
    phase = "Pending" if state == "waiting" else "Running"
    return {"phase": phase, "containerStatuses": [container], "conditions": [ready, scheduled]}
