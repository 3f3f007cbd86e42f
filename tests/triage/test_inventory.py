"""Inventory questions through the real loop: one narrow call, and an answer with exactly its result.

Objects pass through the jq expressions of the tools, so every expression runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jq
import pytest

from holmes.triage.report import NO_LLM
from holmes.values.tools import ToolResult
from tests.triage.recorded_cluster import FORBIDDEN, RecordedCluster, ask, refused
from tests.triage.shop import shop

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.json_types import JsonValue
    from tests.triage.recorded_cluster import Answer


def workload(
    kind: str, name: str, image: str, replicas: int = 2, container: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": "2026-11-20T00:00:00Z"},
        "spec": {
            "replicas": replicas,
            "template": {"spec": {"containers": [{"name": "app", "image": image, **(container or {})}]}},
        },
        "status": {"readyReplicas": replicas, "updatedReplicas": replicas},
    }


def pod(name: str, phase: str = "Running", *, ready: bool = True, restarts: int = 0, **state: Any) -> dict[str, Any]:  # noqa: ANN401
    status = {"name": "app", "ready": ready, "restartCount": restarts, "state": state or {"running": {}}}
    if restarts:
        status["lastState"] = {"terminated": {"reason": "Error", "exitCode": 1}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"nodeName": "worker-1", "containers": [{"name": "app", "image": "registry.shop.example/web:1"}]},
        "status": {"phase": phase, "podIP": "10.0.0.7", "containerStatuses": [status]},
    }


LIMITS = {"resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "10m"}}}
WORKLOADS = [
    workload("Deployment", "checkout", "registry.shop.example/checkout:1.4", container=LIMITS),
    workload("Deployment", "cart", "registry.shop.example/cart:2.0", replicas=3),
    workload("Deployment", "cart-worker", "registry.shop.example/cart:2.1"),
]
PODS = [
    pod("checkout-6c9f7d8b5-x2k4q", ready=False, restarts=7, waiting={"reason": "CrashLoopBackOff"}),
    pod("cart-5d8f6bb7c9-qwz7x"),
    pod("cart-worker-5d8f6bb7c9-abcde"),
    pod("search-7d4b9c6f8d-2lmnp", "Pending", ready=False, waiting={"reason": "ImagePullBackOff"}),
    pod("nightly-29384-zzzzz", "Succeeded", ready=False),
]


def run_jq(arguments: Mapping[str, JsonValue]) -> Answer:
    """The result of the tool for its objects; an empty output is `no_data`, as in the real tool."""
    items = PODS if arguments["kind"] == "pods" else WORKLOADS
    results = jq.compile(str(arguments["expression"])).input_value({"kind": "List", "items": items})
    return "".join(f"{each}\n" for each in results)


def inventory(**changed: Any) -> RecordedCluster:  # noqa: ANN401
    return shop(**{"kubectl_jq": run_jq, **changed})


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("how many pods are there?", "There are `12` Pods in the whole cluster."),
        ("how many pods are in namespace shop?", "There are `12` Pods in namespace `shop`."),
        ("how many running pods are in shop?", "There are `12` Running Pods in namespace `shop`."),
        ("how many nodes are there?", "There are `12` Nodes in the cluster."),
        (
            "which image does checkout run?",
            "`Deployment shop/checkout` runs `registry.shop.example/checkout:1.4` (container `app`).",
        ),
        (
            "what version of deployment cart is running?",
            "`Deployment shop/cart` runs `registry.shop.example/cart:2.0` (container `app`).",
        ),
        ("show all images in namespace shop", "3 container images in namespace `shop`:"),
        (
            "how many replicas does cart have?",
            "`Deployment shop/cart` has `3` of `3` desired replicas ready, `3` up to date.",
        ),
        ("what are the memory limits of checkout?", "| Deployment shop/checkout | app | 10m | none | none | 64Mi |"),
        ("where does cart run?", "| shop/cart-5d8f6bb7c9-qwz7x | Running | worker-1 | 10.0.0.7 |"),
        ("which pods are not ready?", "2 pods are not ready in the whole cluster:"),
        ("which pods are pending?", "1 pod is Pending in the whole cluster:"),
        ("which pods are unhealthy?", "2 pods are not ready or have failed in the whole cluster:"),
        ("any pods crashing?", "| shop/checkout-6c9f7d8b5-x2k4q | Running | 0/1 | 7 | CrashLoopBackOff | Error 1 |"),
        ("which pods restarted in namespace shop?", "1 pod has restarted in namespace `shop`:"),
        ("which pods have completed?", "| shop/nightly-29384-zzzzz | Succeeded |"),
        ("which pods are evicted?", "No pod is evicted in the whole cluster."),
        ("how many pods are not ready?", "2 pods are not ready in the whole cluster:"),
        ("what changed recently in namespace shop?", "| 2026-11-20T00:00:00Z | Deployment shop/cart |"),
        ("what changed at payments?", "2026-11-22T03:00:00Z Deployment shop/payments: image 1.8 -> 1.9"),
        ("show rollout history of deployment cart", "REVISION  CHANGE-CAUSE"),
        ("describe deployment cart in namespace shop", "Name:   cart"),
        ("show events in namespace shop", "Back-off restarting failed container app"),
        ("which pods use the most memory?", "| shop | web-1 | 90m | 1Gi |\n| shop | cart-1 | 5m | 60Mi |"),
        ("list namespaces", "3 Namespaces in the cluster:"),
    ],
)
async def test_the_answer_is_what_the_narrow_call_gave(question: str, expected: str) -> None:
    told = await ask(inventory(), question)
    assert expected in told.text
    assert told.text.endswith(NO_LLM)
    assert not told.unverified
    assert told.steps <= 4
    assert "kubernetes_diagnose" not in " ".join(told.calls)


async def test_a_workload_is_not_mixed_up_with_one_whose_name_only_begins_alike() -> None:
    told = await ask(inventory(), "which image does cart run?")
    assert "cart-worker" not in told.text
    told = await ask(inventory(), "where does cart run?")
    assert "cart-worker" not in told.text


async def test_counts_by_node_are_a_table() -> None:
    counted = "COUNT  .spec.nodeName\n9      worker-1\n3      worker-2\ntotal 12\n"
    told = await ask(inventory(kubectl_count=counted), "how many pods per node?")
    assert "There are `12` Pods" in told.text
    assert "| worker-1 | 9 |\n| worker-2 | 3 |" in told.text
    assert told.calls == ("kubectl_count kind=pods by=.spec.nodeName namespace=*",)


async def test_who_may_not_list_the_cluster_gets_the_default_namespace_and_is_told() -> None:
    def count(arguments: Mapping[str, JsonValue]) -> Answer:
        return FORBIDDEN if arguments.get("namespace") == "*" else "4\n"

    told = await ask(inventory(kubectl_count=count), "how many pods are there?")
    assert "There are `4` Pods in the default namespace (reading the whole cluster is forbidden)." in told.text


async def test_the_default_namespace_of_the_user_is_the_scope() -> None:
    told = await ask(inventory(), "how many pods are there?", system="# This cluster\nDefault namespace: shop.\n")
    assert told.calls == ("kubectl_count kind=pods namespace=shop",)


@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("how many pods are there?", "kubectl_count"),
        ("which image does checkout run?", "kubectl_jq"),
        ("which pods are pending?", "kubectl_jq"),
        ("show events in namespace shop", "kubectl_events"),
        ("logs of cart", "kubernetes_logs"),
        ("which pods use the most memory?", "kubectl_top"),
        ("list deployments", "kubectl_get"),
        ("show rollout history of deployment cart", "kubectl_rollout_history"),
        ("describe deployment cart", "kubectl_describe"),
    ],
)
async def test_a_refused_call_is_reported_with_its_reason_and_nothing_is_made_up(question: str, tool: str) -> None:
    told = await ask(inventory(**{tool: FORBIDDEN}), question)
    assert 'pods is forbidden: User "viewer" cannot list resource "pods"' in told.text
    assert "There are" not in told.text
    without = await ask(RecordedCluster(answers={}), question)
    assert "is not available" in without.text


async def test_the_words_that_a_tool_adds_to_an_error_are_left_out() -> None:
    error = refused("exit code 1: error: Metrics API not available\nstderr: error: Metrics API not available")
    told = await ask(inventory(kubectl_top=error), "which pods use the most cpu?")
    assert "**The usage could not be looked up in the whole cluster**: Metrics API not available." in told.text


async def test_logs_are_filtered_by_the_tool_and_shown_as_they_are() -> None:
    told = await ask(inventory(), "show me the logs of cart containing 'price list' of the last hour")
    (call,) = (each for each in told.calls if each.startswith("kubernetes_logs"))
    assert call == "kubernetes_logs name=cart namespace=shop kind=Deployment since=1h include=price\\ list tail=200"
    assert "2026-11-22T04:58:40.000Z ERROR cannot allocate 32 MiB for the price list\n" in told.text
    assert not told.unverified


async def test_a_log_without_matching_lines_says_what_was_looked_for() -> None:
    nothing = ToolResult(
        status="no_data", data="No log lines found. Logs of Deployment 'cart'; searched with include 'x'"
    )
    told = await ask(inventory(kubernetes_logs=nothing), "errors in the logs of cart")
    assert told.text.startswith("No log lines matching `error|exception|fatal|panic|fail|critical|warn` found for")


async def test_an_unknown_name_is_answered_with_what_is_called_nearly_so() -> None:
    for question in ("logs of deployment paymints", "which image does deployment paymints run?"):
        told = await ask(inventory(), question)
        assert "**Deployment `paymints` not found in the whole cluster.**" in told.text
        assert "`Deployment payments`" in told.text


async def test_without_a_name_it_asks_for_one() -> None:
    told = await ask(inventory(), "show the logs")
    assert told.text.startswith("Name the pod or workload, for example")


async def test_an_unknown_question_gets_the_findings_and_what_can_be_asked() -> None:
    told = await ask(inventory(), "write me a poem")
    assert "The built-in rules explain why an object fails" in told.text
    assert "6 incidents" in told.text


async def test_names_from_a_question_cannot_become_part_of_a_program() -> None:
    for text in (
        'which image does "x\\")) | input" run?',
        "which image does `$__prog_args` run",
        "image of a'b\"c run?",
    ):
        await ask(inventory(), f"what {text}")


async def test_a_table_of_many_rows_is_cut_and_says_so() -> None:
    many = "".join(f"Deployment shop/web-{number}\tapp\tregistry.shop.example/web:{number}\n" for number in range(90))
    told = await ask(inventory(kubectl_jq=many), "show all images in namespace shop")
    assert "90 container images in namespace `shop`:" in told.text
    assert "... and 50 more rows." in told.text


async def test_containers_without_a_matching_line_are_left_out() -> None:
    log = (
        "Logs of Deployment 'cart': 2 pods\n=== pod cart-a, container app: running\nshowing 0 of 0 matching lines\n"
        "=== pod cart-b, container app: running\nshowing 1 of 1 matching lines\n2026-11-22T04:58:41Z ERROR no price\n"
    )
    told = await ask(inventory(kubernetes_logs=log), "errors in the logs of cart")
    assert "cart-a" not in told.text
    assert "=== pod cart-b, container app: running\nshowing 1 of 1 matching lines\n2026-11-22T04:58:41Z" in told.text
    assert not told.unverified


@pytest.mark.parametrize("order", ["delete the cart pod", "please restart deployment/cart", "can you scale cart to 3"])
async def test_an_order_to_change_the_cluster_is_refused_in_its_first_line(order: str) -> None:
    told = await ask(inventory(), order)
    assert told.text.startswith("Holmes is read-only. No changes were made.\n\n")
    told = await ask(inventory(), "why did cart restart?")
    assert "No changes were made" not in told.text


async def test_a_refusal_of_many_kinds_is_one_short_sentence() -> None:
    each = 'Error from server (Forbidden): {0}.apps is forbidden: User "nobody" cannot list resource "{0}" in group x'
    error = refused("exit code 1: " + " ".join(each.format(kind) for kind in ("deployments", "statefulsets")))
    told = await ask(inventory(kubectl_jq=error), "which image does checkout run?")
    assert "in the whole cluster**: Forbidden: user 'nobody' cannot list deployments, statefulsets." in told.text
