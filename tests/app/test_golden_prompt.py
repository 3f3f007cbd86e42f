"""What the model is told, as a whole: a change of one byte costs every prompt cache, so it must be seen in review."""

from __future__ import annotations

import json
import os
from pathlib import Path

from holmes.llm.codec import MessageCodec
from holmes.prompts import render_prompt
from holmes.stores.result_store import FileResultStore
from holmes.tokens import TokenCounter
from holmes.toolsets.kubernetes_diagnosis.toolset import KubernetesDiagnosisToolset
from holmes.toolsets.kubernetes_logs.toolset import KubernetesLogsToolset
from holmes.toolsets.stored_results import StoredResultsToolset
from holmes.toolsets.yaml.toolset import YamlToolset
from holmes.values.environment import Environment
from holmes.values.tools import Toolset
from tests.support.shipped import shipped_catalogue

GOLDEN = Path(__file__).parent / "golden"
MAX_TOKENS = 6_000


def shipped_toolsets() -> list[Toolset]:
    """Every toolset that is shipped for every cluster, whatever this machine has installed."""
    environment = Environment()
    catalogue = shipped_catalogue(environment)
    results = StoredResultsToolset(
        store=FileResultStore(Path("unused")), counter=TokenCounter(), cap_tokens=1_000, vision=True
    )
    usual = (each for each in catalogue.definitions if not each.is_optional)
    yaml_toolsets = (YamlToolset(definition=each, environment=environment) for each in usual)
    python_toolsets = (KubernetesDiagnosisToolset(environment), KubernetesLogsToolset(environment))
    return [*yaml_toolsets, *python_toolsets, results]


def system_prompt(toolsets: list[Toolset]) -> str:
    return render_prompt(
        "system",
        {
            "cluster_name": "production",
            "context_name": "admin@production",
            "namespace": "shop",
            "toolsets": toolsets,
            "more": (),
            "unavailable": ["helm/core: 'helm' is not installed"],
            "additions": "Answer in English.",
            "citations": True,
            "first_look": True,
        },
    )


def tool_schemas(toolsets: list[Toolset]) -> str:
    tools = tuple(tool for toolset in toolsets for tool in toolset.tools)
    return json.dumps(MessageCodec(provider="openai", vision=True).encode_tools(tools), indent=1)


def compare(name: str, text: str) -> None:
    """Compare with the golden file; HOLMES_UPDATE_GOLDEN=1 writes it, to be read in the diff."""
    path = GOLDEN / name
    if os.environ.get("HOLMES_UPDATE_GOLDEN") == "1":
        path.write_text(text + "\n")
    assert path.read_text() == text + "\n", f"{path.name} differs: see HOLMES_UPDATE_GOLDEN in this test"


def test_the_system_prompt_is_the_golden_one() -> None:
    compare("system_prompt.md", system_prompt(shipped_toolsets()))


def test_the_tool_schemas_are_the_golden_ones() -> None:
    compare("tool_schemas.json", tool_schemas(shipped_toolsets()))


def test_system_prompt_and_shipped_schemas_stay_below_6000_tokens() -> None:
    toolsets = shipped_toolsets()
    tools = tuple(tool for toolset in toolsets for tool in toolset.tools)
    for encoding in ("o200k_base", "cl100k_base"):
        counter = TokenCounter(encoding)
        assert 2_000 < counter.count_text(system_prompt(toolsets)) + counter.count_tools(tools) < MAX_TOKENS


def test_without_options_the_prompt_says_nothing_of_them() -> None:
    nothing = dict.fromkeys(("cluster_name", "context_name", "namespace", "additions"))
    prompt = render_prompt(
        "system", {**nothing, "citations": False, "toolsets": (), "more": (), "unavailable": (), "first_look": False}
    )
    assert "citation" not in prompt
    assert "[[" not in prompt
    assert "each with its source.\n" in prompt
    assert "# This cluster" not in prompt
    assert "# From the user" not in prompt
    assert prompt.endswith("Give a simple answer without headings to a simple question.")
