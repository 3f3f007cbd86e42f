"""Pages of a list: `limit` and the opaque `continue` token. Called by the lists of the server."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.snapshot.server.failures import ApiFailure, bad_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.json_types import JsonObject

_STALE = "The provided continue parameter is too old or belongs to another list: list again without it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a list. `token` is empty on the last page; `remaining` counts what comes after this page."""

    items: Sequence[JsonObject]
    token: str
    remaining: int


def page_of(items: Sequence[JsonObject], limit: str, token: str, *, of: str) -> Page:
    """The page that `limit` and `token` ask for. `of` names the list, so that a token fits no other one.

    Raises `ApiFailure`: 400 for a limit that is no number, 410 for a token that fits no page.
    """
    if limit and not limit.lstrip("-").isdigit():
        raise bad_request(f"limit: {limit!r} is not a number")
    start = _start(token, of) if token else 0
    if start > len(items):
        raise ApiFailure(410, "Expired", _STALE)
    size = int(limit or 0)
    end = start + size if size > 0 else len(items)
    remaining = max(0, len(items) - end)
    return Page(items=items[start:end], token=_token(end, of) if remaining else "", remaining=remaining)


def _token(position: int, of: str) -> str:
    return base64.urlsafe_b64encode(f"{position}|{of}".encode()).decode()


def _start(token: str, of: str) -> int:
    try:
        position, _, name = base64.urlsafe_b64decode(token).decode().partition("|")
    except (binascii.Error, ValueError):
        raise ApiFailure(410, "Expired", _STALE) from None
    if name != of or not position.isdigit():
        raise ApiFailure(410, "Expired", _STALE)
    return int(position)
