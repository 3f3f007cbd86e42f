"""Reading a whole cluster: one list a kind, in pages; whatever is missing is a gap with a reason, never silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holmes.kubernetes.client import ClusterClient
from holmes.kubernetes.cluster_state import ClusterState
from holmes.kubernetes.kinds import EVENT, KINDS, api_path
from holmes.kubernetes.sender import ClientLimits
from holmes.kubernetes.state_reader import ReadCost, ReadLimits, StateReader
from holmes.values.environment import Environment
from holmes.values.errors import ClusterUnreachable
from tests.support.deadlines import ends_before
from tests.support.kubernetes_api import (
    Answer,
    Json,
    KubernetesApi,
    Request,
    document,
    empty_cluster,
    listing,
    pod,
    status,
    write_kubeconfig,
)

PODS = "/api/v1/pods"
EVENTS = "/api/v1/events"
SECRETS = "/api/v1/secrets"


async def read(
    api: KubernetesApi, folder: Path, *namespaces: str, limits: ReadLimits | None = None
) -> tuple[ClusterState, ReadCost]:
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(folder, api.url))})
    client_limits = ClientLimits(request_timeout_seconds=2, response_bytes=1_000_000)
    async with await ClusterClient.connect(environment, limits=client_limits) as client:
        return await StateReader(client, namespaces=namespaces, limits=limits).read()


def named(kind: str, count: int) -> list[Json]:
    return [
        {"metadata": {"name": f"{kind}-{number}", "namespace": "shop", "uid": f"{kind}-{number}"}}
        for number in range(count)
    ]


async def test_pages_are_read_to_the_end_and_the_number_of_lists_stays_the_same(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    empty_cluster(quiet_cluster)
    small, cost_of_small = await read(quiet_cluster, tmp_path)
    quiet_cluster.on(PODS, listing(named("pod", 23)))
    large, cost_of_large = await read(quiet_cluster, tmp_path, limits=ReadLimits(page_size=10))

    assert len(small.of("Pod")) == 0
    assert len(large.of("Pod")) == 23
    assert cost_of_small.list_calls == cost_of_large.list_calls == len(KINDS) + 1
    assert cost_of_large.requests == cost_of_small.requests + 2
    assert large.reading.gaps == ()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (status(403, "Forbidden", 'pods is forbidden: User "eve" cannot list resource "pods"'), "Forbidden"),
        (status(404, "NotFound", "the server could not find the requested resource"), "does not have this kind"),
        (status(500, "InternalError", "etcd leader changed"), "etcd leader changed"),
        (status(429, "TooManyRequests", "slow down", {"Retry-After": "1"}), "slow down"),
        (Answer(body=b"<html>log in</html>"), "not JSON"),
        (Answer(body=b'{"items": [' + b" " * 1000, cut_after=500), "the connection ended"),
        (Answer(body=b"{}", delay_seconds=30), "did not complete within 2 s"),
    ],
)
async def test_a_list_that_fails_is_a_gap_with_its_reason_and_the_rest_is_read(
    quiet_cluster: KubernetesApi, tmp_path: Path, answer: Answer, why: str
) -> None:
    empty_cluster(quiet_cluster)
    quiet_cluster.on("/api/v1/services", listing(named("service", 2)))
    quiet_cluster.on(PODS, answer)

    state, _ = await read(quiet_cluster, tmp_path, limits=ReadLimits(seconds=4.2))

    assert [(gap.kind, gap.namespace) for gap in state.reading.gaps] == [("Pod", "")]
    assert why in state.reading.gaps[0].why
    assert not state.covers("Pod", "shop")
    assert not state.is_missing("Pod", "shop", "checkout")
    assert len(state.of("Service")) == 2
    assert state.is_missing("Service", "shop", "checkout")


async def test_the_pages_before_a_failure_stay_and_the_kind_is_not_covered(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    empty_cluster(quiet_cluster)
    pages = listing(named("pod", 25))

    def until_the_second_page(request: Request) -> Answer:
        return status(500, "InternalError", "gone away") if request.query.get("continue") == "20" else pages(request)

    quiet_cluster.on(PODS, until_the_second_page)

    state, _ = await read(quiet_cluster, tmp_path, limits=ReadLimits(page_size=10))

    assert len(state.of("Pod")) == 20
    assert not state.covers("Pod")


async def test_a_list_that_goes_stale_is_read_again_and_nothing_is_there_twice(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    empty_cluster(quiet_cluster)
    pages = listing(named("pod", 25))
    refused: list[str] = []

    def stale_once(request: Request) -> Answer:
        if request.query.get("continue") == "10" and not refused:
            refused.append("10")
            return status(410, "Expired", "the provided continue parameter is too old")
        return pages(request)

    quiet_cluster.on(PODS, stale_once)

    state, _ = await read(quiet_cluster, tmp_path, limits=ReadLimits(page_size=10))

    assert len(state.of("Pod")) == 25
    assert state.reading.gaps == ()


async def test_a_slow_cluster_ends_the_reading_in_time_with_what_was_read(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    empty_cluster(quiet_cluster)
    quiet_cluster.on(PODS, Answer(body=b"{}", delay_seconds=30))
    quiet_cluster.on("/api/v1/services", listing(named("service", 2)))

    with ends_before(20):
        state, _ = await read(quiet_cluster, tmp_path, limits=ReadLimits(seconds=1))

    assert any(gap.kind == "Pod" and "took longer than 1 s" in gap.why for gap in state.reading.gaps)
    assert len(state.of("Service")) == 2


async def test_more_objects_than_the_bound_are_a_gap(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    empty_cluster(quiet_cluster)
    quiet_cluster.on(PODS, listing(named("pod", 45)))

    state, _ = await read(quiet_cluster, tmp_path, limits=ReadLimits(page_size=10, objects=30))

    assert len(state.of("Pod")) == 30
    assert "more than 30" in state.reading.gaps[0].why


async def test_a_cluster_that_answers_nothing_is_unreachable(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    for kind in (EVENT, *KINDS):
        quiet_cluster.on(
            api_path(kind.group_version, kind.resource),
            status(503, "ServiceUnavailable", "starting up", {"Retry-After": "0"}),
        )

    with pytest.raises(ClusterUnreachable, match="starting up"):
        await read(quiet_cluster, tmp_path)


async def test_the_content_of_secrets_is_never_asked_for(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    empty_cluster(quiet_cluster)
    asked: list[str] = []

    def names(request: Request) -> Answer:
        asked.append(request.headers["accept"])
        return document({"items": [{"metadata": {"name": "token", "namespace": "shop", "uid": "1"}}]})

    quiet_cluster.on(SECRETS, names)

    state, _ = await read(quiet_cluster, tmp_path)

    assert asked == ["application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"]
    assert [each.name for each in state.of("Secret")] == ["token"]


async def test_namespaces_are_read_one_by_one_together_with_the_systems_own(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    for namespace in ("shop", "kube-system"):
        empty_cluster(quiet_cluster, namespace)
    quiet_cluster.on("/api/v1/namespaces/shop/pods", listing([pod("cart")]))

    state, _ = await read(quiet_cluster, tmp_path, "shop")

    assert quiet_cluster.asked(PODS) == []
    assert len(quiet_cluster.asked("/api/v1/nodes")) == 1
    assert state.covers("Service", "shop")
    assert not state.covers("Service", "bank")
    assert not state.is_missing("Service", "bank", "gateway")


async def test_events_of_nodes_are_read_whatever_the_namespace(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    for namespace in ("shop", "kube-system"):
        empty_cluster(quiet_cluster, namespace)
    node = {"metadata": {"name": "node-1", "uid": "node-1"}}
    about = {"kind": "Node", "name": "node-1", "uid": "node-1"}
    quiet_cluster.on("/api/v1/nodes", listing([node]))
    quiet_cluster.on("/api/v1/namespaces/default/events", listing([{"reason": "SystemOOM", "involvedObject": about}]))

    state, _ = await read(quiet_cluster, tmp_path, "shop")

    assert [event.reason for event in state.events_of(state.of("Node")[0])] == ["SystemOOM"]
    assert state.reading.gaps == ()


async def test_custom_resources_are_found_by_their_definitions(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    empty_cluster(quiet_cluster)
    definition = {
        "metadata": {"name": "certificates.cert.example", "uid": "crd"},
        "spec": {
            "group": "cert.example",
            "scope": "Namespaced",
            "names": {"kind": "Certificate", "plural": "certificates"},
            "versions": [
                {"name": "v1alpha1", "served": False, "storage": False},
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {}}},
            ],
        },
    }
    quiet_cluster.on("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", listing([definition]))
    quiet_cluster.on("/apis/cert.example/v1/certificates", listing(named("certificate", 1)))

    state, _ = await read(quiet_cluster, tmp_path)

    assert [str(each.ref) for each in state.custom_resources] == ["Certificate shop/certificate-0"]
    assert state.of("Certificate.cert.example") == state.custom_resources


async def test_the_clusters_clock_counts_and_not_ours(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    empty_cluster(quiet_cluster)

    def long_ago(request: Request) -> Answer:
        answer = listing([])(request)
        return Answer(body=answer.body, headers={"Date": "Fri, 31 Jan 2025 10:00:00 GMT"})

    for kind in (EVENT, *KINDS):
        quiet_cluster.on(api_path(kind.group_version, kind.resource), long_ago)

    state, _ = await read(quiet_cluster, tmp_path)

    assert state.now == 1738317600.0


async def test_events_are_found_by_the_uid_of_their_object(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    empty_cluster(quiet_cluster)
    quiet_cluster.on(PODS, listing(named("pod", 1)))
    about = {"kind": "Pod", "namespace": "shop", "name": "pod-0"}
    quiet_cluster.on(
        EVENTS,
        listing(
            [
                {
                    "reason": "Older",
                    "involvedObject": {**about, "uid": "pod-0"},
                    "lastTimestamp": "2025-01-31T10:00:00Z",
                },
                {"reason": "OfANamesake", "involvedObject": {**about, "uid": "another"}},
                {
                    "reason": "Newer",
                    "involvedObject": {**about, "uid": "pod-0"},
                    "lastTimestamp": "2025-01-31T09:00:00Z",
                    "series": {"count": 7, "lastObservedTime": "2025-01-31T11:00:00.000000Z"},
                },
            ]
        ),
    )

    state, _ = await read(quiet_cluster, tmp_path)

    assert [(event.reason, event.count) for event in state.events_of(state.of("Pod")[0])] == [
        ("Older", 1),
        ("Newer", 7),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        document({"kind": "Status", "status": "Success"}),
        document({"items": {"web": {}}}),
        document({"items": [*named("pod", 1), None, "web", []]}),
    ],
    ids=["status", "map", "mixed"],
)
async def test_an_answer_that_is_no_list_of_objects_is_a_gap_and_no_empty_list(
    quiet_cluster: KubernetesApi, tmp_path: Path, answer: Answer
) -> None:
    empty_cluster(quiet_cluster)
    quiet_cluster.on(PODS, answer)
    quiet_cluster.on("/api/v1/services", document({"items": None}))

    state, _ = await read(quiet_cluster, tmp_path)

    assert [gap.kind for gap in state.reading.gaps] == ["Pod"]
    assert "did not return a list of objects" in state.reading.gaps[0].why
    assert not state.is_missing("Pod", "shop", "web")


async def test_a_page_that_leads_to_itself_is_read_once(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    empty_cluster(quiet_cluster)
    quiet_cluster.on(PODS, document({"metadata": {"continue": "again"}, "items": []}))

    state, _ = await read(quiet_cluster, tmp_path)

    assert len(quiet_cluster.asked(PODS)) == 2
    assert "the same page twice" in state.reading.gaps[0].why


@pytest.mark.parametrize(
    ("group", "plural"), [("", "secrets"), ("shop.example", "../../../version"), ("a\x1b[31m", "promotions?x#")]
)
async def test_no_path_is_made_of_a_definition_that_no_server_would_accept(
    quiet_cluster: KubernetesApi, tmp_path: Path, group: str, plural: str
) -> None:
    empty_cluster(quiet_cluster)
    versions = [{"name": "v1", "served": True, "storage": True}]
    spec = {"group": group, "names": {"kind": "Promotion", "plural": plural}, "versions": versions}
    definitions = [{"metadata": {"name": "promotions.shop.example", "uid": "crd"}, "spec": spec}]
    quiet_cluster.on("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", listing(definitions))

    state, cost = await read(quiet_cluster, tmp_path)

    assert cost.list_calls == len(KINDS) + 1
    assert state.custom_resources == ()


async def test_a_clock_that_is_behind_the_objects_does_not_make_them_young(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    empty_cluster(quiet_cluster)
    created = {"metadata": {"name": "web", "uid": "1", "creationTimestamp": "2025-01-31T10:00:00Z"}}
    for path in quiet_cluster.paths():
        body = json.dumps({"items": [created] if path == PODS else []}).encode()
        quiet_cluster.on(path, Answer(body=body, headers={"Date": "Thu, 01 Jan 1970 00:00:00 GMT"}))

    state, _ = await read(quiet_cluster, tmp_path)

    assert state.now == 1738317600.0
