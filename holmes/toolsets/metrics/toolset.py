"""The toolset `prometheus/metrics` and its factory.

Queries are checked before they are sent: their size, their ranges, and the number of series that they return. Each call
opens its own connection.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from pydantic import AwareDatetime  # noqa: TC002  pydantic reads the annotation

from holmes.observability.access import QueryRejectedError, SourceAccess
from holmes.toolsets.instances import InstanceKeys, Instances, SourceFactory, SourceKind
from holmes.toolsets.metrics.tools import (
    ALERT,
    ALERT_RULES,
    FIND,
    INSTANT,
    LABELS,
    RANGE,
    SIGNALS,
    TARGETS,
    TOOLS,
)
from holmes.toolsets.source_clusters import METRICS_TOOLSET
from holmes.values.errors import ToolError
from holmes.values.tool_arguments import text_argument
from holmes.values.tools import ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from holmes.observability.access import SourceClient
    from holmes.observability.metrics.series import Metric
    from holmes.observability.metrics.source import MetricsSource
    from holmes.values.charts import Chart
    from holmes.values.json_types import JsonObject
    from holmes.values.messages import ToolStatus
    from holmes.values.tools import Tool, ToolInvocation, Toolset

MOST_SERIES: Final = 1_000
_MOST_SAMPLES: Final = 200_000
_MOST_LABELS: Final = 20
_SEARCHING: Final = frozenset({ALERT.name, SIGNALS.name})
"""The tools that search all instances: for the rule, or for the metrics of the pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The text of a result, and its chart if it has one."""

    text: str
    chart: Chart | None = None


class MetricsKeys(InstanceKeys):
    """The keys of one source. `time` is now for a source with samples of the past."""

    time: AwareDatetime | None = None

    def access(self, name: str) -> SourceAccess:
        return replace(super().access(name), present_seconds=self.time.timestamp() if self.time else None)


KIND: Final[SourceKind[SourceAccess]] = SourceKind(
    toolset=METRICS_TOOLSET,
    single="prometheus",
    keys=MetricsKeys,
    old_names={
        "prometheus_url": "url",
        "additional_headers": "headers",
        "prometheus_ssl_enabled": "verify_ssl",
        "query_timeout_seconds_default": "timeout_seconds",
    },
)


class MetricsToolset:
    def __init__(self, instances: Sequence[SourceAccess]) -> None:
        self._instances = Instances(instances)

    @property
    def name(self) -> str:
        return KIND.toolset

    @property
    def instructions(self) -> str:
        return (
            "For metrics, search with find_metrics before you write a query, and prefer query_metrics_range: it shows "
            "when a value changed. A change in a metric at the time of a symptom is a correlation, not a cause."
        )

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self._instances.offered(TOOLS, searching=_SEARCHING)

    def describe(self, invocation: ToolInvocation) -> str:
        """Return one line for the user, for example `Query metrics: up == 0`."""
        given = invocation.arguments
        words = {
            FIND.name: f"Find metrics about {text_argument(given, 'words')!r}",
            LABELS.name: f"Read labels of {text_argument(given, 'metric')}",
            INSTANT.name: f"Query metrics: {text_argument(given, 'query')}",
            RANGE.name: f"Query metrics of the last {text_argument(given, 'since') or '1h'}: "
            f"{text_argument(given, 'query')}",
            ALERT_RULES.name: "Read alert rules",
            SIGNALS.name: f"Read signals of {text_argument(given, 'pods') or text_argument(given, 'namespace')}",
            ALERT.name: f"Read alert {text_argument(given, 'name')}",
            TARGETS.name: "Read scrape targets",
        }
        return words[invocation.tool.name]

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Run one query. Raises `ToolError` with the source, the reason and the next step."""
        searches = invocation.tool.name in _SEARCHING
        arguments = invocation.arguments
        sources = self._instances.searched(arguments) if searches else (self._instances.chosen(arguments),)
        failures: list[ToolError] = []
        for access in sources:
            try:
                answered = await _run(access, invocation, is_one_of_several=len(sources) > 1)
            except ToolError as error:
                failures.append(error)
                continue
            described = f"{access.name}: {self.describe(invocation)}"
            status: ToolStatus = "success" if answered.text else "no_data"
            return ToolResult(status=status, data=answered.text, chart=answered.chart, invocation=described)
        raise failures[0] if len(failures) == 1 else ToolError(" ".join(map(str, failures)))


