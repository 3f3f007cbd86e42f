"""`kubernetes_logs` against a server that plays the Kubernetes API: which containers, which lines, and what is told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from holmes.kubernetes.errors import NotFound
from holmes.toolsets.kubernetes_logs.reader import ReadLimits
from holmes.toolsets.kubernetes_logs.toolset import KUBERNETES_LOGS, KubernetesLogsToolset
from holmes.values.environment import Environment
from holmes.values.errors import ToolError
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation, ToolResult
from tests.support.deadlines import ends_before
from tests.support.kubernetes_api import (
    Answer,
    KubernetesApi,
    Request,
    document,
    ended,
    kubernetes_api,
    listing,
    log,
    log_time,
    pod,
    running,
    status,
    waiting,
    write_kubeconfig,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from holmes.values.json_types import JsonValue

PODS = "/api/v1/namespaces/shop/pods"
LIMITS = ReadLimits(timeout_seconds=2, container_bytes=100_000, newest_lines=1_000)


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    with kubernetes_api() as server:
        yield server


@pytest.fixture
def environment(api: KubernetesApi, tmp_path: Path) -> Environment:
    return Environment.of({"KUBECONFIG": str(write_kubeconfig(tmp_path, api.url))})


@pytest.fixture
def toolset(environment: Environment) -> KubernetesLogsToolset:
    return KubernetesLogsToolset(environment, LIMITS)


async def _call(toolset: KubernetesLogsToolset, **arguments: JsonValue) -> ToolResult:
    return await toolset.call(ToolInvocation(call_id=ToolCallId("c"), tool=KUBERNETES_LOGS, arguments=arguments))


def _by_container(**answers: Answer | Callable[[Request], Answer]) -> Callable[[Request], Answer]:
    """Logs by container name; `name_previous` answers for the instance before."""

    def respond(request: Request) -> Answer:
        suffix = "_previous" if request.query.get("previous") == "true" else ""
        chosen = answers[request.query["container"] + suffix]
        return chosen if isinstance(chosen, Answer) else chosen(request)

    return respond


async def test_all_containers_are_read_in_the_order_in_which_they_start(
    api: KubernetesApi, toolset: KubernetesLogsToolset
) -> None:
    done = {"ready": True, "restartCount": 0, "state": {"terminated": ended(0, "Completed")}}
    api.on(
        f"{PODS}/cart", document(pod("cart", init={"migrate": done}, containers={"app": running(), "proxy": running()}))
    )
    api.on(f"{PODS}/cart/log", _by_container(migrate=log(["migrated"]), app=log(["a"]), proxy=log(["p"])))

    result = await _call(toolset, name="cart")

    assert result.status == "success"
    assert result.data == (
        "Logs of Pod 'cart' in namespace 'shop': 1 of 1 pods, 3 container logs, showing 3 of 3 lines\n"
        "=== pod cart, init container migrate: exited 0 (Completed) at 2025-01-31T09:59:00Z\n"
        "showing 1 of 1 lines\n"
        "2025-01-31T10:00:00.123Z migrated\n"
        "=== pod cart, container app: running since 2025-01-31T10:00:00Z, ready\n"
        "showing 1 of 1 lines\n"
        "2025-01-31T10:00:00.123Z a\n"
        "=== pod cart, container proxy: running since 2025-01-31T10:00:00Z, ready\n"
        "showing 1 of 1 lines\n"
        "2025-01-31T10:00:00.123Z p"
    )


async def test_the_summary_names_the_trouble_of_the_whole_log_and_what_was_before(
    api: KubernetesApi, toolset: KubernetesLogsToolset
) -> None:
    calm = [f"INFO order {number} placed" for number in range(200)]
    bad = [f"ERROR order {number}: dial tcp 10.0.0.1:5432: connect: connection refused" for number in range(60)]
    api.on(f"{PODS}/cart", document(pod("cart")))
    api.on(f"{PODS}/cart/log", log([*calm, "INFO configuration reloaded from /etc/cart.yaml", *bad]))

    result = await _call(toolset, name="cart", tail=2)

    assert "Trouble in the last lines of these logs, found by the built-in rules:" in result.data
    assert (
        "60 times from 2025-01-31T10:03:21Z to 2025-01-31T10:04:20Z, not before: connection refused: ERROR order 59: "
        "dial tcp 10.0.0.1:5432: connect: connection refused; just before the first: INFO configuration reloaded from "
        "/etc/cart.yaml"
    ) in result.data


async def test_a_log_with_noise_of_the_healthy_time_has_no_summary_of_trouble(
    api: KubernetesApi, toolset: KubernetesLogsToolset
) -> None:
    lines = [f"INFO order {number} placed" if number % 4 else "ERROR metrics push failed" for number in range(300)]
    api.on(f"{PODS}/cart", document(pod("cart")))
    api.on(f"{PODS}/cart/log", log(lines))

    result = await _call(toolset, name="cart", tail=2)

    assert "Trouble" not in result.data


async def test_the_newest_lines_are_shown_and_all_are_counted(
    api: KubernetesApi, toolset: KubernetesLogsToolset
) -> None:
    api.on(f"{PODS}/cart", document(pod("cart")))
    api.on(f"{PODS}/cart/log", log([f"line {number}" for number in range(900)]))

    result = await _call(toolset, name="cart", tail=2)

    assert "showing 2 of 900 lines\n2025-01-31T10:14:58.123Z line 898\n" in result.data
    assert result.data.endswith("line 899")
    assert "raise tail" in result.data.splitlines()[0]


async def test_a_log_beyond_the_bounds_keeps_its_newest_lines_and_says_at_least(
    api: KubernetesApi, toolset: KubernetesLogsToolset
) -> None:
    api.on(f"{PODS}/cart", document(pod("cart")))
    api.on(f"{PODS}/cart/log", log([f"line {number}" for number in range(5_000)]))
    many = await _call(toolset, name="cart", tail=1)
    assert "showing 1 of at least 1,000 lines" in many.data
    assert many.data.endswith("line 4999")

    api.on(f"{PODS}/cart/log", log([f"line {number} {'x' * 300}" for number in range(900)]))
    large = await _call(toolset, name="cart", tail=1)
    assert "showing 1 of at least " in large.data
    assert "line 899 xxx" in large.data


async def test_lines_of_unbounded_size_say_what_is_missing(api: KubernetesApi, toolset: KubernetesLogsToolset) -> None:
    def flood() -> Iterator[bytes]:
        while not api.stopping.is_set():
            yield b"x" * 50_000

    api.on(f"{PODS}/cart", document(pod("cart")))
    api.on(f"{PODS}/cart/log", Answer(body=flood))

    result = await _call(toolset, name="cart")

    assert "reading stopped after 0.0954 MB; newer lines are missing" in result.data


async def test_filters_say_how_many_lines_they_searched(api: KubernetesApi, toolset: KubernetesLogsToolset) -> None:
    api.on(f"{PODS}/cart", document(pod("cart")))
    api.on(f"{PODS}/cart/log", log(["all good", "ERROR timeout", "Error health check", "bye"]))

    result = await _call(toolset, name="cart", include="error", exclude="health")

    assert "showing 1 of 1 matching lines (4 lines read)\n2025-01-31T10:00:01.123Z ERROR timeout" in result.data
    assert "searched with include 'error', exclude 'health'" in result.data.splitlines()[0]
    assert result.invocation is not None
    assert result.invocation.endswith("--tail=-1 | grep -iP error | grep -viP health | tail -n 200")


async def test_no_lines_is_no_data_and_says_what_was_searched(
    api: KubernetesApi, toolset: KubernetesLogsToolset
) -> None:
    api.on(f"{PODS}/cart", document(pod("cart")))
    api.on(f"{PODS}/cart/log", log(["all good"]))

    result = await _call(toolset, name="cart", include="panic", since="1h")

    assert result.status == "no_data"
    assert result.data.startswith("No log lines found. Logs of Pod 'cart' in namespace 'shop': ")
    assert "showing 0 of 0 matching lines (1 lines read); searched with since '1h', include 'panic'" in result.data


async def test_a_time_range_is_asked_of_the_server_and_ended_here(
    api: KubernetesApi, toolset: KubernetesLogsToolset
) -> None:
    api.on(f"{PODS}/cart", document(pod("cart")))
    api.on(f"{PODS}/cart/log", log([f"line {number}" for number in range(900)]))

    result = await _call(toolset, name="cart", since="2025-01-31T10:00:00Z", until="2025-01-31T10:00:02Z")

    (asked,) = api.asked(f"{PODS}/cart/log")
    assert asked.query["sinceTime"] == "2025-01-31T10:00:00+00:00"
    assert "tailLines" not in asked.query
    assert "line 1\n" not in result.data.splitlines()[-1]
    assert result.data.endswith("line 1")

    await _call(toolset, name="cart", since="10m")
    assert api.asked(f"{PODS}/cart/log")[-1].query["sinceSeconds"] == "600"


async def test_a_restarted_container_that_said_little_shows_its_last_instance_first(
    api: KubernetesApi, toolset: KubernetesLogsToolset
) -> None:
    api.on(f"{PODS}/cart", document(pod("cart", containers={"app": running(restarts=3, last=ended(137, "OOMKilled"))})))
    api.on(f"{PODS}/cart/log", _by_container(app=log(["starting"]), app_previous=log(["out of memory"])))

    data = (await _call(toolset, name="cart")).data

    assert data.index("out of memory") < data.index("starting")
    assert "=== pod cart, container app (previous instance): exited 137 (OOMKilled) at 2025-01-31T09:59:00Z" in data
    assert "3 restarts, previous instance exited 137" in data


async def test_a_restarted_container_that_said_enough_only_mentions_its_last_instance(
    api: KubernetesApi, toolset: KubernetesLogsToolset
) -> None:
    api.on(f"{PODS}/cart", document(pod("cart", containers={"app": running(restarts=1, last=ended(1))})))
    api.on(f"{PODS}/cart/log", _by_container(app=log(["busy"] * 50)))

    data = (await _call(toolset, name="cart")).data

    assert "previous instance exited 1 (Error) at" in data
    assert len(api.asked(f"{PODS}/cart/log")) == 1


async def test_a_crash_loop_reads_the_crashed_instance_once(api: KubernetesApi, toolset: KubernetesLogsToolset) -> None:
    """While a container waits, the node gives the log of the last instance for the current one."""
    crashed = waiting("CrashLoopBackOff", "back-off 40s", restarts=4, last=ended(3))
    api.on(f"{PODS}/cart", document(pod("cart", containers={"app": crashed})))
    api.on(f"{PODS}/cart/log", _by_container(app=log(["FATAL: no database"])))

    result = await _call(toolset, name="cart")

    assert result.status == "success"
    assert "waiting (CrashLoopBackOff), 4 restarts, previous instance exited 3 (Error)" in result.data
    assert "its log follows\nshowing 1 of 1 lines\n" in result.data
    assert len(api.asked(f"{PODS}/cart/log")) == 1


async def test_previous_reads_only_instances_that_exist(api: KubernetesApi, toolset: KubernetesLogsToolset) -> None:
    containers = {"app": running(restarts=1, last=ended(1)), "proxy": running()}
    api.on(f"{PODS}/cart", document(pod("cart", containers=containers)))
    api.on(f"{PODS}/cart/log", _by_container(app_previous=log(["last words"])))

    result = await _call(toolset, name="cart", previous=True)

    assert "last words" in result.data
    assert "- pod cart, container proxy (previous instance): no previous instance (0 restarts)" in result.data
    assert result.invocation is not None
    assert "--previous" in result.invocation


async def test_a_log_that_the_node_has_removed_is_not_shown_as_a_line(
    api: KubernetesApi, toolset: KubernetesLogsToolset
) -> None:
    api.on(f"{PODS}/web-1", document(pod("web-1", containers={"app": running(restarts=1, last=ended(1))})))
    gone = Answer(body=b"unable to retrieve container logs for containerd://590a0d377e1010e6")
    api.on(f"{PODS}/web-1/log", _by_container(app=log(["started"]), app_previous=gone))
    result = await _call(toolset, name="web-1", kind="Pod")
    assert "the node has already deleted this log" in result.data
    assert "unable to retrieve" not in result.data
    assert "started" in result.data


async def test_pods_that_cannot_be_read_are_listed_with_the_reason(
    api: KubernetesApi, toolset: KubernetesLogsToolset
) -> None:
    labels = {"app": "cart"}
    workload = {"metadata": {"name": "cart", "uid": "s1"}, "spec": {"selector": {"matchLabels": labels}}}
    unscheduled = [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]
    pods = [
        pod("a-fine", owner="s1", labels=labels),
        pod("b-pull", owner="s1", labels=labels, containers={"app": waiting("ImagePullBackOff", "no such image")}),
        pod("c-wait", owner="s1", labels=labels, containers={"app": {}}, status={"conditions": unscheduled}),
        pod("d-gone", owner="s1", labels=labels),
    ]
    api.on("/apis/apps/v1/namespaces/shop/statefulsets/cart", document(workload))
    api.on(PODS, listing(pods))
    api.on(f"{PODS}/a-fine/log", log(["hello"]))
    api.on(f"{PODS}/d-gone/log", status(400, "BadRequest", 'container "app" in pod "d-gone" is terminated'))

    result = await _call(toolset, name="cart", kind="StatefulSet")

    assert result.status == "success"
    assert result.data.startswith("Logs of StatefulSet 'cart' in namespace 'shop': 1 of 4 pods, 1 container log, ")
    assert "- pod b-pull, container app: waiting: ImagePullBackOff: no such image\n" in result.data
    assert "- pod c-wait, container app: not scheduled: 0/1 nodes are available\n" in result.data
    assert '- pod d-gone, container app: container "app" in pod "d-gone" is terminated\n' in result.data


async def test_the_pods_in_trouble_are_read_first_and_the_others_are_named(
    api: KubernetesApi, toolset: KubernetesLogsToolset
) -> None:
    labels = {"app": "cart"}
    workload = {"metadata": {"name": "cart", "uid": "s1"}, "spec": {"selector": {"matchLabels": labels}}}
    names = {"a": running(), "b": running(restarts=5), "c": running(ready=False), "d": running()}
    pods = [pod(name, owner="s1", labels=labels, containers={"app": state}) for name, state in names.items()]
    api.on("/apis/apps/v1/namespaces/shop/daemonsets/cart", document(workload))
    api.on(PODS, listing(pods))
    for name in names:
        api.on(f"{PODS}/{name}/log", log([f"from {name}"]))

    data = (await _call(toolset, name="daemonset/cart", max_pods=2)).data

    assert "Omitted pods (max_pods is 2): a, d" in data
    assert data.index("from c") < data.index("from b")


async def test_a_workload_without_pods_says_so(api: KubernetesApi, toolset: KubernetesLogsToolset) -> None:
    workload = {"metadata": {"name": "cart", "uid": "s1"}, "spec": {"selector": {"matchLabels": {"app": "cart"}}}}
    api.on("/apis/apps/v1/namespaces/shop/statefulsets/cart", document(workload))
    api.on(PODS, listing([]))

    result = await _call(toolset, name="cart", kind="sts")

    assert result.status == "no_data"
    assert result.data == "Logs of StatefulSet 'cart' in namespace 'shop': no pods currently exist"


async def test_one_container_may_be_chosen_and_a_wrong_one_names_the_others(
    api: KubernetesApi, toolset: KubernetesLogsToolset
) -> None:
    api.on(f"{PODS}/cart", document(pod("cart", containers={"app": running(), "proxy": running()})))
    api.on(f"{PODS}/cart/log", _by_container(proxy=log(["p"])))

    assert "container app" not in (await _call(toolset, name="cart", container="proxy")).data
    with pytest.raises(ToolError, match=r"has no container 'prox'; did you mean 'proxy'\? .* app, proxy"):
        await _call(toolset, name="cart", container="prox")


async def test_a_missing_pod_is_an_error_with_the_nearest_names(
    api: KubernetesApi, toolset: KubernetesLogsToolset
) -> None:
    api.on(PODS, listing([pod("cart-7d9f-abc")]))

    with pytest.raises(NotFound, match="did you mean cart-7d9f-abc"):
        await _call(toolset, name="cart")


async def test_logs_that_are_all_forbidden_are_one_error(api: KubernetesApi, toolset: KubernetesLogsToolset) -> None:
    api.on(f"{PODS}/cart", document(pod("cart", containers={"app": running(), "proxy": running()})))
    api.on(f"{PODS}/cart/log", status(403, "Forbidden", 'User "eve" cannot get resource "pods/log"'))

    result = await _call(toolset, name="cart")

    assert result.status == "error"
    assert result.error is not None
    assert result.error.startswith("Forbidden: user 'eve' may not get pods/log 'cart' in namespace 'shop'; check with")


async def test_a_cut_connection_keeps_what_was_read(api: KubernetesApi, toolset: KubernetesLogsToolset) -> None:
    body = f"{log_time(0)} one\n{log_time(1)} two\n".encode()
    api.on(f"{PODS}/cart", document(pod("cart")))
    api.on(f"{PODS}/cart/log", Answer(body=body, cut_after=len(body) - 3))

    result = await _call(toolset, name="cart")

    assert "showing 2 of at least 2 lines; the connection was interrupted; newer lines may be missing\n" in result.data


async def test_a_slow_container_ends_at_the_timeout_with_what_was_read(
    api: KubernetesApi, toolset: KubernetesLogsToolset
) -> None:
    def slow() -> Iterator[bytes]:
        yield f"{log_time(0)} one\n".encode()
        api.stopping.wait(20)

    api.on(f"{PODS}/cart", document(pod("cart", containers={"app": running(), "stuck": running()})))
    api.on(f"{PODS}/cart/log", _by_container(app=Answer(body=slow), stuck=Answer(delay_seconds=20)))

    with ends_before(15):
        result = await _call(toolset, name="cart")

    assert "showing 1 of at least 1 lines; reading stopped after 2 s; some lines are missing\n" in result.data
    assert "- pod cart, container stuck: reading stopped after 2 s; some lines are missing" in result.data


async def test_a_slow_search_for_pods_ends_at_the_timeout(api: KubernetesApi, toolset: KubernetesLogsToolset) -> None:
    api.on(f"{PODS}/cart", Answer(delay_seconds=20))

    with pytest.raises(ToolError, match="finding the pods of 'cart' in namespace 'shop' took longer than 2 s"):
        await _call(toolset, name="cart")


async def test_a_call_that_is_cancelled_ends_at_once(api: KubernetesApi, toolset: KubernetesLogsToolset) -> None:
    api.on(f"{PODS}/cart", document(pod("cart")))
    api.on(f"{PODS}/cart/log", Answer(delay_seconds=20))
    task = asyncio.create_task(_call(toolset, name="cart"))
    await asyncio.sleep(0.4)

    task.cancel()
    with ends_before(15), pytest.raises(asyncio.CancelledError):
        await task
