"""Defines a configured MCP server: how it is reached, and which of its tools need no approval."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.observability.access import TlsFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

HttpMode: TypeAlias = Literal["sse", "streamable-http"]
DEFAULT_CALL_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """How to obtain OAuth tokens. An address that is None is discovered from the server, or registered dynamically.

    With `is_person`, a person logs in once with a browser. Otherwise, the client's own credentials give the tokens.
    `scopes` are requested instead of those that the server names, and `added_scopes` beside them.
    """

    is_person: bool
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ()
    added_scopes: tuple[str, ...] = ()
    issuer: str | None = None
    authorization_url: str | None = None
    token_url: str | None = None
    registration_url: str | None = None
    redirect_port: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpEndpoint:
    """A server at a URL. `passed` has templates of headers whose values come from the request that a run answers."""

    mode: HttpMode
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    passed: Mapping[str, str] = field(default_factory=dict)
    tls: TlsFiles = field(default_factory=TlsFiles)
    proxy: str | None = field(default=None, repr=False)
    login: Login | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEndpoint:
    """A server that runs as a process of this machine and is called through its standard input and output."""

    command: str
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """One configured server.

    Tools that match a glob in `read_only` run without approval, and with `trusts_annotations` also those that the
    server calls read-only. Tools that match `approval_patterns` always require approval. `cluster` is the configured
    cluster that the server reads, or None if it is used for all.
    """

    name: str
    source: str
    endpoint: HttpEndpoint | ProcessEndpoint
    description: str = ""
    instructions: str = ""
    health_check_tool: str | None = None
    call_seconds: float = DEFAULT_CALL_SECONDS
    read_only: tuple[str, ...] = ()
    trusts_annotations: bool = False
    approval_patterns: tuple[str, ...] = ()
    redaction: bool = True
    on_demand: bool = False
    tags: tuple[str, ...] = ()
    cluster: str | None = None
