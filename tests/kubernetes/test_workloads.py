"""From a name to pods: every kind of workload, overlapping selectors, and names that do not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holmes.kubernetes.client import ClusterClient
from holmes.kubernetes.errors import Forbidden, NotFound
from holmes.kubernetes.workloads import find_pods, label_selector
from holmes.values.environment import Environment
from holmes.values.errors import ClusterUnreachable, ToolError
from tests.support.kubernetes_api import (
    KubernetesApi,
    document,
    listing,
    pod,
    status,
    write_kubeconfig,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from holmes.values.json_types import JsonValue

CORE, APPS, BATCH = (f"{prefix}/namespaces/shop" for prefix in ("/api/v1", "/apis/apps/v1", "/apis/batch/v1"))
LABELS = {"app": "cart"}


@pytest.fixture
async def client(api: KubernetesApi, tmp_path: Path) -> AsyncIterator[ClusterClient]:
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(tmp_path, api.url))})
    async with await ClusterClient.connect(environment) as connected:
        yield connected


def _workload(name: str, uid: str, *, owner: str = "") -> dict[str, Any]:
    owners = [{"kind": "Any", "name": "any", "uid": owner, "controller": True}] if owner else []
    metadata = {"name": name, "uid": uid, "labels": LABELS, "ownerReferences": owners}
    return {"metadata": metadata, "spec": {"selector": {"matchLabels": LABELS}}}


async def _names(client: ClusterClient, kind: str, name: str) -> list[str]:
    return sorted(found.name for found in (await find_pods(client, kind=kind, name=name, namespace="shop")).pods)


async def test_a_deployment_has_the_pods_of_its_replica_sets_only(api: KubernetesApi, client: ClusterClient) -> None:
    """Selectors of two workloads may overlap; then only the owner tells whose pod it is."""
    api.on(f"{APPS}/deployments/cart", document(_workload("cart", "d1")))
    api.on(
        f"{APPS}/replicasets", listing([_workload("cart-a", "r1", owner="d1"), _workload("other", "r2", owner="d2")])
    )
    pods = [pod("mine", owner="r1", labels=LABELS), pod("foreign", owner="r2", labels=LABELS), pod("unlabelled")]
    api.on(f"{CORE}/pods", listing(pods))

    assert await _names(client, "deploy", "cart") == ["mine"]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("StatefulSet", f"{APPS}/statefulsets/cart"),
        ("ds", f"{APPS}/daemonsets/cart"),
        ("replicasets", f"{APPS}/replicasets/cart"),
        ("job", f"{BATCH}/jobs/cart"),
        ("statefulset.apps", f"{APPS}/statefulsets/cart"),
    ],
)
async def test_the_pods_of_other_kinds_are_those_they_own(
    kind: str, path: str, api: KubernetesApi, client: ClusterClient
) -> None:
    api.on(path, document(_workload("cart", "w1")))
    api.on(f"{CORE}/pods", listing([pod("mine", owner="w1", labels=LABELS), pod("foreign", owner="w2", labels=LABELS)]))

    assert await _names(client, kind, "cart") == ["mine"]


async def test_the_pods_of_a_cron_job_are_those_of_its_jobs(api: KubernetesApi, client: ClusterClient) -> None:
    api.on(f"{BATCH}/cronjobs/report", document(_workload("report", "c1")))
    api.on(f"{BATCH}/jobs", listing([_workload("report-1", "j1", owner="c1"), _workload("import", "j2")]))
    pods = [
        pod("report-1-x", owner="j1", labels={"job-name": "report-1"}),
        pod("import-y", owner="j2", labels={"job-name": "import"}),
    ]
    api.on(f"{CORE}/pods", listing(pods))

    assert await _names(client, "CronJob", "report") == ["report-1-x"]


async def test_a_name_without_a_kind_is_a_pod_or_else_a_workload(api: KubernetesApi, client: ClusterClient) -> None:
    api.on(f"{CORE}/pods/cart", document(pod("cart")))
    assert await _names(client, "", "cart") == ["cart"]

    api.on(f"{APPS}/statefulsets/db", document(_workload("db", "s1")))
    api.on(f"{APPS}/deployments/db", status(403, "Forbidden", 'User "eve" cannot get resource'))
    api.on(f"{CORE}/pods", listing([pod("db-0", owner="s1", labels=LABELS)]))
    assert await _names(client, "", "db") == ["db-0"]
    assert await _names(client, "", "sts/db") == ["db-0"]


async def test_a_missing_name_is_answered_with_the_nearest(api: KubernetesApi, client: ClusterClient) -> None:
    api.on(f"{CORE}/pods", listing([pod("cart-7d9f-abc"), pod("payment-1")]))
    api.on(f"{APPS}/deployments", listing([_workload("cart", "d1")]))

    with pytest.raises(
        NotFound, match="pods 'cart-7d9f' does not exist in namespace 'shop'; did you mean cart-7d9f-abc"
    ):
        await find_pods(client, kind="", name="cart-7d9f", namespace="shop")
    with pytest.raises(NotFound, match="available: cart-7d9f-abc, payment-1, deployment/cart"):
        await find_pods(client, kind="", name="zzz", namespace="shop")


async def test_a_missing_namespace_is_answered_with_the_nearest(api: KubernetesApi, client: ClusterClient) -> None:
    api.on("/api/v1/namespaces", listing([{"metadata": {"name": "shop"}}, {"metadata": {"name": "kube-system"}}]))
    api.on("/api/v1/namespaces/shp/pods", listing([]))

    with pytest.raises(NotFound, match="namespace 'shp' does not exist either; did you mean shop"):
        await find_pods(client, kind="Pod", name="cart", namespace="shp")


async def test_a_missing_name_is_still_told_when_listing_is_forbidden(
    api: KubernetesApi, client: ClusterClient
) -> None:
    api.on(f"{CORE}/pods", status(403, "Forbidden", 'User "eve" cannot list resource'))

    with pytest.raises(NotFound, match="pods 'cart' does not exist in namespace 'shop'"):
        await find_pods(client, kind="pod", name="cart", namespace="shop")


async def test_a_refusal_while_looking_for_pods_keeps_its_type(api: KubernetesApi, client: ClusterClient) -> None:
    api.on(f"{APPS}/deployments/cart", document(_workload("cart", "d1")))
    api.on(f"{APPS}/replicasets", status(403, "Forbidden", 'User "eve" cannot list resource'))
    api.on(f"{CORE}/pods", listing([]))

    with pytest.raises(Forbidden, match=r"may not list replicasets.apps in namespace 'shop'"):
        await find_pods(client, kind="Deployment", name="cart", namespace="shop")


async def test_a_kind_without_pods_is_refused_with_the_known_ones(client: ClusterClient) -> None:
    with pytest.raises(ToolError, match="'service' is not a kind with pods; use one of Deployment, "):
        await find_pods(client, kind="service", name="cart", namespace="shop")


@pytest.mark.parametrize("name", ["../../secrets/x", "a?b", "cart,payment", "..", ""])
async def test_a_name_cannot_leave_its_place(name: str, api: KubernetesApi, client: ClusterClient) -> None:
    with pytest.raises((ToolError, ClusterUnreachable)):
        await find_pods(client, kind="Pod", name=name, namespace="shop")

    assert api.requests == []


def test_every_operator_of_a_selector_is_written_as_the_server_reads_it() -> None:
    expressions: list[JsonValue] = [
        {"key": "tier", "operator": "In", "values": ["a", "b"]},
        {"key": "env", "operator": "NotIn", "values": ["test"]},
        {"key": "live", "operator": "Exists"},
        {"key": "old", "operator": "DoesNotExist"},
    ]

    selector = label_selector({"matchLabels": {"app": "cart"}, "matchExpressions": expressions})

    assert selector == "app=cart,tier in (a,b),env notin (test),live,!old"
