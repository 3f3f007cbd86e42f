"""When traces are sent, where to, and that nothing of it can harm an investigation."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from holmes.app.telemetry import open_tracer
from holmes.llm.scripted import ScriptedReply
from holmes.redaction.redactor import Redactor
from holmes.telemetry import tracing
from holmes.telemetry.readers import traced
from holmes.telemetry.runs import RunAttributes
from holmes.values.errors import mask_errors
from holmes.values.events import AnswerFinished
from tests.support.deadlines import ends_before
from tests.support.investigations import QUESTION, build_loop
from tests.telemetry.otlp_collector import OtlpCollector
from tests.telemetry.runs import drain, scripted, settings_of

RUN = RunAttributes(source="api")
TURN_OFF = """
import asyncio, sys, logging
from pathlib import Path
{before}
import holmes.cli.commands.run
from holmes.app.telemetry import open_tracer
from holmes.settings.load import load_settings
from holmes.settings.process import process_environment

async def main():
    async with open_tracer(load_settings(process_environment())) as tracer:
        print("tracer", tracer)
asyncio.run(main())
heavy = {{"opentelemetry", "prometheus_client", "google"}}
print("heavy", sorted(heavy & {{name.split(".")[0] for name in sys.modules}}))
"""


async def run_traced(home: Path, **variables: str) -> None:
    """Trace one run with these settings."""
    loop = build_loop([scripted(ScriptedReply(text="done"))])
    async with open_tracer(settings_of(home, **variables)) as tracer:
        assert tracer is not None
        events = await drain(traced(loop.call_stream(QUESTION), tracer, RUN))
    assert isinstance(events[-1], AnswerFinished)


def in_a_process(home: Path, before: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", TURN_OFF.format(before=before)],
        env={"PATH": os.environ["PATH"], "HOME": str(home), **variables},
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_SERVICE_NAME": "alone-it-switches-nothing-on"},
    ],
    ids=["by-default", "sdk-disabled", "no-traces-exporter", "a-name-alone"],
)
def test_when_it_is_off_opentelemetry_is_not_even_imported(variables: dict[str, str], tmp_path: Path) -> None:
    done = in_a_process(tmp_path, **variables)
    assert (done.stdout, done.stderr) == ("tracer None\nheavy []\n", "")


def test_without_the_extra_there_is_one_line_and_everything_goes_on(tmp_path: Path) -> None:
    done = in_a_process(
        tmp_path, before='sys.modules["opentelemetry"] = None', OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4318"
    )
    assert done.stdout.startswith("tracer None\n")
    (line,) = done.stderr.splitlines()
    assert "traces are disabled" in line
    assert "pip install 'holmes[otel]'" in line


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "is not a valid URL; expected http://"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "'grpc' is not supported",
        ),
    ],
)
async def test_what_cannot_work_is_said_and_leaves_traces_off(
    variables: dict[str, str], reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_tracer(settings_of(tmp_path, **variables)) as tracer:
        assert tracer is None
    assert reason in caplog.text


async def test_the_variables_of_the_standard_are_honoured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "on-call")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20key")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    with OtlpCollector() as collector:
        await run_traced(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=f"{collector.url}/")
        assert set(collector.paths) == {"/v1/traces"}
        assert {headers["authorization"] for headers in collector.headers} == {"Bearer key"}
        assert {headers["content-encoding"] for headers in collector.headers} == {"gzip"}
        resource = collector.root().resource
        assert (resource["service.name"], resource["deployment.environment.name"]) == ("on-call", "staging")


async def test_the_address_for_traces_is_taken_as_it_is(tmp_path: Path) -> None:
    with OtlpCollector() as collector:
        own = f"{collector.url}/own/path"
        await run_traced(
            tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=own
        )
        assert set(collector.paths) == {"/own/path"}


@pytest.mark.parametrize("how", ["refuses", "hangs", "nobody-there"])
async def test_a_collector_that_takes_nothing_costs_a_bounded_time_and_few_lines(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tracing, "FLUSH_SECONDS", 0.3)
    with OtlpCollector(status=400 if how == "refuses" else 200, hangs=how == "hangs") as collector:
        url = collector.url if how != "nobody-there" else f"http://127.0.0.1:{free_port()}"
        with ends_before(8):
            await run_traced(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=url)
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert 1 <= len(lines) <= 2
    assert all(record.name == "holmes.telemetry.tracing" and record.exc_info is None for record in lines)


def test_a_long_complaint_of_a_collector_is_masked_before_it_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    token = "gh" + "p_" + "aB3dE6gH9kL2" * 3
    complaint = logging.makeLogRecord({"msg": f"{'x ' * 140}{token} was refused", "levelno": logging.ERROR})
    mask_errors(Redactor(b"a key of the tests, 32 bytes long").redact)
    try:
        tracing._SparingLog().emit(complaint)
    finally:
        mask_errors(None)
    (line,) = caplog.messages
    assert token[:12] not in line
    assert len(line) <= 320


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
