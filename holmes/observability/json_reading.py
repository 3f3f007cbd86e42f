"""Reads JSON of monitoring systems. Values with another type than expected count as missing."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final, cast

from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.observability.access import SourceClient
    from holmes.values.json_types import JsonObject, JsonValue

_LARGEST: Final = 10**19


async def read_value(
    client: SourceClient,
    path: str,
    parameters: Sequence[tuple[str, str]] = (),
    *,
    accepts: frozenset[int] = frozenset(),
    body: JsonObject | None = None,
) -> tuple[int, JsonValue]:
    """Return the status and the JSON at `path`, for which `body` is sent by POST. Raises `ToolError`."""
    answered = await client.read(path, parameters, json=body, accepts=accepts)
    try:
        return answered.status, cast("JsonValue", await asyncio.to_thread(json.loads, answered.body))
    except (ValueError, RecursionError):
        # A source may explain a status such as 404 in any form.
        if answered.status in accepts:
            return answered.status, None
        raise ToolError(f"{client.access.name}: {path} did not return JSON; check the url of the source") from None


async def read_object(
    client: SourceClient, path: str, parameters: Sequence[tuple[str, str]] = (), *, missing: bool = False
) -> JsonObject | None:
    """Return the JSON object at `path`. If `missing` is true, HTTP 404 gives None. Raises `ToolError`."""
    accepts = frozenset({404}) if missing else frozenset[int]()
    status, written = await read_value(client, path, parameters, accepts=accepts)
    if status == 404:
        return None
    if not isinstance(written, dict):
        raise ToolError(f"{client.access.name}: {path} did not return a JSON object; check the url of the source")
    return written


def items(written: JsonValue, key: str) -> tuple[JsonObject, ...]:
    found = written.get(key) if isinstance(written, dict) else None
    return objects(found)


def objects(written: JsonValue) -> tuple[JsonObject, ...]:
    return tuple(each for each in written if isinstance(each, dict)) if isinstance(written, list) else ()


def inner(written: JsonValue, *keys: str) -> JsonObject:
    """Return the object below keys, or an empty one."""
    for key in keys:
        written = written.get(key) if isinstance(written, dict) else None
    return written if isinstance(written, dict) else {}


def text(written: JsonValue, key: str) -> str:
    value = written.get(key) if isinstance(written, dict) else None
    return value if isinstance(value, str) else ""


def texts(written: JsonValue, key: str) -> tuple[str, ...]:
    """Return the different strings of a list, sorted."""
    found = written.get(key) if isinstance(written, dict) else None
    return tuple(sorted({each for each in found if isinstance(each, str)})) if isinstance(found, list) else ()


def whole(written: JsonValue, key: str) -> int | None:
    """Return an integer of at most 19 digits, which can be written as a string."""
    value = written.get(key) if isinstance(written, dict) else None
    if isinstance(value, str) and value.isascii() and value.lstrip("-").isdigit() and len(value) <= 20:
        try:
            value = int(value)
        except ValueError:
            return None
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST else None