async def _run(access: SourceAccess, invocation: ToolInvocation, *, is_one_of_several: bool) -> Answered:
    from holmes.observability.access import open_source
    from holmes.observability.metrics.prometheus import PrometheusSource
    from holmes.toolsets.metrics.texts import incomplete_text

    runs: dict[str, Callable[[MetricsSource, JsonObject], Awaitable[str | Answered]]] = {
        FIND.name: _find,
        LABELS.name: _labels,
        INSTANT.name: _instant,
        RANGE.name: _range,
        ALERT_RULES.name: _rules,
        SIGNALS.name: _signals,
        ALERT.name: partial(_alert, only_own=is_one_of_several),
        TARGETS.name: _targets,
    }
    async with open_source(access) as client:
        source = PrometheusSource(client)
        try:
            answered = await runs[invocation.tool.name](source, invocation.arguments)
        except ToolError as error:
            if not source.missing:
                raise
            # The missing data can contain the series that the tool searched for.
            raise ToolError(f"{error}; {incomplete_text(source.missing)}") from error
    whole = Answered(text=answered) if isinstance(answered, str) else answered
    if not source.missing:
        return whole
    return replace(whole, text=f"{whole.text or 'no data'}\n{incomplete_text(source.missing)}")


async def _find(source: MetricsSource, arguments: JsonObject) -> str:
    from holmes.toolsets.metrics.texts import metrics_text

    selector = text_argument(arguments, "labels")
    known = await source.metrics()
    if selector:
        named = set(await source.label_values("__name__", selector if selector.startswith("{") else f"{{{selector}}}"))
        known = tuple(each for each in known if each.name in named)
    words = text_argument(arguments, "words").lower().replace("_", " ").split()
    found = _best_matches(known, words)
    return metrics_text(found) if found else ""


def _best_matches(known: Sequence[Metric], words: Sequence[str]) -> list[Metric]:
    """Return the metrics with the most of the words in their names or descriptions. Words in names count double."""

    def score(metric: Metric) -> int:
        name, about = metric.name.lower(), f"{metric.help} {metric.type} {metric.unit}".lower()
        return sum(2 * (word in name) + (word in about) for word in words)

    scored = [(score(metric), metric) for metric in known]
    return [
        metric
        for points, metric in sorted(scored, key=lambda pair: (-pair[0], len(pair[1].name), pair[1].name))
        if points or not words
    ]


async def _labels(source: MetricsSource, arguments: JsonObject) -> str:
    from holmes.observability.metrics.queries import nearest_metrics
    from holmes.toolsets.metrics.texts import metric_labels_text, values_text

    metric, label = text_argument(arguments, "metric"), text_argument(arguments, "label")
    selector = f'{{__name__="{metric}"}}' if metric.replace(":", "_").isidentifier() else ""
    if not selector:
        raise ToolError(f"metric {metric!r} is not a valid name; find_metrics searches by words")
    names = [each for each in await source.label_names(selector) if each != "__name__"]
    if not names:
        raise ToolError(nearest_metrics([metric], await source.label_values("__name__")) or f"{metric} has no labels")
    if label:
        if label not in names:
            raise ToolError(f"metric {metric} has no label {label!r}; available labels: {', '.join(names)}")
        return values_text(label, await source.label_values(label, selector))
    values = await asyncio.gather(*(source.label_values(each, selector) for each in names[:_MOST_LABELS]))
    return metric_labels_text(metric, list(zip(names, values, strict=False)))


async def _instant(source: MetricsSource, arguments: JsonObject) -> str:
    from holmes.toolsets.metrics.ranges import moment
    from holmes.toolsets.metrics.texts import instant_text

    query, at = text_argument(arguments, "query"), moment("time", text_argument(arguments, "time"), source.access.now)
    metrics = await _checked(source, query)
    await _refuse_many_series(source, query, at, 1)
    result = await source.instant(query, at)
    return instant_text(query, result, at) if result.series else await _nothing(source, query, metrics)


async def _range(source: MetricsSource, arguments: JsonObject) -> str | Answered:
    from holmes.observability.metrics.marks import read_marks, read_threshold
    from holmes.observability.metrics.signal_reading import Window
    from holmes.toolsets.metrics.range_charts import Context, described
    from holmes.toolsets.metrics.ranges import time_range

    query = text_argument(arguments, "query")
    since, until, step = (text_argument(arguments, name) for name in ("since", "until", "step"))
    asked = time_range(since=since, until=until, step=step, now=source.access.now)
    metrics = await _checked(source, query)
    samples = int((asked.end - asked.start) / asked.step_seconds) + 1
    await _refuse_many_series(source, query, asked.end, samples)
    result, threshold = await asyncio.gather(
        source.range(query, start=asked.start, end=asked.end, step_seconds=asked.step_seconds),
        read_threshold(source, query, metrics),
    )
    if not result.series:
        return await _nothing(source, query, metrics)
    window = Window(start=asked.start, end=asked.end, step_seconds=asked.step_seconds)
    marks = await read_marks(source, query, result.series, window)
    context = Context(threshold=threshold, marks=marks)
    text, chart = await asyncio.to_thread(described, query, result, asked, context)
    return Answered(text=text, chart=chart)


