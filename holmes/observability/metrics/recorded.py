"""The samples that a recording has of a source of metrics, and the queries that they answer.

A recording has the answers to the queries of the signals, for whole namespaces. A query about some of their pods is
answered from these, because the results have a label for the pod. No other query is evaluated: it is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from holmes.observability.access import QueryRejectedError
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_TEXT: Final = r'"((?:[^"\\]|\\.)*)"'
_PODS: Final = expression(rf'(?<!\w)namespace={_TEXT},pod(?:=~{_TEXT}|!="")')
_NAMESPACE: Final = expression(rf"(?<!\w)(?:exported_)?namespace={_TEXT}")
_NODES: Final = expression(rf"(?<!\w)node=~{_TEXT}")
_INSTANCES: Final = expression(rf"(?<!\w)instance=~{_TEXT}")
_COUNT_BY: Final = expression(r"count by \((\w+)\) \((\w*\{.*\})\)")
_SELECTOR: Final = expression(r"(?P<name>[\w:]*)(?:\{(?P<matchers>.*)\})?", re.DOTALL)
_MATCHER: Final = expression(rf"\s*(\w+)\s*(=~|!~|!=|=)\s*{_TEXT}\s*(?:,|$)")
_METRIC: Final = expression(r"[a-zA-Z_:][\w:]*(?=\{)")
_NESTED: Final = expression(r"[+*}][^()]*\)+[+*{]|\)[+*{]")
_OPEN: Final = expression(r"[+*]|,\}")
_MOST_PATTERN_CHARACTERS: Final = 2_000
_MOST_SHOWN: Final = 3
POD_INFO: Final = "kube_pod_info"

LabelMap: TypeAlias = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSeries:
    """The values of a series at the times of the recording. None stands for a time without a sample."""

    labels: LabelMap
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAnswer:
    """The answer to a query for all pods of a namespace, or of the whole cluster if it is empty.

    `query` has the placeholders of a signal. That of a query with `unless` contains all pods of the nodes.
    """

    query: str
    namespace: str
    series: tuple[RecordedSeries, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedMetrics:
    """The recorded answers of one source, and the labels of the series behind them.

    `current` are the series that had samples at the end. `product` is its name and version.
    """

    product: str
    start: float
    step_seconds: float
    samples: int
    answers: tuple[RecordedAnswer, ...]
    known: tuple[LabelMap, ...]
    current: tuple[LabelMap, ...]
    described: tuple[tuple[str, str, str, str], ...] = ()

    @property
    def end(self) -> float:
        return self.start + (self.samples - 1) * self.step_seconds

    @property
    def series(self) -> int:
        return sum(len(each.series) for each in self.answers)

    def label_values(self, label: str, selector: str = "") -> tuple[str, ...]:
        """Return the values of a label. Raises `QueryRejectedError` for a selector that cannot be read."""
        found = _selected(self.known, selector)
        return tuple(sorted({value for each in found if (value := each.get(label))}))

    def label_names(self, selector: str) -> tuple[str, ...]:
        return tuple(sorted({name for each in _selected(self.known, selector) for name in each}))

    def answer(self, query: str) -> Iterable[RecordedSeries]:
        """Return the series of a query. Raises `QueryRejectedError` if its answer was not recorded."""
        if counted := _COUNT_BY.fullmatch(query):
            return self._counted(counted[1], counted[2])
        if query.startswith("count(") and query.endswith(")"):
            total = len(tuple(self.answer(query.removeprefix("count(").removesuffix(")"))))
            return [self._constant({}, total)] if total else []
        asked = _Asked.of(query)
        namespace = "" if " unless " in asked.template else asked.namespace
        found = next(
            (
                each
                for each in self.answers
                if (each.query, each.namespace) in {(query, ""), (asked.template, namespace)}
            ),
            None,
        )
        if found is None:
            raise QueryRejectedError(self._refusal(query))
        return self._part(found, asked)

    def _counted(self, label: str, selector: str) -> list[RecordedSeries]:
        counts: dict[str, int] = {}
        name = selector.partition("{")[0]
        if name not in {each.get("__name__") for each in self.current}:
            raise QueryRejectedError(self._refusal(selector))
        for each in _selected(self.current, selector):
            counts[each.get(label, "")] = counts.get(each.get(label, ""), 0) + 1
        return [self._constant({label: value} if value else {}, count) for value, count in counts.items()]

    def _constant(self, labels: LabelMap, value: float) -> RecordedSeries:
        return RecordedSeries(labels=labels, values=(float(value),) * self.samples)

    def _part(self, found: RecordedAnswer, asked: _Asked) -> list[RecordedSeries]:
        """Return the series of an answer that are about the pods, nodes and instances that a query asks for."""
        if " unless " in found.query:
            return [each for each in found.series if self._is_neighbour(each.labels, asked)]
        kept = [each for each in found.series if _fits(each.labels, "instance", asked.instances)]
        if asked.pods is None or not kept:
            return kept
        if all("pod" in each.labels for each in kept):
            return [each for each in kept if _fits(each.labels, "pod", asked.pods)]
        # The result is a sum of the pods: it is known for all or none of them.
        metrics = set(_METRIC.findall(found.query))
        own = [
            each for each in self.known if each.get("namespace") == asked.namespace and each.get("__name__") in metrics
        ]
        matching = sum(_fits(each, "pod", asked.pods) for each in own)
        if 0 < matching < len(own):
            raise QueryRejectedError("the recording has this query only for all pods of the namespace together")
        return kept if matching else []

    def _is_neighbour(self, labels: Mapping[str, str], asked: _Asked) -> bool:
        """Return whether a pod is on one of the nodes, but not one of the pods that a query excludes."""
        namespace, pod = labels.get("namespace"), labels.get("pod")
        is_own = namespace == asked.namespace and _fits(labels, "pod", asked.pods)
        return not is_own and any(
            _fits(each, "node", asked.nodes)
            for each in self.current
            if each.get("__name__") == POD_INFO and each.get("namespace") == namespace and each.get("pod") == pod
        )

    def _refusal(self, query: str) -> str:
        metrics = set(_METRIC.findall(query))
        near = (each for each in self.answers if metrics & set(_METRIC.findall(each.query)))
        shown = [f"`{_readable(each)}`" for each in islice(near, _MOST_SHOWN)]
        known = f"recorded queries of these metrics: {', '.join(shown)}" if shown else "find_metrics lists its metrics"
        return f"the recording has the answers to fixed queries, and not to this one; {known}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A query with placeholders instead of its namespace and of the expressions for pods, nodes and instances."""

    template: str
    namespace: str
    pods: re.Pattern[str] | None
    nodes: re.Pattern[str] | None
    instances: re.Pattern[str] | None

    @classmethod
    def of(cls, query: str) -> _Asked:
        pods, nodes, instances = (each.search(query) for each in (_PODS, _NODES, _INSTANCES))
        template = query.replace(pods[0], "$pods") if pods else query
        place = _NAMESPACE.search(query)
        if place:
            template = template.replace(f'exported_namespace="{place[1]}"', "$exported")
            template = template.replace(f'namespace="{place[1]}"', "$namespace")
        for found, name in ((nodes, "$nodes"), (instances, "$instances")):
            template = template.replace(found[0], name) if found else template
        return cls(
            template=template,
            namespace=_unescaped(place[1]) if place else "",
            pods=_pattern(pods[2]) if pods and pods[2] is not None else None,
            nodes=_pattern(nodes[1]) if nodes else None,
            instances=_pattern(instances[1]) if instances else None,
        )


