"""The faults that an object can have. Each changes the object and names itself and the fact that shows it."""

from __future__ import annotations

import random
from collections.abc import Callable

from benchmarks.preview_corpora.object_texts import Object, conditions

Fault = Callable[[random.Random, Object], tuple[str, str]]


def _pod_waiting(chance: random.Random, item: Object) -> tuple[str, str]:
    reason = chance.choice(("ImagePullBackOff", "CrashLoopBackOff", "CreateContainerConfigError", "ErrImagePull"))
    container = item["status"]["containerStatuses"][0]
    container["state"] = {"waiting": {"message": f"container {container['name']} is waiting", "reason": reason}}
    container["ready"] = container["started"] = False
    return reason, reason


def _pod_failed(chance: random.Random, item: Object) -> tuple[str, str]:
    reason = chance.choice(("Evicted", "NodeLost", "DeadlineExceeded"))
    item["status"].update(phase="Failed", reason=reason)
    return f"phase Failed, {reason}", "Failed"


def _pod_exit_code(chance: random.Random, item: Object) -> tuple[str, str]:
    code = chance.choice((137, 139, 2, 127))
    terminated = {
        "exitCode": code,
        "finishedAt": "2026-11-20T03:01:00Z",
        "reason": "OOMKilled" if code == 137 else "Error",
    }
    item["status"]["containerStatuses"][0]["lastState"] = {"terminated": terminated}
    return f"exit code {code}", str(code)


def _pod_not_ready(_: random.Random, item: Object) -> tuple[str, str]:
    item["status"]["conditions"][1].update(status="False", reason="ReadinessGatesNotReady")
    return "condition Ready is False", "ReadinessGatesNotReady"


def _pod_restarts(chance: random.Random, item: Object) -> tuple[str, str]:
    count = chance.randrange(150, 800)
    item["status"]["containerStatuses"][0]["restartCount"] = count
    return f"{count} restarts", str(count)


def _containers_of(item: Object) -> list[Object]:
    spec = item["spec"]
    containers: list[Object] = (spec.get("template", item)["spec"])["containers"]
    return containers


def _other_tag(chance: random.Random, item: Object) -> tuple[str, str]:
    container = _containers_of(item)[0]
    tag = chance.choice(("latest", "3.99.0-rc2", "hotfix", "2.1.0"))
    container["image"] = f"{container['image'].rsplit(':', 1)[0]}:{tag}"
    return f"image tag {tag}", container["image"]


def _missing_variable(chance: random.Random, item: Object) -> tuple[str, str]:
    container = _containers_of(item)[0]
    name = chance.choice(("DB_HOST", "OTEL_ENDPOINT", "REGION"))
    container["env"] = [each for each in container["env"] if each["name"] != name]
    return f"variable {name} missing", name


def _other_value(chance: random.Random, item: Object) -> tuple[str, str]:
    container = _containers_of(item)[0]
    name, value = chance.choice(
        (("DB_PORT", "5433"), ("REGION", "us-east-1"), ("OTEL_ENDPOINT", "otel.monitorng:4317"))
    )
    next(each for each in container["env"] if each["name"] == name)["value"] = value
    return f"{name}={value}", value


def _unavailable(_: random.Random, item: Object) -> tuple[str, str]:
    item["status"]["conditions"][0].update(status="False", reason="MinimumReplicasUnavailable")
    for key in ("availableReplicas", "readyReplicas"):
        del item["status"][key]
    item["status"]["unavailableReplicas"] = item["spec"]["replicas"]
    return "deployment unavailable", "MinimumReplicasUnavailable"


def _no_probe(_: random.Random, item: Object) -> tuple[str, str]:
    del _containers_of(item)[0]["readinessProbe"]
    return "readiness probe missing", "readinessProbe"


def _node_condition(chance: random.Random, item: Object) -> tuple[str, str]:
    index = chance.randrange(5)
    condition = item["status"]["conditions"][index]
    condition["status"] = "True" if index < 4 else "Unknown"
    return f"{condition['type']} {condition['status']}", condition["type"] if index < 4 else "Unknown"


def _node_cordoned(_: random.Random, item: Object) -> tuple[str, str]:
    item["spec"]["unschedulable"] = True
    return "node cordoned", "unschedulable"


def _node_version(chance: random.Random, item: Object) -> tuple[str, str]:
    version = chance.choice(("v1.30.2", "v1.33.0"))
    item["status"]["nodeInfo"]["kubeletVersion"] = version
    return f"kubelet {version}", version


def _job_failed(chance: random.Random, item: Object) -> tuple[str, str]:
    reason = chance.choice(("BackoffLimitExceeded", "DeadlineExceeded"))
    item["status"] = {"conditions": conditions(("Failed", "True")), "failed": 4}
    item["status"]["conditions"][0]["reason"] = reason
    return f"job failed: {reason}", reason


POD_FAULTS: tuple[Fault, ...] = (
    _pod_waiting,
    _pod_failed,
    _pod_exit_code,
    _pod_not_ready,
    _pod_restarts,
    _other_tag,
    _missing_variable,
    _other_value,
    _no_probe,
)
DEPLOYMENT_FAULTS: tuple[Fault, ...] = (_other_tag, _missing_variable, _other_value, _unavailable, _no_probe)
NODE_FAULTS: tuple[Fault, ...] = (_node_condition, _node_cordoned, _node_version)
JOB_FAULTS: tuple[Fault, ...] = (_job_failed, _other_value)
