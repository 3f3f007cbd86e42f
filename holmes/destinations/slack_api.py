"""Calls Slack's Web API through slack-sdk, without retries, and adds advice to errors.

Retries are disabled in slack-sdk, because the delivery queue retries deliveries. The token is sent only in one header.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, NoReturn

import httpx

from holmes.destinations.destination import DeliveryFailed, place
from holmes.llm.errors import retry_after_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ssl import SSLContext

    from slack_sdk.errors import SlackApiError

    from holmes.values.json_types import JsonObject

_TIMEOUT_SECONDS: Final = 20.0
_CONNECT_TIMEOUT_SECONDS: Final = 5.0
_LOGGER: Final = logging.getLogger("slack_sdk.holmes")
_LOGGER.setLevel(logging.WARNING)  # at lower levels, slack-sdk logs the text of each message
_NEW_TOKEN: Final = "set a valid bot token (xoxb-...) in its `token`"  # noqa: S105  advice, not a token
_SCOPE: Final = "add the scope `chat:write` to the app and reinstall it"
_ADMINISTRATOR: Final = "ask a Slack administrator"
_BUG: Final = "report this as a bug in Holmes"
_PERMANENT: Final[Mapping[str, str]] = {
    "invalid_auth": _NEW_TOKEN,
    "not_authed": _NEW_TOKEN,
    "account_inactive": _NEW_TOKEN,
    "token_revoked": _NEW_TOKEN,
    "token_expired": _NEW_TOKEN,
    "not_allowed_token_type": _NEW_TOKEN,
    "org_login_required": _NEW_TOKEN,
    "missing_scope": _SCOPE,
    "no_permission": _SCOPE,
    "ekm_access_denied": _ADMINISTRATOR,
    "access_denied": _ADMINISTRATOR,
    "team_access_not_granted": _ADMINISTRATOR,
    "channel_not_found": "check `channel`; for a private channel, invite the app to the channel (/invite)",
    "not_in_channel": "invite the app to the channel (/invite), or give it `chat:write.public`",
    "is_archived": "unarchive the channel or choose another `channel`",
    "restricted_action": "the app may not post in this channel: ask an administrator or choose another `channel`",
    "restricted_action_read_only_channel": "the channel is read-only: choose another `channel`",
    "restricted_action_thread_locked": "the thread is locked: unlock it",
    "restricted_action_thread_only_channel": "the channel accepts replies only: choose another `channel`",
    "restricted_action_non_threadable_channel": "the channel does not support threads: choose another `channel`",
    "messages_tab_disabled": "the app does not accept direct messages: choose a channel",
    "user_not_found": "check `channel`",
    "no_text": _BUG,
    "msg_too_long": _BUG,
    "invalid_arguments": _BUG,
    "unknown_method": "check `api_url`",
    "method_deprecated": "update Holmes",
}
"""Error codes of failures that a retry cannot fix, with the next step for the user. All other errors are retried."""


class SlackFailed(DeliveryFailed):
    """A call to the Slack API failed. `code` is Slack's error code, or empty for a connection or HTTP error."""

    def __init__(
        self, message: str, *, retryable: bool, retry_after_seconds: float | None = None, code: str = ""
    ) -> None:
        super().__init__(message, retryable=retryable, retry_after_seconds=retry_after_seconds)
        self.code = code


