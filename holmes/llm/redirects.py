"""No model request leaves the configured origin: a redirect to another one would take the prompt and the key along.

Every HTTP client that litellm makes, or the SDK of OpenAI for it, gets a hook that looks at each answer before a
redirect is followed. It decides nothing about clients of other packages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_PLACE_CHARACTERS = 200


class RedirectRefused(httpx.RequestError):
    """The provider redirected to another origin. `place` is where to, without user, query and fragment."""

    def __init__(self, place: str, request: httpx.Request) -> None:
        super().__init__(f"it redirects to another place, {place}, and the prompt is not sent there", request=request)
        self.place = place


def refuse_redirects(litellm: Any) -> None:  # noqa: ANN401  it ships no types that strict checking accepts
    """Make every client that litellm opens from now on refuse redirects to another origin. Call it once."""
    from openai import _base_client as openai_clients

    handlers = litellm.llms.custom_httpx.http_handler
    for owner, name, is_async in (
        (openai_clients, "AsyncHttpxClientWrapper", True),  # what the SDK takes where litellm gives it none
        (openai_clients, "SyncHttpxClientWrapper", False),
        (handlers.AsyncHTTPHandler, "create_client", True),
        (handlers.HTTPHandler, "create_client", False),
        (litellm.llms.openai.common_utils.BaseOpenAILLM, "_get_async_http_client", True),
        (litellm.llms.openai.common_utils.BaseOpenAILLM, "_get_sync_http_client", False),
    ):
        described = owner.__dict__[name]
        made = _hooked(getattr(described, "__func__", described), is_async=is_async)
        setattr(owner, name, staticmethod(made) if isinstance(described, staticmethod) else made)


def _hooked(make: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    """`make`, whose clients look at redirects."""

    def made(*args: object, **keywords: object) -> Any:  # noqa: ANN401  a client of httpx, or None
        client = make(*args, **keywords)
        if client is not None:
            hooks = client.event_hooks
            hook = _look_async if is_async else _look
            client.event_hooks = {**hooks, "response": [hook, *hooks["response"]]}
        return client

    return made


async def _look_async(response: httpx.Response) -> None:
    _look(response)


def _look(response: httpx.Response) -> None:
    if not response.has_redirect_location:
        return
    try:
        target = httpx.URL(response.headers["location"])
        if target.scheme and not target.host:  # as httpx reads `http:///x`: its port is that of the scheme
            target = target.copy_with(host=response.request.url.host)
        target = response.request.url.join(target)
    except httpx.InvalidURL:
        return  # httpx refuses it itself
    if _origin(target) != _origin(response.request.url):
        place = str(target.copy_with(username=None, password=None, query=None, fragment=None))
        raise RedirectRefused(excerpt(place, _MAX_PLACE_CHARACTERS), response.request)


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
