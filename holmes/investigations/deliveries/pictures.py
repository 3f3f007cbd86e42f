"""Chooses the pictures of an investigation for its notification: those that the answer cites, else the latest."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import select

from holmes.destinations.destination import PictureNews
from holmes.investigations.records.schema import EVENTS
from holmes.values.errors import ResultStoreError
from holmes.values.messages import ResultId
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from holmes.investigations.records.values import InvestigationRecord
    from holmes.values.tools import ResultStore

_MOST_PICTURES: Final = 3
_MOST_EVENTS: Final = 30
_MOST_BYTES: Final = 2_000_000
_TITLE_CHARACTERS: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPicture:
    """A picture in the store. `results` are the ids of all stored parts of the same tool result."""

    id: ResultId
    title: str
    alt: str
    results: tuple[str, ...]


def pictures_in(connection: Connection, record: InvestigationRecord) -> tuple[StoredPicture, ...]:
    """Return at most three pictures of charts, in the order of their tool calls."""
    columns = EVENTS.c
    query = (
        select(columns.data)
        .where(columns.investigation_id == record.id, columns.name == "tool_calling_result")
        .where(columns.data.contains('"chart":'))
        .order_by(columns.id.desc())
        .limit(_MOST_EVENTS)
    )
    found = [each for data in connection.execute(query).scalars() if (each := _picture(data)) is not None]
    answer = record.answer or ""
    cited = [each for each in found if any(identity in answer for identity in each.results)]
    return tuple(reversed((cited or found)[:_MOST_PICTURES]))


def _picture(data: str) -> StoredPicture | None:
    """Read an event, which any version of Holmes may have stored."""
    try:
        event = json.loads(data)
        result = event["result"]
        stored = {each["id"]: each["media_type"] for each in result["stored"]}
        alt, title = str(result["chart"]), str(event["description"])
    except (ValueError, KeyError, TypeError):
        return None
    image = next((identity for identity, media_type in stored.items() if media_type == "image/png"), None)
    if image is None:
        return None
    return StoredPicture(
        id=ResultId(image), title=shortened(title, _TITLE_CHARACTERS), alt=alt, results=tuple(map(str, stored))
    )


async def read_pictures(store: ResultStore | None, pictures: Sequence[StoredPicture]) -> tuple[PictureNews, ...]:
    """Read the pictures. One that has expired is left out: the notification is more important."""
    if store is None:
        return ()
    read = list[PictureNews]()
    for each in pictures:
        try:
            content, _ = await store.read(each.id)
        except ResultStoreError:
            continue
        if len(content) <= _MOST_BYTES:
            read.append(PictureNews(id=each.id, title=each.title, alt=each.alt, content=content))
    return tuple(read)
