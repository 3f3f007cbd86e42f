"""A watch over a recording: what is there, and then nothing, until the client's timeout or the end of the server.

Called by `app`.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holmes.snapshot.server.objects import ObjectAnswers, ObjectRequest
    from holmes.values.json_types import JsonObject

_DEFAULT_SECONDS = 300.0


async def watch_events(objects: ObjectAnswers, request: ObjectRequest, closing: asyncio.Event) -> AsyncIterator[bytes]:
    """The events of a watch, one JSON document a line. Raises `ApiFailure` before the first for a wrong selector."""
    query = request.query
    initial = query.get("sendInitialEvents", "") in {"true", "1"}
    if initial or query.get("resourceVersion", "") in {"", "0"}:
        for item in await asyncio.to_thread(objects.selected, request):
            yield _line("ADDED", objects.event(request, item))
    if initial:
        yield _line("BOOKMARK", _initial_end(objects, request))
    wished = query.get("timeoutSeconds", "")
    seconds = float(wished) if wished.isdigit() and wished != "0" else _DEFAULT_SECONDS
    try:
        await asyncio.wait_for(closing.wait(), seconds)
    except TimeoutError:
        return


def _initial_end(objects: ObjectAnswers, request: ObjectRequest) -> JsonObject:
    annotations = {"k8s.io/initial-events-end": "true"}
    metadata = {"resourceVersion": objects.resource_version, "creationTimestamp": None, "annotations": annotations}
    return {"kind": request.kind.kind, "apiVersion": request.kind.group_version, "metadata": metadata}


def _line(kind: str, item: JsonObject) -> bytes:
    return json.dumps({"type": kind, "object": item}, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
