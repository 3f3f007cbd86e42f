"""The services are real, fresh, and gone when the test session is."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.cluster.handle import wait_until
from tests.services.fixtures import PostgresqlServer, RunMonitor
from tests.services.postgresql import Stop

ROOT = Path(__file__).parents[2]
# Other plugins would double the time.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
SESSION = """
import time

def test_that_is_killed(postgresql_url):
    print("URL", postgresql_url, flush=True)
    time.sleep(60)
"""


def query(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def test_every_test_gets_an_empty_database_of_its_own(postgresql: PostgresqlServer, postgresql_url: str) -> None:
    other = postgresql.create_database()
    query(postgresql_url, "CREATE TABLE notes (text text)")
    assert query(postgresql_url, "SELECT count(*) FROM notes") == [(0,)]
    assert query(other, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]


@pytest.mark.parametrize("how", ["regular", "crash"])
def test_a_database_that_was_down_comes_back_with_its_data(
    how: Stop, postgresql: PostgresqlServer, postgresql_url: str
) -> None:
    query(postgresql_url, "CREATE TABLE notes AS SELECT 'kept' AS text")
    postgresql.stop(how)
    with pytest.raises(psycopg.OperationalError):
        query(postgresql_url, "SELECT 1")
    postgresql.start()
    assert query(postgresql_url, "SELECT text FROM notes") == [("kept",)]


@contextmanager
def receiver() -> Iterator[tuple[str, queue.Queue[tuple[str, str]]]]:
    """A webhook: its URL, and header `Authorization` and body of each request."""
    received: queue.Queue[tuple[str, str]] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            received.put((self.headers["authorization"], body))
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/", received
        finally:
            server.shutdown()
            thread.join()


def test_a_rule_of_prometheus_reaches_the_webhook_of_alertmanager(
    prometheus: RunMonitor, alertmanager: RunMonitor
) -> None:
    rule = {"alert": "AlwaysOn", "expr": "vector(1)", "labels": {"severity": "info"}}
    rules = {"groups": [{"name": "test", "interval": "1s", "rules": [rule]}]}
    with receiver() as (url, received):
        key = {"authorization": {"type": "Bearer", "credentials": "not-a-secret"}}
        hook = {"name": "hook", "webhook_configs": [{"url": url, "http_config": key}]}
        route = {"receiver": "hook", "group_wait": "0s"}
        with alertmanager({"route": route, "receivers": [hook]}) as manager:
            alerting = {"alertmanagers": [{"static_configs": [{"targets": [manager.address]}]}]}
            with prometheus({"alerting": alerting}, rules=rules):
                authorization, body = received.get(timeout=30)
    payload = json.loads(body)
    assert authorization == "Bearer not-a-secret"
    assert (payload["version"], payload["status"]) == ("4", "firing")
    assert payload["alerts"][0]["labels"] == {"alertname": "AlwaysOn", "severity": "info"}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_nothing_is_left_of_a_test_session_that_was(how: signal.Signals, tmp_path: Path) -> None:
    # The server runs under another account, which may not look into the folders of tests.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        started = run_session_until(how, tmp_path, folder)
        wait_until("the end", lambda: [process.pid for process in started if lives(process)], lambda left: not left)
        assert list(Path(folder).glob("holmes-*")) == []


def lives(process: psutil.Process) -> bool:
    """Whether it still does something; an orphan that nobody has waited for yet is at its end too."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def run_session_until(how: signal.Signals, tmp_path: Path, temporary: str) -> list[psutil.Process]:
    """End a test session that uses a service by a signal; what it had started."""
    file = tmp_path / "test_one.py"
    file.write_text(SESSION)
    options = ["-q", "-s", "-p", "tests.services.fixtures", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    session = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, "-c", os.devnull, str(file)],
        cwd=ROOT,
        env={**ENVIRONMENT, "TMPDIR": temporary},
        stdout=subprocess.PIPE,
        text=True,
    )
    with session:
        assert session.stdout is not None
        assert any(line.startswith("URL ") for line in session.stdout)
        (guard,) = psutil.Process(session.pid).children()
        started = [guard, *guard.children(recursive=True)]
        assert "postgres" in {process.name() for process in started}
        session.send_signal(how)
    return started


def test_the_browser_renders_without_a_screen(chromium_path: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<p id=p></p><script>p.textContent = 6 * 7</script>")
    options = ("--headless", "--no-sandbox", f"--user-data-dir={tmp_path}/profile", "--dump-dom", page.as_uri())
    done = subprocess.run([chromium_path, *options], capture_output=True, text=True, timeout=60, check=False)
    assert '<p id="p">42</p>' in done.stdout


def test_a_machine_without_the_programs_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "test_one.py"
    file.write_text("def test_one(chromium_path):\n    pass\n")
    options = ["-q", "-rA", "-p", "tests.services.fixtures", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    for in_ci, outcome in (("false", "1 skipped"), ("true", "1 error")):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, "-c", os.devnull, str(file)],
            cwd=ROOT,
            env={**ENVIRONMENT, "PATH": str(tmp_path), "CI": in_ci},
            capture_output=True,
            text=True,
            check=False,
        )
        assert outcome in done.stdout
        assert "run `python -m tests.services build` once, as root" in done.stdout
