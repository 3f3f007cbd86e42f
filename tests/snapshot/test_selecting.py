"""Lists say what a real API server says of label selectors, field selectors and pages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.snapshot.server.objects import page_of
from holmes.snapshot.server.responses import ApiFailure
from tests.snapshot.recordings import ask, names, recording, thing

PODS = "/api/v1/namespaces/shop/pods"
EVENTS = "/api/v1/namespaces/shop/events"


def _pod(phase: str, node: str, address: str) -> dict[str, Any]:
    spec = {"nodeName": node, "schedulerName": "default-scheduler"}
    return {"spec": spec, "status": {"phase": phase, "podIP": address, "podIPs": [{"ip": address}]}}


WEB = {"app": "web", "tier": "front", "weight": "10"}
SHOP = recording(
    thing("Pod", "web", labels=WEB, **_pod("Running", "n1", "10.0.0.1")),
    thing("Pod", "cart", labels={"app": "cart", "weight": "5"}, **_pod("Pending", "", "")),
    thing("Pod", "bare", **_pod("Failed", "n2", "10.0.0.2")),
    thing("Pod", "elsewhere", namespace="other", labels={"app": "web"}, **_pod("Running", "n1", "10.0.0.3")),
    thing("Service", "web", spec={"type": "NodePort", "clusterIP": "10.96.0.1"}),
    thing("Secret", "token", type="Opaque"),
    thing("Node", "n1", spec={"unschedulable": True}),
    thing("Node", "n2"),
    thing("Event", "e1", involvedObject={"kind": "Pod", "name": "web"}, type="Warning", reason="BackOff"),
    thing("Event", "e2", involvedObject={"kind": "Job", "name": "web"}, type="Normal", source={"component": "k"}),
)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=web", ["web"]),
        ("app==web", ["web"]),
        ("app!=web", ["bare", "cart"]),
        ("app", ["cart", "web"]),
        ("!app", ["bare"]),
        ("app in (web, cart)", ["cart", "web"]),
        ("app notin (web)", ["bare", "cart"]),
        ("app in (web,cart),tier", ["web"]),
        ("weight>5", ["web"]),
        ("weight<10", ["cart"]),
        ("tier=", []),
        ("tier in (,front)", ["web"]),
        ("app=nothing", []),
        ("", ["bare", "cart", "web"]),
    ],
)
def test_label_selectors_choose_as_kubernetes_does(selector: str, expected: list[str]) -> None:
    assert names(SHOP, PODS, {"labelSelector": selector}) == expected


@pytest.mark.parametrize("selector", ["a b", "app in web", "app in (web", "=web", "weight>x", "app=web,,tier", "-a=b"])
def test_what_is_no_label_selector_is_refused(selector: str) -> None:
    answer = ask(SHOP, PODS, {"labelSelector": selector})
    assert (answer.status_code, answer.body["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("path", "selector", "expected"),
    [
        (PODS, "metadata.name=web", ["web"]),
        (PODS, "status.phase!=Running", ["bare", "cart"]),
        (PODS, "status.phase==Pending", ["cart"]),
        (PODS, "spec.nodeName=", ["cart"]),
        (PODS, "spec.host=n1", ["web"]),
        (PODS, "status.podIP=10.0.0.2,spec.nodeName=n2", ["bare"]),
        (PODS, "status.podIPs=10.0.0.2", ["bare"]),
        (PODS, "spec.schedulerName=default-scheduler,spec.hostNetwork=false", ["bare", "cart", "web"]),
        ("/api/v1/pods", "metadata.namespace=other", ["elsewhere"]),
        ("/api/v1/nodes", "spec.unschedulable=true", ["n1"]),
        ("/api/v1/nodes", "spec.unschedulable=false", ["n2"]),
        ("/api/v1/services", "spec.type=NodePort", ["web"]),
        ("/api/v1/secrets", "type=Opaque", ["token"]),
        (EVENTS, "involvedObject.kind=Pod,involvedObject.name=web", ["e1"]),
        (EVENTS, "type!=Normal,reason=BackOff", ["e1"]),
        (EVENTS, "source=k", ["e2"]),
        ("/apis/events.k8s.io/v1/events", "regarding.kind=Job,type=Normal", ["e2"]),
    ],
)
def test_field_selectors_choose_as_kubernetes_does(path: str, selector: str, expected: list[str]) -> None:
    assert names(SHOP, path, {"fieldSelector": selector}) == expected


@pytest.mark.parametrize("selector", ["spec.color=red", "status.phase", "metadata.labels.app=web"])
def test_fields_that_kubernetes_cannot_select_are_refused(selector: str) -> None:
    answer = ask(SHOP, PODS, {"fieldSelector": selector})
    assert (answer.status_code, answer.body["reason"]) == (400, "BadRequest")


def test_pages_lead_through_the_whole_list_and_say_how_much_is_left() -> None:
    first = ask(SHOP, "/api/v1/pods", {"limit": "3"}).body
    assert first["metadata"]["remainingItemCount"] == 1
    rest = ask(SHOP, "/api/v1/pods", {"limit": "3", "continue": first["metadata"]["continue"]}).body
    assert "continue" not in rest["metadata"]
    shown = [item["metadata"]["name"] for item in (*first["items"], *rest["items"])]
    assert shown == ["elsewhere", "bare", "cart", "web"]


@pytest.mark.parametrize("token", ["rubbish", "%%%", "MTAwfHBvZHMv", "LTF8cG9kcy8="])
def test_a_token_that_fits_no_page_is_gone(token: str) -> None:
    answer = ask(SHOP, "/api/v1/pods", {"limit": "1", "continue": token})
    assert (answer.status_code, answer.body["reason"]) == (410, "Expired")


def test_a_token_of_another_list_is_gone() -> None:
    token = ask(SHOP, "/api/v1/pods", {"limit": "1"}).body["metadata"]["continue"]
    assert ask(SHOP, "/api/v1/nodes", {"limit": "1", "continue": token}).status_code == 410


@given(count=st.integers(0, 20), limit=st.integers(1, 8))
def test_any_limit_shows_every_object_once(count: int, limit: int) -> None:
    items = [{"metadata": {"name": str(number)}} for number in range(count)]
    seen: list[object] = []
    token = ""
    while True:
        page = page_of(items, str(limit), token, of="pods/")
        assert page.remaining == count - len(seen) - len(page.items)
        seen += page.items
        token = page.token
        if not token:
            break
    assert seen == items


def test_a_limit_that_is_no_number_is_refused() -> None:
    with pytest.raises(ApiFailure, match="limit"):
        page_of([], "many", "", of="pods/")
