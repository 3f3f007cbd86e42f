"""The signals of workloads that common exporters offer: cAdvisor, kube-state-metrics, kubelet, servers and databases.

Each signal is one query about the pods of a subject. Signals whose metrics the source does not have are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.observability.metrics.series import escaped
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_METRIC: Final = expression(r"([a-z]\w+)\{")

SignalKind: TypeAlias = Literal["share", "level", "count"]
"""`share`: a part of a limit, from 0 to 1. `level`: only its changes say something. `count`: usually 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One signal. A value of at least `high` is not normal. `meaning` says what the signal does to the workload.

    In `query`, `$pods` and `$namespace` stand for the matchers of the subject.
    """

    name: str
    query: str
    kind: SignalKind
    meaning: str = ""
    high: float = 0.0

    @property
    def is_of_pods(self) -> bool:
        """Whether the signal belongs to the pods, and not to anything in their namespace."""
        return "$pods" in self.query

    @property
    def metrics(self) -> frozenset[str]:
        """The metrics without which the signal has no values."""
        return frozenset(_METRIC.findall(self.query))


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalSubject:
    """The pods whose signals are read: those that `pods` names, or all pods of the namespace.

    A name is that of a pod, the beginning of names if it ends in `-`, a workload such as `deployment/web`, or, without
    a kind, a pod or any workload.
    """

    namespace: str
    pods: tuple[str, ...] = ()

    @property
    def selector(self) -> str:
        """The matchers of the pods, without braces."""
        names = "|".join(pattern for each in self.pods for pattern in _patterns(each))
        return f'{self._namespace},pod=~"{names}"' if names else f'{self._namespace},pod!=""'

    def query(self, signal: Signal) -> str:
        return Template(signal.query).substitute(pods=self.selector, namespace=self._namespace)

    @property
    def _namespace(self) -> str:
        return f'namespace="{escaped(self.namespace)}"'


_CONTAINER: Final = '{$pods,container!="",container!="POD"}'
_BY: Final = "by (pod, container)"
_LIMITS: Final = f"max {_BY} (kube_pod_container_resource_limits{{$pods,resource="
SIGNALS: Final[Sequence[Signal]] = (
    Signal(
        name="CPU throttling",
        query=f"sum {_BY} (rate(container_cpu_cfs_throttled_periods_total{_CONTAINER}[5m])) / "
        f"sum {_BY} (rate(container_cpu_cfs_periods_total{_CONTAINER}[5m]))",
        kind="share",
        high=0.25,
        meaning="the container stops in these periods, because it has used up its CPU limit",
    ),
    Signal(
        name="memory of its limit",
        query=f'max {_BY} (container_memory_working_set_bytes{_CONTAINER}) / {_LIMITS}"memory"}})',
        kind="share",
        high=0.9,
        meaning="at its limit, the container is killed",
    ),
    Signal(
        name="CPU of its limit",
        query=f'max {_BY} (rate(container_cpu_usage_seconds_total{_CONTAINER}[5m])) / {_LIMITS}"cpu"}})',
        kind="share",
        high=0.95,
        meaning="at its limit, the container is throttled",
    ),
    Signal(
        name="usage of the volume",
        query="max by (persistentvolumeclaim) (kubelet_volume_stats_used_bytes{$namespace}) / "
        "max by (persistentvolumeclaim) (kubelet_volume_stats_capacity_bytes{$namespace})",
        kind="share",
        high=0.9,
        meaning="a full volume fails writes",
    ),
    Signal(
        name="connections of the maximum of PostgreSQL",
        query="sum by (instance) (pg_stat_activity_count{$namespace}) / "
        "max by (instance) (pg_settings_max_connections{$namespace})",
        kind="share",
        high=0.9,
        meaning="at the maximum, new connections are refused",
    ),
    Signal(
        name="connections of the maximum of MySQL",
        query="max by (instance) (mysql_global_status_threads_connected{$namespace}) / "
        "max by (instance) (mysql_global_variables_max_connections{$namespace})",
        kind="share",
        high=0.9,
        meaning="at the maximum, new connections are refused",
    ),
    Signal(
        name="connections of the maximum of Redis",
        query="max by (instance) (redis_connected_clients{$namespace}) / "
        "max by (instance) (redis_config_maxclients{$namespace})",
        kind="share",
        high=0.9,
        meaning="at the maximum, new connections are refused",
    ),
    Signal(
        name="restarts in 10 minutes",
        high=0.5,
        query=f"sum {_BY} (increase(kube_pod_container_status_restarts_total{{$pods}}[10m]))",
        kind="count",
        meaning="the container was restarted",
    ),
    Signal(
        name="dropped packets per second",
        high=1.0,
        query="sum by (pod) (rate(container_network_receive_packets_dropped_total{$pods}[5m]))",
        kind="count",
        meaning="the network of the pod drops packets",
    ),
)
_REQUESTS: Final = expression(r"^(?:[a-zA-Z_:][\w:]*_)?requests?_(?:total|(?:duration_)?seconds_count)$")
_DURATIONS: Final = expression(r"^(?:.*_)?requests?_(?:duration_)?seconds_count$")
STATUS_LABELS: Final = ("code", "status", "status_code", "http_status", "http_response_status_code", "grpc_code")
_FAILED: Final = "5..|INTERNAL|UNAVAILABLE|Internal|Unavailable|internal|unavailable|DEADLINE_EXCEEDED"


def signals_of(names: Collection[str]) -> tuple[Signal, ...]:
    """Return the signals whose metrics are among `names`, without those of requests."""
    return tuple(signal for signal in SIGNALS if signal.metrics <= set(names))


def request_metrics(names: Collection[str]) -> tuple[str, ...]:
    """Return the counters of requests among `names`, those that users see before those of clients and internals."""
    found = [name for name in names if _REQUESTS.match(name)]
    return tuple(sorted(found, key=lambda name: ("client" in name, "http" not in name, len(name), name)))


def request_signals(metric: str, status_label: str) -> Iterator[Signal]:
    """Yield the signals of a counter of requests. `status_label` is empty if it has no label for the status."""
    total = f"sum by (pod) (rate({metric}{{$pods}}[5m]))"
    if status_label:
        failed = f'sum by (pod) (rate({metric}{{$pods,{status_label}=~"{_FAILED}"}}[5m]))'
        yield Signal(
            name="failed requests",
            query=f"{failed} / {total}",
            kind="share",
            high=0.05,
            meaning="these requests are answered with errors of the server",
        )
    yield Signal(name="requests per second", query=total, kind="level")
    if _DURATIONS.match(metric):
        spent = f"sum by (pod) (rate({metric.removesuffix('_count')}_sum{{$pods}}[5m]))"
        yield Signal(name="mean seconds of a request", query=f"{spent} / {total}", kind="level")


_HASH: Final = "[bcdfghjklmnpqrstvwxz2456789]"
_ENDINGS: Final = {
    "deployment": f"-{_HASH}{{1,10}}-{_HASH}{{5}}",
    "replicaset": f"-{_HASH}{{5}}",
    "daemonset": f"-{_HASH}{{5}}",
    "statefulset": "-[0-9]+",
    "job": f"(-[0-9]+)?-{_HASH}{{5}}",
    "cronjob": f"-[0-9]+(-[0-9]+)?-{_HASH}{{5}}",
    "pod": "",
}
"""The text that each controller appends to its name for the names of its pods."""


def _patterns(name: str) -> Iterator[str]:
    """Yield regular expressions for the names of pods."""
    kind, _, own = name.rpartition("/")
    kind = kind.lower().removesuffix("s") if kind.lower() not in _ENDINGS else kind.lower()
    if name.endswith("-"):
        yield f"{_literal(name)}.*"
    elif kind in _ENDINGS:
        yield f"{_literal(own)}{_ENDINGS[kind]}"
    else:
        yield from (f"{_literal(own)}{ending}" for ending in _ENDINGS.values())


def _literal(name: str) -> str:
    """Return a name as a regular expression inside a string of PromQL."""
    return escaped("".join(f"\\{each}" if each in r"\.+*?()[]{}|^$" else each for each in name))
