"""Makes a test fail if a rule fails in it. A scan continues without the rule, so nothing else would show the bug.

A package takes part with one line in its `conftest.py`:

    from tests.diagnosis.failed_rules import failed_rules
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

_LOGGER = logging.getLogger("holmes.diagnosis.scan")


class _Failures(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None:
            self.texts.append(self.format(record))


@pytest.fixture(autouse=True)
def failed_rules() -> Iterator[list[str]]:
    """The rules that failed, with their tracebacks. A test that expects them clears the list."""
    failures, level = _Failures(), _LOGGER.level
    _LOGGER.addHandler(failures)
    _LOGGER.setLevel(logging.DEBUG)
    yield failures.texts
    _LOGGER.removeHandler(failures)
    _LOGGER.setLevel(level)
    assert not failures.texts, "\n".join(failures.texts)
