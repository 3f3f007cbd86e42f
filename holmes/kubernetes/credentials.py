"""Provides the credentials of a context and renews them before they expire.

Tokens never leave this package. A kubeconfig exec plugin (`aws eks get-token`, `gke-gcloud-auth-plugin`, …) receives
the `Environment` and its own variables, and has no terminal. The plugin's process group is killed after a
timeout, a cancellation or too much output. The kubernetes package does not support this.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import copy
import json
import os
import shutil
import signal
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from holmes.kubernetes.credential_files import read_credential_file
from holmes.kubernetes.fields import child, text
from holmes.kubernetes.kubeconfig import SERVICE_ACCOUNT, load_access
from holmes.values.errors import masked
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.kubernetes.kubeconfig import ClusterAccess, ExecPlugin
    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonObject

TIMEOUT_SECONDS = 30.0
_OUTPUT_LIMIT_BYTES = 1_000_000
_KILL_SECONDS = 5.0
_LONGEST_COMPLAINT = 300
_LOGIN_ADVICE = "run it manually for details, or log in again"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecCredential:
    """Credentials that a plugin printed.

    `expires_at_seconds` is in seconds since the epoch, or None if they do not expire.
    """

    token: str | None
    certificate: bytes | None
    key: bytes | None
    expires_at_seconds: float | None


async def run_exec_plugin(
    plugin: ExecPlugin, access: ClusterAccess, environment: Environment, *, timeout_seconds: float = TIMEOUT_SECONDS
) -> ExecCredential:
    """Run `plugin` and return its credentials. Raises `ClusterUnreachable` with the command if the plugin fails."""
    if plugin.needs_terminal:
        raise access.unreachable(
            f"the credential plugin {plugin.command!r} requires a terminal (interactiveMode: Always)",
            "log in with kubectl first, or use a plugin that does not require a terminal",
        )
    variables = _variables(plugin, environment)
    transport, printed = await _start(plugin, access, variables)
    try:
        async with asyncio.timeout(timeout_seconds):
            await printed.complete
    except TimeoutError as error:
        raise access.unreachable(
            f"the credential plugin {plugin.command!r} did not finish within {timeout_seconds:g} s", _LOGIN_ADVICE
        ) from error
    finally:
        await _end(transport, printed)
    if printed.flooded:
        limit = f"{_OUTPUT_LIMIT_BYTES // 1_000_000} MB"
        raise access.unreachable(f"the credential plugin {plugin.command!r} printed more than {limit}", _LOGIN_ADVICE)
    code = transport.get_returncode()
    if code != 0:
        last = masked(printed.errors.decode("utf-8", "replace")).strip().splitlines()[-1:]
        said = shortened("".join(last), _LONGEST_COMPLAINT)
        why = f"the credential plugin {plugin.command!r} failed with exit code {code}: {said}"
        raise access.unreachable(why.rstrip(": "), _LOGIN_ADVICE)
    return _parsed(plugin, access, bytes(printed.output))


class _Printed(asyncio.SubprocessProtocol):
    """Collects what a plugin prints. `complete` ends when the plugin has ended, or has printed more than the limit.

    The streams of asyncio are not used, because waiting for a killed process never ends while a stream is full.
    """

    def __init__(self) -> None:
        self.output = bytearray()
        self.errors = bytearray()
        self.flooded = False
        self.complete = asyncio.get_running_loop().create_future()
        self.exited = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept = self.output if fd == 1 else self.errors
        kept += data[: _OUTPUT_LIMIT_BYTES + 1 - len(kept)]
        if len(kept) > _OUTPUT_LIMIT_BYTES:
            self.flooded = True
            self._finish()

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  the interface of asyncio
        self._finish()

    def _finish(self) -> None:
        if not self.complete.done():
            self.complete.set_result(None)


def _variables(plugin: ExecPlugin, environment: Environment) -> dict[str, str]:
    spec: dict[str, JsonObject | bool] = {"interactive": False}
    if plugin.cluster_info is not None:
        spec["cluster"] = plugin.cluster_info
    info = json.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec})
    return {**environment.as_dict(), **dict(plugin.variables), "KUBERNETES_EXEC_INFO": info}


async def _start(
    plugin: ExecPlugin, access: ClusterAccess, variables: Mapping[str, str]
) -> tuple[asyncio.SubprocessTransport, _Printed]:
    command = plugin.command
    if "/" in command and not Path(command).is_absolute():
        command = str(plugin.directory / command)
    found = shutil.which(command, path=variables.get("PATH", os.defpath))
    if found is None:
        hint = plugin.install_hint or "install it or correct the kubeconfig"
        raise access.unreachable(f"the credential plugin {plugin.command!r} is not installed", hint)
    try:
        return await asyncio.get_running_loop().subprocess_exec(
            _Printed,
            found,
            *plugin.arguments,
            env=dict(variables),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        why = f"the credential plugin {plugin.command!r} cannot be started: {error.strerror}"
        raise access.unreachable(why, "correct the kubeconfig") from error


async def _end(transport: asyncio.SubprocessTransport, printed: _Printed) -> None:
    """Kill the plugin and the processes that it started, and close its pipes, which others may still hold."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(transport.get_pid(), signal.SIGKILL)
    try:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(printed.exited.wait(), _KILL_SECONDS)
    finally:
        transport.close()


