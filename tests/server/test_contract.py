"""The OpenAPI document is kept: whatever is sent, no answer is a bug, and every answer is one that it names."""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import re
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    ensure_resource_availability,
    ignored_auth,
    missing_required_header,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    use_after_free,
)

from tests.server.http_server import KEY, WEBHOOK_KEY, HttpServer, Provider
from tests.support.openai_server import Reply

# A call that is cancelled while litellm prepares it leaves a coroutine of litellm's behind.
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    ignored_auth,
    allow_header_conformance,
    missing_required_header,
    use_after_free,
    ensure_resource_availability,
    negative_data_rejection,
]
EXAMPLES = 5
ADDRESSES = ipaddress.ip_network("198.18.0.0/15").hosts()
POSITIVE = GenerationMode.POSITIVE
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
OPEN = ("/healthz", "/readyz")
WITHOUT_INPUT = {"GET /healthz", "GET /readyz", "GET /api/model", "GET /metrics"}


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.name.lower())
def test_no_request_meets_a_bug_or_an_answer_that_is_not_documented(
    server: HttpServer, scripted: Provider, mode: GenerationMode
) -> None:
    scripted.play(Reply(text="All is well."))
    document = schemathesis.openapi.from_url(f"{server.url}/openapi.json", headers={"X-API-Key": KEY})
    called: dict[str, int] = {}
    for found in document.get_all_operations():
        assert isinstance(found, Ok)
        called[found.ok().label] = _call(found.ok(), mode)

    assert set(called) == {
        f"{method.upper()} {path}" for path, methods in document.raw_schema["paths"].items() for method in methods
    }
    # What takes no input has no wrong input.
    assert {label for label, times in called.items() if not times} <= (set() if mode is POSITIVE else WITHOUT_INPUT)


def test_every_operation_wants_the_key_and_no_other_method_is_answered(
    server: HttpServer, client: httpx.Client
) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    with httpx.Client(base_url=server.url) as stranger:
        for (template, documented), method in itertools.product(paths.items(), METHODS):
            path = re.sub(r"\{\w+\}", "0" * 12, template)
            answer = stranger.request(method, path)
            if method.lower() not in documented:
                assert answer.status_code == 405, (method, path)
                assert answer.headers["allow"], (method, path)
            elif path not in OPEN:
                assert answer.status_code == 401, (method, path)


def _call(operation: APIOperation[Any, Any, Any, Any], mode: GenerationMode) -> int:
    """Send some requests to one operation; returns how many."""
    takes_alerts = "alerts" in operation.path
    key = WEBHOOK_KEY if takes_alerts else KEY
    # The webhook leaves out alerts that are none, since their sender would only repeat them all.
    checks = [check for check in CHECKS if not (takes_alerts and check is negative_data_rejection)]
    called = 0

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
    @given(operation.as_strategy(generation_mode=mode))
    def send(case: schemathesis.Case[Any]) -> None:
        nonlocal called
        # From an address of its own: the checks send wrong keys, too, and who sends many has to wait.
        headers = {"X-API-Key": key, "X-Forwarded-For": str(next(ADDRESSES))}
        case.call_and_validate(headers=headers, checks=checks, timeout=20)
        called += 1

    with contextlib.suppress(Unsatisfiable):
        send()
    return called
