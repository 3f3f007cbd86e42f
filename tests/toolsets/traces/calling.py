"""Calls tools of `tracing/traces` as the tool executor does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holmes.toolsets.instances import instances_of
from holmes.toolsets.traces.sources import KIND
from holmes.toolsets.traces.toolset import TracesToolset
from holmes.values.messages import ToolCallId
from holmes.values.tool_arguments import coerce_arguments
from holmes.values.tools import ToolInvocation

if TYPE_CHECKING:
    from holmes.values.json_types import JsonValue
    from holmes.values.tools import ToolResult


def call(tool: str, config: dict[str, JsonValue], **arguments: JsonValue) -> ToolResult:
    """Call `tool` of a toolset with `config`."""
    toolset = TracesToolset(instances_of(config, KIND))
    found = next(each for each in toolset.tools if each.name == tool)
    return asyncio.run(
        toolset.call(ToolInvocation(call_id=ToolCallId("1"), tool=found, arguments=coerce_arguments(found, arguments)))
    )
