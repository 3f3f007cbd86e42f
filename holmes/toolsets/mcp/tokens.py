"""Stores the OAuth tokens of persons in files that only their owner can read, one for each server."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import AnyUrl, BaseModel, ValidationError

if TYPE_CHECKING:
    from mcp.client.auth.oauth2 import OAuthContext

    from holmes.toolsets.mcp.servers import HttpEndpoint, Login, McpServer

_UNUSABLE: Final = re.compile(r"[^A-Za-z0-9_-]+")
_log = logging.getLogger(__name__)


class Stored(BaseModel):
    """Content of the file: everything that a later process needs to refresh the tokens."""

    redirect_url: str = "http://127.0.0.1/callback"
    tokens: OAuthToken | None = None
    expires_at: float | None = None
    client: OAuthClientInformationFull | None = None
    metadata: OAuthMetadata | None = None


def token_path(folder: Path, server: McpServer, endpoint: HttpEndpoint) -> Path:
    """Return the file for this server. Another URL has another file, so that no token is sent elsewhere."""
    name = _UNUSABLE.sub("_", server.name)[:40]
    return folder.expanduser() / f"{name}-{hashlib.sha256(endpoint.url.encode()).hexdigest()[:12]}.json"


def read_stored(path: Path) -> Stored | None:
    """Return the stored tokens, or None if the file is missing or damaged, which requires a new login."""
    try:
        stored = Stored.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    return stored if stored.tokens is not None else None


class TokenFile:
    """Implements `TokenStorage` of the SDK with one file.

    During a login, `stored` has only the redirect address, and an error of the file is raised. Later, a refreshed token
    that cannot be stored is used until this process ends.
    """

    def __init__(self, path: Path, login: Login, stored: Stored, *, is_login: bool) -> None:
        self._path = path
        self._login = login
        self._stored = stored
        self._is_login = is_login
        self._context: OAuthContext | None = None

    def attach(self, context: OAuthContext) -> None:
        """Restore what the SDK keeps only in memory: when the token expires, and where it is refreshed."""
        self._context = context
        context.token_expiry_time = self._stored.expires_at
        context.oauth_metadata = self._stored.metadata or context.oauth_metadata

    async def get_tokens(self) -> OAuthToken | None:
        return self._stored.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._stored.tokens = tokens
        self._stored.expires_at = time.time() + tokens.expires_in if tokens.expires_in is not None else None
        self._stored.metadata = self._context.oauth_metadata if self._context is not None else None
        try:
            _write(self._path, self._stored.model_dump_json(exclude_none=True))
        except OSError as error:
            if self._is_login:
                raise
            _log.warning("a refreshed token cannot be stored in %s: %s", self._path, error.strerror)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if self._stored.client is not None or self._login.client_id is None:
            return self._stored.client
        return OAuthClientInformationFull(
            client_id=self._login.client_id,
            client_secret=self._login.client_secret,
            redirect_uris=[AnyUrl(self._stored.redirect_url)],
            token_endpoint_auth_method="client_secret_post" if self._login.client_secret else "none",
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        # Written together with the tokens, so that a login that is given up leaves the old file unchanged.
        self._stored.client = client_info


class TokenMemory:
    """Implements `TokenStorage` of the SDK for tokens that need no person. They are obtained again in each process."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Do nothing, because the client is configured."""


def _write(path: Path, text: str) -> None:
    """Replace the file atomically. Raises `OSError`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