class SlackApi:
    """Calls methods of the Web API with one token. Error messages contain `name`, the name of the destination."""

    def __init__(self, *, name: str, url: str, token: str, timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        self.name = name
        self._url = url
        self._token = token
        self._timeout_seconds = timeout_seconds
        self._tls: SSLContext | None = None

    async def write(self, method: str, arguments: JsonObject) -> JsonObject:
        """Call a method that creates or changes messages. Raises `SlackFailed`."""
        return await self._call(method, json=dict(arguments))

    async def read(self, method: str, arguments: Mapping[str, str]) -> JsonObject:
        """Call a method that does not accept JSON: one that only reads, or one for files. Raises `SlackFailed`."""
        return await self._call(method, data=dict(arguments))

    async def upload(self, url: str, content: bytes, media_type: str) -> None:
        """Send the bytes of a file to the URL that Slack gave for it, without the token. Raises `SlackFailed`."""
        import aiohttp

        own, given = httpx.URL(self._url), httpx.URL(url)
        if given.scheme != "https" and place(given) != place(own):
            raise SlackFailed(
                f"{self.name}: Slack's address for files is not encrypted: {place(given)}", retryable=False
            )
        failed = f"{self.name}: {place(given)}"
        timeout = aiohttp.ClientTimeout(total=self._timeout_seconds, connect=_CONNECT_TIMEOUT_SECONDS)
        headers, tls = {"Content-Type": media_type}, await self._authorities() or True
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
                session.post(url, data=content, headers=headers, allow_redirects=False, ssl=tls) as response,
            ):
                status = response.status
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            raise SlackFailed(f"{failed} did not take a file: {type(error).__name__}", retryable=True) from None
        if status != 200:
            raise SlackFailed(f"{failed} responded to a file with HTTP {status}", retryable=status >= 500)

    async def _call(
        self, method: str, *, json: dict[str, Any] | None = None, data: dict[str, Any] | None = None
    ) -> JsonObject:
        import aiohttp
        from slack_sdk.errors import SlackApiError
        from slack_sdk.web.async_client import AsyncWebClient

        timeout = aiohttp.ClientTimeout(total=self._timeout_seconds, connect=_CONNECT_TIMEOUT_SECONDS)
        try:
            async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
                client = AsyncWebClient(
                    self._token,
                    self._url,
                    ssl=await self._authorities(),
                    session=session,
                    logger=_LOGGER,
                    retry_handlers=[],
                )
                client.proxy = None  # aiohttp reads the proxy and NO_PROXY from the environment
                reply = await client.api_call(method, json=json, data=data)
        except SlackApiError as error:
            self._refused(method, error)
        except TimeoutError:
            raise self._failed("did not respond in time") from None
        except aiohttp.ClientConnectorError as error:  # the message of this error contains the TLS context
            raise self._failed(f"cannot be reached: {error.host}:{error.port}: {error.os_error}") from None
        except OSError as error:
            raise self._failed(f"cannot be reached: {error}") from None
        except aiohttp.ClientError as error:
            raise self._failed(f"closed the connection: {type(error).__name__}") from None
        except (ValueError, AttributeError, RecursionError):
            # slack-sdk raises these errors for a response that is not a JSON object. Their messages may contain a
            # secret.
            raise self._failed("did not return a Slack response; check `api_url`") from None
        return reply.data  # type: ignore[return-value]  # an object, because slack-sdk checks that it has `ok`

    async def _authorities(self) -> SSLContext | None:
        """Return the TLS context with the CA certificates, or None without TLS. Loads the certificates only once."""
        if self._tls is None and self._url.startswith("https:"):
            self._tls = await asyncio.to_thread(httpx.create_ssl_context)
        return self._tls

    def _failed(self, what: str) -> SlackFailed:
        return SlackFailed(f"{self.name}: {place(httpx.URL(self._url))} {what}", retryable=True)

    def _refused(self, method: str, error: SlackApiError) -> NoReturn:
        """Convert an HTTP error, a response that is not JSON, or a response with `ok: false` to a `SlackFailed`."""
        response = error.response  # from slack-sdk, or from aiohttp if the response is not JSON
        status = int(getattr(response, "status_code", 0) or getattr(response, "status", 0))
        reply = getattr(response, "data", None)
        wait = retry_after_seconds(response.headers)
        if status == 429:
            raise SlackFailed(
                f"{self.name}: Slack limits the rate of {method}; will retry",
                retryable=True,
                retry_after_seconds=wait if wait is not None else 1.0,
                code="ratelimited",
            ) from None
        if status >= 500 or not isinstance(reply, dict) or not reply:
            doubt = "" if isinstance(reply, dict) and reply else " and no JSON; check `api_url`"
            raise SlackFailed(
                f"{self.name}: Slack responded to {method} with HTTP {status}{doubt}",
                retryable=status >= 500 or status == 408 or status < 300,
                retry_after_seconds=wait,
            ) from None
        code = str(reply.get("error") or "unknown_error")[:100]
        advice = _PERMANENT.get(code)
        message = f"{self.name}: Slack rejected {method}: {code}"
        raise SlackFailed(
            f"{message}: {advice}" if advice else f"{message}; will retry",
            retryable=advice is None,
            retry_after_seconds=wait,
            code=code,
        ) from None
