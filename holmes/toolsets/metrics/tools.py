"""The tools of `prometheus/metrics`. Descriptions are short, because all of them are part of every request."""

from __future__ import annotations

from typing import Final

from holmes.values.first_look import ALERT_TOOL, SIGNALS_TOOL
from holmes.values.tools import Parameter, ParameterSchema, Tool


def _text(name: str, description: str, *, required: bool = False) -> Parameter:
    return Parameter(
        name=name, schema=ParameterSchema(types=("string",), description=description), required=required, default=None
    )


_QUERY: Final = _text("query", "PromQL, e.g. sum by (pod) (rate(http_requests_total[5m]))", required=True)

FIND: Final = Tool(
    name="find_metrics",
    description="Find metrics by words, with type and help.",
    parameters=(
        _text("words", "Words of the name or help, e.g. memory working set", required=True),
        _text("labels", 'Only metrics with series that match, e.g. namespace="shop"'),
    ),
)
LABELS: Final = Tool(
    name="metric_labels",
    description="List the labels of a metric with examples, or all values of one label.",
    parameters=(_text("metric", "Name of the metric", required=True), _text("label", "List all values of this label")),
)
INSTANT: Final = Tool(
    name="query_metrics",
    description="Run a PromQL query at one time.",
    parameters=(_QUERY, _text("time", "An age such as 10m, or an RFC 3339 time. Default: now")),
)
RANGE: Final = Tool(
    name="query_metrics_range",
    description=(
        "Run a PromQL query over a time range. Shows for each series first, last, min, max, mean, p95, trend, and when "
        "it changed."
    ),
    parameters=(
        _QUERY,
        _text("since", "Start: an age such as 1h or 2d, or an RFC 3339 time. Default: 1h"),
        _text("until", "End, in the same formats. Default: now"),
        _text("step", "Time between samples, e.g. 1m. Default: automatic"),
    ),
)
ALERT_RULES: Final = Tool(
    name="alert_rules",
    description="List alerting and recording rules with expression, state and active alerts. Firing rules come first.",
    parameters=(_text("words", "Only rules with these words in name, group, expression or state"),),
)
TARGETS: Final = Tool(
    name="scrape_targets",
    description="List the addresses that are scraped. Those that are down come first, with the error.",
    parameters=(_text("words", "Only targets with these words in job, address, labels or state"),),
)
ALERT: Final = Tool(
    name=ALERT_TOOL,
    description=(
        "Read one alert: its value against the threshold, since when its condition is met, which series contribute "
        "most, and whether it is over."
    ),
    parameters=(
        _text("name", "Name of the alert", required=True),
        _text("labels", 'Labels of the alert, e.g. namespace="shop", pod="checkout-1"'),
        _text("since", "When it began: an age such as 1h, or an RFC 3339 time"),
    ),
)
SIGNALS: Final = Tool(
    name=SIGNALS_TOOL,
    description=(
        "Read the usual signals of pods, and show those that stand out and since when: CPU throttling; memory, "
        "volumes, connections, heap near their limits; failed and slow requests; backlogs; the node and its noisy "
        "neighbours; DNS."
    ),
    parameters=(
        _text("namespace", "Namespace of the pods", required=True),
        _text("pods", "Pods or workloads, e.g. deployment/checkout, redis-0. Default: all pods"),
        _text("since", "Start: an age such as 1h, or an RFC 3339 time. Default: 3h"),
    ),
)
TOOLS: Final = (FIND, LABELS, INSTANT, RANGE, SIGNALS, ALERT_RULES, ALERT, TARGETS)
