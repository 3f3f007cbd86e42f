"""Reads server-sent events by hand, as the tests need them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event; `name` is empty for a comment, whose text is `id`."""

    id: str
    name: str
    data: Any


def events_of(response: httpx.Response) -> Iterator[Event]:
    """The events and comments of a stream, as they come."""
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line.startswith(":"):
            yield Event(id=line[1:].strip(), name="", data=None)
        elif line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield Event(id=fields.get("id", ""), name=fields["event"], data=json.loads(fields["data"]))
            fields = {}


def named(events: Iterator[Event]) -> list[Event]:
    """All events of a stream without its comments."""
    return [event for event in events if event.name]
