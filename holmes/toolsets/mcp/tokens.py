"""Stores the OAuth tokens of persons in files that only their owner can read, one for each server."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import logging
import os
import re
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from pydantic import AnyUrl, BaseModel, ValidationError

from holmes.toolsets.mcp.faults import AuthorizationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.client.auth.oauth2 import OAuthContext

    from holmes.toolsets.mcp.servers import HttpEndpoint, Login, McpServer

_UNUSABLE: Final = re.compile(r"[^A-Za-z0-9_-]+")
_LOCK_TRIES: Final = 400
_LOCK_POLL_SECONDS: Final = 0.05
_log = logging.getLogger(__name__)


class Stored(BaseModel):
    """Content of the file: everything that a later process needs to refresh the tokens."""

    redirect_url: str = "http://127.0.0.1/callback"
    tokens: OAuthToken | None = None
    expires_at: float | None = None
    client: OAuthClientInformationFull | None = None
    metadata: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None


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
        self._seen = stored.tokens

    def attach(self, context: OAuthContext) -> None:
        """Restore what the SDK keeps only in memory: when the token expires, and where it is refreshed."""
        self._context = context
        context.token_expiry_time = self._stored.expires_at
        context.oauth_metadata = self._stored.metadata or context.oauth_metadata
        context.protected_resource_metadata = self._stored.resource

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Exclude other processes, because a refresh token that is used twice ends the login at many servers.

        A lock that another process holds for too long is ignored.
        """
        try:
            descriptor = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            yield
            return
        try:
            for _ in range(_LOCK_TRIES):
                if _lock(descriptor):
                    break
                await asyncio.sleep(_LOCK_POLL_SECONDS)
            yield
        finally:
            os.close(descriptor)

    def has_newer(self) -> bool:
        """Return whether another process has stored tokens since this one last read or wrote the file."""
        stored = read_stored(self._path)
        return stored is not None and stored.tokens != self._seen

    def adopt_newer(self) -> None:
        """Use the tokens that another process has stored since this one last read or wrote the file."""
        stored, context = read_stored(self._path), self._context
        if stored is None or context is None or stored.tokens == self._seen:
            return
        self._stored, self._seen = stored, stored.tokens
        context.current_tokens, context.client_info = stored.tokens, stored.client or context.client_info
        self.attach(context)

    async def get_tokens(self) -> OAuthToken | None:
        return self._stored.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._stored.tokens = tokens
        self._stored.expires_at = time.time() + tokens.expires_in if tokens.expires_in is not None else None
        if self._context is not None:
            self._stored.metadata = self._context.oauth_metadata
            self._stored.resource = self._context.protected_resource_metadata
        try:
            _write(self._path, self._stored.model_dump_json(exclude_none=True))
            self._seen = tokens
        except OSError as error:
            if self._is_login:
                raise unwritable(self._path.parent, error) from error
            _log.warning("a refreshed token cannot be stored in %s: %s", self._path, error.strerror)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if self._stored.client is not None or self._login.client_id is None:
            return self._stored.client
        return OAuthClientInformationFull(
            client_id=self._login.client_id,
            client_secret=self._login.client_secret,
            redirect_uris=[AnyUrl(self._stored.redirect_url)],
            issuer=self._login.issuer,
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


def check_folder(folder: Path) -> None:
    """Raise `AuthorizationError` if no file can be written to `folder`, which is created if it is missing."""
    try:
        _make_folder(folder.expanduser())
        with tempfile.TemporaryFile(dir=folder.expanduser()):
            pass
    except OSError as error:
        raise unwritable(folder, error) from error


def unwritable(folder: Path, error: OSError) -> AuthorizationError:
    return AuthorizationError(f"tokens cannot be stored in {folder} ({error.strerror})", "change the folder")


def _make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _write(path: Path, text: str) -> None:
    """Replace the file atomically. Raises `OSError`."""
    _make_folder(path.parent)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
