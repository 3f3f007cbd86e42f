"""What is old goes, with everything that belongs to it; what is open or in use stays."""

from __future__ import annotations

import time

from sqlalchemy import Column, insert, select, update

from holmes.investigations.records.database import Database
from holmes.investigations.records.journal import Journal, Lease
from holmes.investigations.records.records import InvestigationRecords
from holmes.investigations.records.results import DatabaseResultStore, delete_old
from holmes.investigations.records.schema import ALERTS, EVENTS, INCIDENTS, INVESTIGATIONS, RESULTS, STEPS
from holmes.investigations.records.values import IncidentId, InvestigationId, NewInvestigation
from holmes.values.messages import ToolCallId

DAY = 86_400.0


async def values_of(database: Database, column: Column[str]) -> list[str]:
    """What is in a column, sorted."""
    return await database.read(lambda connection: sorted(connection.execute(select(column)).scalars()))


async def add_incident(database: Database, identity: str, *, state: str, days_old: float) -> None:
    at = time.time() - days_old * DAY
    incident = {
        "id": identity,
        "group_key": identity,
        "title": "t",
        "state": state,
        "route": "",
        "labels": "{}",
        "opened_at": at,
        "updated_at": at,
    }
    alert = {
        "fingerprint": identity,
        "incident_id": identity,
        "status": "firing",
        "labels": "{}",
        "annotations": "{}",
        "received": 1,
        "first_seen": at,
        "last_seen": at,
    }
    await database.transaction(lambda connection: connection.execute(insert(INCIDENTS).values(**incident)))
    await database.transaction(lambda connection: connection.execute(insert(ALERTS).values(**alert)))


async def add_investigation(database: Database, incident: str, *, state: str, days_old: float) -> InvestigationId:
    new = NewInvestigation(question="q", title="t", source="api", incident_id=IncidentId(incident))
    identity = await InvestigationRecords(database).add(new)
    values = {"state": state, "finished_at": time.time() - days_old * DAY, "workflow_id": f"{identity}.2"}
    changed = update(INVESTIGATIONS).where(INVESTIGATIONS.c.id == identity).values(**values)
    await database.transaction(lambda connection: connection.execute(changed))
    journal = Journal(database, Lease(investigation_id=identity, replica="a", attempt=1))
    await journal.add_events((("a:1", "a", "{}"),))
    step = {"investigation_id": identity, "name": "s", "result": b"null", "finished_at": 1.0, "cost": 0.0}
    await database.transaction(lambda connection: connection.execute(insert(STEPS).values(**step)))
    return identity


async def test_old_and_finished_goes_with_its_events_and_steps_and_its_workflow_is_named(database: Database) -> None:
    await add_incident(database, "old", state="closed", days_old=40)
    await add_incident(database, "open", state="open", days_old=40)
    await add_incident(database, "recent", state="closed", days_old=1)
    old = await add_investigation(database, "old", state="answered", days_old=40)
    running = await add_investigation(database, "open", state="running", days_old=40)
    needed = await add_investigation(database, "open", state="answered", days_old=40)
    recent = await add_investigation(database, "recent", state="failed", days_old=1)

    assert await delete_old(database, retention_seconds=30 * DAY) == (old, f"{old}.1", f"{old}.2")

    assert await values_of(database, INVESTIGATIONS.c.id) == sorted((running, needed, recent))
    for table in (EVENTS, STEPS):
        assert await values_of(database, table.c.investigation_id) == sorted((running, needed, recent))
    assert await values_of(database, INCIDENTS.c.id) == await values_of(database, ALERTS.c.incident_id)
    assert await values_of(database, INCIDENTS.c.id) == ["open", "recent"]
    assert await delete_old(database, retention_seconds=30 * DAY) == ()


async def test_a_stored_output_that_is_read_again_stays(database: Database) -> None:
    store = DatabaseResultStore(database)
    kept = await store.put(b"kept", tool_name="t", call_id=ToolCallId("1"), media_type="text/plain")
    await store.put(b"gone", tool_name="t", call_id=ToolCallId("2"), media_type="text/plain")
    aged = update(RESULTS).values(used_at=1.0)
    await database.transaction(lambda connection: connection.execute(aged))
    await store.put(b"kept", tool_name="t", call_id=ToolCallId("3"), media_type="text/plain")

    await delete_old(database, retention_seconds=DAY)

    assert await values_of(database, RESULTS.c.id) == [kept.id]


async def test_stored_outputs_are_deleted_some_at_a_time(database: Database) -> None:
    row = {"media_type": "text/plain", "size_bytes": 1, "content": b"x", "stored_at": 1.0}
    rows = [{**row, "id": f"{number:04}", "used_at": float(number)} for number in range(250)]
    await database.transaction(lambda connection: connection.execute(insert(RESULTS), rows))
    await delete_old(database, retention_seconds=DAY)
    assert await values_of(database, RESULTS.c.id) == [f"{number:04}" for number in range(200, 250)]
    await delete_old(database, retention_seconds=DAY)
    assert await values_of(database, RESULTS.c.id) == []
