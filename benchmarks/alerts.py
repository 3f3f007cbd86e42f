"""A storm of alerts on two replicas, one of which dies again and again: `python benchmarks/alerts.py`.

1,000 alerts (200 distinct) come within 10 s from four senders. Exits with 1 when a promise is broken: every distinct
alert is investigated exactly once to its end, none is lost, duplicates are linked, and the intake keeps up.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from holmes.assets import demo_recording
from holmes.snapshot.server.serving import serve_snapshot
from tests.services.postgresql import PostgresqlServer
from tests.support.alert_load import CALLS_PER_INVESTIGATION, Load, LoadResult, run_load

MAX_SECONDS_MORE = 3.0
"""How long after the last alert was sent the last one may be stored: a replica may just have died."""


async def measured(load: Load, database_url: str) -> LoadResult:
    with tempfile.TemporaryDirectory() as folder:
        async with serve_snapshot(demo_recording()) as cluster:
            return await run_load(load, database_url, cluster.kubeconfig, Path(folder))


def main() -> None:
    load = Load()
    postgresql = PostgresqlServer()
    try:
        postgresql.start()
        result = asyncio.run(measured(load, postgresql.create_database()))
    finally:
        postgresql.close()
    times = sorted(result.answer_seconds)
    print(
        f"{load.alerts} alerts, {load.distinct} distinct, sent in {result.sent_seconds:.1f} s, stored after "
        f"{result.stored_seconds:.1f} s, {result.kills} kills"
    )
    print(
        f"webhook: {result.accepted} times 202, {result.retries} retries, median {statistics.median(times):.3f} s, "
        f"99th percentile {times[int(len(times) * 0.99)]:.3f} s, most {times[-1]:.3f} s"
    )
    print(
        f"{result.investigations} investigations: {dict(result.states)}, {result.takeovers} taken over, "
        f"all done after {result.finished_seconds:.0f} s"
    )
    needed = result.investigations * CALLS_PER_INVESTIGATION
    print(f"model calls: {result.model_calls} for {needed} needed; {result.received} messages counted")
    broken = result.broken(load)
    if result.stored_seconds > load.seconds + MAX_SECONDS_MORE:
        broken.append(f"the last alert was stored after {result.stored_seconds:.1f} s")
    for line in broken:
        print(f"NOT MET: {line}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