async def _checked(source: MetricsSource, query: str) -> tuple[str, ...]:
    """Check a query, and return the metrics that it names. Raises `ToolError` with the place of a syntax error."""
    from holmes.observability.metrics.queries import check_query

    checked = check_query(query)
    if checked.problem is not None:
        try:
            problem = await source.syntax_error(query)
        except ToolError:
            problem = checked.problem
        if problem is not None:
            raise ToolError(f"query is not valid PromQL: {problem}")
    return checked.metrics


async def _refuse_many_series(source: MetricsSource, query: str, at: float, samples: int) -> None:
    """Count the series of a query before it is read. A scalar has no series, and cannot be counted."""
    try:
        counted = await source.instant(f"count({query})", at)
    except QueryRejectedError:
        return
    number = int(counted.series[0].values[0]) if counted.series and counted.series[0].values else 0
    most = min(MOST_SERIES, _MOST_SAMPLES // samples)
    if number > most:
        raise ToolError(
            f"the query returns {number:,} series; at most {most:,} can be read for this range: aggregate with "
            "sum by (…), select labels, or use topk(10, …)"
        )


async def _nothing(source: MetricsSource, query: str, metrics: Sequence[str]) -> str:
    """Explain an empty result: a metric that does not exist, or labels that match no series."""
    from holmes.observability.metrics.queries import nearest_metrics

    missing = nearest_metrics(metrics, await source.label_values("__name__"))
    if missing:
        raise ToolError(f"the query {query!r} returns no series: {missing}")
    return ""


async def _rules(source: MetricsSource, arguments: JsonObject) -> str:
    from holmes.toolsets.metrics.texts import rules_text

    words = text_argument(arguments, "words").lower().split()
    order = {"firing": 0, "pending": 1}
    found = sorted(
        (
            each
            for each in await source.rules()
            if all(word in f"{each.name} {each.group} {each.query} {each.state}".lower() for word in words)
        ),
        key=lambda each: (order.get(each.state, 2), not each.error, each.name),
    )
    return rules_text(found) if found else ""


async def _signals(source: MetricsSource, arguments: JsonObject) -> str:
    from holmes.observability.metrics.signal_reading import Window, read_signals
    from holmes.observability.metrics.signals import SignalSubject
    from holmes.toolsets.metrics.ranges import time_range
    from holmes.toolsets.metrics.signal_texts import signals_text

    asked = time_range(since=text_argument(arguments, "since") or "3h", until="", step="", now=source.access.now)
    names = tuple(filter(None, (each.strip() for each in text_argument(arguments, "pods").split(","))))
    subject = SignalSubject(namespace=text_argument(arguments, "namespace"), pods=names)
    span = Window(start=asked.start, end=asked.end, step_seconds=asked.step_seconds)
    readings = await read_signals(source, subject, span)
    if not readings.read:
        raise ToolError(
            f"{source.access.name} has none of the known metrics of these pods; find_metrics searches by words"
        )
    return signals_text(readings, subject, span)


async def _alert(source: MetricsSource, arguments: JsonObject, *, only_own: bool) -> str:
    """Read an alert. With `only_own`, a source whose series have other labels is an error, as one without the rule."""
    from holmes.observability.metrics.alert_reading import Moment, read_alert, rule_of
    from holmes.observability.metrics.series import labels_of
    from holmes.toolsets.metrics.alert_texts import alert_text
    from holmes.toolsets.metrics.ranges import moment

    name, now = text_argument(arguments, "name"), source.access.now
    labels, since = labels_of(text_argument(arguments, "labels")), text_argument(arguments, "since")
    rule = rule_of(await source.rules(), name, labels)
    if rule is None:
        raise ToolError(f"{source.access.name} has no alerting rule {name!r}; alert_rules lists the rules")
    began = moment("since", since, now) if since else None
    reading = await read_alert(source, rule, labels, Moment(now=now, began=began))
    if only_own and not reading.is_own:
        raise ToolError(f"{source.access.name} has no alerting rule {name!r} with a series of these labels")
    return await asyncio.to_thread(alert_text, reading, now)


async def _targets(source: MetricsSource, arguments: JsonObject) -> str:
    from holmes.toolsets.metrics.texts import targets_text

    words = text_argument(arguments, "words").lower().split()
    found = sorted(
        (
            each
            for each in await source.targets()
            if all(word in f"{each.job} {each.instance} {each.state} {dict(each.labels)}".lower() for word in words)
        ),
        key=lambda each: (each.state == "up", each.job, each.instance),
    )
    return targets_text(found) if found else ""


class MetricsFactory(SourceFactory[SourceAccess]):
    kind = KIND
    description = "Finds metrics, and queries Prometheus, VictoriaMetrics, Thanos or Mimir"
    reads_all = "queries of metrics"

    async def version(self, client: SourceClient) -> str:
        from holmes.observability.metrics.prometheus import PrometheusSource

        return await PrometheusSource(client).version()

    def toolset(self, instances: Sequence[SourceAccess]) -> Toolset:
        return MetricsToolset(instances)