def _readable(answer: RecordedAnswer) -> str:
    namespace = f'namespace="{answer.namespace}"'
    return (
        answer.query.replace("$pods", f'{namespace},pod!=""')
        .replace("$exported", f"exported_{namespace}")
        .replace("$namespace", namespace)
        .replace("$nodes", 'node=~".*"')
        .replace("$instances", 'instance=~".*"')
    )


def _fits(labels: Mapping[str, str], label: str, pattern: re.Pattern[str] | None) -> bool:
    return pattern is None or label not in labels or pattern.fullmatch(labels[label]) is not None


def _selected(series: Iterable[LabelMap], selector: str) -> Iterator[LabelMap]:
    """Yield the series that match a selector such as `x{a="b",c=~"d|e"}`. An empty selector matches all."""
    name, checks = _checks(selector)
    for each in series:
        if (not name or each.get("__name__") == name) and all(check(each.get(label, "")) for label, check in checks):
            yield each


def _checks(selector: str) -> tuple[str, list[tuple[str, Callable[[str], bool]]]]:
    whole = _SELECTOR.fullmatch(selector.strip())
    written = (whole["matchers"] or "").strip() if whole else "?"
    checks: list[tuple[str, Callable[[str], bool]]] = []
    position = 0
    while position < len(written):
        found = _MATCHER.match(written, position)
        if found is None or found.end() == position:
            raise QueryRejectedError(f"{selector!r} is not a selector such as " + '{namespace="shop"}')
        checks.append((found[1], _check(found[2], found[3])))
        position = found.end()
    return (whole["name"] if whole else ""), checks


def _check(operator: str, written: str) -> Callable[[str], bool]:
    if operator in {"=", "!="}:
        wanted = _unescaped(written)
        return lambda value: (value == wanted) is (operator == "=")
    pattern = _pattern(written)
    return lambda value: (pattern.fullmatch(value) is not None) is (operator == "=~")


def _pattern(written: str) -> re.Pattern[str]:
    text = _unescaped(written)
    try:
        # Python's expressions take exponential time for some patterns that Prometheus searches in linear time.
        is_short = len(text) <= _MOST_PATTERN_CHARACTERS
        if is_short and not _NESTED.search(text) and all(len(_OPEN.findall(each)) <= 3 for each in text.split("|")):
            return re.compile(text)
    except (re.error, RecursionError):
        pass
    raise QueryRejectedError(f"{text[:100]!r} is not a regular expression that a recording can be searched for")


def _unescaped(written: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], written, flags=re.DOTALL)
