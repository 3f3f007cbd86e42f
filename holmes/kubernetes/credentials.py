"""Proves who asks: gives the current credentials of a context and renews them before they expire.

Tokens never leave this package. A `ClusterLogin` is a context with its credentials, without any connection: what can be
kept between calls and costs nothing to keep.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING

from holmes.kubernetes.exec_plugin import run_exec_plugin
from holmes.kubernetes.fields import text
from holmes.kubernetes.kubeconfig import SERVICE_ACCOUNT, load_access

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.kubernetes.access import ClusterAccess
    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonObject

_TOKEN_FILE_LIFETIME_SECONDS = 60.0  # a kubelet replaces the file at any time; client-go reads it once a minute too
_RENEWAL_MARGIN_SECONDS = 30.0
_SHORTEST_USE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What goes with a request. `renew_at_seconds` is seconds since the epoch; None means they do not expire."""

    authorization: str | None = field(default=None, repr=False)
    certificate: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    renew_at_seconds: float | None = None


class CredentialSource:
    """The credentials of one context, made on first use and shared by all requests."""

    def __init__(self, access: ClusterAccess, environment: Environment) -> None:
        self._access = access
        self._environment = environment
        self._lock = asyncio.Lock()
        self._credentials: Credentials | None = None
        # The kubernetes package writes renewed tokens into it, and the access must stay what the file says.
        self._auth_provider = copy.deepcopy(access.user.auth_provider)

    async def current(self) -> Credentials:
        """Credentials that are valid as far as is known. Raises `ClusterUnreachable` when there are none."""
        async with self._lock:
            credentials = self._credentials
            if credentials is None or _is_due(credentials):
                credentials = self._credentials = await self._make()
            return credentials

    async def renewed(self, rejected: Credentials) -> Credentials:
        """Fresh credentials after the server refused `rejected`; requests that fail together renew only once."""
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
    """A little before the end, but never so early that a short life, or a clock that is wrong, is spent renewing."""
    if expires_at_seconds is None:
        return None
    now = time.time()
    margin_seconds = min(_RENEWAL_MARGIN_SECONDS, max(0.0, expires_at_seconds - now) / 2)
    return max(now + _SHORTEST_USE_SECONDS, expires_at_seconds - margin_seconds)


def _static_credentials(access: ClusterAccess, auth_provider: JsonObject | None) -> Credentials:
    """What stands in the configuration or in files beside it."""
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
        token = path.read_text(encoding="utf-8").strip() if path is not None else ""
    except (OSError, UnicodeDecodeError) as error:
        raise access.unreachable(f"the token file {str(path)!r} cannot be read ({error})", "log in again") from error
    if not token:
        raise access.unreachable(f"the token file {str(path)!r} is empty", "log in again")
    return token


def _auth_provider_authorization(access: ClusterAccess, provider: JsonObject) -> str:
    """Let the kubernetes package renew a token of the old auth providers (oidc, gcp); it knows their protocols.

    The file of the kubeconfig is left alone: a renewed token lives as long as this process.
    """
    name = text(provider, "name")
    try:
        from kubernetes.client.exceptions import OpenApiException
        from kubernetes.config import ConfigException, load_kube_config_from_dict
        from oauthlib.oauth2 import OAuth2Error  # type: ignore[import-untyped]
        from urllib3.exceptions import HTTPError
    except ImportError as error:
        why = f"user {access.user.name!r} uses the deprecated auth provider {name!r}, which needs more packages"
        advice = "switch the kubeconfig to an exec plugin, or: pip install 'holmes[auth-provider]'"
        raise access.unreachable(why, advice) from error

    # The package copies host, token and TLS files into this object. A server without TLS keeps it from making files.
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
        why = f"the auth provider {name!r} of user {access.user.name!r} gave no token ({error})"
        raise access.unreachable(why, "log in again") from error
    authorization = next(iter(target.api_key.values()), None)
    if not isinstance(authorization, str):
        why = f"the auth provider {name!r} of user {access.user.name!r} gave no token"
        raise access.unreachable(why, "log in again, or switch the kubeconfig to an exec plugin")
    return authorization


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLogin:
    """One context and the source of its credentials."""

    access: ClusterAccess
    credentials: CredentialSource
    environment: Environment

    @classmethod
    async def load(
        cls, environment: Environment, *, previous: ClusterLogin | None = None, service_account: Path = SERVICE_ACCOUNT
    ) -> ClusterLogin:
        """Read the configuration; `previous` is kept with its credentials when nothing changed.

        Raises `ClusterUnreachable` when there is none, `ConfigError` when it is wrong.
        """
        access = await asyncio.to_thread(load_access, environment, service_account=service_account)
        if previous is not None and previous.access == access and previous.environment == environment:
            return previous
        return cls(access=access, credentials=CredentialSource(access, environment), environment=environment)
