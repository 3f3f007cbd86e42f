"""Real VictoriaLogs and OpenSearch on loopback, with lines of the test.

    with victoria_logs(layout) as url:
        httpx.post(f"{url}/insert/jsonline", ...)

VictoriaLogs is one of the Go programs. OpenSearch is assembled from its jars on Maven Central (pins/opensearch/pom.xml)
and started by SearchNode.java beside it, which runs one node without its launcher.
"""

from __future__ import annotations

import hashlib
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx

from tests.cluster.errors import CannotRunHereError
from tests.cluster.programs import appearing_at, building, run
from tests.services.go_programs import VICTORIA_LOGS, installed
from tests.services.service import Service, free_port

if TYPE_CHECKING:
    from tests.cluster.layout import Layout

PINS: Final = Path(__file__).with_name("pins") / "opensearch"


@contextmanager
def victoria_logs(layout: Layout) -> Iterator[str]:
    """Yield the URL of an empty VictoriaLogs that keeps lines of any time."""
    program = installed(VICTORIA_LOGS, layout)
    service = Service(VICTORIA_LOGS.name, end_signal=signal.SIGTERM)
    url = f"http://127.0.0.1:{free_port()}"
    options = (
        f"-storageDataPath={service.folder / 'data'}",
        "-retentionPeriod=100y",
        f"-httpListenAddr={url.removeprefix('http://')}",
    )
    try:
        service.start([str(program), *options], lambda: _answers(f"{url}/health"))
        yield url
    finally:
        service.close()


def build_opensearch(layout: Layout) -> Path:
    """Return the folder with the jars, and fetch them if the cache lacks them (about a minute)."""
    pins = (PINS / "pom.xml").read_bytes()
    folder = layout.cache / f"opensearch-{hashlib.sha256(pins).hexdigest()[:12]}"
    if folder.is_dir():
        return folder
    if shutil.which("mvn") is None or shutil.which("java") is None:
        raise CannotRunHereError("OpenSearch is not assembled yet, and Maven or Java is not installed")
    with building(layout), appearing_at(folder) as unfinished:
        command = ["mvn", "-q", "-B", "-f", str(PINS / "pom.xml"), "dependency:copy-dependencies"]
        options = [f"-DoutputDirectory={unfinished}", "-DincludeScope=runtime"]
        run([*command, *options], layout.cache / "fetch-opensearch.log")
    return folder


@contextmanager
def opensearch(layout: Layout) -> Iterator[str]:
    """Yield the URL of an empty OpenSearch."""
    jars, service = build_opensearch(layout), Service("opensearch", end_signal=signal.SIGTERM)
    (service.folder / "config").mkdir()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    java = ["java", "-Xmx512m", "-cp", f"{jars}/*", str(PINS / "SearchNode.java"), str(service.folder), str(port)]
    try:
        service.start(java, lambda: _answers(url), start_seconds=300)
        replicas = {"index_patterns": ["*"], "template": {"settings": {"number_of_replicas": 0}}}
        httpx.put(f"{url}/_index_template/single", json=replicas, timeout=60).raise_for_status()
        yield url
    finally:
        service.close()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).is_success
    except httpx.TransportError:
        return False
