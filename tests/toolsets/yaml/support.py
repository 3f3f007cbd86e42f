"""What the tests of the YAML engine share: a toolset out of text, and a call of one of its tools."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holmes.toolsets.yaml.building import build_definition, checked_keys
from holmes.toolsets.yaml.loader import toolsets_of
from holmes.toolsets.yaml.toolset import YamlToolset
from holmes.values.environment import Environment
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from holmes.yaml_documents import parse_document

if TYPE_CHECKING:
    from holmes.toolsets.yaml.definition import YamlToolsetDefinition
    from holmes.values.json_types import JsonValue
    from holmes.values.tools import ToolResult


def plain_environment(**variables: str) -> Environment:
    """Only `PATH`, and `variables`."""
    return Environment.of({"PATH": os.environ["PATH"], **variables})


def definition_of(text: str, **variables: str) -> YamlToolsetDefinition:
    """The definition of the first toolset in a file with this text."""
    written = toolsets_of(parse_document(text, source="test.yaml")).toolsets[0]
    return build_definition(written, checked_keys(written, variables).keys)


def toolset_of(text: str, **variables: str) -> YamlToolset:
    """The toolset of `definition_of`, with these variables allowed."""
    return YamlToolset(definition=definition_of(text, **variables), environment=plain_environment(**variables))


def one_tool(body: str) -> str:
    """A file with one toolset that has one tool `run`; `body` is the rest of the tool, e.g. `command: echo`."""
    indented = "\n".join(f"          {line}" for line in body.splitlines())
    head = (
        "toolsets:\n  mine:\n    description: d\n    tools:\n      -\n          name: run\n          description: d\n"
    )
    return f"{head}{indented}\n"


async def run(toolset: YamlToolset, **arguments: JsonValue) -> ToolResult:
    """Call the only tool."""
    invocation = ToolInvocation(call_id=ToolCallId("call-1"), tool=toolset.tools[0], arguments=arguments)
    return await toolset.call(invocation)


async def run_command(command: str, **arguments: JsonValue) -> ToolResult:
    """Run a command template with arguments; every parameter is inferred."""
    block = "\n".join(f"  {line}" for line in command.splitlines())
    return await run(toolset_of(one_tool(f"command: |-\n{block}")), **arguments)
