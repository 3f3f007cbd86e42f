"""Metrics of a recording: what a live Prometheus says of a moment, its recording says when Prometheus is gone."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from holmes.assets import demo_recording
from holmes.kubernetes.client import ClusterClient
from holmes.observability.access import SourceAccess
from holmes.redaction.redactor import Redactor
from holmes.snapshot.metrics_recording import MetricsLimits
from holmes.snapshot.recorder import RecordOptions, RecordSummary, record_cluster
from holmes.snapshot.server.serving import SnapshotServer, serve_snapshot
from holmes.snapshot.sources import load_snapshot
from holmes.values.environment import Environment
from holmes.values.errors import ConfigError, ToolError
from tests.end_to_end.test_metric_faults import HEALTHY, SEEN, SeriesKeys
from tests.support.command_line import Home
from tests.support.metric_history import History
from tests.toolsets.metrics.calling import call

if TYPE_CHECKING:
    from holmes.values.json_types import JsonValue
    from tests.services.fixtures import RunMonitor
    from tests.services.monitoring import Monitor

NAMES: Final = {each: f"{each}-7d9f8b6c5d-x2x4z" for each in ("web", "api", "worker", "batch")} | {
    "db": "db-0",
    "queue": "queue-0",
    "node": "node",
}
FAULTS: Final = (
    "throttling",
    "connection limit of the database",
    "noisy neighbour",
    "volume fills",
    "pool exhausted",
    "backlog",
    "DNS of the cluster",
)
SIGNALS_OF_FAULTS: Final = (
    "CPU throttling",
    "connections of the maximum of PostgreSQL",
    "CPU cores of a neighbour",
    "usage of the volume",
    "connections of the pool",
    "messages that wait in the queue",
    "failed DNS lookups",
)
SECRET: Final = "https://reader:Xk7planted93Hd81@db.example"
SUBJECTS: Final = (
    "",
    "deployment/web",
    "deployment/api",
    "deployment/worker",
    "statefulset/db",
    "deployment/web, statefulset/db",
    "statefulset/queue",
)
QUESTION: Final = "is the statefulset cart in namespace shop healthy?"
CONFIG: Final = "model: builtin/triage\n"


def _history() -> str:
    series: dict[object, tuple[SeriesKeys, dict[str, str]]] = {}
    for each in (*HEALTHY, *(one for case in SEEN if case.name in FAULTS for one in case.series)):
        for labels in each.places():
            series[each.counter or each.gauge, *sorted(labels.items())] = each, labels
    history = History(hours=4)
    for each, labels in series.values():
        placed = {"namespace": "shop", **labels}
        text = ",".join(f'{key}="{NAMES.get(value, value)}"' for key, value in placed.items() if value)
        if each.counter:
            history.counter(each.counter, text, each.at)
        else:
            history.gauge(each.gauge, text, each.at, exact=each.exact)
    throttled = 'namespace="shop",pod="cart-0",container="cart"'
    history.counter("container_cpu_cfs_throttled_periods_total", throttled, lambda _: 7)
    history.counter("container_cpu_cfs_periods_total", throttled, lambda _: 10)
    history.counter("http_requests_total", f'namespace="shop",pod="cart-0",code="200",backend="{SECRET}"', lambda _: 3)
    for queue, pod in (("mails", "queue-0"), ("mails", "queue-1")):
        history.gauge("rabbitmq_queue_messages_ready", f'namespace="shop",pod="{pod}",queue="{queue}"', lambda _: 5)
    return history.text()


@asynccontextmanager
async def _shop() -> AsyncIterator[SnapshotServer]:
    """Serve the objects of the demo cluster, as if they were those of this moment."""
    recording = await asyncio.to_thread(load_snapshot, demo_recording())
    async with serve_snapshot(replace(recording, recorded_at=datetime.now(UTC))) as server:
        yield server


async def _record(folder: Path, url: str, **limits: int) -> RecordSummary:
    async with _shop() as shop:
        environment = Environment.of({"KUBECONFIG": str(shop.kubeconfig)})
        sources = (SourceAccess(name="prod eu/1", url=url),)
        metrics = MetricsLimits(sources=sources, seconds=4 * 3_600, **limits)
        options = RecordOptions(namespaces=("shop",), logs=None, metrics=metrics)
        async with await ClusterClient.connect(environment) as client:
            return await record_cluster(client, folder, options, Redactor(bytes(16)), lambda _: None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A Prometheus, and what was recorded of it, which `server` serves."""

    monitor: Monitor
    server: SnapshotServer
    folder: Path
    summary: RecordSummary

    def live(self, tool: str, **arguments: JsonValue) -> str:
        place: dict[str, JsonValue] = {"url": self.monitor.url, "time": self.summary.recorded_at.isoformat()}
        return call(tool, {"instances": {"prod eu/1": place}}, **arguments).data

    def kept(self, tool: str, **arguments: JsonValue) -> str:
        url, now = self.server.metrics["prod eu/1"], self.server.recorded_at.isoformat()
        place: dict[str, JsonValue] = {"url": url, "time": now}
        return call(tool, {"instances": {"prod eu/1": place}}, **arguments).data


