"""Alerts of real rule sets on the real cluster: those about its faults get their cause, and no other alert gets one."""

from __future__ import annotations

import pytest

from tests.cluster.fixtures import Cluster
from tests.diagnosis.scenarios.alerts import look_at, staged_alerts
from tests.diagnosis.scenarios.api import Api
from tests.triage.corpus.loading import read_corpus


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1200)
async def test_alerts_get_the_cause_that_serves_their_subject_and_others_get_none(cluster: Cluster) -> None:
    with Api(cluster.admin) as api, staged_alerts(api, patience=3) as alerts:
        looks = [(each, await look_at(cluster.admin, {**each.labels, **each.annotations})) for each in alerts]
        assert [fault for each, look in looks if (fault := each.judged(look))] == []

        foreign = [each for half in ("development", "blind") for each in read_corpus(half, "alerts")]
        found = [(each, await look_at(cluster.admin, each.alert)) for each in foreign]

    assert len(foreign) >= 120
    blamed = [(each, look) for each, look in found if look.verdict == "cause_found"]
    assert [f"{each.asked}: {look.summary}" for each, look in blamed if each.half == "development"] == []
    assert len(blamed) == 0
