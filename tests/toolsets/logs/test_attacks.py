"""A source of logs that hangs, floods, redirects or lies costs one clear line, and no other pod is blamed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs

import pytest

from holmes.observability.logs.source import LogAccess, LogProduct
from holmes.toolsets.instances import instances_of
from holmes.toolsets.kubernetes_logs.reader import ReadLimits
from holmes.toolsets.kubernetes_logs.toolset import KUBERNETES_LOGS, KubernetesLogsToolset
from holmes.toolsets.logs.config import KIND
from holmes.toolsets.logs.toolset import LogSourcesToolset
from holmes.values.environment import Environment
from holmes.values.errors import ToolError
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.observability.logs.serving import Reply, serving
from tests.support.kubernetes_api import KubernetesApi, write_kubeconfig

MEBIBYTE: Final = 1_048_576
PRODUCTS: Final[tuple[LogProduct, ...]] = ("victorialogs", "loki", "opensearch")


def pod_logs(api: KubernetesApi, folder: Path, access: LogAccess) -> str:
    """Read the log of a pod that no longer exists, and return the text or the error."""
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(folder, api.url))})
    toolset = KubernetesLogsToolset(environment, ReadLimits(), [access])
    call = ToolInvocation(
        call_id=ToolCallId("c"), tool=KUBERNETES_LOGS, arguments={"name": "web-0", "namespace": "shop"}
    )
    try:
        return asyncio.run(toolset.call(call)).data
    except ToolError as error:
        return str(error)


def query(url: str, product: LogProduct, text: str) -> str:
    toolset = LogSourcesToolset(instances_of({"type": product, "url": url, "timeout_seconds": 20}, KIND))
    call = ToolInvocation(call_id=ToolCallId("c"), tool=toolset.tools[0], arguments={"query": text, "limit": 1_000})
    return asyncio.run(toolset.call(call)).data


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply(body=b"<html>login</html>"), "did not return JSON of its API; check the type and path of its URL"),
        (Reply(body=b"[" * 100_000), "did not return JSON of its API"),
        (Reply(status=302, headers={"Location": "http://169.254.169.254/"}), "redirects to 'http://169.254.169.254'"),
        (Reply(status=401), "the credentials are rejected (HTTP 401)"),
        (Reply(status=503, body=b"no\ndisk"), "HTTP 503: no disk"),
    ],
)
def test_a_source_that_lies_is_told_in_the_line_about_the_missing_pod(
    quiet_cluster: KubernetesApi, tmp_path: Path, product: LogProduct, reply: Reply, told: str
) -> None:
    with serving(lambda _, __: reply) as url:
        text = pod_logs(quiet_cluster, tmp_path, LogAccess(name="prod", url=url, product=product))
    assert "Not found: pods 'web-0'" in text
    assert "Log source not read: prod" in text
    assert told in text
    assert "\n" not in text


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_source_that_hangs_ends_with_its_time_limit(
    quiet_cluster: KubernetesApi, tmp_path: Path, product: LogProduct
) -> None:
    def forever() -> Iterator[bytes]:
        import time

        for _ in range(40):
            time.sleep(0.1)
            yield b" "

    with serving(lambda _, __: Reply(pieces=forever())) as url:
        access = LogAccess(name="prod", url=url, product=product, timeout_seconds=0.5)
        text = pod_logs(quiet_cluster, tmp_path, access)
    assert "no complete response within 0.5 s" in text


def test_of_100_mb_only_the_limit_of_a_response_is_read() -> None:
    sent: list[int] = []
    row = json.dumps({"_time": "2026-01-02T10:00:00Z", "_msg": "x" * 65_000}).encode() + b"\n"

    def flood() -> Iterator[bytes]:
        for number in range(1_600):
            sent.append(number)
            yield row

    def respond(_: str, body: bytes) -> Reply:
        return Reply(body=b'{"holmes_lines":"1600"}\n') if b"holmes_lines" in body else Reply(pieces=flood())

    with serving(respond) as url:
        text = query(url, "victorialogs", "*")
    assert "of 1,600 rows" in text.splitlines()[0]
    assert len(sent) * len(row) < 40 * MEBIBYTE


@pytest.mark.parametrize("product", ["loki", "opensearch"])
def test_a_flood_in_one_object_is_refused_at_the_limit_of_a_response(product: LogProduct) -> None:
    pieces = (b"x" * MEBIBYTE for _ in range(100))
    with serving(lambda _, __: Reply(body=b'{"data": "', pieces=pieces)) as url:
        with pytest.raises(ToolError, match="larger than 16 MiB; request less"):
            query(url, product, '{a="b"}')
        assert next(pieces, None) is not None


def test_lines_of_other_pods_are_an_error_and_are_not_shown(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    def respond(path: str, body: bytes) -> Reply:
        if path.endswith("/field_names"):
            names = ("kubernetes.namespace_name", "kubernetes.pod_name", "kubernetes.container_name")
            return Reply(body=json.dumps({"values": [{"value": name, "hits": "1"} for name in names]}).encode())
        place = {"kubernetes.namespace_name": "shop", "kubernetes.container_name": "app"}
        if "stats by" in parse_qs(body.decode())["query"][0]:
            rows = [{**place, "kubernetes.pod_name": pod, "holmes_lines": "1"} for pod in ("web-0", "bank-0")]
        else:
            rows = [{**place, "kubernetes.pod_name": "bank-0", "_time": "2026-01-02T10:00:00Z", "_msg": "panic"}]
        return Reply(body="\n".join(map(json.dumps, rows)).encode())

    with serving(respond) as url:
        text = pod_logs(quiet_cluster, tmp_path, LogAccess(name="prod", url=url, product="victorialogs"))
    assert "prod: returned a line of pod 'shop/bank-0' for a query about shop/web-0; check the fields" in text
    assert "panic" not in text
