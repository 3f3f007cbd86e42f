"""`workload_signals` against real servers, with metrics as common exporters name them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from holmes.tokens import TokenCounter
from holmes.values.errors import ToolError
from tests.support.metric_history import History
from tests.toolsets.metrics.calling import call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holmes.values.json_types import JsonValue
    from tests.services.fixtures import RunMonitor
    from tests.services.monitoring import Monitor

pytestmark = pytest.mark.slow

HOURS: Final = 4
CHANGE: Final = 3_600
"""Faults began an hour before the end."""


def _pod(
    history: History,
    pod: str,
    *,
    throttled: float = 0,
    memory: float = 0.4,
    errors: float = 0,
    seconds: float = 0.02,
    grows: bool = False,
) -> None:
    place = f'namespace="shop",pod="{pod}",container="app"'

    def after(value: float, before: float) -> Callable[[float], float]:
        return lambda left: value if left < CHANGE else before

    history.counter("container_cpu_cfs_periods_total", place, lambda _: 10)
    history.counter("container_cpu_cfs_throttled_periods_total", place, after(10 * throttled, 0.05))
    history.counter("container_cpu_usage_seconds_total", place, lambda _: 0.3)
    limit = 512e6
    leak = lambda left: limit * (memory + 0.45 * (1 - left / (HOURS * 3_600)))  # noqa: E731
    history.gauge("container_memory_working_set_bytes", place, leak if grows else lambda _: limit * memory)
    for resource, most in (("memory", limit), ("cpu", 1)):
        labels = f'namespace="shop",pod="{pod}",container="app",resource="{resource}"'
        history.gauge("kube_pod_container_resource_limits", labels, lambda _, most=most: most)  # type: ignore[misc]
    requests = f'namespace="shop",pod="{pod}"'
    history.counter("http_request_duration_seconds_count", f'{requests},code="200"', lambda _: 20)
    history.counter("http_request_duration_seconds_count", f'{requests},code="503"', after(20 * errors, 0.001))
    history.counter("http_request_duration_seconds_sum", f'{requests},code="200"', after(20 * seconds, 0.4))


def _samples() -> str:
    history = History(hours=HOURS)
    _pod(history, "throttled-1", throttled=0.6)
    _pod(history, "throttled-10", throttled=0.9)
    _pod(history, "throttled-admin-0", throttled=0.9)
    for name, rate in (("throttled_periods", 9), ("periods", 10)):
        gone = 'namespace="shop",pod="gone-1",container="app"'
        history.counter(f"container_cpu_cfs_{name}_total", gone, lambda _, rate=rate: rate, ends=5_400)  # type: ignore[misc]
    for pod, container, share in (("whole-1", "", 0.5), ("both-1", "", 0.4), ("both-1", 'container="app"', 0.4)):
        # Of `whole-1`, the kubelet knows no containers, as with some container runtimes.
        labels = ",".join(filter(None, ('namespace="shop"', f'pod="{pod}"', container)))
        history.counter("container_cpu_cfs_periods_total", labels, lambda _: 10)
        history.counter("container_cpu_cfs_throttled_periods_total", labels, lambda _, share=share: 10 * share)  # type: ignore[misc]
        history.gauge("container_memory_working_set_bytes", labels, lambda _: 2e8)
        limit = f'namespace="shop",pod="{pod}",container="app",resource="memory"'
        if not container:
            history.gauge("kube_pod_container_resource_limits", limit, lambda _: 4e8)
    _pod(history, "leak-1", grows=True, memory=0.3)
    _pod(history, "failing-1", errors=0.3)
    _pod(history, "slow-1", seconds=0.4)
    for number in range(3):
        _pod(history, f"healthy-{number}")
    for name, used in (("data", 0.95), ("logs", 0.5)):
        volume = f'namespace="shop",persistentvolumeclaim="{name}"'
        history.gauge("kubelet_volume_stats_used_bytes", volume, lambda _, used=used: used * 1e9)  # type: ignore[misc]
        history.gauge("kubelet_volume_stats_capacity_bytes", volume, lambda _: 1e9)
    history.gauge(
        "pg_stat_activity_count",
        'namespace="shop",pod="pg-0",instance="pg:9187"',
        lambda left: 98 if left < CHANGE else 20,
    )
    history.gauge("pg_settings_max_connections", 'namespace="shop",pod="pg-0",instance="pg:9187"', lambda _: 100)
    for pod, counter, status, share in (
        ("web-1", "http_request_duration_seconds_count", "code", 0.0),
        ("web-2", "http_request_duration_seconds_count", "code", 0.0),
        ("orders-1", "orders_api_requests_total", "status", 0.3),
        # This pod has the counter of the others as well, but does not use it.
        ("web-2", "http_server_requests_seconds_count", "status", 0.3),
        # The first counter of this pod knows of no failures, and the second one does.
        ("web-3", "http_request_duration_seconds_count", "code", 0.0),
        ("web-3", "http_server_requests_seconds_count", "status", 0.3),
    ):
        own = f'namespace="calls",pod="{pod}"'
        idle = 0 if pod == "web-2" and status == "code" else 1
        history.counter(counter, f'{own},{status}="200"', lambda _, rate=20 * idle: rate)  # type: ignore[misc]
        history.counter(counter, f'{own},{status}="500"', lambda _, rate=20 * share: rate)  # type: ignore[misc]
    return history.text()


@pytest.fixture(scope="module", params=["Prometheus", "VictoriaMetrics"])
def server(request: pytest.FixtureRequest, prometheus: RunMonitor, victoria_metrics: RunMonitor) -> Iterator[Monitor]:
    run = prometheus({}, history=_samples()) if request.param == "Prometheus" else victoria_metrics(history=_samples())
    with run as monitor:
        yield monitor


@pytest.fixture
def read(server: Monitor) -> Callable[..., list[str]]:
    def reading(**arguments: str) -> list[str]:
        text = call("workload_signals", {"prometheus_url": server.url}, namespace="shop", **arguments).data
        assert TokenCounter().count_text(text) <= 800
        return text.splitlines()

    return reading


@pytest.mark.parametrize(
    ("pods", "line"),
    [
        (
            "pod/throttled-1",
            r"- now: CPU throttling of {container=\"app\", pod=\"throttled-1\"} 6\d %, up to \d\d %, since .*Z; the ",
        ),
        (
            "leak-1",
            r"- rising: memory of its limit of .* 7\d %; 100 % in 1\d\d minutes at this rate; at its limit, the ",
        ),
        (
            "failing-",
            r"- now: failed requests of {pod=\"failing-1\"} 2\d %, up to 2\d %, since .*Z; these requests are ",
        ),
        ("statefulset/slow", r"- raised: mean seconds of a request of {pod=\"slow-1\"} 0\.0\d+ → 0\.\d+ at .*Z$"),
    ],
)
def test_what_stands_out_of_a_pod(read: Callable[..., list[str]], pods: str, line: str) -> None:
    head, first, *others = read(pods=pods)
    assert head.startswith(f"{pods} in namespace shop from 20")
    assert head.endswith(": 1 series differ from normal")
    assert re.match(line, first)
    assert all(each.startswith(("- elsewhere in the namespace: ", "read: ", "without data: ")) for each in others)


def test_a_whole_pod_stands_for_containers_that_the_kubelet_does_not_know(read: Callable[..., list[str]]) -> None:
    head, throttled, *others = read(pods="whole-1")
    assert head.endswith(": 1 series differ from normal")
    assert throttled.startswith('- now: CPU throttling of {pod="whole-1"} ')
    (told,) = [line for line in others if line.startswith("read: ")]
    assert "memory of its limit" not in told
    assert others[-1] == "without data: memory of its limit"


def test_a_pod_is_not_told_beside_its_containers(read: Callable[..., list[str]]) -> None:
    head, throttled, *others = read(pods="both-1")
    assert head.endswith(": 1 series differ from normal")
    assert throttled.startswith('- now: CPU throttling of {container="app", pod="both-1"} ')
    assert others[-1].startswith("read: CPU throttling, memory of its limit, ")


def test_a_pod_that_is_gone_is_not_throttled_now(read: Callable[..., list[str]]) -> None:
    head, gone, *_ = read(pods="gone-1")
    assert head.endswith(": 1 series differ from normal")
    assert gone.startswith("- before: CPU throttling of ")


def test_healthy_pods_stand_out_in_nothing(read: Callable[..., list[str]]) -> None:
    head, *others = read(pods="healthy-0, healthy-1, healthy-2")
    assert head.endswith(": no series differs from normal")
    assert [each.split(" of ")[0] for each in others[:-1]] == [
        "- elsewhere in the namespace: now: usage",
        "- elsewhere in the namespace: now: connections",
    ]
    assert others[-1].startswith("read: CPU throttling, memory of its limit, CPU of its limit, ")


def test_a_namespace_with_its_volumes_and_its_database(read: Callable[..., list[str]]) -> None:
    lines = read()
    assert lines[0].startswith("all pods in namespace shop from 20")
    assert lines[0].endswith(": 11 series differ from normal")
    assert [line.split(":")[0] for line in lines[1:12]] == ["- now"] * 8 + ["- raised", "- rising", "- before"]
    (volume,) = [line for line in lines if "volume" in line and line.startswith("- ")]
    assert volume.startswith('- now: usage of the volume of {persistentvolumeclaim="data"} 9')


def test_each_workload_is_read_from_its_own_counter_of_requests(server: Monitor) -> None:
    config: dict[str, JsonValue] = {"prometheus_url": server.url}
    text = call("workload_signals", config, namespace="calls", pods="web-1, web-2, web-3, orders-1").data
    failed = [line for line in text.splitlines() if "now: failed requests" in line]
    assert [pod for pod in ("web-1", "web-2", "web-3", "orders-1") if any(f'"{pod}"' in line for line in failed)] == [
        "web-2",
        "web-3",
        "orders-1",
    ]


def test_pods_without_metrics(server: Monitor) -> None:
    with pytest.raises(ToolError, match=r"^prometheus has none of the known metrics of these pods; find_metrics"):
        call("workload_signals", {"prometheus_url": server.url}, namespace="empty")


def test_all_instances_are_searched(server: Monitor) -> None:
    config: dict[str, JsonValue] = {"instances": {"eu": {"url": "http://127.0.0.1:9"}, "prod": {"url": server.url}}}
    assert "pod/slow-1 in namespace shop" in call("workload_signals", config, namespace="shop", pods="pod/slow-1").data
    with pytest.raises(ToolError, match=r"^eu \(http://127.0.0.1:9\): the connection is refused"):
        call("workload_signals", config, namespace="shop", instance="eu")
