"""What destinations are told: read from the records when it is sent, complete, and without secrets."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, insert, update

from holmes.destinations.destination import IncidentNews
from holmes.investigations.deliveries.news import NewsComposer
from holmes.investigations.deliveries.records import Delivery
from holmes.investigations.records.database import Database
from holmes.investigations.records.records import add_investigation
from holmes.investigations.records.schema import ALERTS, EVENTS, INCIDENTS, INVESTIGATIONS
from holmes.investigations.records.values import IncidentId, InvestigationId, NewInvestigation, stats_to_json
from holmes.investigations.records.wire_events import wire_events
from holmes.redaction.redactor import Redactor
from holmes.stores.result_store import FileResultStore
from holmes.values.charts import alt_text
from holmes.values.events import ToolCallFinished
from holmes.values.messages import StoredResult, Text, ToolCall, ToolCallId, ToolMessage
from holmes.values.stats import RequestStats
from tests.investigations.deliveries_of import NOW, add_incident, queue, rows
from tests.support.charts import MEMORY


async def add_alert(database: Database, fingerprint: str, **annotations: str) -> None:
    labels = {"alertname": "KubePodCrashLooping", "severity": "critical", "namespace": "shop"}

    def add(connection: Connection) -> None:
        connection.execute(
            insert(ALERTS).values(
                fingerprint=fingerprint, incident_id="inc1", status="firing", labels=json.dumps(labels),
                annotations=json.dumps(annotations), starts_at=NOW, received=1, first_seen=NOW, last_seen=NOW,
            )
        )  # fmt: skip

    await database.transaction(add)


async def investigate(database: Database, **values: object) -> InvestigationId:
    new = NewInvestigation(question="q", title="t", source="alertmanager", incident_id=IncidentId("inc1"))

    def add(connection: Connection) -> InvestigationId:
        identity = add_investigation(connection, new, NOW)
        if values:
            connection.execute(update(INVESTIGATIONS).where(INVESTIGATIONS.c.id == identity).values(**values))
        return identity

    return await database.transaction(add)


async def delivery(database: Database, investigation: InvestigationId | None = None) -> Delivery:
    await queue(database, "opened")
    (found,) = await rows(database)
    return found if investigation is None else replace(found, event="answered", investigation_id=investigation)


async def composed(composer: NewsComposer, of: Delivery) -> IncidentNews:
    news = await composer.compose(of)
    assert news is not None
    return news


async def test_news_have_the_incident_its_alerts_and_its_newest_investigation(database: Database) -> None:
    await add_incident(database)
    await add_alert(database, "f1", summary="It\n restarts.", description="Long.")
    await add_alert(database, "f2", description="Only this.")
    await investigate(database)
    composer = NewsComposer(database, public_url="https://holmes.example/", cluster="prod-eu")
    news = await composed(composer, await delivery(database))
    assert (news.kind, news.key, news.title) == ("opened", "inc1/-/opened/ops/0", "KubePodCrashLooping: shop/checkout")
    assert (news.cluster, news.labels, news.repeated) == ("prod-eu", {"namespace": "shop"}, False)
    assert [alert.summary for alert in news.alerts] == ["It restarts.", "Only this."]
    assert news.alerts_total == 2
    assert news.link == "https://holmes.example/incidents/inc1"
    assert news.investigation is not None
    assert news.investigation.state == "queued"
    assert news.investigation.link == f"https://holmes.example/investigations/{news.investigation.id}"


async def test_an_answer_comes_with_its_first_line_cost_and_whether_an_llm_was_used(database: Database) -> None:
    await add_incident(database, root_cause="Killed at its limit.")
    answered = {
        "state": "answered",
        "answer": "**Root cause:** Killed at its limit.\n\nMore.",
        "verdict": "cause_found",
        "verdict_by": "model",
        "summary": "Killed at its limit.",
        "stats": stats_to_json(RequestStats(cost=0.25)),
    }
    by_model = await investigate(database, **answered, answered_by="openai/gpt-5")
    by_rules = await investigate(database, **answered, answered_by="builtin/triage", without_llm="the budget is spent")
    composer = NewsComposer(database)
    found = (await composed(composer, await delivery(database, by_model))).investigation
    assert found is not None
    assert (found.root_cause, found.model, found.cost) == ("Killed at its limit.", "openai/gpt-5", 0.25)
    assert (found.verdict, found.verdict_by, found.summary) == ("cause_found", "model", "Killed at its limit.")
    assert (found.without_llm, found.link) == (False, None)
    news = await composed(composer, await delivery(database, by_rules))
    assert news.root_cause == "Killed at its limit."
    assert news.investigation is not None
    assert (news.investigation.without_llm, news.investigation.without_llm_reason) == (True, "the budget is spent")


async def test_news_say_how_things_stand_when_they_are_sent(database: Database) -> None:
    await add_incident(database)
    opened = await delivery(database)
    await database.transaction(
        lambda connection: connection.execute(update(INCIDENTS).values(state="closed", closed_at=NOW + 60)).rowcount
    )
    news = await composed(NewsComposer(database), opened)
    assert (news.kind, news.state, news.investigation) == ("opened", "closed", None)


async def test_there_are_no_news_of_an_incident_that_is_gone(database: Database) -> None:
    assert await NewsComposer(database).compose(await delivery(database)) is None


async def test_secrets_in_alerts_are_masked(database: Database) -> None:
    secret = "Sup3rS3cretPassw0rd!"
    await add_incident(
        database, title=f"login with password={secret}", labels=json.dumps({"password": secret, "a": "b"})
    )
    await add_alert(database, "f1", summary=f"psql postgresql://user:{secret}@host/db failed")
    news = await composed(NewsComposer(database, mask=Redactor(b"k" * 32).redact), await delivery(database))
    assert secret not in repr(news)
    assert news.labels["a"] == "b"
    assert "psql postgresql://" in str(news.alerts[0].summary)


async def test_a_long_summary_is_cut_beside_a_placeholder_and_never_inside(database: Database) -> None:
    await add_incident(database)
    await add_alert(database, "f1", summary=f"{'x ' * 235}password=Gartenlaube_55 is wrong")
    redactor = Redactor(b"a key of the tests, 32 bytes long")
    news = await composed(NewsComposer(database, mask=redactor.redact), await delivery(database))
    assert str(news.alerts[0].summary).endswith("x password=…")


async def chart_event(database: Database, store: FileResultStore, of: InvestigationId, name: str) -> StoredResult:
    """Keep a result with a picture as the worker does, and return its text."""
    call = ToolCall(id=ToolCallId(name), name="query_metrics_range", arguments="{}")
    put = partial(store.put, tool_name=call.name, call_id=call.id)
    text = await put(name.encode(), media_type="text/plain")
    image = await put(f"png of {name}".encode(), media_type="image/png")
    message = ToolMessage(
        call_id=call.id, tool_name=call.name, status="success", parts=(Text(text=name),), stored=(text, image)
    )
    finished = ToolCallFinished(
        call=call, toolset=None, description=f"Query {name}", message=message, invocation=None, error=None,
        elapsed_seconds=1.0, chart=MEMORY,
    )  # fmt: skip
    (wire,) = wire_events(finished)
    values = {"investigation_id": of, "key": name, "name": wire.name, "at": NOW, "data": compact(wire.data)}
    await database.transaction(lambda connection: connection.execute(insert(EVENTS).values(**values)))
    return text


def compact(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


async def test_an_answer_brings_the_pictures_that_it_cites_or_the_latest(database: Database, tmp_path: Path) -> None:
    await add_incident(database)
    identity = await investigate(database, state="answered", answer="Cause.")
    store = FileResultStore(tmp_path)
    texts = [await chart_event(database, store, identity, name) for name in ("a", "b", "c", "d")]
    damaged = {"investigation_id": identity, "key": "x", "name": "tool_calling_result", "at": NOW}
    await database.transaction(
        lambda connection: connection.execute(insert(EVENTS).values(**damaged, data='{"result":{"chart":7}}'))
    )
    told = await delivery(database, identity)

    async def pictures(composer: NewsComposer, of: Delivery = told) -> list[tuple[str, bytes]]:
        news = await composed(composer, of)
        assert news.investigation is not None
        assert all(each.alt == alt_text(MEMORY) for each in news.investigation.pictures)
        return [(each.title, each.content) for each in news.investigation.pictures]

    with_store = NewsComposer(database, results=store)
    assert [title for title, _ in await pictures(with_store)] == ["Query b", "Query c", "Query d"]
    answer = {"answer": f"Cause [[{texts[0].id}:1]]."}
    await database.transaction(
        lambda connection: connection.execute(
            update(INVESTIGATIONS).where(INVESTIGATIONS.c.id == identity).values(**answer)
        )
    )
    assert await pictures(with_store) == [("Query a", b"png of a")]
    assert await pictures(NewsComposer(database)) == []
    assert await pictures(NewsComposer(database, results=FileResultStore(tmp_path / "expired"))) == []
    assert await pictures(with_store, replace(told, event="opened")) == []
