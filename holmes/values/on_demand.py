"""The two tools with which a model finds and runs tools that its requests do not contain.

A call of `use_tool` is the call of another tool in disguise: everything that judges a call by its name or arguments
must look at `called(call)`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.values.tools import Parameter, ParameterSchema, Tool

if TYPE_CHECKING:
    from holmes.values.messages import ToolCall

FIND_TOOLS: Final = Tool(
    name="find_tools",
    description="Find more tools, with their parameters. Run them with use_tool.",
    parameters=(
        Parameter(
            name="query",
            schema=ParameterSchema(
                types=("string",), description="A few words: system, object, question. Empty lists all tools."
            ),
            required=False,
        ),
    ),
)
USE_TOOL: Final = Tool(
    name="use_tool",
    description="Run a tool from the result of find_tools.",
    parameters=(
        Parameter(name="name", schema=ParameterSchema(types=("string",))),
        Parameter(
            name="arguments", schema=ParameterSchema(types=("object",), additional_properties=True), required=False
        ),
    ),
)


def called(call: ToolCall) -> ToolCall:
    """Return the call that a call of `use_tool` contains, with the same id, or any other call unchanged.

    A call of `use_tool` that is not valid is returned unchanged, too.
    """
    if call.name != USE_TOOL.name or call.malformed is not None:
        return call
    try:
        written = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return call
    name = written.get("name") if isinstance(written, dict) else None
    if not isinstance(name, str) or name == USE_TOOL.name:
        return call
    arguments = written.get("arguments") or {}
    if isinstance(arguments, str):  # models also write the inner object as text
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return replace(call, name=name, arguments="{}", malformed=arguments)
    text = json.dumps(arguments, ensure_ascii=False)
    if not isinstance(arguments, dict):
        return replace(call, name=name, arguments="{}", malformed=text)
    return replace(call, name=name, arguments=text)
