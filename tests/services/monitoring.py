"""Real Prometheus and Alertmanager on loopback, each with a configuration of the test.

    with alertmanager({"route": ..., "receivers": [...]}) as manager, prometheus(config, rules=rules) as server:
        manager.get("/api/v2/alerts")

A configuration is plain data, written as JSON, which is YAML too.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import httpx

from tests.services import programs
from tests.services.service import Service, free_port

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.json_types import JsonObject, JsonValue

RULES_FILE: Final = "rules.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor:
    """A running server."""

    service: Service
    url: str

    @property
    def address(self) -> str:
        """Host and port, as Prometheus' configuration wants them."""
        return self.url.removeprefix("http://")

    def get(self, path: str, **query: str) -> JsonValue:
        """Return the JSON at `path`."""
        answer = httpx.get(f"{self.url}{path}", params=query, timeout=10)
        answer.raise_for_status()
        content: JsonValue = answer.json()
        return content

    def is_ready(self) -> bool:
        """Whether the server says so."""
        try:
            return httpx.get(f"{self.url}/-/ready", timeout=5).is_success
        except httpx.TransportError:
            return False


@contextmanager
def prometheus(
    config: Mapping[str, object], *, rules: JsonObject | None = None, history: str = ""
) -> Iterator[Monitor]:
    """Yield a ready Prometheus; `rules` is the content of one rule file (`groups: [...]`).

    `history` are samples of the past in the format of OpenMetrics, with times.
    """
    program = programs.prometheus()
    service = Service("prometheus", end_signal=signal.SIGTERM)
    whole = dict(config)
    if rules is not None:
        (service.folder / RULES_FILE).write_text(json.dumps(rules))
        whole["rule_files"] = [RULES_FILE]
    if history:
        _store(history, service.folder)
    # An alert that fires before Prometheus has found its Alertmanager is sent again soon, not a minute later.
    options = (
        f"--storage.tsdb.path={service.folder / 'data'}",
        "--rules.alert.resend-delay=1s",
        "--storage.tsdb.retention.time=60d",
    )
    with _running(service, [str(program), *options], whole) as monitor:
        yield monitor


def _store(history: str, folder: Path) -> None:
    samples = folder / "history.txt"
    samples.write_text(f"{history}# EOF\n")
    create = [str(programs.promtool()), "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=48h"]
    subprocess.run([*create, str(samples), str(folder / "data")], check=True, capture_output=True)


@contextmanager
def victoria_metrics(*, rules: JsonObject | None = None, history: str = "") -> Iterator[Monitor]:
    """Yield a ready VictoriaMetrics, with a vmalert behind its API if there are `rules`.

    `history` has the same format as that of `prometheus`.
    """
    service = Service("victoria-metrics", end_signal=signal.SIGTERM)
    monitor, alerting = (Monitor(service=service, url=f"http://127.0.0.1:{free_port()}") for _ in range(2))
    options = (
        f"-storageDataPath={service.folder / 'data'}",
        "-retentionPeriod=60d",
        f"-httpListenAddr={monitor.address}",
        *([f"-vmalert.proxyURL={alerting.url}"] if rules is not None else []),
    )
    try:
        service.start([str(programs.victoria_metrics()), *options], monitor.is_ready)
        if history:
            imported = re.sub(r" (\d+)$", r" \g<1>000", history, flags=re.MULTILINE)  # times in milliseconds
            for path, body in (("/api/v1/import/prometheus", imported.encode()), ("/internal/force_flush", b"")):
                httpx.post(f"{monitor.url}{path}", content=body, timeout=60).raise_for_status()
        with _vmalert(monitor, alerting, rules) if rules is not None else nullcontext():
            yield monitor
    finally:
        service.close()


@contextmanager
def _vmalert(source: Monitor, monitor: Monitor, rules: JsonObject) -> Iterator[None]:
    service = Service("vmalert", end_signal=signal.SIGTERM)
    file = service.folder / RULES_FILE
    file.write_text(json.dumps(rules))
    options = (
        f"-rule={file}",
        f"-datasource.url={source.url}",
        f"-remoteWrite.url={source.url}",
        "-notifier.url=http://127.0.0.1:9",  # required, but nothing listens there
        "-evaluationInterval=1s",
        f"-httpListenAddr={monitor.address}",
    )

    def is_ready() -> bool:
        try:
            return httpx.get(f"{monitor.url}/health", timeout=5).is_success
        except httpx.TransportError:
            return False

    try:
        service.start([str(programs.vmalert()), *options], is_ready)
        yield
    finally:
        service.close()


@contextmanager
def alertmanager(config: Mapping[str, object]) -> Iterator[Monitor]:
    """Yield a ready Alertmanager without neighbours."""
    program = programs.alertmanager()
    service = Service("alertmanager", end_signal=signal.SIGTERM)
    options = (f"--storage.path={service.folder / 'data'}", "--cluster.listen-address=")
    with _running(service, [str(program), *options], config) as monitor:
        yield monitor


@contextmanager
def _running(service: Service, command: list[str], config: Mapping[str, object]) -> Iterator[Monitor]:
    file = service.folder / "config.yaml"
    file.write_text(json.dumps(config))
    monitor = Monitor(service=service, url=f"http://127.0.0.1:{free_port()}")
    try:
        options = (f"--config.file={file}", f"--web.listen-address={monitor.address}")
        service.start([*command, *options], monitor.is_ready)
        yield monitor
    finally:
        service.close()
