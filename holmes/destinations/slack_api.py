"""Slack's Web API by HTTP. Called by `slack`; knows methods and errors, not incidents.

The token goes into one header and nowhere else. An error of Slack becomes `SlackFailed` with what to do about it.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

import httpx

from holmes.destinations.destination import DeliveryFailed
from holmes.destinations.http import failed_connection, read_bounded
from holmes.llm.errors import retry_after_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.json_types import JsonObject

_TIMEOUT_SECONDS: Final = 20.0
_LONGEST_REPLY_BYTES: Final = 5_000_000
_NEW_TOKEN: Final = "set a valid bot token (xoxb-...) in its `token`"  # noqa: S105  advice, no token
_SCOPE: Final = "give the app the scope `chat:write` and install it again"
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
    "ekm_access_denied": "ask an administrator of Slack",
    "access_denied": "ask an administrator of Slack",
    "team_access_not_granted": "ask an administrator of Slack",
    "channel_not_found": "check `channel`; a private channel must have the app as a member (/invite it)",
    "not_in_channel": "invite the app to the channel (/invite), or give it `chat:write.public`",
    "is_archived": "unarchive the channel or choose another `channel`",
    "restricted_action": "the channel does not let the app post: ask an administrator, or choose another `channel`",
    "restricted_action_read_only_channel": "the channel is read-only: choose another `channel`",
    "restricted_action_thread_locked": "the thread is locked: unlock it",
    "restricted_action_thread_only_channel": "the channel takes replies only: choose another `channel`",
    "restricted_action_non_threadable_channel": "the channel takes no threads: choose another `channel`",
    "messages_tab_disabled": "the app takes no direct messages: choose a channel",
    "user_not_found": "check `channel`",
    "no_text": "this is a bug in Holmes: please report it",
    "msg_too_long": "this is a bug in Holmes: please report it",
    "invalid_arguments": "this is a bug in Holmes: please report it",
    "unknown_method": "check `api_url`",
    "method_deprecated": "update Holmes",
}
"""Errors that another attempt does not change, and what to do. All others are tried again."""


class SlackFailed(DeliveryFailed):
    """Slack said no, with `code` as its word for it; empty when the failure is of HTTP."""

    def __init__(
        self, message: str, *, retryable: bool, retry_after_seconds: float | None = None, code: str = ""
    ) -> None:
        super().__init__(message, retryable=retryable, retry_after_seconds=retry_after_seconds)
        self.code = code


class SlackApi:
    """Methods of the Web API for one token. `name` is the destination that errors name."""

    def __init__(self, client: httpx.AsyncClient, *, name: str, url: str, token: str) -> None:
        self._client = client
        self._name = name
        self._url = httpx.URL(url if url.endswith("/") else f"{url}/")
        self._headers = {"Authorization": f"Bearer {token}"}

    async def write(self, method: str, arguments: JsonObject) -> JsonObject:
        """Call a method that changes something. Raises `SlackFailed`."""
        headers = {**self._headers, "Content-Type": "application/json; charset=utf-8"}
        request = self._client.build_request(
            "POST", self._url.join(method), headers=headers, content=json.dumps(arguments).encode()
        )
        return await self._answer(method, request)

    async def read(self, method: str, arguments: Mapping[str, str]) -> JsonObject:
        """Call a method that only reads; these take a form, no JSON. Raises `SlackFailed`."""
        request = self._client.build_request("POST", self._url.join(method), headers=self._headers, data=arguments)
        return await self._answer(method, request)

    async def _answer(self, method: str, request: httpx.Request) -> JsonObject:
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                response = await self._client.send(request, stream=True, follow_redirects=False)
                try:
                    body = await read_bounded(response, _LONGEST_REPLY_BYTES)
                finally:
                    await response.aclose()
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            raise SlackFailed(f"{self._name}: {failed_connection(error, self._url)}", retryable=True) from None
        return self._checked(method, response, body)

    def _checked(self, method: str, response: httpx.Response, body: bytes) -> JsonObject:
        wait = retry_after_seconds(response.headers)
        status = response.status_code
        if status == 429:
            raise SlackFailed(
                f"{self._name}: Slack's rate limit: {method} is tried again later",
                retryable=True,
                retry_after_seconds=wait if wait is not None else 1.0,
                code="ratelimited",
            )
        reply = _object(body) if status < 500 else None
        if reply is None:
            raise SlackFailed(
                f"{self._name}: Slack answered {method} with HTTP {status} and no JSON; is `api_url` right?",
                retryable=status >= 500 or status == 408 or status < 300,
                retry_after_seconds=wait,
            )
        if reply.get("ok") is True:
            return reply
        code = str(reply.get("error") or "unknown_error")[:100]
        advice = _PERMANENT.get(code)
        message = f"{self._name}: Slack refused {method}: {code}"
        raise SlackFailed(
            f"{message}: {advice}" if advice else f"{message}; it is tried again",
            retryable=advice is None,
            retry_after_seconds=wait,
            code=code,
        )


def _object(body: bytes) -> JsonObject | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
