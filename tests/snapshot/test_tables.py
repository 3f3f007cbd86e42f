"""The cells of tables that the shop on the real cluster does not reach, as the API server computes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from holmes.snapshot.server.pod_tables import pod_cells
from holmes.snapshot.server.selectors import shown_selector
from holmes.snapshot.server.table_layout import human_duration
from holmes.snapshot.server.tables import find, layout_of
from tests.snapshot.recordings import RECORDED_AT, TABLE, ask, recording, thing

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0.9, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (9 * MINUTE + 59, "9m59s"),
        (10 * MINUTE + 30, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (5 * HOUR + 90, "5h1m"),
        (8 * HOUR + 1800, "8h"),
        (47 * HOUR + 3599, "47h"),
        (2 * DAY, "2d"),
        (3 * DAY + 5 * HOUR, "3d5h"),
        (8 * DAY + 23 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (3 * YEAR + 40 * DAY, "3y40d"),
        (8 * YEAR + 40 * DAY, "8y"),
    ],
)
def test_ages_are_written_as_kubectl_writes_them(seconds: float, shown: str) -> None:
    assert human_duration(seconds) == shown


def _pod(**parts: Any) -> dict[str, Any]:  # noqa: ANN401  any field
    containers = [{"name": name} for name in parts.pop("containers", ["a"])]
    init = [{"name": name, **more} for name, more in parts.pop("init", {}).items()]
    metadata = parts.pop("metadata", {})
    status = {"phase": "Running", **parts}
    return thing("Pod", "p", metadata=metadata, spec={"containers": containers, "initContainers": init}, status=status)


def _status(name: str = "a", *, ready: bool = False, restarts: int = 0, last: str = "", **state: Any) -> dict[str, Any]:  # noqa: ANN401
    last_state = {"lastState": {"terminated": {"finishedAt": last}}} if last else {}
    return {"name": name, "ready": ready, "restartCount": restarts, "state": state, **last_state}


RUNNING: dict[str, Any] = {"running": {}}
DELETED = {"metadata": {"deletionTimestamp": "2026-01-31T11:59:00Z"}}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


@pytest.mark.parametrize(
    ("pod", "ready", "status"),
    [
        (_pod(containerStatuses=[_status(ready=True, **RUNNING)]), "1/1", "Running"),
        (_pod(phase="Pending"), "0/1", "Pending"),
        (_pod(phase="Failed", reason="Evicted"), "0/1", "Evicted"),
        (_pod(containerStatuses=[_status(waiting={"reason": "CrashLoopBackOff"})]), "0/1", "CrashLoopBackOff"),
        (_pod(containerStatuses=[_status(terminated={"exitCode": 137, "reason": "OOMKilled"})]), "0/1", "OOMKilled"),
        (_pod(containerStatuses=[_status(terminated={"exitCode": 3})]), "0/1", "ExitCode:3"),
        (_pod(containerStatuses=[_status(terminated={"signal": 9, "exitCode": 137})]), "0/1", "Signal:9"),
        (_pod(containerStatuses=[_status(ready=True, **RUNNING)], **DELETED), "1/1", "Terminating"),
        (_pod(phase="Succeeded", reason="", **DELETED), "0/1", "Succeeded"),
        (_pod(reason="NodeLost", **DELETED), "0/1", "Unknown"),
        (
            _pod(
                containers=["a", "b"],
                containerStatuses=[
                    _status("a", terminated={"reason": "Completed"}),
                    _status("b", ready=True, **RUNNING),
                ],
            ),
            "1/2",
            "NotReady",
        ),
        (
            _pod(
                containers=["a", "b"],
                containerStatuses=[
                    _status("a", terminated={"reason": "Completed"}),
                    _status("b", ready=True, **RUNNING),
                ],
                **READY,
            ),
            "1/2",
            "Running",
        ),
        (
            _pod(phase="Pending", init={"i": {}, "j": {}}, initContainerStatuses=[_status("i", **RUNNING)]),
            "0/1",
            "Init:0/2",
        ),
        (
            _pod(init={"i": {}}, initContainerStatuses=[_status("i", waiting={"reason": "CrashLoopBackOff"})]),
            "0/1",
            "Init:CrashLoopBackOff",
        ),
        (
            _pod(init={"i": {}}, initContainerStatuses=[_status("i", terminated={"exitCode": 2})]),
            "0/1",
            "Init:ExitCode:2",
        ),
        (
            _pod(init={"i": {}}, initContainerStatuses=[_status("i", terminated={"signal": 15, "exitCode": 143})]),
            "0/1",
            "Init:Signal:15",
        ),
        (
            _pod(
                phase="Pending",
                init={"i": {}},
                initContainerStatuses=[_status("i", terminated={"exitCode": 0, "reason": "Completed"})],
                containerStatuses=[_status(waiting={"reason": "PodInitializing"})],
            ),
            "0/1",
            "PodInitializing",
        ),
        (
            _pod(
                init={"s": {"restartPolicy": "Always"}},
                initContainerStatuses=[{**_status("s", ready=True, **RUNNING), "started": True}],
                containerStatuses=[_status(ready=True, **RUNNING)],
            ),
            "2/2",
            "Running",
        ),
    ],
)
def test_the_status_of_a_pod_sums_up_its_containers(pod: dict[str, Any], ready: str, status: str) -> None:
    assert pod_cells(pod, RECORDED_AT)[1:3] == [ready, status]


def test_restarts_say_when_the_last_one_was() -> None:
    pod = _pod(
        containers=["a", "b"],
        containerStatuses=[
            _status("a", restarts=2, last="2026-01-31T11:50:00Z", **RUNNING),
            _status("b", restarts=1, last="2026-01-31T11:55:00Z", **RUNNING),
        ],
    )
    assert pod_cells(pod, RECORDED_AT)[3] == "3 (5m ago)"


def test_restarts_of_finished_init_containers_no_longer_count() -> None:
    done = _status("i", restarts=7, last="2026-01-31T11:50:00Z", terminated={"exitCode": 0})
    pod = _pod(init={"i": {}}, initContainerStatuses=[done], containerStatuses=[_status(ready=True, **RUNNING)])
    assert pod_cells(pod, RECORDED_AT)[3] == "0"


def _cells(item: dict[str, Any]) -> list[object]:
    source = recording(item)
    kind = next(found.type for found in source.objects.values() if found.type.kind == item["kind"])
    return list(layout_of(source, kind).cells(item, RECORDED_AT))


BALANCER = {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}, {"hostname": "lb.shop.example"}]}}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (thing("Service", "s", spec={"type": "LoadBalancer", "clusterIPs": ["10.96.0.9"]}), ["10.96.0.9", "<pending>"]),
        (
            thing("Service", "s", spec={"type": "LoadBalancer", "externalIPs": ["1.2.3.4"]}, status=BALANCER),
            ["<none>", "192.0.2.7,lb.shop.example,1.2.3.4"],
        ),
        (thing("Service", "s", spec={"type": "ClusterIP", "externalIPs": ["1.2.3.4"]}), ["<none>", "1.2.3.4"]),
    ],
)
def test_addresses_of_services(item: dict[str, Any], expected: list[str]) -> None:
    assert _cells(item)[2:4] == expected


def test_long_lists_are_cut_and_counted() -> None:
    subsets = [{"addresses": [{"ip": f"10.0.0.{n}"} for n in range(1, 6)], "ports": [{"port": 80}]}]
    assert _cells(thing("Endpoints", "e", subsets=subsets))[1] == "10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 2 more..."
    rules = [{"host": f"{n}.shop.example"} for n in "abcde"]
    ingress = thing("Ingress", "i", version="networking.k8s.io/v1", spec={"rules": rules})
    assert _cells(ingress)[2] == "a.shop.example,b.shop.example,c.shop.example + 2 more..."


@pytest.mark.parametrize(
    ("status", "state", "duration"),
    [
        ({"startTime": "2026-01-31T11:58:00Z"}, "Running", "2m"),
        ({"conditions": [{"type": "Suspended", "status": "True"}]}, "Suspended", ""),
        ({"conditions": [{"type": "Failed", "status": "True"}], "startTime": "2026-01-31T11:00:00Z"}, "Failed", "60m"),
        (
            {
                "conditions": [{"type": "Complete", "status": "True"}],
                "startTime": "2026-01-31T11:00:00Z",
                "completionTime": "2026-01-31T11:00:07Z",
            },
            "Complete",
            "7s",
        ),
    ],
)
def test_jobs_say_their_state_and_how_long_they_took(status: dict[str, Any], state: str, duration: str) -> None:
    cells = _cells(thing("Job", "j", version="batch/v1", spec={"completions": 3}, status={"succeeded": 1, **status}))
    assert cells[1:4] == [state, "1/3", duration]


@pytest.mark.parametrize(
    ("metric", "current", "shown"),
    [
        (
            {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}},
            {"resource": {"current": {"averageUtilization": 95}}},
            "cpu: 95%/80%",
        ),
        (
            {"type": "Resource", "resource": {"name": "memory", "target": {"averageValue": "1Gi"}}},
            {"resource": {"current": {"averageValue": "900Mi"}}},
            "memory: 900Mi/1Gi",
        ),
        ({"type": "Pods", "pods": {"target": {"averageValue": "10"}}}, {}, "<unknown>/10"),
        (
            {"type": "External", "external": {"target": {"averageValue": "30"}}},
            {"external": {"current": {"averageValue": "12"}}},
            "12/30 (avg)",
        ),
        ({"type": "Object", "object": {"target": {"value": "5"}}}, {"object": {"current": {"value": "4"}}}, "4/5"),
    ],
)
def test_targets_of_autoscalers(metric: dict[str, Any], current: dict[str, Any], shown: str) -> None:
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "metrics": [metric], "maxReplicas": 3}
    item = thing(
        "HorizontalPodAutoscaler", "h", version="autoscaling/v2", spec=spec, status={"currentMetrics": [current]}
    )
    assert _cells(item)[2] == shown


DEFINITION = thing(
    "CustomResourceDefinition",
    "promotions.shop.example",
    version="apiextensions.k8s.io/v1",
    spec={
        "group": "shop.example",
        "scope": "Namespaced",
        "names": {"kind": "Promotion", "plural": "promotions"},
        "versions": [
            {
                "name": "v1",
                "additionalPrinterColumns": [
                    {"name": "Product", "type": "string", "jsonPath": ".spec.product"},
                    {"name": "Percent", "type": "integer", "jsonPath": ".spec.percent"},
                    {"name": "Factor", "type": "number", "jsonPath": ".spec.factor"},
                    {"name": "Public", "type": "boolean", "jsonPath": ".spec.public"},
                    {"name": "Since", "type": "date", "jsonPath": ".spec.since"},
                    {"name": "Regions", "type": "string", "jsonPath": ".spec.regions", "priority": 1},
                ],
            },
            {"name": "v2"},
        ],
    },
)


@pytest.mark.parametrize(
    ("spec", "cells"),
    [
        (
            {"product": "socks", "percent": 20.0, "factor": 1, "public": True, "since": "2026-01-31T11:00:00Z"},
            ["socks", 20, 1.0, True, "60m", None],
        ),
        (
            {"product": True, "percent": "x", "public": 1, "since": "soon"},
            ["true", None, None, None, "<invalid>", None],
        ),
        ({"regions": ["a", {"b": 1}]}, [None, None, None, None, None, '["a",{"b":1}]']),
    ],
)
def test_custom_resources_show_the_columns_of_their_definition(spec: dict[str, Any], cells: list[object]) -> None:
    promotion = thing("Promotion", "spring", version="shop.example/v1", spec=spec)
    shown = ask(recording(DEFINITION, promotion), "/apis/shop.example/v1/promotions", accept=TABLE).body
    assert shown["rows"][0]["cells"] == ["spring", *cells]
    assert [column["priority"] for column in shown["columnDefinitions"]] == [0, 0, 0, 0, 0, 0, 1]


def test_a_custom_resource_without_columns_shows_its_age() -> None:
    promotion = thing("Promotion", "spring", version="shop.example/v2")
    shown = ask(recording(DEFINITION, promotion), "/apis/shop.example/v2/promotions", accept=TABLE).body
    assert shown["rows"][0]["cells"] == ["spring", "60m"]


def test_kinds_without_a_table_of_their_own_show_when_they_were_made() -> None:
    role = thing("Role", "reader", version="rbac.authorization.k8s.io/v1")
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles"
    assert ask(recording(role), path, accept=TABLE).body["rows"][0]["cells"] == ["reader", "2026-01-31T11:00:00Z"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.a", [1]),
        (".spec.list[0].name", ["x"]),
        (".spec.list[-1].name", ["y"]),
        (".spec.list[*].name", ["x", "y"]),
        (".spec.list[?(@.name=='y')].value", [2]),
        (".spec.list[?(@.value>1)].name", ["y"]),
        (".spec.list[?(@.value!=2)].name", ["x"]),
        (".spec['odd.key']", [True]),
        (r".spec.odd\.key", [True]),
        (".spec.list[7]", []),
        (".spec.nothing.at.all", []),
        (".spec..a", []),
        ("no dot", []),
    ],
)
def test_paths_of_printer_columns(path: str, expected: list[object]) -> None:
    value: dict[str, Any] = {
        "spec": {"a": 1, "odd.key": True, "list": [{"name": "x", "value": 1}, {"name": "y", "value": 2}]}
    }
    assert find(path, value) == expected


def test_selectors_of_objects_are_shown_in_the_order_of_their_keys() -> None:
    expressions: list[Any] = [
        {"key": "tier", "operator": "NotIn", "values": ["c", "b"]},
        {"key": "app", "operator": "Exists"},
        {"key": "old", "operator": "DoesNotExist"},
    ]
    assert shown_selector({"matchLabels": {"zone": "a"}, "matchExpressions": expressions}) == (
        "app,!old,tier notin (b,c),zone=a"
    )
    assert shown_selector({}) == shown_selector(None) == "<none>"


def test_a_moment_in_the_future_of_the_recording_is_no_age() -> None:
    late = datetime(2026, 1, 31, 12, 0, 10, tzinfo=UTC)
    assert (
        pod_cells(_pod(metadata={"creationTimestamp": late.strftime("%Y-%m-%dT%H:%M:%SZ")}), RECORDED_AT)[4]
        == "<invalid>"
    )
