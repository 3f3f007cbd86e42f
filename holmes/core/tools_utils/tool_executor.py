"""Runs one tool call and always returns a result: the one place where exceptions become results.

It refuses nothing itself: what is allowed is decided by the toolsets and by the wrappers around them. The innermost
wrapper, `RunningLimit`, limits how many tools run at once: a call that waits for a person, or whose result is being
masked, holds no slot.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import logging
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from holmes.core.tools_utils.tool_arguments import coerce_arguments
from holmes.values.errors import HolmesError, ToolError
from holmes.values.messages import NOTHING_HANDED_OVER
from holmes.values.texts import excerpt
from holmes.values.tools import ToolInvocation, ToolResult, WrapperToolset

if TYPE_CHECKING:
    from asyncio import Semaphore
    from collections.abc import Callable, Sequence

    from holmes.values.messages import HandedOver, ToolCall
    from holmes.values.tools import Tool, Toolset


@dataclass(frozen=True, slots=True)
class RunningLimit(WrapperToolset):
    """Runs a call of the wrapped toolset as soon as one of `slots`, which toolsets share, is free."""

    slots: Semaphore

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """The wrapped result."""
        async with self.slots:
            return await self.inner.call(invocation)


def limit_running(toolset: Toolset, slots: Semaphore) -> WrapperToolset:
    """`toolset` with the limit inside of all its wrappers."""
    if isinstance(toolset, WrapperToolset):
        return replace(toolset, inner=limit_running(toolset.inner, slots))
    return RunningLimit(toolset, slots)


MAX_CONCURRENT_TOOL_CALLS = 16
# More than the calls of one reply: each is asked about several times before and after it runs.
_REMEMBERED_CALLS = 64

_log = logging.getLogger(__name__)


class ToolExecutor:
    """All tools by name. At most 16 tools run at once, however many replies or investigations share the executor.

    A call that waits for a person is not running yet, and does not count.
    `mask` hides secrets in what a tool's failure says; None when redaction is off. Results are masked by wrappers.
    """

    def __init__(
        self,
        toolsets: Sequence[Toolset],
        *,
        max_concurrent: int = MAX_CONCURRENT_TOOL_CALLS,
        mask: Callable[[str], str] | None = None,
    ) -> None:
        self._mask = mask or str
        self._toolset_by_tool: dict[str, WrapperToolset] = {}
        self._tool_by_name: dict[str, Tool] = {}
        slots = asyncio.Semaphore(max_concurrent)
        for toolset in (limit_running(each, slots) for each in toolsets):
            for tool in toolset.tools:
                if tool.name in self._tool_by_name:
                    other = self._toolset_by_tool[tool.name].name
                    message = f"Tool {tool.name!r} is defined by toolset {other!r} and by {toolset.name!r}."
                    raise ToolError(message)
                self._toolset_by_tool[tool.name] = toolset
                self._tool_by_name[tool.name] = tool
        self._tools = tuple(self._tool_by_name.values())
        self._prepare = lru_cache(_REMEMBERED_CALLS)(self._prepared)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Every tool, in the order of the toolsets, which is the order the provider sees; always the same object."""
        return self._tools

    def toolset_name(self, call: ToolCall) -> str | None:
        """The toolset that runs `call`, None for an unknown tool."""
        toolset = self._toolset_by_tool.get(call.name)
        return toolset.name if toolset is not None else None

    def describe(self, call: ToolCall) -> str:
        """One line for people; the bare call when the arguments cannot be read."""
        try:
            invocation = self._prepare(call)
            line = self._toolset_by_tool[call.name].describe(invocation)
        except Exception:  # noqa: BLE001  a toolset that cannot describe a call may still run it
            line = f"{call.name}({call.malformed or call.arguments})"
        return " ".join(line.split())

    def problem(self, call: ToolCall) -> str | None:
        """Why `call` cannot run: an unknown tool, or arguments that do not fit. None when it can."""
        try:
            self._prepare(call)
        except Exception as error:  # noqa: BLE001  as in `run`
            return self._failure(call, error).error
        return None

    def needs_approval(self, call: ToolCall) -> bool:
        """Whether a person is asked before `call` runs. A call that cannot run needs nobody."""
        if self.problem(call) is not None:
            return False
        return self._toolset_by_tool[call.name].needs_approval(self._prepare(call))

    async def run(self, call: ToolCall, handed_over: HandedOver = NOTHING_HANDED_OVER) -> ToolResult:
        """Run `call`. Every failure, also a bug in a toolset, is a result with status `error`."""
        try:
            invocation = replace(self._prepare(call), handed_over=handed_over)
            return await self._toolset_by_tool[call.name].call(invocation)
        except Exception as error:  # noqa: BLE001  a broken toolset must not end the investigation
            return self._failure(call, error)

    def _failure(self, call: ToolCall, error: Exception) -> ToolResult:
        if isinstance(error, HolmesError):
            return ToolResult(status="error", error=self._mask(str(error)))
        _log.warning("tool %s failed", call.name, exc_info=error)
        text = f"The tool {call.name!r} failed: {type(error).__name__}: {error}"
        return ToolResult(status="error", error=self._mask(text))

    def _prepared(self, call: ToolCall) -> ToolInvocation:
        tool = self._tool_by_name.get(call.name)
        if tool is None:
            raise ToolError(self._unknown_tool(call.name))
        if call.malformed is not None:
            written = repr(excerpt(call.malformed, 200))
            message = f"The arguments of {call.name!r} are not a JSON object: {written}. Send valid JSON."
            raise ToolError(message)
        try:
            arguments = coerce_arguments(tool, json.loads(call.arguments or "{}"))
        except RecursionError as error:
            raise ToolError(f"The arguments of {call.name!r} are nested too deeply. Send flat JSON.") from error
        return ToolInvocation(call_id=call.id, tool=tool, arguments=arguments)

    def _unknown_tool(self, name: str) -> str:
        nearest = difflib.get_close_matches(name, self._tool_by_name, n=3, cutoff=0.4)
        hint = f"The nearest are {', '.join(nearest)}" if nearest else f"There are {', '.join(self._tool_by_name)}"
        return f"There is no tool {name!r}. {hint}."
