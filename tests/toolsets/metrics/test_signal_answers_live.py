"""The metrics of a workload in answers without an LLM. A workload whose metrics stand out is not called healthy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.command_line import FOR_RECORDINGS, Home

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.services.fixtures import RunMonitor
    from tests.services.monitoring import Monitor

pytestmark = pytest.mark.slow

QUESTION: Final = "is the statefulset cart in namespace shop healthy?"
CONFIG = f"model: builtin/triage\n{FOR_RECORDINGS}\n"


def _samples(throttled_share: float) -> str:
    end = int(time.time()) // 30 * 30
    lines = []
    for name, rate in (("throttled_periods", 10 * throttled_share), ("periods", 10.0)):
        lines.append(f"# TYPE container_cpu_cfs_{name} counter")
        for pod in ("cart-0", "cart-1"):
            labels = f'namespace="shop",pod="{pod}",container="cart"'
            lines += [
                f"container_cpu_cfs_{name}_total{{{labels}}} {rate * 30 * step} {end - 7_200 + 30 * step}"
                for step in range(241)
            ]
    return "\n".join([*lines, ""])


@pytest.fixture(scope="module", params=[0.7, 0.02], ids=["throttled", "healthy"])
def served(request: pytest.FixtureRequest, prometheus: RunMonitor) -> Iterator[tuple[Monitor, bool]]:
    with prometheus({}, history=_samples(request.param)) as monitor:
        yield monitor, request.param > 0.5


def test_a_workload_is_healthy_only_if_its_metrics_are_as_well(served: tuple[Monitor, bool], tmp_path: Path) -> None:
    monitor, is_throttled = served
    home = Home.make(tmp_path / "home", config=CONFIG, PROMETHEUS_URL=monitor.url)
    done = home.run("ask", "-n", "--demo", QUESTION)
    assert done.exit_code == 0, done.stderr
    metrics = [line for line in done.stdout.splitlines() if line.startswith("- Metrics ")]
    if not is_throttled:
        assert done.stdout.startswith("**Healthy**")
        assert metrics == []
        return
    assert done.stdout.startswith(
        "**Cause not found**: Nothing in the cluster's objects, events and logs is wrong with "
    )
    assert "but its metrics stand out" in done.stdout.splitlines()[0]
    assert len(metrics) == 2
    assert "now: CPU throttling of {container=" in metrics[0]
    assert " 70 %, up to 70 %, since 20" in metrics[0]
    assert "Read signals of statefulset/cart" in done.stderr


def test_a_source_that_fails_is_told_and_changes_nothing(tmp_path: Path) -> None:
    home = Home.make(tmp_path / "home", config="model: builtin/triage\n")
    alone = home.run("ask", "-n", "--demo", QUESTION)
    failing = Home.make(tmp_path / "other", config=CONFIG, PROMETHEUS_URL="http://127.0.0.1:9")
    done = failing.run("ask", "-n", "--demo", QUESTION)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == alone.stdout.splitlines()[0]
    assert "toolset 'prometheus/metrics' cannot be used: prometheus (http://127.0.0.1:9): the connection" in done.stderr
