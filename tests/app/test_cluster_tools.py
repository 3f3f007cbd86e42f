"""Commands of investigations that run at the same time see the kubeconfig and the context of their own cluster only."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from holmes.app.cluster import of_cluster
from holmes.app.models import build_models
from holmes.app.toolsets import open_toolsets
from holmes.core.tools_utils.tool_executor import ToolExecutor, tool_result_message
from holmes.settings.load import load_settings
from holmes.settings.settings import Settings
from holmes.toolsets.mcp.session import open_sessions
from holmes.values.messages import ToolCall, ToolCallId
from holmes.values.tools import output_text

CONFIG = """
model: builtin/triage
clusters:
  eu: {kubeconfig: /kube/eu.yaml, context: admin@eu}
  us: {kubeconfig: /kube/us.yaml}
toolsets:
  where:
    description: for tests
    chosen_cluster: true
    tools:
      - name: where_am_i
        description: Which cluster a command reads.
        command: sleep 0.2; echo "at $KUBECONFIG ${HOLMES_KUBECTL_CONTEXT:-current} ${HELM_KUBECONTEXT:-current}"
"""


async def where(settings: Settings, folder: Path) -> str:
    async with open_sessions(folder) as sessions:
        opened = await open_toolsets(settings, sessions)
        executor = ToolExecutor(opened.create(build_models(settings).models, None, None, None))
        call = ToolCall(id=ToolCallId("call"), name="where_am_i", arguments="{}")
        return output_text(tool_result_message(call, await executor.run(call)))


async def test_commands_at_the_same_time_read_their_own_clusters(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG)
    before = dict(os.environ)
    settings = load_settings({"HOME": str(tmp_path)}, file)
    eu, us = await asyncio.gather(*(where(of_cluster(settings, name), tmp_path) for name in ("eu", "us")))
    assert "at /kube/eu.yaml admin@eu admin@eu" in eu
    assert "at /kube/us.yaml current current" in us
    assert dict(os.environ) == before
