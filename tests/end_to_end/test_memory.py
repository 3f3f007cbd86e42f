"""A large result costs little memory: the run's peak is compared with the same run on a small result."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command_line import Home, provider_config, tool_results
from tests.support.openai_server import OpenAIServer, Reply, call
from tests.support.peak_memory import peak_megabytes

MAX_DIFFERENCE_MB = 100
LINE = "2026-01-31T10:00:00Z checkout-7d9f request failed: upstream timed out after 5000 ms\\n"


def reads_one_log(body: dict[str, Any]) -> Reply:
    """A model that reads the log and answers with how much of it it saw."""
    results = tool_results(body)
    if not results:
        return Reply(tool_calls=(call("read_log"),))
    return Reply(text=f"{len(results[0])} characters seen")


def peak_with_log(home: Home, folder: Path, size_bytes: int) -> float:
    """The peak resident memory of `holmes ask` in megabytes when its tool prints `size_bytes`."""
    toolset = folder / "toolset.yaml"
    tool = {"name": "read_log", "description": "a log", "script": f"yes $'{LINE}' | head -c {size_bytes}"}
    toolset.write_text(yaml.safe_dump({"toolsets": {"test/log": {"description": "a log", "tools": [tool]}}}))
    return peak_megabytes(home, "ask", "-n", "why?", "-t", str(toolset))


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has another unit elsewhere")
def test_a_result_of_20_mb_costs_at_most_100_mb_more_than_one_of_1_kb(kubeconfig: Path, tmp_path: Path) -> None:
    with OpenAIServer(reads_one_log) as server:
        home = Home.make(tmp_path / "home", config=provider_config(server.base_url), KUBECONFIG=str(kubeconfig))
        small = peak_with_log(home, tmp_path, 1_000)
        # On a busy machine threads overlap that otherwise follow each other: the least of three peaks is what it costs.
        large = min(peak_with_log(home, tmp_path, 20_000_000) for _ in range(3))
    stored = list((home.path / ".holmes/results/blobs").iterdir())
    assert sorted(path.stat().st_size for path in stored) == [1_000, 20_000_000]
    assert large - small <= MAX_DIFFERENCE_MB, f"{small:.0f} MB with 1 KB, {large:.0f} MB with 20 MB"
