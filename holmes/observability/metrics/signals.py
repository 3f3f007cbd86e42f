"""Signals of metrics, the subjects whose signals are read, and the signals of requests, whose metrics have many names.

Each signal is one query. The fixed ones are in `signal_catalogue`.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.observability.metrics.series import escaped
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

_METRIC: Final = expression(r"([a-z]\w+)\{")

SignalKind: TypeAlias = Literal["share", "excess", "delay", "level", "count"]
"""`share`: a part of a limit, from 0 to 1. `excess`: a number that is high from a value on. `delay`: a number that is
bad if it doubles. `level`: its changes say something, but are not bad by themselves. `count`: usually 0."""
Scope: TypeAlias = Literal["pods", "namespace", "node", "cluster"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One signal. A value of at least `high` is not normal. `meaning` says what the signal does to the workload.

    In `query`, `$pods` and `$namespace` stand for the matchers of the subject, and `$exported` for those of its
    namespace in the metrics of an ingress controller. `$nodes` and `$instances` stand for those of its nodes.
    """

    name: str
    query: str
    kind: SignalKind
    meaning: str = ""
    high: float = 0.0

    @property
    def scope(self) -> Scope:
        """The place that the signal describes."""
        if "$nodes" in self.query or "$instances" in self.query:
            return "node"
        if "$pods" in self.query:
            return "pods"
        return "namespace" if "$" in self.query else "cluster"

    @property
    def metrics(self) -> frozenset[str]:
        """The metrics without which the signal has no values."""
        return frozenset(_METRIC.findall(self.query))


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The nodes on which the pods run, and the addresses of their node-exporters."""

    names: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()


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

    def query(self, signal: Signal, nodes: Nodes) -> str:
        return Template(signal.query).substitute(
            pods=self.selector,
            namespace=self._namespace,
            exported=f"exported_{self._namespace}",
            nodes=f'node=~"{one_of(nodes.names)}"',
            instances=f'instance=~"{one_of(nodes.instances)}"',
        )

    @property
    def _namespace(self) -> str:
        return f'namespace="{escaped(self.namespace)}"'


_REQUESTS: Final = expression(r"^(?:[a-zA-Z_:][\w:]*_)?requests?_(?:total|(?:duration_)?seconds_count)$")
_DURATIONS: Final = expression(r"^(?:.*_)?requests?_(?:duration_)?seconds_count$")
STATUS_LABELS: Final = (
    "code",
    "status",
    "status_code",
    "http_status",
    "http_response_status_code",
    "response_code",
    "grpc_code",
)
ISTIO: Final = "istio_requests_total"
_FAILURES: Final = "failed requests"
_RATE: Final = "requests per second"
_MEAN: Final = "mean seconds of a request"
OF_REQUESTS: Final = frozenset({_FAILURES, _RATE, _MEAN})
"""The signals that several counters can have. Those of the ingress controller have another name."""
_SLOW_SECONDS: Final = 0.05
"""A request that takes less is not called slow, even if it took much less before."""
_FAILED: Final = "5..|INTERNAL|UNAVAILABLE|Internal|Unavailable|internal|unavailable|DEADLINE_EXCEEDED"


def request_metrics(names: Collection[str]) -> tuple[str, ...]:
    """Return the counters of requests among `names` that the pods answer, those of users first.

    Requests that the pods send, or that read their metrics, tell nothing about their own service.
    """
    found = [name for name in names if _REQUESTS.match(name) and "client" not in name and "promhttp" not in name]
    return tuple(sorted(found, key=lambda name: ("http" not in name, len(name), name)))


def request_signals(metric: str, status_label: str) -> Iterator[Signal]:
    """Yield the signals of a counter of requests. `status_label` is empty if it has no label for the status."""
    # A sidecar of Istio also counts the requests that its own pod sends.
    own = '$pods,reporter="destination"' if metric == ISTIO else "$pods"
    total = f"sum by (pod) (rate({metric}{{{own}}}[5m]))"
    if status_label:
        failed = f'sum by (pod) (rate({metric}{{{own},{status_label}=~"{_FAILED}"}}[5m]))'
        yield Signal(
            name=_FAILURES,
            query=f"{failed} / {total}",
            kind="share",
            high=0.05,
            meaning="these requests are answered with errors of the server",
        )
    yield Signal(name=_RATE, query=total, kind="level")

    if _DURATIONS.match(metric):
        spent = f"sum by (pod) (rate({metric.removesuffix('_count')}_sum{{$pods}}[5m]))"
        query = f"{spent} / sum by (pod) (rate({metric}{{$pods}}[5m]))"
        yield Signal(name=_MEAN, query=query, kind="delay", high=_SLOW_SECONDS)


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


def one_of(names: Iterable[str]) -> str:
    """Return a regular expression of PromQL for exactly these names."""
    return "|".join(map(_literal, names))


def _literal(name: str) -> str:
    """Return a name as a regular expression inside a string of PromQL."""
    return escaped("".join(f"\\{each}" if each in r"\.+*?()[]{}|^$" else each for each in name))
