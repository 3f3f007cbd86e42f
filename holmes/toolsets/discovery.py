"""Finds monitoring systems in the cluster by the labels and ports of Services, for toolsets that are not configured.

Only Services are read. Nothing is sent to a system that was found, and it never gets credentials. Services that can
lead out of the cluster are left out.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from holmes.toolsets.catalogue import NOT_CONFIGURED, PythonToolset
from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from holmes.kubernetes.client import ClusterClient, ObjectList
    from holmes.toolsets.catalogue import Catalogue
    from holmes.toolsets.registry import PythonToolsetFactory, ToolsetStatus
    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonObject, JsonValue

_log = logging.getLogger(__name__)

_SECONDS: Final = 4.0
_MOST_SERVICES: Final = 200
_MOST_NAMESPACES: Final = 10
_MOST_NAMED: Final = 3
_DNS_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_NAME: Final = "app.kubernetes.io/name"
_OLD_NAME: Final = "app"
_READERS: Final = frozenset(
    {"alert-router", "all-in-one", "gateway", "grafana", "nginx", "prometheus", "query", "query-frontend", "server"}
    | {"single-binary", "vmselect", "vmsingle"}
)
"""Components that answer queries, where a system has several Services."""
_WEB_PORTS: Final = frozenset({"http", "web", "http-web", "http-metrics", "api", "service", "https"})


class _Product(NamedTuple):
    """A system with the toolset that reads it, its usual ports, and the path of its API.

    A system that `has_other_uses` may belong to an application, so it is only named.
    """

    toolset: str
    type: str
    ports: tuple[int, ...]
    path: str = ""
    has_other_uses: bool = False


_PROMETHEUS: Final = _Product("prometheus/metrics", "", (9090,))
_THANOS: Final = _Product("prometheus/metrics", "", (9090, 10902))
_VICTORIA_METRICS: Final = _Product("prometheus/metrics", "", (8428, 8429))
_ALERTMANAGER: Final = _Product("alertmanager/alerts", "", (9093,))
_VICTORIA_LOGS: Final = _Product("logs/sources", "victorialogs", (9428,))
_PRODUCTS: Final[Mapping[str, _Product]] = {
    "prometheus": _PROMETHEUS,
    "kube-prometheus-stack-prometheus": _PROMETHEUS,
    "thanos-query": _THANOS,
    "thanos-query-frontend": _THANOS,
    "mimir": _Product("prometheus/metrics", "", (8080,), "/prometheus"),
    "victoria-metrics": _VICTORIA_METRICS,
    "victoria-metrics-single": _VICTORIA_METRICS,
    "vmsingle": _VICTORIA_METRICS,
    "vmselect": _Product("prometheus/metrics", "", (8481,), "/select/0/prometheus"),
    "alertmanager": _ALERTMANAGER,
    "kube-prometheus-stack-alertmanager": _ALERTMANAGER,
    "loki": _Product("logs/sources", "loki", (3100,)),
    "opensearch": _Product("logs/sources", "opensearch", (9200,), has_other_uses=True),
    "elasticsearch": _Product("logs/sources", "elasticsearch", (9200,), has_other_uses=True),
    "victoria-logs": _VICTORIA_LOGS,
    "victoria-logs-single": _VICTORIA_LOGS,
    "jaeger": _Product("tracing/traces", "jaeger", (16686,)),
    "tempo": _Product("tracing/traces", "tempo", (3200, 3100)),
    "grafana": _Product("grafana/dashboards", "", (3000,)),
}
TOOLSETS: Final = frozenset(each.toolset for each in _PRODUCTS.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSource:
    """A Service that looks like a monitoring system. `product` is the value of its label."""

    product: str
    service: str
    namespace: str
    port: int
    scheme: str

    @property
    def toolset(self) -> str:
        return _PRODUCTS[self.product].toolset

    @property
    def has_other_uses(self) -> bool:
        """Whether it may belong to an application."""
        return _PRODUCTS[self.product].has_other_uses

    @property
    def url(self) -> str:
        """The address inside the cluster."""
        path = _PRODUCTS[self.product].path
        return f"{self.scheme}://{self.service}.{self.namespace}.svc:{self.port}{path}"

    @property
    def config(self) -> dict[str, JsonValue]:
        """The `config` of the toolset."""
        kind = _PRODUCTS[self.product].type
        key = "prometheus_url" if self.toolset == _PROMETHEUS.toolset else "url"
        return {**({"type": kind} if kind else {}), key: self.url}

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of a configuration file with which the toolset reads this source."""
        keys = (f"      {key}: {value}" for key, value in self.config.items())
        return ("toolsets:", f"  {self.toolset}:", "    config:", *keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSearch:
    """The systems that were found. There may be further ones unless the search `is_complete`."""

    found: tuple[FoundSource, ...] = ()
    is_complete: bool = False

    @property
    def usable(self) -> tuple[FoundSource, ...]:
        """The systems that a toolset can read without a choice of a person: the only one of its toolset.

        A system that may belong to an application is never one, so it does not make the choice ambiguous.
        """
        certain = [each for each in self.found if not each.has_other_uses] if self.is_complete else []
        counted = Counter(each.toolset for each in certain)
        return tuple(each for each in certain if counted[each.toolset] == 1)


async def find_sources(environment: Environment, statuses: Sequence[ToolsetStatus]) -> SourceSearch:
    """Search the cluster of `environment` for systems of the toolsets that are not configured.

    Nothing is found if the Services cannot be read in time.
    """
    wanted = TOOLSETS & {each.name for each in statuses if each.reason == NOT_CONFIGURED}
    if not wanted:
        return SourceSearch()
    from holmes.kubernetes.client import ClusterClient
    from holmes.kubernetes.sender import ClientLimits

    try:
        async with (
            asyncio.timeout(_SECONDS),
            await ClusterClient.connect(environment, limits=ClientLimits(request_timeout_seconds=_SECONDS)) as client,
        ):
            lists = await asyncio.gather(*(_listed(client, path, label) for path, label in _places(client.scope)))
            is_complete = len(client.scope) <= _MOST_NAMESPACES and all(
                each is not None and each.complete for each in lists
            )
    except (HolmesError, TimeoutError) as error:
        _log.debug("Services are not searched for monitoring systems: %s", error)
        return SourceSearch()
    found = _sources(item for each in lists if each is not None for item in each.items)
    return SourceSearch(found=tuple(each for each in found if each.toolset in wanted), is_complete=is_complete)


def _places(scope: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each list as its path and label. A selector cannot combine two labels with "or"."""
    paths = [f"/api/v1/namespaces/{each}/services" for each in scope[:_MOST_NAMESPACES]]
    for path in paths or ["/api/v1/services"]:
        yield path, _NAME
        yield path, _OLD_NAME


async def _listed(client: ClusterClient, path: str, label: str) -> ObjectList | None:
    selector = f"{label} in ({','.join(_PRODUCTS)})"
    try:
        return await client.list(path, {"labelSelector": selector}, limit=_MOST_SERVICES)
    except HolmesError as error:
        _log.debug("Services are not searched for monitoring systems: %s", error)
        return None


def _sources(services: Iterable[JsonObject]) -> tuple[FoundSource, ...]:
    """Return one source for each installation: of its Services, the one that answers queries."""
    from holmes.kubernetes.fields import child, text

    best: dict[tuple[str, str, str], tuple[tuple[bool, bool, int, str], FoundSource]] = {}
    for service in services:
        source = _source(service)
        if source is None:
            continue
        labels = child(service, "metadata", "labels")
        component = text(labels, "app.kubernetes.io/component")
        is_headless = text(service, "spec", "clusterIP") == "None"
        rank = (bool(component) and component not in _READERS, is_headless, len(source.service), source.service)
        key = source.namespace, source.product, text(labels, "app.kubernetes.io/instance")
        if key not in best or rank < best[key][0]:
            best[key] = rank, source
    return tuple(found for _, found in sorted(best.values(), key=lambda pair: (pair[1].namespace, pair[1].service)))


def _source(service: JsonObject) -> FoundSource | None:
    """Return the source behind a Service, or None if it is not known, has no port for its API, or is elsewhere.

    The addresses behind a Service without a selector are written by hand, and can be those of an external system.
    """
    from holmes.kubernetes.fields import child, children, text

    labels = child(service, "metadata", "labels")
    product = next((name for label in (_NAME, _OLD_NAME) if (name := text(labels, label)) in _PRODUCTS), "")
    is_elsewhere = text(service, "spec", "type") == "ExternalName" or not child(service, "spec", "selector")
    if not product or is_elsewhere:
        return None
    ports = [each for each in children(child(service, "spec"), "ports") if text(each, "protocol") in {"", "TCP"}]
    chosen = _port(ports, _PRODUCTS[product].ports)
    number = chosen.get("port") if chosen is not None else None
    if chosen is None or not isinstance(number, int):
        return None
    name, namespace = text(service, "metadata", "name"), text(service, "metadata", "namespace")
    if not (_DNS_NAME.fullmatch(name) and _DNS_NAME.fullmatch(namespace)):
        return None
    is_secure = number in {443, 8443} or text(chosen, "name") == "https" or text(chosen, "appProtocol") == "https"
    return FoundSource(
        product=product,
        service=name,
        namespace=namespace,
        port=number,
        scheme="https" if is_secure else "http",
    )


def _port(ports: Sequence[JsonObject], usual: Sequence[int]) -> JsonObject | None:
    """Return the port with a usual number, here or in the pods, else the one that is named like an API."""
    from holmes.kubernetes.fields import text

    for number in usual:
        for each in ports:
            if number in {each.get("port"), each.get("targetPort")}:
                return each
    named = [each for each in ports if text(each, "name") in _WEB_PORTS]
    return named[0] if named else next((each for each in ports if each.get("port") == 80), None)


def with_found(catalogue: Catalogue, factories: Sequence[PythonToolsetFactory], search: SourceSearch) -> Catalogue:
    """Return the catalogue in which each toolset for which exactly one system is found reads it.

    Of several, a person must choose. The systems must be reachable, so this process runs inside the cluster.
    """
    configs = {each.toolset: each.config for each in search.usable}
    python = tuple(
        PythonToolset(factory=each, source=type(each).__module__, config=configs[each.name], is_found=True)
        for each in factories
        if each.name in configs
    )
    statuses = tuple(each for each in catalogue.statuses if each.name not in configs)
    return replace(catalogue, python=(*catalogue.python, *python), statuses=statuses)


def with_reasons(
    statuses: Iterable[ToolsetStatus], found: Sequence[FoundSource], used: Collection[str]
) -> tuple[ToolsetStatus, ...]:
    """Return the statuses with what was found for their toolsets. Those in `used` read it.

    If reading fails, the toolset is disabled, not failed. The configuration does not name it, and it may need a login.
    """
    of_toolset: dict[str, list[FoundSource]] = {}
    for each in found:
        of_toolset.setdefault(each.toolset, []).append(each)
    return tuple(
        _told(each, of_toolset[each.name], is_used=each.name in used) if each.name in of_toolset else each
        for each in statuses
    )


def _told(status: ToolsetStatus, sources: Sequence[FoundSource], *, is_used: bool) -> ToolsetStatus:
    if status.state == "enabled" and is_used:
        others = [each for each in sources if each.has_other_uses]
        unread = f"not read: {_named(others)}" if others else ""
        return replace(status, detail=", ".join(filter(None, (status.detail, "found in the cluster", unread))))
    if status.reason != NOT_CONFIGURED and not is_used:
        return status
    why = f", not used: {status.reason}" if status.state == "failed" else ""
    reason = f"{NOT_CONFIGURED}; found {_named(sources)}; see holmes toolset show {status.name}{why}"
    return replace(status, state="disabled", reason=reason, is_chosen=False)


def _named(sources: Sequence[FoundSource]) -> str:
    named = ", ".join(f"{each.product} (Service {each.namespace}/{each.service})" for each in sources[:_MOST_NAMED])
    return f"{named} and {len(sources) - _MOST_NAMED} more" if len(sources) > _MOST_NAMED else named
