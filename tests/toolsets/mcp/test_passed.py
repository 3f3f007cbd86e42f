"""Headers of the HTTP request that a run answers reach an MCP server, each only for its own run."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from holmes.toolsets.mcp.passed import default_headers, passed_headers, why_wrong
from holmes.toolsets.mcp.servers import HttpEndpoint
from holmes.values.errors import ToolError
from holmes.values.request_headers import RequestHeaders, answering
from tests.toolsets.mcp.running import TENANTS, call, running_server, server_of, toolset_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from holmes.toolsets.mcp.servers import HttpMode
    from holmes.toolsets.mcp.toolset import McpToolset
    from tests.toolsets.mcp.running import RunningServer

_TENANT: Final = {"X-Tenant": "{{ request_context.headers['X-Tenant'] }}"}
_TOKEN: Final = {"X-Auth-Token": "Bearer {{ request_context.headers['X-Token'] }}"}
_SERVER: Final = server_of(HttpEndpoint(mode="sse", url="http://a/sse"))
_SECRET: Final = "q7Zt-44aLw-90xKm"


@pytest.fixture(scope="module", params=["sse", "streamable-http"])
def running(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    mode: HttpMode = request.param
    with running_server(mode, TENANTS) as server:
        yield server


@asynccontextmanager
async def _toolset(running: RunningServer, passed: Mapping[str, str]) -> AsyncIterator[McpToolset]:
    endpoint = replace(running.endpoint, passed=passed, headers=default_headers(passed))
    async with toolset_of(server_of(endpoint, read_only=("*",))) as toolset:
        yield toolset


async def _asked(toolset: McpToolset, **headers: str) -> list[str]:
    """Return what the server sees in two calls of one run."""
    async with answering(RequestHeaders({name.replace("_", "-"): value for name, value in headers.items()})):
        return [(await call(toolset, "tell", name="x-tenant")).data for _ in range(2)]


async def test_each_run_has_the_headers_of_its_own_request(running: RunningServer) -> None:
    async with _toolset(running, _TENANT) as toolset:
        told = await asyncio.gather(*(_asked(toolset, x_tenant=f"shop-{number}") for number in range(4)))
        assert told == [[f"x-tenant is 'shop-{number}'"] * 2 for number in range(4)]
        with pytest.raises(ToolError) as caught:
            await call(toolset, "tell", name="x-tenant")
    assert str(caught.value) == (
        f"MCP server 'tickets' ({running.endpoint.url.rpartition('/')[0]}): it requires the header X-Tenant of an HTTP "
        "request, and this run answers none; let the client of the HTTP API send it"
    )


async def test_the_connection_of_a_run_ends_with_it(running: RunningServer) -> None:
    request = RequestHeaders({"x-tenant": "shop"})
    async with _toolset(running, _TENANT) as toolset:
        before = len(asyncio.all_tasks())
        async with answering(request):
            await call(toolset, "tell", name="x-tenant")
            assert len(asyncio.all_tasks()) > before
        assert len(asyncio.all_tasks()) == before
    assert request.get("x-tenant") is None


async def test_a_default_is_used_without_the_header(running: RunningServer) -> None:
    passed = {"X-Tenant": "{{ request_context.headers.get('X-Tenant', 'nobody') }}"}
    async with _toolset(running, passed) as toolset:
        assert (await call(toolset, "tell", name="x-tenant")).data == "x-tenant is 'nobody'"
        assert await _asked(toolset, other="x") == ["x-tenant is 'nobody'"] * 2
        assert await _asked(toolset, x_tenant="shop") == ["x-tenant is 'shop'"] * 2


async def test_a_passed_token_is_never_shown(running: RunningServer) -> None:
    async with _toolset(running, _TOKEN) as toolset, answering(RequestHeaders({"X-Token": _SECRET})):
        told = await call(toolset, "tell", name="x-auth-token")
        refused = await call(toolset, "refuse", name="x-auth-token")
    assert told.data == "x-auth-token is '***'"
    assert refused.status == "error"
    assert refused.error is not None
    assert "not accepted: ***" in refused.error


@pytest.mark.parametrize(
    ("template", "headers", "value"),
    [
        ("{{ request_context.headers['X-A'] }}", {"x-a": "1"}, "1"),
        ('{{request_context["headers"]["X-A"]}}', {"X-A": "1"}, "1"),
        ("{{ request_context.headers.tenant }}", {"Tenant": "1"}, "1"),
        ("Bearer {{- request_context.headers.get('X-A') -}} !", {"X-A": "1"}, "Bearer 1 !"),
        ("{{ request_context.headers['X-A'] }}/{{ request_context.headers['X-B'] }}", {"x-a": "1", "x-b": "2"}, "1/2"),
        ("{{ request_context.headers['X-A'] | default('none') }}", {}, "none"),
        ("{{ request_context.headers['X-A']|default('', true) }}", {"X-A": ""}, None),
        ("{{ request_context.headers.get('X-A', \"none\") }}", {"X-B": "1"}, "none"),
    ],
)
def test_forms_of_templates(template: str, headers: dict[str, str], value: str | None) -> None:
    assert why_wrong(template) is None
    found = passed_headers(_SERVER, {"H": template}, RequestHeaders(headers))
    assert found == ({} if value is None else {"H": value})


@pytest.mark.parametrize(
    "template",
    [
        "{{ request_context }}",
        "{{ request_context.headers }}",
        "{{ request_context.headers['X-A'] | upper }}",
        "{% if request_context.headers['X-A'] %}1{% endif %}",
        "{{ request_context.headers['X-A'] ~ request_context.headers['X-B'] }}",
        "{{ request_context.headers[name] }}",
        "{{ request_context.headers['Authorization'] }}",
        "{{ request_context.headers.cookie }}",
        "{{ request_context.headers.get('X-API-Key', 'x') }}",
    ],
)
def test_other_templates_are_refused(template: str) -> None:
    assert why_wrong(template) is not None


@pytest.mark.parametrize("value", ["größe", "a\r\nX-Other: b", "a\x00b"])
def test_values_that_no_header_may_have_are_refused(value: str) -> None:
    with pytest.raises(ToolError, match="would not be plain ASCII"):
        passed_headers(_SERVER, _TENANT, RequestHeaders({"X-Tenant": value}))
