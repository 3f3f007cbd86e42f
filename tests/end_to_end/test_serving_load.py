"""What the server promises under load, smaller than in `benchmarks/alerts.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from holmes.assets import demo_recording
from holmes.snapshot.server.serving import serve_snapshot
from tests.support.alert_load import Load, run_load
from tests.support.long_form import count

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


async def test_a_storm_of_alerts_on_dying_replicas_loses_none_and_doubles_none(
    postgresql_url: str, tmp_path: Path
) -> None:
    load = Load(
        alerts=count(long=60, short=24),
        distinct=count(long=20, short=8),
        seconds=3,
        kill_every_seconds=count(long=3, short=1),
        most_kills=count(long=4, short=2),
        deadline_seconds=240,
        concurrency=4,
    )
    async with serve_snapshot(demo_recording()) as cluster:
        result = await run_load(load, postgresql_url, cluster.kubeconfig, tmp_path)
    assert result.kills > 0
    assert result.broken(load) == []
