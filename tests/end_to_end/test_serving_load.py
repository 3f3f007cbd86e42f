"""What the server promises under load, smaller than in `benchmarks/alerts.py` and `benchmarks/serving.py`."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from holmes.assets import demo_recording
from holmes.snapshot.server.serving import serve_snapshot
from tests.support.alert_load import Load, run_load
from tests.support.serving_load import measure_server

pytestmark = pytest.mark.slow


async def test_a_storm_of_alerts_on_dying_replicas_loses_none_and_doubles_none(
    postgresql_url: str, tmp_path: Path
) -> None:
    load = Load(
        alerts=60, distinct=20, seconds=3, kill_every_seconds=3, most_kills=4, deadline_seconds=240, concurrency=4
    )
    async with serve_snapshot(demo_recording()) as cluster:
        result = await run_load(load, postgresql_url, cluster.kubeconfig, tmp_path)
    assert result.kills > 0
    assert result.broken(load) == []


def test_a_server_stays_small_and_answers_quickly_while_it_works(tmp_path: Path) -> None:
    served = measure_server(tmp_path)
    assert served.running_at_once > 10
    assert served.idle_megabytes < 250
    assert served.after_megabytes < 450
    # A busy machine has outliers; the benchmark shows the tail.
    assert statistics.median(served.page_seconds) < 0.1
    assert statistics.median(served.health_seconds) < 0.1
