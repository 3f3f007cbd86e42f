"""`read_alert` against a real Prometheus with hours of samples."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest

from holmes.tokens import TokenCounter
from holmes.values.errors import ToolError
from tests.toolsets.metrics.calling import call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holmes.values.json_types import JsonValue
    from tests.services.fixtures import RunMonitor
    from tests.services.monitoring import Monitor

pytestmark = pytest.mark.slow

STEP = 60
HOURS = 6
_RATIO = "sum by (service) (rate(errors_total[10m])) / sum by (service) (rate(requests_total[10m])) > 0.05"
RULES = {
    "groups": [
        {
            "name": "shop",
            "rules": [
                {"alert": "ErrorsHigh", "expr": f"{_RATIO} and on () vector(1)", "labels": {"severity": "page"}},
                {"alert": "DiskFull", "expr": "100 * (1 - free_bytes / size_bytes) >= 80"},
                {"alert": "QueueLong", "expr": "queue_length > on (queue) queue_limit"},
                {"alert": "BatchGone", "expr": 'absent(batch_runs{batch="night"})'},
                {"alert": "FewReplicas", "expr": "replicas < 3", "for": "5m"},
                {"alert": "NeverMet", "expr": "size_bytes < 0"},
                {"alert": "Success", "expr": "1 - sum(free_bytes) / sum(size_bytes) > 0.1"},
                {"alert": "Either", "expr": "queue_length > 50 or replicas < 3"},
                {"alert": "Unknown", "expr": "no_such_metric > 1"},
                {"alert": "Quoted", "expr": 'size_bytes{node=~"n\\\\d"} > 1'},
                {"alert": "Lasting", "expr": "absent_over_time(batch_runs[10m])"},
            ],
        }
    ]
}


def samples() -> str:
    """Return errors that rose 40 minutes ago on one route, a disk that fills, a queue over its limit in the past."""
    end = int(time.time()) // STEP * STEP
    times = range(end - HOURS * 3_600, end + STEP, STEP)
    lines = ["# TYPE errors counter"]
    for route, rate in (("/pay", 9.0), ("/list", 0.5)):
        total = 0.0
        for moment in times:
            total += STEP * (rate if moment > end - 2_400 else 0.1)
            lines.append(f'errors_total{{service="checkout",route="{route}"}} {total} {moment}')
    lines.append("# TYPE requests counter")
    for service in ("checkout", "search"):
        lines += [f'requests_total{{service="{service}"}} {25 * (each - times[0])} {each}' for each in times]
    lines.append("# TYPE size_bytes gauge")
    lines += [f'size_bytes{{node="n{node}"}} 1000 {each}' for node in (1, 2) for each in times]
    lines.append("# TYPE free_bytes gauge")
    lines += [f'free_bytes{{node="n1"}} {500 - 400 * (each - times[0]) / (HOURS * 3_600):.3f} {each}' for each in times]
    lines += [f'free_bytes{{node="n2"}} 900 {each}' for each in times]
    lines.append("# TYPE queue_length gauge")
    lines += [f'queue_length{{queue="mail"}} {90 if end - 7_200 <= each < end - 5_400 else 5} {each}' for each in times]
    lines.append("# TYPE queue_limit gauge")
    lines += [f'queue_limit{{queue="mail"}} 50 {each}' for each in times]
    lines.append("# TYPE batch_runs gauge")
    lines += [f'batch_runs{{batch="night"}} 1 {each}' for each in times if each <= end - 3_600]
    lines.append("# TYPE replicas gauge")
    lines += [f'replicas{{app="web"}} {1 if each > end - 600 else 3} {each}' for each in times]
    return "\n".join([*lines, ""])


@pytest.fixture(scope="module", params=["Prometheus", "VictoriaMetrics"])
def server(request: pytest.FixtureRequest, prometheus: RunMonitor, victoria_metrics: RunMonitor) -> Iterator[Monitor]:
    if request.param == "VictoriaMetrics":
        with victoria_metrics(rules=RULES, history=samples()) as monitor:
            yield monitor
        return
    with prometheus({"global": {"evaluation_interval": "1s"}}, rules=RULES, history=samples()) as monitor:
        yield monitor


@pytest.fixture
def read(server: Monitor) -> Callable[..., list[str]]:
    def reading(**arguments: str) -> list[str]:
        text = call("read_alert", {"prometheus_url": server.url}, **arguments).data
        assert TokenCounter().count_text(text) <= 600
        return text.splitlines()

    return reading


def test_a_ratio_with_its_threshold_its_times_and_the_route_that_contributes_most(
    read: Callable[..., list[str]],
) -> None:
    labels = 'service="checkout", severity="page"'
    head, since, state, trend, parts, rule = read(name="ErrorsHigh", labels=labels, since="1h")
    assert head.startswith(
        "ErrorsHigh: the value is 0.38, and fires when > 0.05 (7.6 times the threshold); measured: sum by (service)("
    )
    assert since.startswith("the condition is met since ")
    assert re.match(r"state of the rule: (?:firing since 20\S+|inactive)$", state)
    minutes = int(since.rsplit(", ", 1)[1].removesuffix(" minutes"))
    assert 36 <= minutes <= 40
    assert trend.startswith('{service="checkout"} since ')
    assert "→ 0.3" in trend
    assert parts == 'contributions: {route="/pay"} 9 (95 %); {route="/list"} 0.5 (5 %)'
    assert rule.endswith("> 0.05 and on () vector(1) (group shop)")


def test_a_value_that_rises_steadily(read: Callable[..., list[str]]) -> None:
    head, since, _, trend, _ = read(name="DiskFull", labels='{"node": "n1"}')
    assert re.fullmatch(
        r"DiskFull: the value is (?:90|89\.\d+), and fires when >= 80 \(1\.12\d? times the threshold\); "
        r"measured: 100 \* \(1 - free_bytes / size_bytes\)",
        head,
    )
    assert since.startswith("the condition is met since before ")
    assert "rises steadily by 6.66" in trend


def test_a_limit_that_is_another_metric_and_a_condition_that_is_over(read: Callable[..., list[str]]) -> None:
    head, over, state, trend, _ = read(name="QueueLong", labels='queue="mail"', since="3h")
    assert head == "QueueLong: the value is 5, and fires when > 50 (0.1 times the threshold); measured: queue_length"
    assert over.startswith("the condition is not met now: it was last met from ")
    assert state == "state of the rule: inactive"
    assert trend.startswith('{queue="mail"} since ')


def test_a_series_that_is_absent(read: Callable[..., list[str]]) -> None:
    head, since, *_ = read(name="BatchGone", labels='batch="night"', since="2h")
    assert head.startswith("BatchGone: fires while the series is absent, last seen at about ")
    assert head.endswith('; measured: batch_runs{batch="night"}')
    assert since.startswith("the condition is met since ")


def test_a_value_below_its_threshold(read: Callable[..., list[str]]) -> None:
    head, since, *_, rule = read(name="FewReplicas", labels='app="web"')
    assert head == "FewReplicas: the value is 1, and fires when < 3 (0.3333 times the threshold); measured: replicas"
    assert since.rsplit(", ", 1)[1] in {"8 minutes", "9 minutes", "10 minutes"}
    assert rule == "rule: replicas < 3 for 300 s (group shop)"


def test_a_condition_that_was_never_met(read: Callable[..., list[str]]) -> None:
    _, state, _, trend, _ = read(name="NeverMet", labels='node="n9"')
    assert state.startswith("the condition was not met between ")
    assert "no series has the labels of the alert" in trend


def test_what_is_missing_names_no_contribution(read: Callable[..., list[str]]) -> None:
    lines = read(name="Success")
    assert lines[1].startswith("the condition is met since before ")
    assert not [line for line in lines if line.startswith("contributions: ")]


def test_one_of_two_conditions_is_not_taken_for_the_other(read: Callable[..., list[str]]) -> None:
    head, since, *_ = read(name="Either", labels='app="web"')
    assert head == "Either: the value is 1; measured: queue_length > 50 or replicas < 3"
    assert since.startswith("the condition is met since 20")


def test_what_has_no_samples_is_unknown(read: Callable[..., list[str]]) -> None:
    head, state, *_ = read(name="Unknown")
    assert head == "Unknown: the series has no samples now; measured: no_such_metric"
    assert state.endswith("whether the alert is right is unknown")


def test_expressions_that_cannot_be_taken_apart_are_read_as_a_whole(read: Callable[..., list[str]]) -> None:
    head, since, *_ = read(name="Quoted", labels='node="n2"')
    assert head.startswith("Quoted: the value is 1000; measured: size_bytes{node=~")
    assert since.startswith("the condition is met since before ")
    assert read(name="Lasting")[0].startswith("Lasting: fires while the series is absent, last seen at about ")


def test_a_rule_that_does_not_exist_is_one_line(server: Monitor) -> None:
    with pytest.raises(ToolError, match="has no alerting rule 'Gone'; alert_rules lists the rules"):
        call("read_alert", {"prometheus_url": server.url}, name="Gone")


def test_of_several_sources_the_one_with_the_series_of_the_alert_is_read(server: Monitor) -> None:
    config: dict[str, JsonValue] = {"instances": {"eu": {"url": "http://127.0.0.1:9"}, "prod": {"url": server.url}}}
    own = call("read_alert", config, name="FewReplicas", labels='app="web"')
    assert own.invocation == "prod: Read alert FewReplicas"
    with pytest.raises(ToolError, match="prod has no alerting rule 'FewReplicas' with a series of these labels"):
        call("read_alert", config, name="FewReplicas", labels='app="other"')