def _parsed(plugin: ExecPlugin, access: ClusterAccess, output: bytes) -> ExecCredential:
    try:
        document = json.loads(output)
    except (ValueError, RecursionError) as error:
        why = f"the credential plugin {plugin.command!r} did not print JSON"
        raise access.unreachable(why, _LOGIN_ADVICE) from error
    version = text(document, "apiVersion")
    if version != plugin.api_version:
        versions = f"{version!r}, but the kubeconfig requires {plugin.api_version!r}"
        why = f"the credential plugin {plugin.command!r} uses {versions}"
        raise access.unreachable(why, "update the plugin or the kubeconfig")
    status = child(document, "status")
    token, certificate = text(status, "token") or None, text(status, "clientCertificateData")
    key = text(status, "clientKeyData")
    if token is None and not (certificate and key):
        why = f"the credential plugin {plugin.command!r} printed neither a token nor a certificate with its key"
        raise access.unreachable(why, _LOGIN_ADVICE)
    return ExecCredential(
        token=token,
        certificate=certificate.encode() or None,
        key=key.encode() or None,
        expires_at_seconds=_epoch_seconds(text(status, "expirationTimestamp")),
    )


def _epoch_seconds(timestamp: str) -> float | None:
    try:
        return datetime.fromisoformat(timestamp).timestamp() if timestamp else None
    except ValueError:
        return None


