"""Secrets in logs: what nobody configured is masked, too."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import logging
from holmes.app.redaction import mask_logs
from holmes.redaction.redactor import Redactor
redactor = Redactor(bytes(32))
mask_logs(redactor)
mask_logs(redactor)
log = logging.getLogger("some.library")
log.warning("cannot connect: %s", "postgres://shop:hunter2hunter2@db/x")
try:
    raise ValueError("DB_PASSWORD=hunter2hunter2")
except ValueError:
    log.warning("it failed", exc_info=True)
"""


@pytest.mark.row("N13")
def test_logs_and_traces_that_go_to_the_default_handler_are_masked() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True, timeout=60)
    assert "hunter2" not in done.stderr
    assert "cannot connect: postgres://shop:(REDACTED" in done.stderr
    assert "ValueError: DB_PASSWORD=(REDACTED" in done.stderr
    assert done.stderr.count("cannot connect") == 1
