"""Monitoring systems are found by their Services, and only named: no request, no credentials, no cost elsewhere.

Inside the cluster, the only system of its kind is read without a login.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.app import toolsets as app_toolsets
from holmes.app.toolsets import OpenToolsets, open_toolsets
from holmes.settings.load import load_settings
from holmes.toolsets.alertmanager.toolset import KIND as ALERTS
from holmes.toolsets.catalogue import NOT_CONFIGURED
from holmes.toolsets.discovery import TOOLSETS, FoundSource, SourceSearch, _sources, find_sources
from holmes.toolsets.grafana.toolset import KIND as GRAFANA
from holmes.toolsets.instances import SourceKind, instances_of
from holmes.toolsets.logs.config import KIND as LOGS
from holmes.toolsets.mcp.session import McpSessions
from holmes.toolsets.metrics.toolset import KIND as METRICS
from holmes.toolsets.registry import ToolsetStatus
from holmes.toolsets.traces.sources import KIND as TRACES
from holmes.values.environment import Environment
from holmes.values.json_types import JsonValue
from tests.observability.logs.loki import loki
from tests.support.command_line import Home
from tests.support.kubernetes_api import Answer, Json, KubernetesApi, Request, listing, status, write_kubeconfig
from tests.toolsets.metrics.query_servers import thanos

ALL = "/api/v1/services"
NAME = "app.kubernetes.io/name"
UNCONFIGURED = [ToolsetStatus(name=each, state="disabled", reason=NOT_CONFIGURED) for each in TOOLSETS]


def service(
    name: str, product: str, *numbers: int, namespace: str = "monitoring", labels: Json | None = None, **spec: object
) -> Json:
    """A Service with the label for its product, further labels, and fields of its spec."""
    named = labels if labels is not None and "app" in labels else {NAME: product, **(labels or {})}
    ports = [{"port": each} for each in numbers]
    ported = {"clusterIP": "10.0.0.1", "selector": {"app": name}, "ports": ports, **spec}
    return {"metadata": {"name": name, "namespace": namespace, "labels": named}, "spec": ported}


async def found(api: KubernetesApi, folder: Path, **variables: str) -> tuple[FoundSource, ...]:
    return (await searched(api, folder, **variables)).found


async def searched(api: KubernetesApi, folder: Path, **variables: str) -> SourceSearch:
    kubeconfig = str(write_kubeconfig(folder, api.url))
    return await find_sources(Environment.of({"KUBECONFIG": kubeconfig, **variables}), UNCONFIGURED)


@pytest.mark.parametrize(
    ("made", "toolset", "url"),
    [
        (service("prometheus-server", "prometheus", 80), "prometheus/metrics", "prometheus-server.monitoring.svc:80"),
        (
            service("stack", "", 9090, 8080, labels={"app": "kube-prometheus-stack-prometheus"}),
            "prometheus/metrics",
            "9090",
        ),
        (service("query", "thanos-query", 10901, 9090), "prometheus/metrics", "query.monitoring.svc:9090"),
        (service("gateway", "mimir", 80), "prometheus/metrics", "gateway.monitoring.svc:80/prometheus"),
        (service("vm", "vmselect", 8481), "prometheus/metrics", "vm.monitoring.svc:8481/select/0/prometheus"),
        (service("vm", "vmsingle", 8428), "prometheus/metrics", "vm.monitoring.svc:8428"),
        (service("am", "alertmanager", 9094, 9093), "alertmanager/alerts", "am.monitoring.svc:9093"),
        (service("loki", "loki", 9095, 3100), "logs/sources", "loki.monitoring.svc:3100"),
        (service("os", "opensearch", 9300, 9200), "logs/sources", "os.monitoring.svc:9200"),
        (service("es", "elasticsearch", 9200), "logs/sources", "es.monitoring.svc:9200"),
        (service("vl", "victoria-logs-single", 9428), "logs/sources", "vl.monitoring.svc:9428"),
        (service("jaeger-query", "jaeger", 16685, 16686), "tracing/traces", "jaeger-query.monitoring.svc:16686"),
        (service("tempo", "tempo", 3200), "tracing/traces", "tempo.monitoring.svc:3200"),
        (service("g", "grafana", 80, ports=[{"port": 80, "targetPort": 3000}]), "grafana/dashboards", ":80"),
    ],
)
def test_each_product_is_found_with_the_address_of_its_api(made: Json, toolset: str, url: str) -> None:
    (source,) = _sources([made])
    assert source.toolset == toolset
    assert source.url.startswith("http://")
    assert url in source.url
    kinds: dict[str, SourceKind[Any]] = {each.toolset: each for each in (METRICS, LOGS, TRACES, ALERTS, GRAFANA)}
    assert instances_of(source.config, kinds[toolset])[0].url == source.url


@pytest.mark.parametrize(
    "made",
    [
        service("elsewhere", "prometheus", 9090, type="ExternalName", externalName="example.com"),
        service("written-by-hand", "prometheus", 9090, selector=None),
        service("no-port", "jaeger", 14250),
        service("udp", "jaeger", ports=[{"port": 16686, "protocol": "UDP"}]),
        service("other", "shop", 9090),
        service("bad; rm", "prometheus", 9090),
        {"metadata": {"labels": {NAME: "prometheus"}}, "spec": {"ports": [{"port": "9090"}]}},
    ],
    ids=lambda made: str(made["metadata"].get("name")),
)
def test_a_service_that_cannot_be_read_is_left_out(made: Json) -> None:
    assert _sources([made]) == ()


def test_of_the_services_of_one_installation_the_one_that_answers_queries_is_named() -> None:
    made = [
        service("loki-memberlist", "loki", 7946),
        service("loki-backend", "loki", 3100, labels={"app.kubernetes.io/component": "backend"}),
        service("loki-gateway", "loki", 80, labels={"app.kubernetes.io/component": "gateway"}),
        service("headless", "tempo", 3200, clusterIP="None"),
        service("tempo-query", "tempo", 3200),
        service("tempo", "tempo", 3200, namespace="eu"),
    ]
    assert [each.service for each in _sources(made)] == ["tempo", "loki-gateway", "tempo-query"]


def test_a_port_with_tls_has_a_secure_address() -> None:
    (source,) = _sources([service("es", "elasticsearch", ports=[{"port": 9200, "name": "https"}])])
    assert source.url == "https://es.monitoring.svc:9200"


_JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["ports", "port", "name"]), inner),
    max_leaves=8,
)


@given(_JSON, _JSON)
def test_a_service_of_any_shape_never_fails(labels: JsonValue, spec: JsonValue) -> None:
    _sources([{"metadata": {"name": "a", "namespace": "b", "labels": labels}, "spec": spec}])
    known: JsonValue = {"name": "a", "namespace": "b", "labels": {NAME: "prometheus"}}
    _sources([{"metadata": known, "spec": spec}])
    _sources([{"metadata": known, "spec": {"selector": {"app": "a"}, "ports": spec}}])


async def test_two_small_lists_with_selectors_are_all_that_is_sent(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    old = service("stack", "", 9093, labels={"app": "alertmanager"})
    quiet_cluster.on(ALL, listing([service("prometheus", "prometheus", 9090), old, service("shop", "shop", 80)]))
    sources = await found(quiet_cluster, tmp_path)
    assert [each.service for each in sources] == ["prometheus", "stack"]
    assert [each.path for each in quiet_cluster.requests] == [ALL, ALL]
    selectors = sorted(each.query["labelSelector"].partition(" in (")[0] for each in quiet_cluster.requests)
    assert selectors == ["app", NAME]
    assert {each.query["limit"] for each in quiet_cluster.requests} == {"200"}


async def test_only_the_scoped_namespaces_are_read(quiet_cluster: KubernetesApi, tmp_path: Path) -> None:
    inside = "/api/v1/namespaces/shop/services"
    quiet_cluster.on(inside, listing([service("loki", "loki", 3100, namespace="shop")]))
    (source,) = await found(quiet_cluster, tmp_path, HOLMES_SCOPED_NAMESPACES="shop")
    assert source.namespace == "shop"
    assert {each.path for each in quiet_cluster.requests} == {inside}


@pytest.mark.parametrize(
    "answer", [status(403, "Forbidden", "no"), Answer(body=b"<html>"), status(404, "NotFound", "")]
)
async def test_a_cluster_that_refuses_costs_nothing(
    quiet_cluster: KubernetesApi, tmp_path: Path, answer: Answer
) -> None:
    quiet_cluster.on(ALL, answer)
    assert await found(quiet_cluster, tmp_path) == ()


async def test_without_a_cluster_or_an_open_question_nothing_is_sent(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    assert await find_sources(Environment.of({"KUBECONFIG": str(tmp_path / "none")}), UNCONFIGURED) == SourceSearch()
    kubeconfig = str(write_kubeconfig(tmp_path, quiet_cluster.url))
    disabled = [ToolsetStatus(name=each, state="disabled", reason="disabled in the configuration") for each in TOOLSETS]
    assert await find_sources(Environment.of({"KUBECONFIG": kubeconfig}), disabled) == SourceSearch()
    assert quiet_cluster.requests == []


def test_the_commands_name_what_was_found_and_how_to_configure_it(
    quiet_cluster: KubernetesApi, kubeconfig: Path, tmp_path: Path
) -> None:
    quiet_cluster.on(ALL, listing([service("mimir-gateway", "mimir", 80), service("loki", "loki", 3100)]))
    home = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig))
    listed = home.run("toolset", "list")
    expected = (
        "not configured; found mimir (Service monitoring/mimir-gateway); see holmes toolset show prometheus/metrics"
    )
    assert expected in listed.stdout
    shown = home.run("toolset", "show", "logs/sources").stdout
    assert "      type: loki\n      url: http://loki.monitoring.svc:3100\n" in shown
    assert "kubectl port-forward -n monitoring service/loki 8080:3100" in shown
    assert "mimir" not in shown
    unknown = home.run("toolset", "show", "metrics")
    assert (unknown.exit_code != 0, "unknown toolset 'metrics'; available toolsets:" in unknown.stderr) == (True, True)
    (tmp_path / "home/.holmes/config.yaml").write_text("discover_sources: false\n")
    before = len(quiet_cluster.asked(ALL))
    assert "found" not in home.run("toolset", "list").stdout
    assert len(quiet_cluster.asked(ALL)) == before


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, kubeconfig: Path, tmp_path: Path) -> Callable[..., Any]:
    """Open the toolsets as inside the cluster, where names of Services lead to this machine."""
    resolve = socket.getaddrinfo

    def local(host: bytes | str, *arguments: Any, **named: Any) -> object:  # noqa: ANN401  as the original
        name = host.decode() if isinstance(host, bytes) else host
        return resolve("127.0.0.1" if name.endswith(".svc") else name, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", local)

    async def is_inside(_: Environment) -> bool:
        return True

    monkeypatch.setattr(app_toolsets, "_is_inside", is_inside)

    async def opened(text: str = "") -> tuple[ToolsetStatus, Any]:
        (tmp_path / "config.yaml").write_text(f"model: m\n{text}\n")
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        settings = load_settings({"HOME": str(tmp_path), "KUBECONFIG": str(kubeconfig)}, tmp_path / "config.yaml", {})
        toolsets = await open_toolsets(settings, McpSessions(tmp_path))
        return state_of(toolsets, "prometheus/metrics"), toolsets

    return opened


def state_of(toolsets: OpenToolsets, name: str) -> ToolsetStatus:
    return next(each for each in toolsets.readiness.statuses if each.name == name)


def reads_stored_logs(toolsets: OpenToolsets) -> bool:
    (logs,) = (each.toolset for each in toolsets.readiness.ready if each.toolset.name == "kubernetes/logs")
    return "pods that no longer exist" in (logs.instructions or "")


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


async def test_inside_the_cluster_the_only_source_is_read(
    quiet_cluster: KubernetesApi, inside: Callable[..., Any]
) -> None:
    with thanos() as url:
        made = service("query", "thanos-query", ports=[{"port": port_of(url), "name": "http"}])
        quiet_cluster.on(ALL, listing([made]))
        state, toolsets = await inside()
        assert (state.state, toolsets.warnings, toolsets.broken) == ("enabled", (), ())
        assert re.fullmatch(r"prometheus: Thanos 0\.35\.1, \d+ ms, found in the cluster", state.detail)
        off, _ = await inside("discover_sources: false")
        chosen, _ = await inside("toolsets: {prometheus/metrics: {enabled: false}}")
    assert (off.state, off.reason) == ("disabled", NOT_CONFIGURED)
    assert chosen.reason == "disabled in the configuration"


async def test_a_source_that_rejects_requests_without_a_login_is_no_failure(
    quiet_cluster: KubernetesApi, inside: Callable[..., Any]
) -> None:
    quiet_cluster.on(ALL, listing([service("prometheus", "prometheus", ports=[{"port": 9, "name": "http"}])]))
    state, toolsets = await inside()
    assert (state.state, toolsets.broken) == ("disabled", ())
    assert "prometheus" not in "".join(toolsets.unavailable)
    assert "found prometheus (Service monitoring/prometheus); see holmes toolset show" in state.reason
    assert "not used: prometheus (http://prometheus.monitoring.svc:9): the connection is refused" in state.reason


async def test_of_several_sources_none_is_read_until_a_person_chooses(
    quiet_cluster: KubernetesApi, inside: Callable[..., Any]
) -> None:
    made = [service("prometheus", "prometheus", 9090, namespace=each) for each in ("a", "b", "c", "d")]
    quiet_cluster.on(ALL, listing(made))
    state, _ = await inside()
    assert state.state == "disabled"
    assert state.reason.startswith("not configured; found prometheus (Service a/prometheus), prometheus (Service b/")
    assert " and 1 more; see holmes toolset show prometheus/metrics" in state.reason


@pytest.mark.parametrize("product", ["elasticsearch", "opensearch"])
async def test_a_search_engine_may_belong_to_an_application_and_is_only_named(
    quiet_cluster: KubernetesApi, inside: Callable[..., Any], product: str
) -> None:
    with loki([]) as url:  # it would answer
        quiet_cluster.on(ALL, listing([service("search", product, ports=[{"port": port_of(url), "name": "http"}])]))
        _, toolsets = await inside()
    state = state_of(toolsets, "logs/sources")
    told = f"not configured; found {product} (Service monitoring/search); see holmes toolset show logs/sources"
    assert (state.state, state.reason) == ("disabled", told)
    assert not reads_stored_logs(toolsets)


@pytest.mark.parametrize("is_reachable", [True, False])
async def test_a_store_of_logs_beside_a_search_engine_is_read_and_the_search_engine_only_named(
    quiet_cluster: KubernetesApi, inside: Callable[..., Any], is_reachable: bool
) -> None:
    with loki([]) as url:
        ports = [{"port": port_of(url) if is_reachable else 9, "name": "http"}]
        engine = service("search", "elasticsearch", ports=[{"port": port_of(url), "name": "http"}])
        quiet_cluster.on(ALL, listing([service("loki", "loki", ports=ports), engine]))
        _, toolsets = await inside()
    state = state_of(toolsets, "logs/sources")
    assert reads_stored_logs(toolsets) == is_reachable
    if is_reachable:
        assert state.detail.endswith("found in the cluster, not read: elasticsearch (Service monitoring/search)")
    else:
        assert "found loki (Service monitoring/loki), elasticsearch (Service monitoring/search); see" in str(
            state.reason
        )
        assert "not used: logs (http://loki.monitoring.svc:9): the connection is refused" in str(state.reason)


@pytest.mark.parametrize("is_reachable", [True, False])
async def test_logs_of_pods_are_read_from_a_source_that_was_found_only_if_its_check_succeeded(
    quiet_cluster: KubernetesApi, inside: Callable[..., Any], is_reachable: bool
) -> None:
    with loki([]) as url:
        port = port_of(url) if is_reachable else 9
        quiet_cluster.on(ALL, listing([service("loki", "loki", ports=[{"port": port, "name": "http"}])]))
        _, toolsets = await inside()
    state = state_of(toolsets, "logs/sources")
    assert (state.state, reads_stored_logs(toolsets)) == ("enabled" if is_reachable else "disabled", is_reachable)
    refused = "not used: logs (http://loki.monitoring.svc:9): the connection is refused"
    assert is_reachable or refused in str(state.reason)


async def test_one_source_in_an_incomplete_list_may_not_be_the_only_one(
    quiet_cluster: KubernetesApi, inside: Callable[..., Any], tmp_path: Path
) -> None:
    with thanos() as url:
        made = service("query", "thanos-query", ports=[{"port": port_of(url), "name": "http"}])

        def one_list(request: Request) -> Answer:
            is_old = request.query["labelSelector"].startswith("app in")
            return status(403, "Forbidden", "no") if is_old else listing([made])(request)

        quiet_cluster.on(ALL, one_list)
        state, _ = await inside()
        told = "not configured; found thanos-query (Service monitoring/query); see holmes toolset show"
        assert (state.state, state.reason) == ("disabled", f"{told} prometheus/metrics")
        quiet_cluster.on(ALL, listing([made, *(service(f"t{each}", "tempo") for each in range(200))]))
        assert not (await searched(quiet_cluster, tmp_path)).is_complete
        state, _ = await inside()
    assert (state.state, state.reason) == ("disabled", f"{told} prometheus/metrics")


async def test_with_more_scoped_namespaces_than_are_read_no_source_is_the_only_one(
    quiet_cluster: KubernetesApi, tmp_path: Path
) -> None:
    names = [f"n{each}" for each in range(11)]
    for each in names:
        quiet_cluster.on(f"/api/v1/namespaces/{each}/services", listing([]))
    assert not (await searched(quiet_cluster, tmp_path, HOLMES_SCOPED_NAMESPACES=",".join(names))).is_complete
    assert (await searched(quiet_cluster, tmp_path, HOLMES_SCOPED_NAMESPACES=",".join(names[1:]))).is_complete


async def test_a_kubeconfig_can_give_another_cluster_the_name_of_the_context_in_a_pod(tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path, "https://other:6443")
    kubeconfig.write_text(kubeconfig.read_text().replace('"test"', '"in-cluster"'))
    variables = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBECONFIG": str(kubeconfig)}
    assert not await app_toolsets._is_inside(Environment.of(variables))


async def test_a_process_with_a_kubeconfig_is_not_inside(kubeconfig: Path) -> None:
    inside: dict[str, str] = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert not await app_toolsets._is_inside(Environment.of({**inside, "KUBECONFIG": str(kubeconfig)}))
    assert not await app_toolsets._is_inside(Environment.of({**inside, "KUBECONFIG": str(kubeconfig.parent / "none")}))


async def test_outside_the_cluster_a_start_sends_nothing(
    quiet_cluster: KubernetesApi, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    (tmp_path / "config.yaml").write_text("model: m\n")
    settings = load_settings({"HOME": str(tmp_path), "KUBECONFIG": str(kubeconfig)}, tmp_path / "config.yaml", {})
    await open_toolsets(settings, McpSessions(tmp_path))
    assert quiet_cluster.asked(ALL) == []
