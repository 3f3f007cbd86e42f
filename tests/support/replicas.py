"""Replicas of the server without its HTTP face: processes that work on the queue of one database until they are ended.

Used by the tests of durability and by `benchmarks/alerts.py`; as a program, `python -m tests.support.replicas CONFIG`
prints "ready" when it works and ends on SIGTERM as the server does. The cluster is the recorded demo, unless
HOLMES_TEST_LIVE is set.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

READY = "ready"
START_SECONDS = 60


@contextmanager
def replica(home: Path, *, name: str = "replica", **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A replica with the config file of `home` that runs already. What it says is in `home/NAME.log`."""
    process = start_replica(home, name=name, **variables)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def start_replica(home: Path, *, name: str = "replica", **variables: str) -> subprocess.Popen[str]:
    """The process of a replica that is ready."""
    alone = {"HOLMES_FIRST_LOOK": "false", "HOLMES_ANSWER_REVIEW": "false"}
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **alone, **variables}
    config = home / ".holmes" / "config.yaml"
    with (home / f"{name}.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.replicas", str(config)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=Path(__file__).parents[2],
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.strip() == READY, (home / f"{name}.log").read_text()[-3000:]
    return process


async def _work(config: Path) -> None:
    from holmes.app.cluster import ClusterChoice, chosen_cluster
    from holmes.app.redaction import make_redactor
    from holmes.app.work import open_work
    from holmes.settings.load import load_settings

    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    settings = load_settings(os.environ, config)
    choice = ClusterChoice(demo=not os.environ.get("HOLMES_TEST_LIVE"))
    async with (
        chosen_cluster(settings, choice) as chosen,
        open_work(chosen, make_redactor(chosen)),
    ):
        sys.stdout.write(f"{READY}\n")
        sys.stdout.flush()
        await ended.wait()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    asyncio.run(_work(Path(sys.argv[1])))
