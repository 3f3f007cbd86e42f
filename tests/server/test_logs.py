"""What is logged is worth reading."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys

import pytest

from holmes.server.logs import PatientHandler

NOISY = """
import logging, warnings
from holmes.server.logs import set_up_logs
set_up_logs("INFO", None)
warnings.warn("Item a of TypedDict B", UserWarning)
logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
logging.getLogger("uvicorn.error").warning("Unsupported upgrade request.")
logging.getLogger("uvicorn.error").warning("No supported WebSocket library detected.")
logging.getLogger("python_multipart.multipart").warning("Did not find boundary character")
for _ in range(1000):
    logging.getLogger("asyncio").error("socket.accept() out of system resource")
warnings.warn("another one", UserWarning)
"""


def test_strangers_and_libraries_do_not_fill_the_log() -> None:
    done = subprocess.run([sys.executable, "-c", NOISY], capture_output=True, text=True, check=True)

    accept, warning = (json.loads(line) for line in done.stderr.splitlines())
    assert "accept" in accept["message"]
    assert "another one" in warning["message"]


def test_whoever_logs_wrongly_does_not_fail(capsys: pytest.CaptureFixture[str]) -> None:
    PatientHandler(io.StringIO()).emit(logging.LogRecord("x", logging.ERROR, "f", 1, "%d", ("word",), None))

    assert "Logging error" in capsys.readouterr().err


def test_a_line_that_repeats_itself_comes_again_after_a_while_with_a_count() -> None:
    stream = io.StringIO()
    handler = PatientHandler(stream, seconds=0)
    now = logging.LogRecord("x", logging.ERROR, "f", 1, "no %s", ("room",), None)
    handler.emit(now)
    handler._seconds = 60
    for _ in range(5):
        handler.emit(logging.LogRecord("x", logging.ERROR, "f", 1, "no %s", ("room",), None))
    handler.emit(logging.LogRecord("x", logging.ERROR, "f", 1, "no %s", ("time",), None))
    handler._seconds = 0
    handler.emit(now)

    assert stream.getvalue().splitlines() == ["no room", "no time", "no room (repetitions not logged: 5)"]
