"""How much memory large outputs of tools take: `python benchmarks/memory.py`. Linux only.

Compares the peaks of `holmes ask` with a large and a small output of its tool. Exits with 1 when a bound is not met.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.peak_memory import peak_megabytes
from tests.support.command_line import Home, provider_config, tool_results
from tests.support.kubernetes_api import document, kubernetes_api, write_kubeconfig
from tests.support.openai_server import OpenAIServer, Reply, call

LINE = "2026-01-31T10:00:00Z checkout-7d9f request failed: upstream timed out after 5000 ms\\n"
SMALL = f"yes $'{LINE}' | head -c 1000"
# What the tool runs, and megabytes that its peak may be above that of SMALL.
BOUNDS = {
    "a result of 20 MB": (f"yes $'{LINE}' | head -c 20000000", 100),
    "a flood of 1 GB that is stopped": ("head -c 1000000000 /dev/zero | tr '\\0' 'x'", 300),
}


def reads_one_log(body: dict[str, Any]) -> Reply:
    """A model that reads the log and answers with how much of it it saw."""
    results = tool_results(body)
    if not results:
        return Reply(tool_calls=(call("read_log"),))
    return Reply(text=f"{len(results[0])} characters seen")


def peak_with(home: Home, folder: Path, script: str) -> float:
    """The least of three peaks: on a busy machine threads overlap that otherwise follow each other."""
    toolset = folder / "toolset.yaml"
    tool = {"name": "read_log", "description": "a log", "script": script}
    toolset.write_text(yaml.safe_dump({"toolsets": {"test/log": {"description": "a log", "tools": [tool]}}}))
    return min(peak_megabytes(home, "ask", "-n", "why?", "-t", str(toolset)) for _ in range(3))


def main() -> int:
    """Print one line for each bound; 1 when one is not met."""
    with tempfile.TemporaryDirectory() as name, kubernetes_api() as api, OpenAIServer(reads_one_log) as server:
        folder = Path(name)
        api.on("/version", document({"gitVersion": "v1.34.0"}))
        kubeconfig = write_kubeconfig(folder, api.url)
        home = Home.make(folder / "home", config=provider_config(server.base_url), KUBECONFIG=str(kubeconfig))
        small = peak_with(home, folder, SMALL)
        print(f"a result of 1 kB: {small:.0f} MB")
        broken = 0
        for name_of_bound, (script, limit) in BOUNDS.items():
            more = peak_with(home, folder, script) - small
            broken += more > limit
            print(f"{'NOT MET' if more > limit else 'met'}: {name_of_bound}: {more:.0f} MB more, at most {limit}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
