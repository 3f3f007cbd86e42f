"""The MCP server of the tests, protected by OAuth.

It runs as `python -m tests.toolsets.mcp.protected_server MODE PORT ISSUER [narrow]`. MODE is `sse`, `streamable-http`,
`json` (streamable-http with results that are not streams) or `open-stream` (SSE that requires a token only for
messages). With `narrow`, the tools in `SCOPES` require more than the scope of the server.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

import httpx
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from pydantic import AnyHttpUrl
from starlette.requests import Request
from starlette.responses import Response

from tests.toolsets.mcp.server import close, search, wait

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


SCOPES: Final = {"close": "archive", "wait": "admin"}


class Introspection:
    """Asks the authorization server about each token (RFC 7662), so that a revoked token ends at once."""

    def __init__(self, issuer: str) -> None:
        self._http = httpx.AsyncClient(
            base_url=issuer, auth=("ticket-server", "ticket-server-secret-0123456789"), trust_env=False
        )

    async def verify_token(self, token: str) -> AccessToken | None:
        response = await self._http.post("/token/introspection", data={"token": token})
        found = response.raise_for_status().json()
        if not found["active"]:
            return None
        return AccessToken(
            token=token,
            client_id=found["client_id"],
            scopes=found.get("scope", "").split(),
            expires_at=found["exp"],
            resource=found.get("aud"),
            subject=found.get("sub"),
        )


class OpenStream:
    """Adds a token of its own to each GET."""

    def __init__(self, inner: ASGIApp, issuer: str, url: str) -> None:
        self._inner = inner
        form = {"grant_type": "client_credentials", "resource": url, "scope": "tickets"}
        robot = ("robot", "robot-secret-0123456789")
        response = httpx.post(f"{issuer}/token", data=form, auth=robot, trust_env=False)
        self._token = response.raise_for_status().json()["access_token"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET":
            token = (b"authorization", f"Bearer {self._token}".encode())
            scope = {**scope, "headers": [*scope["headers"], token]}
        await self._inner(scope, receive, send)


class Narrow:
    """Refuses calls of tools in `SCOPES` whose token is too narrow, as the specification of MCP demands."""

    def __init__(self, inner: ASGIApp, issuer: str) -> None:
        self._inner = inner
        self._introspection = Introspection(issuer)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._inner(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        needed, authorization = _needed_scope(body), dict(scope["headers"]).get(b"authorization", b"").decode()
        token = await self._introspection.verify_token(authorization.removeprefix("Bearer ")) if needed else None
        if token is not None and needed not in token.scopes:
            challenge = f'Bearer error="insufficient_scope", scope="{needed}", error_description="more is needed"'
            await Response(status_code=403, headers={"WWW-Authenticate": challenge})(scope, receive, send)
            return
        parts = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replayed() -> Message:
            return next(parts, None) or await receive()

        await self._inner(scope, replayed, send)


def _needed_scope(body: bytes) -> str | None:
    message = json.loads(body)
    return SCOPES.get(message["params"]["name"]) if message.get("method") == "tools/call" else None


def main(mode: str, port: int, issuer: str, *, is_narrow: bool) -> None:
    url = f"http://127.0.0.1:{port}{'/sse' if mode in {'sse', 'open-stream'} else '/mcp'}"
    server = MCPServer(
        "tickets",
        version="4.5.6",
        log_level="ERROR",
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(issuer),
            resource_server_url=AnyHttpUrl(url),
            required_scopes=["tickets"],
            validate_token_resource=True,
        ),
        token_verifier=Introspection(issuer),
    )
    server.add_tool(search, annotations=ToolAnnotations(read_only_hint=True))
    server.add_tool(close)
    server.add_tool(wait)
    if is_narrow:
        app = server.sse_app() if mode == "sse" else server.streamable_http_app()
        uvicorn.run(Narrow(app, issuer), port=port, log_level="error")
    elif mode == "sse":
        server.run("sse", port=port)
    elif mode == "open-stream":
        uvicorn.run(OpenStream(server.sse_app(), issuer, url), port=port, log_level="error")
    else:
        server.run("streamable-http", port=port, json_response=mode == "json")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], is_narrow="narrow" in sys.argv[4:])
