"""A list of tools that changes during an investigation reaches it through `find_tools` only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.core.loop_run import LoopParts
from holmes.core.model_chain import LoopModel
from holmes.core.policy import ContextPolicy
from holmes.core.tool_calling_llm import ToolCallingLLM
from holmes.core.tools_utils.tool_executor import ToolExecutor
from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.toolsets.readiness import ReadyToolset, renewed_servers
from holmes.values.events import ToolCallFinished
from holmes.values.messages import Image
from holmes.values.steps import DirectStepRunner
from tests.support.investigations import PROMPTS, events_of
from tests.toolsets.mcp.running import PROCESS, server_of, toolset_of
from tests.toolsets.mcp.server import PNG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.tools import Toolset


async def test_a_tool_that_is_added_during_an_investigation_runs_in_it() -> None:
    model = ScriptedModel(
        [
            ScriptedReply(tool_calls=(scripted_call("learn", name="tell_of_lag"),)),
            ScriptedReply(tool_calls=(scripted_call("use_tool", name="tell_of_lag"),)),
            ScriptedReply(tool_calls=(scripted_call("find_tools", query="lag"),)),
            ScriptedReply(tool_calls=(scripted_call("use_tool", name="tell_of_lag"), scripted_call("picture"))),
            ScriptedReply(text="Told."),
        ]
    )
    async with toolset_of(server_of(PROCESS)) as toolset:
        ready = (ReadyToolset(toolset=toolset),)

        async def renew() -> Sequence[Toolset]:
            return [each.toolset for each in await renewed_servers(ready, {})]

        parts = LoopParts(
            models=(LoopModel(model=model, policy=ContextPolicy()),),
            executor=ToolExecutor([toolset], renew=renew).offering({"learn", "picture"}),
            store=None,
            prompts=PROMPTS,
            steps=DirectStepRunner(),
        )
        events = await events_of(ToolCallingLLM(parts))
    finished = [event for event in events if isinstance(event, ToolCallFinished)]
    told = {(event.call.name, event.message.status): event.message for event in finished}
    assert told["tell_of_lag", "error"].text.startswith("Error: Unknown tool 'tell_of_lag'.")
    assert "## tell_of_lag (toolset tickets)\nTell of tell_of_lag." in told["find_tools", "success"].text
    assert told["tell_of_lag", "success"].text == "tell_of_lag was learned"
    assert [part.data for part in told["picture", "success"].parts if isinstance(part, Image)] == [PNG]
    # The schemas that begin the cached prefix are the same bytes in every request.
    assert all(request.tools == model.requests[0].tools for request in model.requests)
    assert [tool.name for tool in model.requests[0].tools] == ["picture", "learn", "find_tools", "use_tool"]
