"""The OpenAPI document is kept: whatever is sent, no answer is a bug, and every answer is one that it names."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.server.http_server import KEY, WEBHOOK_KEY, HttpServer, Provider
from tests.support.openai_server import Reply

# A call that is cancelled while litellm prepares it leaves a coroutine of litellm's behind.
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = 8


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.name.lower())
def test_no_request_meets_a_bug_or_an_answer_that_is_not_documented(
    server: HttpServer, scripted: Provider, mode: GenerationMode
) -> None:
    scripted.play(Reply(text="All is well."))
    document = schemathesis.openapi.from_url(f"{server.url}/openapi.json", headers={"X-API-Key": KEY})
    called = 0
    for found in document.get_all_operations():
        assert isinstance(found, Ok)
        called += _call(found.ok(), mode)

    assert called > EXAMPLES * 5


def _call(operation: APIOperation[Any, Any, Any, Any], mode: GenerationMode) -> int:
    """Send some requests to one operation; returns how many."""
    key = WEBHOOK_KEY if "alerts" in operation.path else KEY
    called = 0

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
    @given(operation.as_strategy(generation_mode=mode))
    def send(case: schemathesis.Case[Any]) -> None:
        nonlocal called
        case.call_and_validate(headers={"X-API-Key": key}, checks=CHECKS, timeout=20)
        called += 1

    with contextlib.suppress(Unsatisfiable):  # what takes no input has no wrong input
        send()
    return called
