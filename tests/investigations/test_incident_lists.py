"""Lists of incidents lose nothing, also when many changed at the same time."""

from __future__ import annotations

import pytest

from holmes.investigations.records.database import Database
from holmes.investigations.records.records import IncidentQuery, IncidentRecords, position_of
from tests.investigations.alerts import Desk, alert


async def test_pages_show_every_incident_of_one_payload_once(database: Database) -> None:
    desk = Desk(database)
    await desk.take(*(alert(deployment=f"app-{number}") for number in range(7)), key="")
    records = IncidentRecords(database)
    seen: list[str] = []
    page = await records.list(IncidentQuery(limit=3))
    seen += [each.id for each in page.incidents]
    while page.cursor is not None:
        page = await records.list(IncidentQuery(limit=3, after=position_of(page.cursor)))
        seen += [each.id for each in page.incidents]

    assert len(seen) == len(set(seen)) == 7
    assert len({each.updated_at for each in await desk.incidents()}) == 1, "what the cursor is for"


@pytest.mark.parametrize("text", ["", "1", "1_", "_a", "nan_a", "1e9_a", "1.5_a b", "٣_a", "1_a\n"])
def test_nonsense_is_no_position(text: str) -> None:
    assert position_of(text) is None


async def test_the_alerts_of_an_incident_are_bounded_and_counted_those_that_fire_first(database: Database) -> None:
    desk = Desk(database)
    await desk.take(*(alert(pod=f"app-{number}") for number in range(250)))
    await desk.take(*(alert("resolved", pod=f"app-{number}") for number in range(230)))
    (incident,) = await desk.incidents()
    records = IncidentRecords(database)

    shown = await records.alerts(incident.id)
    assert [each.alert.status for each in shown] == ["firing"] * 20 + ["resolved"] * 180
    assert await records.count_alerts(incident.id) == 250