_TOKEN_FILE_LIFETIME_SECONDS = 60.0  # client-go also rereads the token every minute, because the kubelet can replace it
_RENEWAL_MARGIN_SECONDS = 30.0
_SHORTEST_USE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Credentials for requests.

    `renew_at_seconds` is in seconds since the epoch, or None if the credentials do not expire.
    """

    authorization: str | None = field(default=None, repr=False)
    certificate: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    renew_at_seconds: float | None = None


class CredentialSource:
    """Creates the credentials of one context on first use. All requests share them."""

    def __init__(self, access: ClusterAccess, environment: Environment) -> None:
        self._access = access
        self._environment = environment
        self._lock = asyncio.Lock()
        self._credentials: Credentials | None = None
        # This is a copy, because the kubernetes package writes renewed tokens into it, and `access` must not change.
        self._auth_provider = copy.deepcopy(access.user.auth_provider)

    async def current(self) -> Credentials:
        """Return credentials that have not expired. Raises `ClusterUnreachable` if they cannot be obtained."""
        async with self._lock:
            credentials = self._credentials
            if credentials is None or _is_due(credentials):
                credentials = self._credentials = await self._make()
            return credentials

    async def renewed(self, rejected: Credentials) -> Credentials:
        """Return new credentials after the server rejected `rejected`. Concurrent requests renew them only once."""
        async with self._lock:
            credentials = self._credentials
            if credentials is None or credentials is rejected:
                credentials = self._credentials = await self._make()
            return credentials

    async def _make(self) -> Credentials:
        user = self._access.user
        if not self._access.cluster.encrypted:
            return Credentials()
        if user.token is None and user.token_file is None and user.exec_plugin is not None:
            found = await run_exec_plugin(user.exec_plugin, self._access, self._environment)
            return Credentials(
                authorization=f"Bearer {found.token}" if found.token else None,
                certificate=found.certificate,
                key=found.key,
                renew_at_seconds=_renewal(found.expires_at_seconds),
            )
        return await asyncio.to_thread(_static_credentials, self._access, self._auth_provider)


def _is_due(credentials: Credentials) -> bool:
    return credentials.renew_at_seconds is not None and time.time() >= credentials.renew_at_seconds


def _renewal(expires_at_seconds: float | None) -> float | None:
    """Return a renewal time shortly before the expiry, or None if the credentials do not expire.

    A short lifetime or a wrong clock must not cause constant renewal.
    """
    if expires_at_seconds is None:
        return None
    now = time.time()
    margin_seconds = min(_RENEWAL_MARGIN_SECONDS, max(0.0, expires_at_seconds - now) / 2)
    return max(now + _SHORTEST_USE_SECONDS, expires_at_seconds - margin_seconds)


def _static_credentials(access: ClusterAccess, auth_provider: JsonObject | None) -> Credentials:
    """Read the credentials from the configuration and from the files that it refers to."""
    user = access.user
    authorization, renew_at_seconds = None, None
    if user.token_file is not None:
        authorization = f"Bearer {_token_of_file(access)}"
        renew_at_seconds = time.time() + _TOKEN_FILE_LIFETIME_SECONDS
    elif user.token is not None:
        authorization = f"Bearer {user.token}"
    elif user.username is not None:
        pair = f"{user.username}:{user.password or ''}"
        authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
    elif auth_provider is not None:
        authorization = _auth_provider_authorization(access, auth_provider)
        renew_at_seconds = time.time() + _TOKEN_FILE_LIFETIME_SECONDS
    return Credentials(
        authorization=authorization,
        certificate=user.certificate.read(),
        key=user.key.read(),
        renew_at_seconds=renew_at_seconds,
    )


def _token_of_file(access: ClusterAccess) -> str:
    path = access.user.token_file
    try:
        token = read_credential_file(path).decode().strip() if path is not None else ""
    except OSError as error:
        why = f"the token file {str(path)!r} cannot be read: {error.strerror}"
        raise access.unreachable(why, "correct the kubeconfig, or log in again") from error
    except UnicodeDecodeError as error:
        raise access.unreachable(f"the token file {str(path)!r} is not UTF-8 text", "log in again") from error
    if not token:
        raise access.unreachable(f"the token file {str(path)!r} is empty", "log in again")
    return token


def _auth_provider_authorization(access: ClusterAccess, provider: JsonObject) -> str:
    """Renew the token of a deprecated auth provider (oidc, gcp) with the kubernetes package.

    The kubeconfig file does not change. The renewed token is kept until this process ends.
    """
    name = text(provider, "name")
    try:
        from kubernetes.client.exceptions import OpenApiException
        from kubernetes.config import ConfigException, load_kube_config_from_dict
        from oauthlib.oauth2 import OAuth2Error  # type: ignore[import-untyped]
        from urllib3.exceptions import HTTPError
    except ImportError as error:
        why = f"user {access.user.name!r} uses the deprecated auth provider {name!r}, which requires more packages"
        advice = "switch the kubeconfig to an exec plugin, or: pip install 'holmes[auth-provider]'"
        raise access.unreachable(why, advice) from error

    # The package copies the host, the token and the TLS files to this object.
    # The cluster in `document` has no TLS settings, so no files are created.
    target = SimpleNamespace(api_key={})
    document = {
        "current-context": "only",
        "contexts": [{"name": "only", "context": {"cluster": "only", "user": "only"}}],
        "clusters": [{"name": "only", "cluster": {"server": "http://unused.invalid"}}],
        "users": [{"name": "only", "user": {"auth-provider": provider}}],
    }
    try:
        load_kube_config_from_dict(document, client_configuration=target, persist_config=False)
    except (ConfigException, OpenApiException, OAuth2Error, HTTPError, OSError, ValueError, KeyError) as error:
        why = f"the auth provider {name!r} of user {access.user.name!r} did not return a token ({error})"
        raise access.unreachable(why, "log in again") from error
    authorization = next(iter(target.api_key.values()), None)
    if not isinstance(authorization, str):
        why = f"the auth provider {name!r} of user {access.user.name!r} did not return a token"
        raise access.unreachable(why, "log in again, or switch the kubeconfig to an exec plugin")
    return authorization


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLogin:
    """One context and its credentials. It has no open connection, so it can be cached."""

    access: ClusterAccess
    credentials: CredentialSource
    environment: Environment

    @classmethod
    async def load(
        cls, environment: Environment, *, previous: ClusterLogin | None = None, service_account: Path = SERVICE_ACCOUNT
    ) -> ClusterLogin:
        """Read the configuration. If it has not changed, return `previous` with its credentials.

        Raises `ClusterUnreachable` if the configuration is missing, and `ConfigError` if it is not valid.
        """
        access = await asyncio.to_thread(load_access, environment, service_account=service_account)
        if previous is not None and previous.access == access and previous.environment == environment:
            return previous
        return cls(access=access, credentials=CredentialSource(access, environment), environment=environment)
