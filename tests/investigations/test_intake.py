"""What becomes of alerts: nothing is lost, nothing is investigated twice, incidents open, close and open again."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest
from sqlalchemy import insert, update

from holmes.investigations.alerts.intake import IntakePolicy
from holmes.investigations.alerts.routes import LabelPattern, Route
from holmes.investigations.records.database import Database
from holmes.investigations.records.records import InvestigationRecords
from holmes.investigations.records.schema import INVESTIGATIONS, STEPS
from holmes.investigations.records.values import Alert, AlertGroup
from tests.investigations.alerts import Desk, alert, all_of, group, incident_ids

CHECKOUT = alert(pod="checkout-7b9bbf99ff-c5l4v")
CHECKOUT_TWIN = alert(pod="checkout-7b9bbf99ff-w76mq")
CATALOG = alert(deployment="catalog", severity="critical")


@pytest.fixture
def desk(database: Database) -> Desk:
    return Desk(database)


async def test_a_new_alert_opens_an_incident_and_queues_an_investigation(desk: Desk) -> None:
    receipt = await desk.take(CHECKOUT)

    (incident,) = await desk.incidents()
    (investigation,) = await desk.investigations()
    assert (incident.state, incident.title, incident.severity) == (
        "open", "KubePodCrashLooping: shop/checkout", "warning",
    )  # fmt: skip
    assert (investigation.state, investigation.incident_id, investigation.namespace) == ("queued", incident.id, "shop")
    assert "checkout-7b9bbf99ff-c5l4v" in investigation.question
    assert (receipt.incidents, receipt.investigations, receipt.queued) == ((incident.id,), (investigation.id,), 1)
    assert receipt.counts.accepted == 1
    assert (desk.wakes, desk.news) == (1, [("opened", incident.title)])


async def test_the_same_alert_again_is_counted_and_nothing_else(desk: Desk) -> None:
    first = await desk.take(CHECKOUT)
    await desk.set_state("running")
    again = await desk.take(CHECKOUT)

    assert (again.counts.duplicates, again.counts.accepted, again.queued) == (1, 0, 0)
    assert again.investigations == first.investigations
    assert [row.received for row in await desk.alerts()] == [2]
    assert (desk.wakes, len(desk.news)) == (1, 1)


async def test_an_alert_that_stands_twice_in_a_payload_is_one_alert(desk: Desk) -> None:
    receipt = await desk.take(CHECKOUT, CHECKOUT)
    assert (receipt.counts.accepted, receipt.counts.duplicates) == (1, 1)
    assert len(await desk.investigations()) == 1


async def test_alerts_of_a_group_that_come_while_the_investigation_waits_get_into_its_question(desk: Desk) -> None:
    await desk.take(CHECKOUT)
    await desk.take(CATALOG)

    (incident,) = await desk.incidents()
    (investigation,) = await desk.investigations()
    assert "shop/deployment/catalog" in investigation.question
    assert "checkout-7b9bbf99ff-c5l4v" in investigation.question
    assert (incident.title, incident.severity) == ("KubePodCrashLooping: 2 objects in shop (2 alerts)", "critical")
    assert incident.labels == {"alertname": "KubePodCrashLooping", "namespace": "shop"}
    assert await desk.linked() == {investigation.id: 2}


@pytest.mark.parametrize("state", ["running", "answered"])
async def test_a_begun_investigation_takes_what_is_about_the_same_thing_and_nothing_else(
    desk: Desk, state: str
) -> None:
    await desk.take(CHECKOUT)
    await desk.set_state(state)
    same = await desk.take(CHECKOUT_TWIN)
    other = await desk.take(CATALOG)

    first, second = await desk.investigations()
    assert (same.investigations, same.queued) == ((first.id,), 0)
    assert (other.investigations, other.queued) == ((second.id,), 1)
    assert "checkout" not in second.question
    assert len(await desk.incidents()) == 1


@pytest.mark.parametrize("state", ["failed", "cancelled"])
async def test_an_investigation_that_came_to_nothing_takes_no_alerts(desk: Desk, state: str) -> None:
    await desk.take(CHECKOUT)
    await desk.set_state(state)
    assert (await desk.take(CHECKOUT_TWIN)).queued == 1


async def test_an_old_answer_does_not_stand_for_what_begins_after_its_alert_was_over(desk: Desk) -> None:
    await desk.take(CHECKOUT, CATALOG)
    await desk.set_state("answered")
    await desk.take(alert("resolved", pod="checkout-7b9bbf99ff-c5l4v", ends=timedelta(hours=1)))
    assert (await desk.take(CHECKOUT_TWIN)).queued == 1


async def test_groups_are_incidents_of_their_own(desk: Desk) -> None:
    await desk.take(CHECKOUT, key="one")
    await desk.take(CATALOG, key="two")
    assert [each.group_key for each in await desk.incidents()] == ["one", "two"]
    assert len(await desk.investigations()) == 2


async def test_without_groups_alerts_about_the_same_thing_belong_together(desk: Desk) -> None:
    await desk.take(CHECKOUT, CHECKOUT_TWIN, CATALOG, key="")
    assert [each.title for each in await desk.incidents()] in (
        ["KubePodCrashLooping: shop/checkout (2 alerts)", "KubePodCrashLooping: shop/catalog"],
        ["KubePodCrashLooping: shop/catalog", "KubePodCrashLooping: shop/checkout (2 alerts)"],
    )


async def test_an_incident_closes_when_its_last_alert_is_over_and_nothing_is_investigated(desk: Desk) -> None:
    await desk.take(CHECKOUT, CATALOG)
    over = timedelta(minutes=9)
    await desk.take(alert("resolved", pod="checkout-7b9bbf99ff-c5l4v", ends=over))
    (still_open,) = await desk.incidents()
    receipt = await desk.take(alert("resolved", deployment="catalog", severity="critical", ends=over))

    (incident,) = await desk.incidents()
    assert (still_open.state, incident.state) == ("open", "closed")
    assert incident.closed_at is not None
    assert (receipt.counts.resolved, receipt.queued, receipt.incidents) == (1, 0, (incident.id,))
    assert [event for event, _ in desk.news] == ["opened", "resolved"]
    assert len(await desk.investigations()) == 1


async def test_what_is_over_and_was_never_heard_of_is_ignored(desk: Desk) -> None:
    receipt = await desk.take(alert("resolved", pod="gone"))
    assert receipt.counts.ignored == 1
    assert (await desk.alerts(), await desk.incidents()) == ([], ())


async def test_an_alert_that_fires_anew_reopens_its_incident_with_a_new_investigation(desk: Desk) -> None:
    await desk.take(CHECKOUT)
    await desk.set_state("answered")
    await desk.take(alert("resolved", pod="checkout-7b9bbf99ff-c5l4v", ends=timedelta(minutes=9)))
    receipt = await desk.take(alert(pod="checkout-7b9bbf99ff-c5l4v", starts=timedelta(minutes=20)))

    (incident,) = await desk.incidents()
    assert (incident.state, incident.reopened, incident.closed_at) == ("open", 1, None)
    assert (receipt.counts.accepted, receipt.queued) == (1, 1)
    assert [event for event, _ in desk.news] == ["opened", "resolved", "reopened"]
    assert len(await desk.investigations()) == 2


async def test_after_the_time_for_it_a_new_incident_opens_instead(desk: Desk) -> None:
    await desk.take(CHECKOUT)
    await desk.take(alert("resolved", pod="checkout-7b9bbf99ff-c5l4v", ends=timedelta(minutes=9)))
    await desk.age_closed(hours=25)
    await desk.take(alert(pod="checkout-7b9bbf99ff-c5l4v", starts=timedelta(hours=30)))
    assert [each.state for each in await desk.incidents()] == ["closed", "open"]


async def test_messages_that_come_late_change_nothing(desk: Desk) -> None:
    over = alert("resolved", pod="checkout-7b9bbf99ff-c5l4v", ends=timedelta(minutes=9))
    anew = alert(pod="checkout-7b9bbf99ff-c5l4v", starts=timedelta(minutes=20))
    await desk.take(CHECKOUT)
    await desk.take(over)
    late_firing = await desk.take(CHECKOUT)
    await desk.take(anew)
    late_end = await desk.take(over)

    (incident,) = await desk.incidents()
    assert (late_firing.counts.duplicates, late_end.counts.duplicates) == (1, 1)
    assert (incident.state, incident.reopened) == ("open", 1)
    (row,) = await desk.alerts()
    assert (row.status, row.received) == ("firing", 5)


async def test_an_alert_that_must_have_been_over_unheard_is_investigated_anew(desk: Desk) -> None:
    await desk.take(CHECKOUT)
    await desk.set_state("answered")
    soon = await desk.take(alert(pod="checkout-7b9bbf99ff-c5l4v", starts=timedelta(seconds=30)))
    later = await desk.take(alert(pod="checkout-7b9bbf99ff-c5l4v", starts=timedelta(days=100_000)))
    assert (soon.counts.duplicates, later.counts.accepted, later.queued) == (1, 1, 1)


async def test_an_alert_that_never_says_when_it_began_is_known_while_it_fires_and_new_afterwards(desk: Desk) -> None:
    fires = alert(pod="checkout-7b9bbf99ff-c5l4v", starts=None)
    await desk.take(fires)
    again = await desk.take(fires)
    await desk.take(alert("resolved", pod="checkout-7b9bbf99ff-c5l4v", starts=None))
    anew = await desk.take(fires)
    assert (again.counts.duplicates, anew.counts.accepted) == (1, 1)
    assert [each.reopened for each in await desk.incidents()] == [1]


async def test_a_route_decides_model_and_cost_and_may_want_no_investigation(database: Database) -> None:
    cheap = Route(name="shop", match=(LabelPattern("namespace", "shop|cart"),), model="small", max_cost=0.5)
    silent = Route(name="silent", match=(LabelPattern("severity", "none|"),), investigate=False)
    desk = Desk(database, silent, cheap)
    await desk.take(CHECKOUT)
    shown = await desk.take(alert(alertname="Watchdog", severity="none"), key="watchdog")

    (investigation,) = await desk.investigations()
    assert (investigation.model, investigation.max_cost, investigation.route) == ("small", 0.5, "shop")
    assert (shown.investigations, len(shown.incidents), shown.counts.accepted) == ((), 1, 1)
    assert [told for _, told in desk.news] == ["KubePodCrashLooping: shop/checkout shop"]


async def test_a_heartbeat_is_investigated_only_if_a_route_says_so(database: Database) -> None:
    watchdog = alert(alertname="Watchdog", severity="none")
    desk = Desk(database)
    receipt = await desk.take(watchdog, key="watchdog")
    assert (receipt.investigations, len(receipt.incidents)) == ((), 1)
    (incident,) = await desk.incidents()
    assert (incident.verdict, incident.root_cause) == ("not_investigated", None)
    asked = await Desk(database, Route(name="all", investigate=True)).take(watchdog, key="watchdog")
    assert asked.queued == 1


async def test_a_route_that_wants_investigations_only_now_gets_one_for_what_still_fires(database: Database) -> None:
    await Desk(database, Route(name="shop", investigate=False)).take(CHECKOUT)
    receipt = await Desk(database, Route(name="shop")).take(CHECKOUT)
    assert (receipt.counts.duplicates, receipt.queued) == (1, 1)


async def test_more_investigations_than_a_route_allows_in_an_hour_do_without_an_llm(database: Database) -> None:
    desk = Desk(database, Route(name="shop", max_per_hour=2))
    for number in range(4):
        await desk.take(alert(deployment=f"app-{number}"), key=f"group {number}")
    reasons = [each.without_llm for each in await desk.investigations()]
    assert reasons[:2] == [None, None]
    assert reasons[2] == reasons[3] == "the route 'shop' has reached its hourly limit (max_per_hour: 2)"


async def test_all_routes_together_have_a_limit_that_replicas_share(database: Database) -> None:
    routes = (Route(name="a", match=(LabelPattern("team", "a"),)), Route(name="b", max_per_hour=50))
    policy = IntakePolicy(max_per_hour=30)
    desks = [Desk(database, *routes, policy=policy) for _ in range(2)]
    groups = [group(alert(deployment=f"app-{n}", team="ab"[n % 2]), key=f"group {n}") for n in range(60)]
    await all_of(*desks, groups=groups)
    investigations = await Desk(database).investigations()
    with_model = [each for each in investigations if each.without_llm is None]
    assert (len(with_model), len(investigations)) == (30, 60)
    refused = {each.without_llm for each in investigations} - {None}
    assert refused == {"investigations with an LLM have reached their hourly limit (alerts.max_per_hour: 30)"}


async def test_one_message_for_several_routes_begins_no_more_than_are_left(database: Database) -> None:
    routes = [Route(name=team, match=(LabelPattern("team", team),)) for team in "abcd"]
    desk = Desk(database, *routes, policy=IntakePolicy(max_per_hour=2))
    await desk.take(*(alert(team=team) for team in "abcd"))
    assert sorted(each.without_llm is None for each in await desk.investigations()) == [False, False, True, True]


async def test_an_investigation_whose_model_failed_still_counts_for_the_hour(database: Database) -> None:
    desk = Desk(database, policy=IntakePolicy(max_per_hour=2))
    for number in range(2):
        await desk.take(alert(deployment=f"app-{number}"), key=f"group {number}")
    failed_over = update(INVESTIGATIONS).values(without_llm="the model could not be used", state="answered")
    await database.transaction(lambda connection: connection.execute(failed_over))
    await desk.take(alert(deployment="app-3"), key="group 3")
    assert "(alerts.max_per_hour: 2)" in str((await desk.investigations())[-1].without_llm)


async def test_an_hour_later_models_answer_again(database: Database) -> None:
    desk = Desk(database, policy=IntakePolicy(max_per_hour=1))
    await desk.take(alert(deployment="app-0"), key="group 0")
    earlier = update(INVESTIGATIONS).values(created_at=INVESTIGATIONS.c.created_at - 3_601)
    await database.transaction(lambda connection: connection.execute(earlier))
    await desk.take(alert(deployment="app-1"), key="group 1")
    await desk.take(alert(deployment="app-2"), key="group 2")
    assert [each.without_llm is None for each in await desk.investigations()] == [True, True, False]


async def test_what_costs_nothing_neither_counts_nor_is_limited(database: Database) -> None:
    free = Route(name="free", match=(LabelPattern("team", "free"),), model="builtin/triage")
    policy = IntakePolicy(max_per_hour=1, asks_llm=lambda model: model != "builtin/triage")
    desk = Desk(database, free, policy=policy)
    for number, team in enumerate(("free", "free", "paid", "free", "paid")):
        await desk.take(alert(deployment=f"app-{number}", team=team), key=f"group {number}")
    assert [each.without_llm is None for each in await desk.investigations()] == [True, True, True, True, False]


async def test_a_spent_day_leaves_the_answer_to_the_rules(database: Database) -> None:
    step = {"investigation_id": "x", "name": "model", "result": b"", "cost": 5.1, "finished_at": 9e9}
    await database.transaction(lambda connection: connection.execute(insert(STEPS), step))
    desk = Desk(database, policy=IntakePolicy(max_cost_per_day=5))
    await desk.take(CHECKOUT)
    (investigation,) = await desk.investigations()
    assert investigation.without_llm == "today's budget is exhausted: $5.10 of $5.00"


async def test_what_replicas_are_sent_at_once_is_neither_lost_nor_doubled(database: Database) -> None:
    """Each of 60 alerts comes five times, shuffled into payloads for two replicas."""
    alerts = [alert(deployment=f"app-{number}", severity="critical") for number in range(60)]
    groups: list[AlertGroup] = []
    for shift in range(5):
        turned = alerts[shift * 12 :] + alerts[: shift * 12]
        groups += [_share(turned[start : start + 5]) for start in range(0, 60, 5)]
    desk, replica = Desk(database), Desk(database)
    receipts = await all_of(desk, replica, groups=groups)

    rows = await desk.alerts()
    assert (len(rows), sum(row.received for row in rows)) == (60, 300)
    assert sum(each.counts.accepted for each in receipts) == 60
    assert incident_ids(receipts) == {each.id for each in await desk.incidents()}
    linked, investigations = await desk.linked(), await desk.investigations()
    assert set(linked) == {each.id for each in investigations}
    assert sum(each.queued for each in receipts) == len(investigations) == len(await desk.incidents())


async def test_a_payload_of_thousands_of_alerts_is_taken_in_one_go(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("large")
    database = await Database.open(f"sqlite:///{folder / 'investigations.db'}")
    try:
        desk = Desk(database)
        many = [alert(pod=f"app-{number}") for number in range(3_000)]
        receipt = await desk.take(*many)
        again = await desk.take(*many)
        (investigation,) = await desk.investigations()
        assert (receipt.counts.accepted, again.counts.duplicates) == (3_000, 3_000)
        assert len(investigation.question) < 20_000
    finally:
        await database.close()


def _share(alerts: list[Alert]) -> AlertGroup:
    """A notification of the group that the first alert belongs to; Alertmanager never mixes groups."""
    return group(*alerts, key=f"group {alerts[0].labels['deployment']}")


async def test_an_investigation_that_is_begun_meanwhile_knows_all_its_alerts(database: Database) -> None:
    """A worker claims whatever is queued while alerts of one group pour in; none may miss the question it reads."""
    desk, replica = Desk(database), Desk(database)
    claimed: dict[str, str] = {}
    sending = asyncio.create_task(
        all_of(desk, replica, groups=[group(alert(statefulset=f"app-{number}")) for number in range(40)])
    )
    while not sending.done() or len(claimed) < len(await desk.investigations()):
        for each in await desk.investigations():
            if each.state == "queued":
                await desk.set_state("running", each.id)
                begun = await InvestigationRecords(database).get(each.id)
                assert begun is not None
                claimed[each.id] = begun.question
    await sending

    for row in await desk.alerts():
        assert json.loads(row.labels)["statefulset"] in claimed[row.investigation_id]
