"""A range query of a real Prometheus on its way to a model and to a person: the picture and the plot."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from holmes.charts.picture import LINE_COLOURS, MARK_COLOUR, THRESHOLD_COLOUR
from tests.cli.terminal import Terminal
from tests.support.command_line import FOR_RECORDINGS, Home, provider_config
from tests.support.openai_server import OpenAIServer, Reply, call
from tests.support.pixels import Pixels
from tests.toolsets.metrics.calling import call as call_tool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.services.fixtures import RunMonitor
    from tests.services.monitoring import Monitor

ROOT: Final = Path(__file__).parents[2]
PODS: Final = ("checkout-6d5f8b9c7-x2k4p", "checkout-6d5f8b9c7-zz9wq")
QUERY: Final = 'sum by (namespace, pod) (rate(http_errors_total{namespace="shop"}[5m]))'
RULES: Final = {
    "groups": [
        {
            "name": "shop",
            "rules": [
                {"alert": "TooManyErrors", "expr": f"{QUERY} > 3", "labels": {"severity": "page"}},
                {"alert": "Other", "expr": 'sum(rate(http_errors_total{namespace="shop"}[5m])) > 1'},
            ],
        }
    ]
}
STEP: Final = 15


def _samples() -> str:
    """Return an hour in which a rollout began 30 minutes ago, its first pod failed, and restarted 10 minutes ago."""
    end = int(time.time()) // 60 * 60
    times = range(end - 3_600, end + STEP, STEP)
    lines = ["# TYPE http_errors counter"]
    for pod, rate in zip(PODS, (5, 1), strict=True):
        total = 0.0
        for each in times:
            total += STEP * (rate if each > end - 1_800 else 0.5)
            lines.append(f'http_errors_total{{namespace="shop",pod="{pod}"}} {total} {each}')
    lines.append("# TYPE kube_replicaset_created gauge")
    for name, age in (("checkout-6d5f8b9c7", 1_800), ("checkout-5f7c8d6b4", 90_000), ("cart-7b9fc5d8f6", 900)):
        place = f'namespace="shop",replicaset="{name}"'
        lines += [f"kube_replicaset_created{{{place}}} {end - age} {each}" for each in times if each >= end - age]
    lines.append("# TYPE kube_pod_container_status_restarts counter")
    for pod in PODS:
        place = f'namespace="shop",pod="{pod}",container="app"'
        restarted = end - 600 if pod == PODS[0] else end + 1
        lines += [
            f"kube_pod_container_status_restarts_total{{{place}}} {int(each >= restarted)} {each}" for each in times
        ]
    return "\n".join([*lines, ""])


@pytest.fixture(scope="module")
def server(prometheus: RunMonitor) -> Iterator[Monitor]:
    with prometheus({"global": {"evaluation_interval": "1s"}}, rules=RULES, history=_samples()) as monitor:
        yield monitor


def test_a_chart_has_unit_threshold_and_events_of_its_pods_only(server: Monitor) -> None:
    chart = call_tool("query_metrics_range", {"prometheus_url": server.url}, query=QUERY, since="50m").chart
    assert chart is not None
    assert (chart.title, chart.unit, chart.series) == (QUERY, "per second", 2)
    assert [line.name for line in chart.lines] == [f'{{pod="{pod}"}}' for pod in PODS]
    assert chart.threshold is not None
    assert (chart.threshold.value, chart.threshold.text) == (3.0, "> 3 (TooManyErrors)")
    assert [mark.text for mark in chart.marks] == ["rollout checkout", f"restart {PODS[0]}"]  # not the cart


def test_a_source_without_events_and_rules_of_the_query_has_neither(server: Monitor) -> None:
    chart = call_tool("query_metrics_range", {"prometheus_url": server.url}, query="count(http_errors_total)").chart
    assert chart is not None
    assert (chart.unit, chart.threshold, chart.marks) == ("", None, ())


def test_a_person_sees_a_plot_and_the_model_a_picture(server: Monitor, tmp_path: Path) -> None:
    replies = [Reply(tool_calls=(call("query_metrics_range", query=QUERY, since="50m"),)), Reply(text="It fails.")]
    with OpenAIServer(replies) as provider:
        config = provider_config(provider.base_url, FOR_RECORDINGS).replace("openai/scripted", "openai/gpt-4o")
        home = Home.make(tmp_path / "home", config=config, PROMETHEUS_URL=server.url)
        arguments = ["-m", "holmes", "ask", "-n", "--demo", "what fails?"]
        with Terminal(arguments, cwd=ROOT, environment=home.environment()) as screen:
            assert screen.exit_code(90) == 0, screen.text
            shown = screen.text.replace("\r", "").splitlines()
        sent = json.dumps(provider.requests[1].body["messages"])
    _check_plot(shown)
    (url,) = sent.split("data:image/png;base64,")[1:]
    pixels = Pixels.of(base64.b64decode(url.split('"')[0]))
    for colour in (LINE_COLOURS[0], LINE_COLOURS[1], THRESHOLD_COLOUR, MARK_COLOUR):
        assert len(pixels.places(colour, left=74, bottom=300)) > 150, colour
    assert pixels.share_of_dark(0, 24) > 0.02
    assert "TooManyErrors" not in sent.replace(url, "")  # only the picture has it: the numbers stay short


def _check_plot(shown: list[str]) -> None:
    """Check the cells: the first line goes over the threshold, and the events have their columns."""
    start = next(place for place, line in enumerate(shown) if "┤" in line)
    rows = [line.partition("┤")[2] for line in shown[start : start + 10]]
    assert shown[start - 1].endswith(f"  {QUERY}")
    assert all(len(line) <= 100 for line in shown[start : start + 18])
    threshold = next(place for place, row in enumerate(rows) if row.count("╌") > 40)
    high = next(place for place, row in enumerate(rows) if "●" in row)
    low = max(place for place, row in enumerate(rows) if "●" in row)
    assert high < threshold < low
    assert any("▲" in row for row in rows)
    assert sum(row.count("┊") for row in rows) >= 8
    legend = "\n".join(shown[start + 11 : start + 19])
    assert "UTC, in per second" in legend
    assert "threshold > 3 (TooManyErrors)" in legend
    assert "rollout checkout" in legend
