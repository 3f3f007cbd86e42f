"""The view of authorization at waypoints, whose kind of traffic depends on labels that few clusters set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import jq
import pytest
import yaml

from holmes.assets import toolset_files

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOR: Final = "istio.io/waypoint-for"
_BYPASS: Final = "Requests to the pod's own address bypass waypoint shop/front"
_HANDLES: Final = f"{_BYPASS}, which handles only requests to Services ({_FOR} is not workload or all)."
_AT_SERVICE: Final = "(at waypoint shop/front for Service web)"
_AT_POD: Final = "(at waypoint shop/front for pod web-1)"
_NOT_SERVICE: Final = f"for Service web, whose requests do not pass waypoint shop/front ({_FOR} is workload), so"


def _shown(*policies: Mapping[str, Any], of_gateway: str = "", of_class: str = "", on: str = "namespace") -> str:
    """Return the view of a pod behind the Service `web`, where the namespace or the Service names the waypoint."""
    uses = {"istio.io/use-waypoint": "front"}
    labels = {"app": "web"}
    redirected = {"ambient.istio.io/redirection": "enabled"}
    pod = _named("Pod", "web-1", labels) | {"spec": {"containers": [{"name": "app"}]}}
    pod["metadata"]["annotations"] = redirected
    service = _named("Service", "web", uses if on == "Service" else {}) | {"spec": {"selector": labels}}
    gateway = _named("Gateway", "front", {_FOR: of_gateway} if of_gateway else {})
    gateway["spec"] = {"gatewayClassName": "istio-waypoint"}
    gateway_class = _named("GatewayClass", "istio-waypoint", {_FOR: of_class} if of_class else {})
    document = [
        pod,
        {"items": [_named("AuthorizationPolicy", f"p{n}") | {"spec": spec} for n, spec in enumerate(policies)]},
        {"items": []},
        {"items": [service]},
        _named("Namespace", "shop", uses if on == "namespace" else {}),
        {"items": [gateway, gateway_class]},
    ]
    (program,) = (
        tool["transformers"][0]["config"]["argument"]
        for path in toolset_files()
        if path.stem == "istio"
        for tool in yaml.safe_load(path.read_text())["toolsets"]["istio/core"]["tools"]
        if tool["name"] == "istio_authorization"
    )
    return "\n".join(jq.compile(program).input_value(document).all())


def _named(kind: str, name: str, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"namespace": "shop", "name": name, "labels": dict(labels or {})}}


def _at(kind: str, name: str) -> dict[str, Any]:
    return {"targetRefs": [{"kind": kind, "name": name}], "action": "DENY", "rules": [{}]}


@pytest.mark.parametrize(
    ("labels", "shows", "hides"),
    [
        ({}, (_AT_SERVICE, _HANDLES), (_AT_POD,)),
        ({"of_gateway": "service", "of_class": "all"}, (_AT_SERVICE, _HANDLES), (_AT_POD,)),
        ({"of_gateway": "all"}, (_AT_SERVICE, _AT_POD), (_BYPASS,)),
        ({"of_class": "all"}, (_AT_SERVICE, _AT_POD), (_BYPASS,)),
        ({"of_gateway": "all", "on": "Service"}, (_AT_SERVICE, f"{_BYPASS}, which only the Service uses."), (_AT_POD,)),
        ({"of_gateway": "workload"}, (_AT_POD,), (_AT_SERVICE, _BYPASS)),
        ({"of_gateway": "none"}, (f"({_FOR} is none), so it is NOT ENFORCED",), (_AT_SERVICE, _AT_POD)),
    ],
)
def test_a_policy_is_shown_at_a_waypoint_only_for_the_requests_that_pass_it(
    labels: dict[str, str], shows: tuple[str, ...], hides: tuple[str, ...]
) -> None:
    shown = _shown(_at("Gateway", "front"), **labels)
    assert ([each for each in shows if each not in shown], [each for each in hides if each in shown]) == ([], []), shown
    assert "was not found" not in shown


def test_a_policy_of_a_service_is_not_enforced_at_a_waypoint_for_workloads() -> None:
    assert _NOT_SERVICE in _shown(_at("Service", "web"), of_gateway="workload")


@pytest.mark.parametrize("rules", [{}, {"rules": []}])
def test_a_policy_without_rules_says_what_that_means(rules: dict[str, Any]) -> None:
    shown = _shown(rules, rules | {"action": "DENY"})
    assert "ALLOW shop/p0: no rules: allows nothing" in shown
    assert "DENY shop/p1: no rules: never matches" in shown
