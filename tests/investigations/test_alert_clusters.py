"""Alerts of several clusters: each is investigated in its own cluster or, if that is unknown, not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holmes.investigations.alerts.clusters import AlertClusters, incident_key_of
from holmes.investigations.alerts.intake import IntakePolicy
from holmes.investigations.records.database import Database
from holmes.investigations.records.values import Alert
from tests.investigations.alerts import Desk, alert, group

CLUSTERS = AlertClusters(names=("eu", "us"))
CHECKOUT = alert(pod="checkout-7b9bbf99ff-c5l4v")


def of(cluster: str | None, like: Alert = CHECKOUT, label: str = "cluster") -> Alert:
    """The same alert, also with the same fingerprint, in another cluster."""
    return replace(like, labels={**like.labels, **({label: cluster} if cluster is not None else {})})


def desk_of(database: Database, clusters: AlertClusters = CLUSTERS) -> Desk:
    return Desk(database, policy=IntakePolicy(clusters=clusters))


async def test_alerts_that_differ_only_in_their_cluster_share_nothing(database: Database) -> None:
    desk = desk_of(database)
    receipt = await desk.take(of("eu"), of("us"))

    assert receipt.counts.accepted == 2
    assert sorted(str(each.cluster) for each in await desk.incidents()) == ["eu", "us"]
    assert sorted(row.fingerprint for row in await desk.alerts()) == [
        f"{name}/{CHECKOUT.fingerprint}" for name in ("eu", "us")
    ]
    asked = {each.cluster: each.question for each in await desk.investigations()}
    assert {name: ('"eu"' in text, '"us"' in text) for name, text in asked.items()} == {
        "eu": (True, False),
        "us": (False, True),
    }


async def test_what_ends_in_one_cluster_goes_on_in_the_other(database: Database) -> None:
    desk = desk_of(database)
    await desk.take(of("eu"), of("us"))
    await desk.take(replace(of("eu"), status="resolved"))
    assert {each.cluster: each.state for each in await desk.incidents()} == {"eu": "closed", "us": "open"}


async def test_an_unknown_cluster_is_stored_and_not_investigated(database: Database) -> None:
    desk = desk_of(database)
    receipt = await desk.take(of("mars"), of(None))

    found = {each.cluster: each for each in await desk.incidents()}
    unknown, unnamed = found["mars"], found[None]
    assert (receipt.counts.accepted, receipt.queued) == (2, 0)
    assert (unknown.verdict, unnamed.verdict) == ("not_investigated", "not_investigated")
    assert unknown.summary == "The label 'cluster' names the unknown cluster 'mars'; configured clusters: eu, us."
    assert unnamed.summary == "The alert has no label 'cluster' that names a cluster, and default_cluster is not set."
    assert len(desk.news) == 2, "people still hear of both"


async def test_an_unknown_cluster_is_investigated_once_it_is_configured(database: Database) -> None:
    await desk_of(database, AlertClusters(names=("us",))).take(of("eu"))
    desk = desk_of(database)
    await desk.take(replace(of("eu"), status="resolved"))
    await desk.take(of("eu"))
    assert [each.cluster for each in await desk.investigations()] == ["eu"]


async def test_the_label_and_the_default_can_be_chosen(database: Database) -> None:
    desk = desk_of(database, replace(CLUSTERS, label="site", default="us"))
    await desk.take(of("eu", label="site"), of(None))
    assert sorted(str(each.cluster) for each in await desk.investigations()) == ["eu", "us"]


async def test_a_server_of_one_cluster_leaves_the_others_alone(database: Database) -> None:
    desk = desk_of(database, replace(CLUSTERS, default="eu", only="eu"))
    await desk.take(of("us"), of(None))
    assert [each.cluster for each in await desk.investigations()] == ["eu"]
    other = next(each for each in await desk.incidents() if each.cluster == "us")
    assert other.summary == "The alert is about the cluster 'us', and this Holmes reads only 'eu'."


async def test_without_clusters_nothing_changes(database: Database) -> None:
    desk = desk_of(database, AlertClusters())
    await desk.take(of("eu"))
    (row,), (incident,) = await desk.alerts(), await desk.incidents()
    assert (row.fingerprint, row.cluster, incident.cluster) == (CHECKOUT.fingerprint, None, None)
    assert len(await desk.investigations()) == 1


@pytest.mark.parametrize("name", ["../../etc", "eu/x", "EU", "x" * 5_000, "eu' us"])
def test_an_unknown_name_never_passes_for_a_known_cluster(name: str) -> None:
    mine, its = CLUSTERS.assigned(group(of("eu"), of(name))).alerts
    assert mine.fingerprint != its.fingerprint
    assert incident_key_of("key", mine) != incident_key_of("key", its)
    assert len(its.fingerprint) <= 200, "the width of the column"
    reason = CLUSTERS.refusal(its.cluster)
    assert reason is not None
    assert len(reason) < 300
