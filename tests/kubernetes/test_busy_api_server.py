"""An API server that rejects, stalls or cuts off requests gives a partial picture, and never none while it answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holmes.kubernetes.client import ClusterClient
from holmes.kubernetes.cluster_state import ClusterState
from holmes.kubernetes.kinds import KINDS
from holmes.kubernetes.sender import ClientLimits
from holmes.kubernetes.state_reader import LEASES, ReadLimits, Rights, StateReader
from holmes.values.environment import Environment
from holmes.values.errors import ClusterUnreachable
from tests.support.deadlines import ends_before
from tests.support.kubernetes_api import (
    Answer,
    Json,
    KubernetesApi,
    Request,
    Responder,
    empty_cluster,
    listing,
    pod,
    status,
    write_kubeconfig,
)

PODS = "/api/v1/pods"
BUSY = status(429, "TooManyRequests", "too many requests, please try again later", {"Retry-After": "1"})


async def read(
    api: KubernetesApi, folder: Path, limits: ReadLimits, rights: Rights | None = None, request_seconds: float = 10
) -> ClusterState:
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(folder, api.url))})
    client_limits = ClientLimits(request_timeout_seconds=request_seconds)
    async with await ClusterClient.connect(environment, limits=client_limits) as client:
        state, _ = await StateReader(client, limits=limits, rights=rights).read()
        return state


def pods(count: int) -> list[Json]:
    return [pod(f"pod-{number}") for number in range(count)]


def wrap_all(api: KubernetesApi, wrap: Callable[[Responder], Responder]) -> None:
    for path in api.paths():
        api.on(path, wrap(listing(pods(30)) if path == PODS else listing([])))


async def test_lists_are_read_after_the_server_rejected_all_of_them_for_seconds(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    """The client itself repeats a request four times; the lists need more patience than that."""
    empty_cluster(quiet_cluster)
    since = time.monotonic()
    wrap_all(quiet_cluster, lambda answer: lambda request: BUSY if time.monotonic() - since < 6 else answer(request))

    state = await read(quiet_cluster, tmp_path, ReadLimits(seconds=60))

    assert len(state.of("Pod")) == 30
    assert state.reading.gaps == ()


async def test_a_server_with_few_seats_is_asked_for_less_at_a_time_until_everything_is_read(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    """As priority and fairness do it: large pages and simultaneous requests are rejected."""
    empty_cluster(quiet_cluster)
    seats = threading.Semaphore(2)
    rejected: list[str] = []

    def limited(answer: Responder) -> Responder:
        def respond(request: Request) -> Answer:
            if int(request.query.get("limit", "500")) > 100 or not seats.acquire(blocking=False):
                rejected.append(request.path)
                return status(429, "TooManyRequests", "slow down", {"Retry-After": "0"})
            try:
                return answer(request)
            finally:
                seats.release()

        return respond

    wrap_all(quiet_cluster, limited)

    state = await read(quiet_cluster, tmp_path, ReadLimits(seconds=60))

    assert rejected
    assert len(state.of("Pod")) == 30
    assert state.reading.gaps == ()


async def test_what_is_rejected_until_the_time_is_over_is_told_and_the_rest_is_kept(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    empty_cluster(quiet_cluster)
    quiet_cluster.on(PODS, listing(pods(3)))
    quiet_cluster.on("/api/v1/configmaps", BUSY)

    with ends_before(20):
        state = await read(quiet_cluster, tmp_path, ReadLimits(seconds=4.2))

    assert [(gap.kind, gap.category) for gap in state.reading.gaps] == [("ConfigMap", "throttled")]
    assert "overloaded" in state.reading.gaps[0].why
    assert not state.is_missing("ConfigMap", "shop", "settings")
    assert len(state.of("Pod")) == 3


async def test_a_list_that_breaks_between_pages_continues_where_it_broke(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    empty_cluster(quiet_cluster)
    pages = listing(pods(25))
    broken: list[str] = []

    def breaks_on_the_second_page(request: Request) -> Answer:
        if request.query.get("continue") == "10" and len(broken) < 5:
            broken.append("10")
            return Answer(body=b'{"items": [' + b" " * 1000, cut_after=500)
        return pages(request)

    quiet_cluster.on(PODS, breaks_on_the_second_page)

    state = await read(quiet_cluster, tmp_path, ReadLimits(page_size=10))

    assert [each.name for each in state.of("Pod")] == sorted(f"pod-{number}" for number in range(25))
    assert state.reading.gaps == ()
    assert [each.query.get("continue", "") for each in quiet_cluster.asked(PODS)].count("") == 1


async def test_events_that_expire_between_pages_are_not_counted_twice(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    empty_cluster(quiet_cluster)
    events: list[Json] = [
        {"reason": "Pulled", "message": str(number), "involvedObject": {"kind": "Pod", "uid": "1"}}
        for number in range(25)
    ]
    pages, expired = listing(events), list[str]()

    def expires_once(request: Request) -> Answer:
        if request.query.get("continue") == "10" and not expired:
            expired.append("10")
            return status(410, "Expired", "the provided continue parameter is too old")
        return pages(request)

    quiet_cluster.on("/api/v1/events", expires_once)

    state = await read(quiet_cluster, tmp_path, ReadLimits(page_size=10))

    assert len(state.events) == 25


async def test_a_list_that_stalls_costs_neither_the_others_nor_its_second_chance(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    empty_cluster(quiet_cluster)
    quiet_cluster.on(PODS, Answer(delay_seconds=30), listing(pods(3)))
    quiet_cluster.on("/api/v1/secrets", Answer(delay_seconds=30))

    with ends_before(25):
        state = await read(quiet_cluster, tmp_path, ReadLimits(seconds=12), request_seconds=1)

    assert len(state.of("Pod")) == 3
    assert [gap.kind for gap in state.reading.gaps] == ["Secret"]


async def test_the_lists_with_most_causes_are_requested_first(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    empty_cluster(quiet_cluster)

    await read(quiet_cluster, tmp_path, ReadLimits())

    first = {request.path.rpartition("/")[2] for request in quiet_cluster.requests[:16]}
    assert {"pods", "nodes", "namespaces", "deployments", "statefulsets", "daemonsets"} <= first


async def test_who_may_read_one_namespace_only_reads_it_in_the_same_scan(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    _restrict(quiet_cluster)

    state = await read(quiet_cluster, tmp_path, ReadLimits(), Rights(namespaces=("shop",)))

    assert [each.name for each in state.of("Pod")] == ["cart"]
    assert state.is_missing("Service", "shop", "checkout")
    assert not state.is_missing("Service", "bank", "checkout")
    assert not state.covers("Service")
    assert not state.covers("Node")


async def test_what_is_known_to_be_forbidden_is_not_requested_again(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    _restrict(quiet_cluster)
    forbidden = {kind.name: "Forbidden: user 'eve' may not list it" for kind in KINDS if kind.name != "Event"}

    state = await read(quiet_cluster, tmp_path, ReadLimits(), Rights(namespaces=("shop",), forbidden=forbidden))

    assert quiet_cluster.asked(PODS) == []
    assert [each.name for each in state.of("Pod")] == ["cart"]
    assert not state.covers("Pod")


async def test_a_cluster_that_forbids_everything_is_not_a_healthy_one(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    _restrict(quiet_cluster)

    with pytest.raises(ClusterUnreachable, match="Forbidden"):
        await read(quiet_cluster, tmp_path, ReadLimits())


def _restrict(api: KubernetesApi) -> None:
    """Allow lists in namespace `shop` only."""
    empty_cluster(api)
    for path in api.paths():
        if path != "/version":
            api.on(path, status(403, "Forbidden", 'forbidden: User "eve" cannot list it'))
    empty_cluster(api, "shop")
    for kind in KINDS:
        if kind.name == "Lease":
            api.on(f"/apis/coordination.k8s.io/v1/namespaces/{LEASES}/leases", status(403, "Forbidden", "forbidden"))
        if not kind.namespaced:
            root = "api" if "/" not in kind.group_version else "apis"
            api.on(f"/{root}/{kind.group_version}/{kind.resource}", status(403, "Forbidden", "forbidden"))
    api.on("/api/v1/namespaces/shop/pods", listing([pod("cart")]))
