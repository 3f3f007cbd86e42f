"""The client against a server that plays the Kubernetes API: paging, patience, limits and every kind of refusal."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from typing import TYPE_CHECKING

import pytest

from holmes.kubernetes.client import ClusterClient, ClusterInfo
from holmes.kubernetes.errors import ApiError, Forbidden, NotFound, ReadCutOff
from holmes.kubernetes.sender import ClientLimits
from holmes.values.environment import Environment
from holmes.values.errors import ClusterUnreachable, ToolError
from tests.support.deadlines import ends_before
from tests.support.kubernetes_api import (
    Answer,
    KubernetesApi,
    document,
    listing,
    pod,
    status,
    write_kubeconfig,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

PODS = "/api/v1/namespaces/shop/pods"
LOG = f"{PODS}/cart/log"


@pytest.fixture
async def client(api: KubernetesApi, tmp_path: Path) -> AsyncIterator[ClusterClient]:
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(tmp_path, api.url))})
    limits = ClientLimits(request_timeout_seconds=2, response_bytes=200_000, page_size=10)
    async with await ClusterClient.connect(environment, limits=limits) as connected:
        yield connected


async def test_probe_says_which_cluster_it_is(api: KubernetesApi, client: ClusterClient) -> None:
    api.on("/version", document({"gitVersion": "v1.34.4"}))

    found = await client.probe()

    assert found == ClusterInfo(server=api.url, context="test", namespace="shop", version="v1.34.4")


async def test_probe_takes_a_forbidden_version_for_a_living_cluster(api: KubernetesApi, client: ClusterClient) -> None:
    api.on("/version", status(403, "Forbidden", 'User "eve" cannot get path "/version"'))

    assert (await client.probe()).version == ""


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (status(500, "InternalError", "no etcd", {"Retry-After": "0"}), "the API server returned 500: no etcd"),
        (status(404, "NotFound", "nothing here"), "the server does not have '/version'"),
        (Answer(body=b"<html>Log in</html>"), "the response is not JSON"),
        (Answer(body=b"[1, 2]"), "JSON that is not an object"),
        (Answer(body=b"[" * 100_000), "the response is not JSON"),
        (Answer(body=b'{"hello": 1}'), "has no gitVersion"),
        (Answer(status=302, body=b"Moved", headers={"Location": "/login"}), "returned 302: Moved"),
        (Answer(body=b"x" * 100, cut_after=20), "the connection ended before the response was complete"),
    ],
)
async def test_probe_takes_nothing_but_an_answer_of_kubernetes_for_a_cluster(
    answer: Answer, words: str, api: KubernetesApi, client: ClusterClient
) -> None:
    api.on("/version", answer)

    with pytest.raises(ClusterUnreachable) as caught:
        await client.probe()

    assert str(caught.value).startswith(
        f"Cannot reach the cluster of context 'test' at {api.url}: the server does not respond like"
    )
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_probe_of_credentials_that_are_refused_says_so(api: KubernetesApi, client: ClusterClient) -> None:
    api.on("/version", status(401, "Unauthorized", "Unauthorized"))

    with pytest.raises(ClusterUnreachable, match="does not accept the credentials"):
        await client.probe()


async def test_probe_of_a_server_that_accepts_no_connection_gives_up_in_time(tmp_path: Path) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        with contextlib.ExitStack() as stack:
            for _ in range(4):  # the queue of connections is full, so that the kernel answers no further one
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(address)
            environment = Environment.of(
                {"KUBECONFIG": str(write_kubeconfig(tmp_path, f"http://127.0.0.1:{address[1]}"))}
            )
            async with await ClusterClient.connect(environment) as client:
                expected = r"context 'test' at http://127.*no response within 0.3 s"
                with ends_before(4), pytest.raises(ClusterUnreachable, match=expected):
                    await client.probe(timeout_seconds=0.3)


@pytest.mark.parametrize(
    "answer", [Answer(delay_seconds=5), status(429, "TooManyRequests", "slow down", {"Retry-After": "0"})]
)
async def test_probe_takes_a_busy_server_for_a_living_cluster(
    api: KubernetesApi, client: ClusterClient, answer: Answer
) -> None:
    api.on("/version", answer)

    with ends_before(4):
        assert (await client.probe(timeout_seconds=0.3)).version == ""


async def test_a_refused_connection_is_one_line_with_context_and_server(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{taken.getsockname()[1]}"
        environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(tmp_path, server))})
        async with await ClusterClient.connect(environment) as client:
            with pytest.raises(
                ClusterUnreachable, match=rf"context 'test' at {server}: connection refused; "
            ) as caught:
                await client.probe()

    assert "\n" not in str(caught.value)


async def test_an_unknown_host_is_one_line(tmp_path: Path) -> None:
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(tmp_path, "http://no-such-host.invalid"))})
    async with await ClusterClient.connect(environment) as client:
        with pytest.raises(ClusterUnreachable, match="the server's host name cannot be resolved"):
            await client.probe()


async def test_a_list_is_read_in_pages(api: KubernetesApi, client: ClusterClient) -> None:
    api.on(PODS, listing([pod(f"p{number}") for number in range(25)]))

    found = await client.list(PODS)

    assert len(found.items) == 25
    assert found.complete
    assert [request.query["limit"] for request in api.asked(PODS)] == ["10", "10", "10"]


async def test_a_list_stops_at_the_limit_and_says_what_remains(api: KubernetesApi, client: ClusterClient) -> None:
    api.on(PODS, listing([pod(f"p{number}") for number in range(25)]))

    found = await client.list(PODS, limit=12)

    assert (len(found.items), found.complete, found.remaining) == (12, False, 13)


async def test_a_list_that_went_stale_is_read_again_once(api: KubernetesApi, client: ClusterClient) -> None:
    pages = listing([pod(f"p{number}") for number in range(15)])
    gone = status(410, "Expired", "The provided continue parameter is too old")
    api.on(PODS, pages, gone, pages)

    assert len((await client.list(PODS)).items) == 15

    api.on(PODS, pages, gone)
    with pytest.raises(ApiError, match="returned 410"):
        await client.list(PODS)


async def test_too_many_requests_waits_as_long_as_the_server_says(api: KubernetesApi, client: ClusterClient) -> None:
    api.on(PODS, status(429, "TooManyRequests", "slow down", {"Retry-After": "1"}), listing([pod("cart")]))
    begin = time.monotonic()

    assert len((await client.list(PODS)).items) == 1

    assert time.monotonic() - begin >= 1.0


async def test_an_error_of_the_server_is_tried_again_and_then_told(api: KubernetesApi, client: ClusterClient) -> None:
    broken = status(500, "InternalError", "etcdserver: leader changed", {"Retry-After": "0"})
    api.on(PODS, broken, broken, document({"items": []}))
    assert (await client.list(PODS)).items == ()

    api.on(PODS, broken)
    with pytest.raises(ApiError, match=r"list pods in namespace 'shop': the API server returned 500: etcdserver"):
        await client.list(PODS)
    assert len(api.asked(PODS)) == 3 + 4


async def test_forbidden_names_user_verb_resource_and_the_check(api: KubernetesApi, client: ClusterClient) -> None:
    message = (
        'pods "cart" is forbidden: User "eve" cannot get resource "pods/log" in API group "" in the namespace "shop"'
    )
    api.on(LOG, status(403, "Forbidden", message))

    with pytest.raises(Forbidden) as caught:
        async with client.stream_text(LOG):
            pass

    assert str(caught.value) == (
        "Forbidden: user 'eve' may not get pods/log 'cart' in namespace 'shop'; "
        "check with `kubectl auth can-i get pods --subresource=log -n shop` and ask for a role that allows it"
    )


async def test_not_found_names_the_thing(client: ClusterClient) -> None:
    with pytest.raises(NotFound, match="Not found: pods 'cart' does not exist in namespace 'shop'"):
        await client.get(f"{PODS}/cart")
    with pytest.raises(NotFound, match=r"does not have the resource 'gadgets.example.org'"):
        await client.get("/apis/example.org/v1/gadgets")


async def test_an_answer_that_is_cut_off_is_read_again(api: KubernetesApi, client: ClusterClient) -> None:
    whole = document({"items": [pod("cart")]})
    api.on(PODS, Answer(body=whole.body, cut_after=20), whole)

    assert len((await client.list(PODS)).items) == 1


async def test_an_answer_that_is_always_cut_off_ends_in_one_line(api: KubernetesApi, client: ClusterClient) -> None:
    api.on(PODS, Answer(body=b"x" * 100, cut_after=20))

    with pytest.raises(ReadCutOff, match="the connection ended before the response was complete"):
        await client.list(PODS)


async def test_a_slow_answer_ends_in_one_line(api: KubernetesApi, client: ClusterClient) -> None:
    api.on(PODS, Answer(body=b"{}", pause_seconds=5))

    with pytest.raises(ClusterUnreachable, match="did not complete within 2 s"):
        await client.list(PODS)


async def test_a_flood_is_stopped(api: KubernetesApi, client: ClusterClient) -> None:
    sent = 0

    def flood() -> Iterator[bytes]:
        nonlocal sent
        while sent < 100_000_000:
            sent += 65_536
            yield b"x" * 65_536

    api.on(PODS, Answer(body=flood))

    with pytest.raises(ToolError, match="list pods: the response is larger than 200,000 bytes; request one namespace"):
        await client.list(PODS)
    assert sent < 50_000_000


async def test_a_page_of_a_proxy_is_not_taken_for_an_object(api: KubernetesApi, client: ClusterClient) -> None:
    api.on(PODS, Answer(body=b"<html>Log in</html>"))
    with pytest.raises(ToolError, match="the response is not JSON"):
        await client.list(PODS)

    api.on(PODS, Answer(status=302, body=b"Moved", headers={"Location": "/login"}))
    with pytest.raises(ApiError, match="returned 302: Moved"):
        await client.list(PODS)


async def test_a_stream_that_breaks_gives_what_came_and_then_an_error(
    api: KubernetesApi, client: ClusterClient
) -> None:
    api.on(LOG, Answer(body=lambda: iter([b"one\n", b"two\n", b"three\n"]), cut_after=8))
    got = bytearray()

    async def read() -> None:
        async with client.stream_text(LOG) as pieces:
            async for piece in pieces:
                got.extend(piece)

    with pytest.raises(ReadCutOff, match="the connection ended"):
        await read()

    assert got == b"one\ntwo\n"


async def test_cancelling_a_stream_closes_the_connection(api: KubernetesApi, client: ClusterClient) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def endless() -> Iterator[bytes]:
        try:
            while not api.stopping.wait(0.02):
                yield b"x" * 10_000
        finally:
            loop.call_soon_threadsafe(ended.set)

    api.on(LOG, Answer(body=endless))

    async def read() -> None:
        async with client.stream_text(LOG) as pieces:
            async for _ in pieces:
                pass

    task = asyncio.create_task(read())
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(ended.wait(), 3)


async def test_no_more_requests_run_at_once_than_allowed(api: KubernetesApi, tmp_path: Path) -> None:
    running, most = 0, 0

    def slow() -> Iterator[bytes]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        time.sleep(0.05)
        running -= 1
        yield b"{}"

    api.on(PODS, Answer(body=slow))
    environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(tmp_path, api.url))})
    async with await ClusterClient.connect(environment, limits=ClientLimits(concurrent_requests=3)) as client:
        await asyncio.gather(*(client.get(PODS) for _ in range(12)))

    assert most == 3


async def test_everything_that_was_sent_is_a_get(api: KubernetesApi, client: ClusterClient) -> None:
    api.on(PODS, listing([]))
    await client.list(PODS, {"labelSelector": "app=cart"})

    assert [(request.method, request.query["labelSelector"]) for request in api.requests] == [("GET", "app=cart")]
