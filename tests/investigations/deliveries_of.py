"""For the tests of deliveries: an incident, a destination that plays what it is told, and the rows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from sqlalchemy import Connection, insert, select, update

from holmes.destinations.destination import DeliveryFailed, IncidentNews, NewsKind
from holmes.investigations.deliveries.records import Delivery, NewDelivery, queue_delivery
from holmes.investigations.deliveries.worker import DeliveryPolicy
from holmes.investigations.records.database import Database
from holmes.investigations.records.schema import DELIVERIES, INCIDENTS
from holmes.investigations.records.values import IncidentId, record_of

NOW = 1_772_366_400.0
IMPATIENT = DeliveryPolicy(
    poll_seconds=0.02, send_seconds=2, lease_seconds=5, first_pause_seconds=0.01, longest_pause_seconds=0.02,
    attempts=4, drain_seconds=0.5,
)  # fmt: skip

Answer = str | DeliveryFailed | Callable[[], Awaitable[str | None]] | None


class PlayedDestination:
    """Plays one answer for each attempt, the last one for ever; records what it was sent and with which reference."""

    def __init__(self, name: str, *answers: Answer) -> None:
        self.name = name
        self.sent: list[tuple[IncidentNews, str | None]] = []
        self.arrived = asyncio.Condition()
        self._answers = list(answers or [None])

    async def send(self, news: IncidentNews, reference: str | None) -> str | None:
        self.sent.append((news, reference))
        async with self.arrived:
            self.arrived.notify_all()
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, DeliveryFailed):
            raise answer
        return await answer() if callable(answer) else answer

    async def wait_for(self, count: int) -> None:
        """Until so many attempts were made."""
        async with asyncio.timeout(10), self.arrived:
            await self.arrived.wait_for(lambda: len(self.sent) >= count)

    @property
    def keys(self) -> list[str]:
        """What was sent, in order."""
        return [news.key for news, _ in self.sent]


async def compose(delivery: Delivery) -> IncidentNews:
    """News that say no more than which delivery they are."""
    at = datetime.fromtimestamp(NOW, UTC)
    return IncidentNews(
        kind=delivery.event, key=delivery.key, incident_id=delivery.incident_id, title="t", state="open",
        opened_at=at, updated_at=at, repeated=delivery.attempts > 1,
    )  # fmt: skip


async def queue(database: Database, *events: NewsKind, incident: str = "inc1", to: tuple[str, ...] = ("ops",)) -> None:
    """Queue news, each in a transaction of its own."""
    for event in events:
        new = NewDelivery(event=event, incident_id=IncidentId(incident))
        await database.transaction(lambda connection, new=new: queue_delivery(connection, new, to, NOW))  # type: ignore[misc]


async def rows(database: Database) -> tuple[Delivery, ...]:
    """All deliveries in order."""
    found = await database.transaction(
        lambda connection: connection.execute(select(DELIVERIES).order_by(DELIVERIES.c.id)).all()
    )
    return tuple(record_of(Delivery, row) for row in found)


async def settled(database: Database, count: int) -> tuple[Delivery, ...]:
    """All deliveries, as soon as `count` of them do not wait any more."""
    async with asyncio.timeout(20):
        while True:
            found = await rows(database)
            if sum(each.state != "waiting" for each in found) >= count:
                return found
            await asyncio.sleep(0.01)


async def change(database: Database, **values: object) -> None:
    """Set columns of all deliveries."""

    def set_values(connection: Connection) -> None:
        connection.execute(update(DELIVERIES).values(**values))

    await database.transaction(set_values)


async def add_incident(database: Database, **values: object) -> None:
    """The incident `inc1`."""
    usual: dict[str, object] = {
        "id": "inc1", "group_key": "g", "title": "KubePodCrashLooping: shop/checkout", "state": "open",
        "severity": "critical", "route": "", "labels": json.dumps({"namespace": "shop"}), "opened_at": NOW,
        "updated_at": NOW, "reopened": 0,
    }  # fmt: skip

    def add(connection: Connection) -> None:
        connection.execute(insert(INCIDENTS).values(**{**usual, **values}))

    await database.transaction(add)
