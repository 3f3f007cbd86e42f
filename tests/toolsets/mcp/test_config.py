"""Entries under `mcp_servers:` as HolmesGPT documents them, ours, and what is wrong with others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holmes.toolsets.catalogue import CatalogueFiles, load_catalogue, read_catalogue
from holmes.toolsets.mcp.servers import HttpEndpoint, Login, ProcessEndpoint
from holmes.values.environment import Environment

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.toolsets.catalogue import Catalogue
    from holmes.toolsets.mcp.servers import McpServer


def _catalogue(folder: Path, text: str, **variables: str) -> Catalogue:
    (folder / "toolsets.yaml").write_text(text)
    written = read_catalogue(CatalogueFiles(shipped=(), custom=(folder / "toolsets.yaml",)), entry_points=())
    return load_catalogue(written, Environment.of(variables))


def _server(folder: Path, text: str, **variables: str) -> McpServer:
    catalogue = _catalogue(folder, text, **variables)
    assert [status.reason for status in catalogue.statuses] == []
    (server,) = catalogue.servers
    return server


def test_an_entry_of_holmesgpt_works_unchanged(tmp_path: Path) -> None:
    server = _server(
        tmp_path,
        """
mcp_servers:
  warehouse:
    description: Stock and orders
    enabled: true
    icon_url: https://example.com/icon.png
    llm_instructions: Use it for stock.
    config:
      url: http://warehouse.tools:8000
      mode: streamable-http
      headers: {Authorization: "Bearer {{ env.WAREHOUSE_TOKEN }}"}
      extra_headers: {X-Region: "{{ env.REGION }}"}
      verify_ssl: false
      health_check_tool: ping
""",
        WAREHOUSE_TOKEN="t",
        REGION="eu",
    )
    assert isinstance(server.endpoint, HttpEndpoint)
    assert server.endpoint.headers == {"Authorization": "Bearer t", "X-Region": "eu"}
    assert (server.endpoint.mode, server.endpoint.url) == ("streamable-http", "http://warehouse.tools:8000")
    assert not server.endpoint.tls.verify
    assert (server.instructions, server.health_check_tool) == ("Use it for stock.", "ping")
    assert (server.read_only, server.trusts_annotations) == ((), False)
    assert "Bearer" not in repr(server)


@pytest.mark.parametrize(
    ("url", "used"), [("http://a:1", "http://a:1/sse"), ("http://a:1/x/", "http://a:1/x/sse"), ("http://a/sse", None)]
)
def test_the_default_mode_is_sse_at_its_usual_path(tmp_path: Path, url: str, used: str | None) -> None:
    endpoint = _server(tmp_path, f"mcp_servers: {{a: {{config: {{url: '{url}'}}}}}}").endpoint
    assert isinstance(endpoint, HttpEndpoint)
    assert (endpoint.mode, endpoint.url) == ("sse", used or url)


def test_a_url_beside_config_moves_into_it(tmp_path: Path) -> None:
    catalogue = _catalogue(
        tmp_path, "mcp_servers:\n  a:\n    url: http://a:1/mcp\n    config: {mode: streamable-http}\n"
    )
    assert catalogue.warnings == (f"{tmp_path}/toolsets.yaml:3: 'url' of MCP server 'a' belongs below 'config'",)
    (server,) = catalogue.servers
    assert isinstance(server.endpoint, HttpEndpoint)
    assert (server.endpoint.mode, server.endpoint.url) == ("streamable-http", "http://a:1/mcp")


def test_a_local_process(tmp_path: Path) -> None:
    text = (
        "toolsets: {a: {type: mcp, read_only: [get_*], config: "
        "{mode: stdio, command: npx, args: [-y, server], env: {TOKEN: '{{ env.T }}'}, timeout_seconds: 5}}}"
    )
    server = _server(tmp_path, text, T="x")
    assert server.endpoint == ProcessEndpoint(command="npx", arguments=("-y", "server"), variables={"TOKEN": "x"})
    assert (server.read_only, server.call_seconds) == (("get_*",), 5)


@pytest.mark.parametrize(
    ("oauth", "login"),
    [
        ("{enabled: true}", Login(is_person=True)),
        ("{enabled: false}", None),
        ("{client_id: i, client_secret: s}", Login(is_person=False, client_id="i", client_secret="s")),
        (
            "{client_id: i, client_secret: s, authorization_url: http://l/a, token_url: http://l/t, scopes: [r]}",
            Login(
                is_person=True,
                client_id="i",
                client_secret="s",
                scopes=("r",),
                authorization_url="http://l/a",
                token_url="http://l/t",
            ),
        ),
        (
            "{grant_type: authorization_code, client_id: i, client_secret: s}",
            Login(is_person=True, client_id="i", client_secret="s"),
        ),
    ],
)
def test_how_to_log_in(tmp_path: Path, oauth: str, login: Login | None) -> None:
    endpoint = _server(tmp_path, f"mcp_servers: {{a: {{config: {{url: 'http://a', oauth: {oauth}}}}}}}").endpoint
    assert isinstance(endpoint, HttpEndpoint)
    assert endpoint.login == login


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("{config: {}}", "config.url: Field required"),
        (
            "{config: {url: warehouse:80}}",
            "config.url: 'warehouse:80' does not begin with http:// or https://; expected",
        ),
        ("{config: {url: 'http://a', mode: websocket}}", "config.mode: Input should be 'sse' or 'streamable-http'"),
        ("{config: {url: 'http://a', header: {}}}", "unknown key 'header'; did you mean 'headers'?"),
        ("{config: {url: 'http://a', oauth: {scope: x}}}", "unknown key 'scope'; did you mean 'scopes'?"),
        ("{readonly: true, config: {url: 'http://a'}}", "unknown key 'readonly'; did you mean 'read_only'?"),
        ("{config: {mode: stdio, args: [x]}}", "config.command: Field required"),
        (
            "{config: {url: 'http://a', client_key: k}}",
            "config: client_certificate and client_key are required together",
        ),
        (
            "{config: {url: 'http://a', extra_headers: {A: '{{ request_context.user.a }}'}}}",
            "config.extra_headers: 'A' uses request_context in a form that is not supported; write {{ request_context.",
        ),
        (
            """{config: {url: 'http://a', extra_headers: {A: '{{ request_context.headers["x-api-key"] }}'}}}""",
            "config.extra_headers: 'A' passes x-api-key on, which may hold the key of Holmes; let clients send another",
        ),
        (
            "{config: {url: 'http://a', oauth: {grant_type: client_credentials}}}",
            "config.oauth: client_credentials requires client_id and client_secret",
        ),
        ("{config: {url: '{{ env.NOT_SET }}'}}", "the environment variable 'NOT_SET' is not set"),
        ("{llm_instructions: '{{ x', config: {url: 'http://a'}}", "the instructions of 'a' cannot be used: "),
    ],
)
def test_what_is_wrong_costs_only_this_server(tmp_path: Path, entry: str, reason: str) -> None:
    catalogue = _catalogue(tmp_path, f"mcp_servers:\n  a: {entry}\n  b: {{config: {{url: 'http://b'}}}}\n")
    (status,) = catalogue.statuses
    assert (status.name, status.state) == ("a", "failed")
    assert status.reason is not None
    assert status.reason.startswith(f"{tmp_path}/toolsets.yaml:2: {reason}")
    assert [server.name for server in catalogue.servers] == ["b"]
