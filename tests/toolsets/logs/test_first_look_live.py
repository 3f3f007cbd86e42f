"""The built-in rules read the log of a crashed instance from a source, if its node has lost it."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from holmes.toolsets.kubernetes_diagnosis.toolset import FIRST_LOOK, KubernetesDiagnosisFactory
from holmes.toolsets.registry import ToolsetContext
from holmes.values.environment import Environment
from holmes.values.first_look import look_from_yaml
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.observability.logs.records import BEGIN, Line, send_to_victoria_logs
from tests.support.faulty_api import serve_objects
from tests.support.kubernetes_api import KubernetesApi, status, write_kubeconfig
from tests.triage.corpus.servers import server_objects

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.first_look import FirstLook
    from holmes.values.json_types import JsonValue

LOST: Final = status(400, "BadRequest", 'previous terminated container "bakery" in pod "bakery-5d9-x" not found')


def crashing(ended: int) -> list[dict[str, Any]]:
    """A Deployment whose container ends again and again, last at a time in seconds since 1970."""

    def at(seconds: float) -> str:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

    last = {"exitCode": 1, "reason": "Error", "startedAt": at(ended - 10), "finishedAt": at(ended)}
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container=bakery"}
    objects = [*server_objects("bakery", {})]
    for each in objects:
        if each["kind"] == "Pod":
            container = {
                "name": "bakery",
                "ready": False,
                "restartCount": 7,
                "state": {"waiting": waiting},
                "lastState": {"terminated": last},
            }
            conditions = [{"type": "Ready", "status": "False"}, {"type": "PodScheduled", "status": "True"}]
            each["status"] = {"phase": "Running", "conditions": conditions, "containerStatuses": [container]}
    return objects


def look(api: KubernetesApi, folder: Path, others: dict[str, dict[str, JsonValue]]) -> FirstLook:
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(folder, api.url))})
    toolset = KubernetesDiagnosisFactory().create(ToolsetContext(environment=environment, others=others))
    arguments: dict[str, JsonValue] = {"question": "why is bakery in shop failing?", "max_tokens": 4_000}
    call = ToolInvocation(call_id=ToolCallId("1"), tool=FIRST_LOOK, arguments=arguments)
    return look_from_yaml(asyncio.run(toolset.call(call)).data)


def test_the_cause_is_in_a_log_that_only_the_source_has(
    quiet_cluster: KubernetesApi, tmp_path: Path, victoria_logs_url: str
) -> None:
    ended = int(time.time()) - 60
    serve_objects(quiet_cluster, {"objects": crashing(ended), "events": []})
    quiet_cluster.on("/api/v1/namespaces/shop/pods/bakery-5d9-x/log", LOST)
    text = "panic: open /etc/bakery/oven.yaml: no such file or directory"
    texts = [("baking started", 9), ("reading oven.yaml", 3), (text, 1)]
    lines = [
        Line(at=ended - BEGIN - before, text=each, pod="bakery-5d9-x", container="bakery") for each, before in texts
    ]
    send_to_victoria_logs(victoria_logs_url, lines, "fluent-bit")
    alone = look(quiet_cluster, tmp_path, {})
    assert not any("oven.yaml" in each for each in alone.evidence)
    config: dict[str, JsonValue] = {"type": "victorialogs", "url": victoria_logs_url}
    found = look(quiet_cluster, tmp_path, {"logs/sources": config})
    assert any("oven.yaml: no such file or directory" in each for each in found.evidence), found
    down: dict[str, JsonValue] = {"type": "victorialogs", "url": "http://127.0.0.1:9"}
    assert look(quiet_cluster, tmp_path, {"logs/sources": down}).evidence == alone.evidence
