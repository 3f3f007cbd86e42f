"""All custom kinds are read, the most useful ones first; what a limit leaves out is a gap with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from holmes.kubernetes.client import ClusterClient
from holmes.kubernetes.cluster_object import ClusterObject
from holmes.kubernetes.cluster_state import ClusterState
from holmes.kubernetes.custom_kinds import custom_kinds
from holmes.kubernetes.one_list import slim
from holmes.kubernetes.sender import ClientLimits
from holmes.kubernetes.state_reader import ReadLimits, StateReader
from holmes.values.environment import Environment
from tests.support.deadlines import ends_before
from tests.support.kubernetes_api import (
    Answer,
    Json,
    KubernetesApi,
    Request,
    Responder,
    document,
    empty_cluster,
    listing,
    status,
    write_kubeconfig,
)

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMES_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def definition(kind: str, group: str = "shop.example", *, has_status: bool = True, subresource: bool = True) -> Json:
    properties: Json = {"spec": {"type": "object"}, **({"status": {"type": "object"}} if has_status else {})}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        **({"subresources": {"status": {}}} if has_status and subresource else {}),
    }
    names = {"kind": kind, "plural": f"{kind.lower()}s"}
    return {
        "metadata": {"name": f"{kind.lower()}s.{group}", "uid": f"crd-{kind}-{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def path(kind: str, group: str = "shop.example") -> str:
    return f"/apis/{group}/v1/{kind.lower()}s"


def objects(kind: str, count: int) -> list[Json]:
    return [
        {"metadata": {"name": f"{kind.lower()}-{number}", "namespace": "shop", "uid": f"{kind}-{number}"}}
        for number in range(count)
    ]


async def read(api: KubernetesApi, folder: Path, limits: ReadLimits, *, at_once: int = 1) -> ClusterState:
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(folder, api.url))})
    client_limits = ClientLimits(request_timeout_seconds=10, concurrent_requests=at_once)
    async with await ClusterClient.connect(environment, limits=client_limits) as client:
        state, _ = await StateReader(client, limits=limits).read()
        return state


async def test_kinds_are_read_in_the_order_of_their_worth(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    kinds = [
        definition("Report", "aaa.example", has_status=False),
        definition("Setting", "bbb.example", subresource=False),
        definition("Store"),
        definition("Zone", "zzz.example"),
        definition("Sibling", "zzz.example"),
        definition("Cluster", "postgres.example"),
    ]
    owner = {"apiVersion": "postgres.example/v1", "kind": "Cluster", "name": "orders", "uid": "1", "controller": True}
    pod: Json = {"metadata": {"name": "orders-1", "namespace": "shop", "uid": "2", "ownerReferences": [owner]}}
    empty_cluster(quiet_cluster)
    quiet_cluster.on(DEFINITIONS, listing(kinds))
    quiet_cluster.on("/api/v1/pods", listing([pod]))
    for each in kinds:
        group, kind = each["spec"]["group"], each["spec"]["names"]["kind"]
        quiet_cluster.on(path(kind, group), listing([]))

    await read(quiet_cluster, tmp_path, ReadLimits(first_kinds=frozenset({"Zone.zzz.example"})))

    asked = [each for each in quiet_cluster.requests if ".example/" in each.path]
    assert [each.path.rpartition("/")[2] for each in asked] == [
        "clusters", "zones", "siblings", "stores", "settings", "reports",
    ]  # fmt: skip
    assert [each.headers["accept"] == NAMES_ONLY for each in asked] == [False] * 5 + [True]


async def test_no_kind_is_left_out_however_many_there_are(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    empty_cluster(quiet_cluster)
    kinds = [f"Kind{number:03}" for number in range(271)]
    quiet_cluster.on(DEFINITIONS, listing([definition(kind) for kind in kinds]))
    for kind in kinds:
        quiet_cluster.on(path(kind), listing(objects(kind, 1 if kind == "Kind270" else 0)))

    state = await read(quiet_cluster, tmp_path, ReadLimits(), at_once=8)

    assert [each.name for each in state.custom_resources] == ["kind270-0"]
    assert state.reading.gaps == ()


async def test_large_kinds_are_read_in_pages_up_to_the_limit_of_one_kind(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    empty_cluster(quiet_cluster)
    quiet_cluster.on(DEFINITIONS, listing([definition("Order"), definition("Store")]))
    quiet_cluster.on(path("Order"), listing(objects("Order", 45)))
    quiet_cluster.on(path("Store"), listing(objects("Store", 25)))

    state = await read(quiet_cluster, tmp_path, ReadLimits(page_size=10, custom_kind_objects=30))

    assert len(state.of("Order.shop.example")) == 30
    assert len(state.of("Store.shop.example")) == 25
    assert [(gap.kind, gap.category) for gap in state.reading.gaps] == [("Order.shop.example", "limit")]
    assert "more than 30 objects" in state.reading.gaps[0].why
    assert not state.is_missing("Order.shop.example", "shop", "order-44")


async def test_kinds_after_the_limit_of_all_objects_are_gaps_with_the_reason(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    empty_cluster(quiet_cluster)
    kinds = [f"Kind{number:02}" for number in range(20)]
    quiet_cluster.on(DEFINITIONS, listing([definition(kind) for kind in kinds]))
    for kind in kinds:
        quiet_cluster.on(path(kind), listing(objects(kind, 10)))

    state = await read(quiet_cluster, tmp_path, ReadLimits(custom_objects=50))

    # The lists that have begun when the limit is reached are still read.
    left_out = [gap.kind for gap in state.reading.gaps]
    assert 50 <= len(state.custom_resources) <= 130
    assert left_out == [f"{kind}.shop.example" for kind in kinds[len(kinds) - len(left_out) :]]
    assert len(left_out) == 20 - len(state.custom_resources) // 10
    assert {gap.category for gap in state.reading.gaps} == {"limit"}
    assert "more than 50 custom objects" in state.reading.gaps[0].why


async def test_the_last_kinds_suffer_from_a_slow_api_server(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    empty_cluster(quiet_cluster)
    kinds = [f"Kind{number:02}" for number in range(40)]
    quiet_cluster.on(DEFINITIONS, listing([definition(kind) for kind in kinds]))
    for kind in kinds:
        quiet_cluster.on(path(kind), _slowly(listing(objects(kind, 1))))

    with ends_before(20):
        state = await read(quiet_cluster, tmp_path, ReadLimits(seconds=3), at_once=8)

    late = sorted(gap.kind for gap in state.reading.gaps)
    assert late
    assert late == [f"{kind}.shop.example" for kind in kinds[-len(late) :]]
    assert {gap.category for gap in state.reading.gaps} == {"late"}
    assert state.custom_resources


async def test_a_kind_that_may_not_be_read_hides_no_other(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    empty_cluster(quiet_cluster)
    quiet_cluster.on(DEFINITIONS, listing([definition("Order"), definition("Store")]))
    quiet_cluster.on(path("Order"), status(403, "Forbidden", "orders.shop.example is forbidden"))
    quiet_cluster.on(path("Store"), listing(objects("Store", 1)))

    state = await read(quiet_cluster, tmp_path, ReadLimits())

    assert [(gap.kind, gap.category) for gap in state.reading.gaps] == [("Order.shop.example", "forbidden")]
    assert len(state.custom_resources) == 1


async def test_who_may_not_list_the_definitions_reads_the_kinds_of_the_discovery(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    def group(name: str, *kinds: str) -> Json:
        resources = [
            {
                "resource": f"{kind.lower()}s",
                "responseKind": {"group": name, "version": "v1", "kind": kind},
                "scope": "Namespaced",
                "verbs": ["get"] if kind == "Review" else ["get", "list", "watch"],
                "subresources": [{"subresource": "status"}],
            }
            for kind in kinds
        ]
        versions = [{"version": "v1", "resources": resources}, {"version": "v1alpha1", "resources": resources}]
        return {"metadata": {"name": name}, "versions": versions}

    found = [
        group("apps", "Deployment"),
        group("metrics.k8s.io", "PodMetrics"),
        group("shop.example", "Store", "Review"),
    ]
    empty_cluster(quiet_cluster)
    quiet_cluster.on(DEFINITIONS, status(403, "Forbidden", "customresourcedefinitions is forbidden"))
    quiet_cluster.on("/apis", document({"kind": "APIGroupDiscoveryList", "items": found}))
    quiet_cluster.on(path("Store"), listing(objects("Store", 1)))

    state = await read(quiet_cluster, tmp_path, ReadLimits())

    assert [each.name for each in state.of("Store.shop.example")] == ["store-0"]
    assert [gap.kind for gap in state.reading.gaps] == ["CustomResourceDefinition"]
    assert not state.is_missing("Store.shop.example", "shop", "store-1")
    assert (
        quiet_cluster.asked("/apis")[0]
        .headers["accept"]
        .endswith("as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2")
    )


@pytest.mark.parametrize(
    ("schema", "names_only"),
    [
        ({"properties": {"spec": {}}}, True),
        ({"properties": {"spec": {}, "status": {}}}, False),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, False),
        (None, False),
    ],
)
def test_the_content_of_objects_that_may_have_a_status_is_read(schema: Json | None, *, names_only: bool) -> None:
    raw = definition("Store", has_status=False)
    raw["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema} if schema else {}
    kind = "CustomResourceDefinition"

    found = custom_kinds([ClusterObject.of(slim(raw, kind), kind=kind)])

    assert [each.metadata_only for each in found] == [names_only]


def _slowly(respond: Responder) -> Responder:
    def slow(request: Request) -> Answer:
        answer = respond(request)
        return Answer(body=answer.body, delay_seconds=1)

    return slow
