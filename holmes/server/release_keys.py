"""Creates the Secret with a release's keys. Run it as `python -m holmes.server.release_keys NAME NAMESPACE`.

A Job of the Helm chart runs this module before an installation. An existing Secret is never read or changed.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
import sys
from typing import TYPE_CHECKING

from holmes.kubernetes.credentials import ClusterLogin
from holmes.kubernetes.errors import error_of_answer
from holmes.kubernetes.kinds import api_path
from holmes.kubernetes.transport import connection_error, open_http_client
from holmes.settings.process import process_environment, tool_environment
from holmes.values.environment import Environment
from holmes.values.errors import HolmesError, ToolError

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject

_KEYS = ("api-key", "webhook-key")
_KEY_BYTES = 30
_CREATED, _EXISTS = 201, 409


async def _make_keys(name: str, namespace: str, environment: Environment) -> str:
    """Create the Secret. Returns a one-line message. Raises `HolmesError`."""
    import httpx

    login = await ClusterLogin.load(environment)
    credentials = await login.credentials.current()
    path = api_path("v1", "secrets", namespace=namespace)
    headers = {"Authorization": credentials.authorization} if credentials.authorization else {}
    async with await asyncio.to_thread(open_http_client, login.access, credentials, environment) as client:
        try:
            answer = await client.post(path, json=_secret(name, namespace), headers=headers)
        except (httpx.TransportError, ssl.SSLError) as error:
            raise connection_error(login.access, error) from error
    if answer.status_code == _CREATED:
        return f"Secret {name!r} created"
    if answer.status_code == _EXISTS:
        return f"Secret {name!r} already exists and is unchanged"
    why = error_of_answer(path, answer.status_code, answer.content).detail or f"HTTP {answer.status_code}"
    raise ToolError(f"Secret {name!r} cannot be created: {why}; create it yourself and set auth.existingSecret")


def _secret(name: str, namespace: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/name": "holmes"}},
        "type": "Opaque",
        "stringData": {key: secrets.token_urlsafe(_KEY_BYTES) for key in _KEYS},
    }


def main(arguments: list[str]) -> int:
    """Create the release keys. Returns the exit code."""
    name, namespace = arguments
    try:
        print(asyncio.run(_make_keys(name, namespace, Environment.of(tool_environment(process_environment())))))  # noqa: T201
    except HolmesError as error:
        print(f"holmes: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