@contextmanager
def _served(folder: Path) -> Iterator[SnapshotServer]:
    """Serve a recording in a thread, because the tools run in an event loop of their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    serving = serve_snapshot(folder)
    try:
        yield asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result(20)
    finally:
        asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def recorded(prometheus: RunMonitor, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    folder = tmp_path_factory.mktemp("metrics") / "shop"
    with prometheus({}, history=_history()) as monitor:
        summary = asyncio.run(_record(folder, monitor.url))
        with _served(folder) as server:
            yield Recorded(monitor=monitor, server=server, folder=folder, summary=summary)


@pytest.mark.parametrize("pods", SUBJECTS)
def test_signals_of_any_pods_are_those_of_the_live_source(recorded: Recorded, pods: str) -> None:
    live = recorded.live("workload_signals", namespace="shop", pods=pods)
    assert "now: " in live
    assert recorded.kept("workload_signals", namespace="shop", pods=pods) == live


def test_the_compared_signals_are_of_all_places(recorded: Recorded) -> None:
    told = "".join(recorded.kept("workload_signals", namespace="shop", pods=each) for each in SUBJECTS)
    assert [each for each in SIGNALS_OF_FAULTS if f": {each}" not in told] == []


def test_a_signal_that_is_only_known_for_more_pods_is_told_as_an_error(recorded: Recorded) -> None:
    told = recorded.kept("workload_signals", namespace="shop", pods="pod/queue-0")
    assert "messages that wait in the queue: the recording has this query only for all pods of the namespace" in told


def test_nothing_is_missing_in_the_recording(recorded: Recorded) -> None:
    assert [each for each in recorded.summary.unread if each.resource == "metrics"] == []
    (metrics,) = recorded.summary.metrics.values()
    assert (metrics.step_seconds, metrics.samples) == (60, 241)
    assert metrics.series > 40
    assert load_snapshot(recorded.folder).metrics["prod eu/1"].series == metrics.series


def test_a_secret_in_a_label_is_not_recorded(recorded: Recorded) -> None:
    written = "".join(each.read_text() for each in (recorded.folder / "metrics").iterdir())
    assert '"backend":"' in written
    assert "Xk7planted93Hd81" not in written


def test_metrics_and_labels_are_found_and_other_queries_are_refused_in_one_line(recorded: Recorded) -> None:
    assert "container_cpu_cfs_periods_total" in recorded.kept("find_metrics", words="cpu periods")
    assert recorded.kept("metric_labels", metric="process_open_fds", label="container") == recorded.live(
        "metric_labels", metric="process_open_fds", label="container"
    )
    throttled = 'sum by (pod, container) (rate(container_network_receive_bytes_total{namespace="shop"}[5m]))'
    with pytest.raises(ToolError, match="answers to fixed queries, and not to this one; find_metrics lists"):
        recorded.kept("query_metrics_range", query=throttled)
    known = 'max by (pod, container, instance) (process_open_fds{namespace="shop",pod=~"web-.*"})'
    with pytest.raises(ToolError, match=r"recorded queries of these metrics: `max by \(pod, container, instance\)"):
        recorded.kept("query_metrics", query=known)
    for tool in ("alert_rules", "scrape_targets"):
        with pytest.raises(ToolError, match=r"(rules|targets) is not part of the recording"):
            recorded.kept(tool)


def test_a_recorded_query_is_answered_at_any_time_of_the_recording(recorded: Recorded) -> None:
    pods = 'namespace="shop",pod=~"web-.*"'
    rate = f"sum by (pod) (rate(http_requests_total{{{pods}}}[5m]))"
    for since, until in (("2h", ""), ("3h", "1h")):
        given = {"query": rate, "since": since, "until": until, "step": "60s"}
        live = recorded.live("query_metrics_range", **given).splitlines()
        assert [each for each in live if "web-" in each]
        assert recorded.kept("query_metrics_range", **given).splitlines() == live


def test_a_sum_of_pods_is_refused_for_some_of_them(recorded: Recorded) -> None:
    query = 'sum by (queue) (rabbitmq_queue_messages_ready{namespace="shop",pod=~"queue-[01]"})'
    assert "mails" in recorded.kept("query_metrics", query=query)
    with pytest.raises(ToolError, match="only for all pods of the namespace together"):
        recorded.kept("query_metrics", query=query.replace("[01]", "0"))
    # Python would search this for years, Prometheus does not.
    with pytest.raises(ToolError, match="is not a regular expression that a recording can be searched for"):
        recorded.kept("query_metrics", query=query.replace("queue-[01]", "(a+)+b"))


def test_more_series_than_the_limit_are_told_and_no_answer_is_cut(recorded: Recorded, tmp_path: Path) -> None:
    summary = asyncio.run(_record(tmp_path / "small", recorded.monitor.url, series=12, labels=30))
    (metrics,) = summary.metrics.values()
    assert 0 < metrics.series <= 12
    whole = {(each.query, each.namespace): each for each in load_snapshot(recorded.folder).metrics["prod eu/1"].answers}
    for each in metrics.answers:
        assert len(each.series) == len(whole[each.query, each.namespace].series)
    reasons = [each.reason for each in summary.unread if each.resource == "metrics"]
    assert any(f"{metrics.series} of " in each and "series were recorded (at most 12): " in each for each in reasons)
    assert any("the labels of " in each and "(at most 30)" in each for each in reasons)


def test_a_source_that_does_not_answer_costs_one_line(tmp_path: Path) -> None:
    summary = asyncio.run(_record(tmp_path / "shop", "http://127.0.0.1:9"))
    (line,) = [each for each in summary.unread if each.resource == "metrics"]
    assert "prod eu/1 (http://127.0.0.1:9)" in line.reason
    assert (summary.metrics, load_snapshot(tmp_path / "shop").metrics) == ({}, {})


@pytest.mark.parametrize(
    "content", [{}, {"samples": 0}, {"samples": 10**9}, {"answers": [{"query": "x"}]}, {"current": [3]}]
)
def test_a_file_of_another_form_is_one_clear_line(recorded: Recorded, tmp_path: Path, content: JsonValue) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(recorded.folder, folder)
    (file,) = (folder / "metrics").iterdir()
    whole = json.loads(file.read_text())
    (folder / "metrics" / "x.json").write_text(json.dumps({**whole, **content} if content else {}))  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match=r"x\.json: not the metrics of a recording \(.*\); record the cluster again"):
        load_snapshot(folder)


def _age(folder: Path, *, days: int) -> None:
    """Move the time of a recording and that of its metrics to the past."""
    manifest, (metrics,) = folder / "recording.json", (folder / "metrics").iterdir()
    content, kept = json.loads(manifest.read_text()), json.loads(metrics.read_text())
    recorded_at = datetime.fromisoformat(content["recordedAt"]) - timedelta(days=days)
    manifest.write_text(json.dumps({**content, "recordedAt": recorded_at.isoformat()}))
    metrics.write_text(json.dumps({**kept, "start": kept["start"] - days * 86_400}))


def test_a_question_is_answered_from_the_recording_after_prometheus_has_stopped(
    prometheus: RunMonitor, tmp_path: Path
) -> None:
    folder = tmp_path / "shop"

    async def create(url: str) -> tuple[str, str]:
        async with _shop() as shop:
            home = Home.make(tmp_path / "home", config=CONFIG, PROMETHEUS_URL=url, KUBECONFIG=str(shop.kubeconfig))
            given = ("snapshot", "create", "-n", "shop", "--metrics", "3h", str(folder))
            done = await asyncio.to_thread(home.run, *given)
            assert done.exit_code == 0, done.stderr
            return done.stdout, done.stderr

    with prometheus({}, history=_history()) as monitor:
        out, err = asyncio.run(create(monitor.url))
    assert "reading metrics of 1 namespace from prometheus" in err
    (line,) = [each for each in out.splitlines() if each.startswith("metrics of prometheus: ")]
    assert " queries, every 60 s from 20" in line
    _age(folder, days=30)  # the present would be after the last sample
    # The configured source is live, and must not be asked.
    home = Home.make(tmp_path / "other", config=CONFIG, PROMETHEUS_URL="http://127.0.0.1:9")
    assert line.partition(" from 20")[0] in home.run("snapshot", "show", str(folder)).stdout
    done = home.run("ask", "-n", "--snapshot", str(folder), QUESTION)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("**Cause not found**")
    assert '- Metrics now: CPU throttling of {container="cart", pod="cart-0"} ' in done.stdout
    assert "127.0.0.1:9" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("6", "--metrics '6' is not an age from 10m to 7d, for example 6h"),
        ("30d", "--metrics '30d' is not an age from 10m to 7d, for example 6h"),
        ("6h", "no source of metrics is configured for this cluster; set PROMETHEUS_URL or configure"),
    ],
)
def test_metrics_that_cannot_be_recorded_are_one_line_and_nothing_is_written(
    tmp_path: Path, given: str, message: str
) -> None:
    home = Home.make(tmp_path / "home", config=CONFIG)
    done = home.run("snapshot", "create", "--metrics", given, str(tmp_path / "shop"))
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "shop").exists()
