"""Small real toolsets for tests of the loop and of what wraps it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from holmes.values.tools import Parameter, ParameterSchema, Tool, ToolInvocation, ToolResult

Body: TypeAlias = Callable[[ToolInvocation], Awaitable[ToolResult]]

TEXT = ParameterSchema(types=("string",))


def tool(name: str, *parameters: str) -> Tool:
    """A tool that takes required strings."""
    return Tool(
        name=name,
        description=f"the tool {name}",
        parameters=tuple(Parameter(name=parameter, schema=TEXT) for parameter in parameters),
    )


@dataclass(slots=True)
class FunctionToolset:
    """A toolset whose tools are coroutines; keeps the invocations it has seen."""

    bodies: tuple[tuple[Tool, Body], ...]
    name: str = "test/functions"
    instructions: str = ""
    seen: list[ToolInvocation] = field(default_factory=list)

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(tool for tool, _ in self.bodies)

    def describe(self, invocation: ToolInvocation) -> str:
        values = ", ".join(str(value) for value in invocation.arguments.values())
        return f"{invocation.tool.name}({values})"

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        self.seen.append(invocation)
        body = next(body for tool, body in self.bodies if tool == invocation.tool)
        return await body(invocation)


async def echo(invocation: ToolInvocation) -> ToolResult:
    """Answers with its arguments."""
    await asyncio.sleep(0)
    return ToolResult(status="success", data=" ".join(str(value) for value in invocation.arguments.values()))


def echo_toolset() -> FunctionToolset:
    """One tool `echo` with one parameter `text`."""
    return FunctionToolset(bodies=((tool("echo", "text"), echo),))
