"""Selects the tool calls of a reply, waits for their approval, and runs them.

`bound_reply` limits the number of calls that run, and lets only one of several identical calls run. `ApprovalGate` and
`RunningLimit` wrap toolsets. A call waits first for approval, then for a free slot. `ToolExecutor` is the only class
that converts exceptions to results.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import difflib
import json
import logging
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, TypeAlias

from holmes.core.tools_utils.tool_search import OwnedTool, ToolFinder
from holmes.values.errors import HolmesError, ToolError
from holmes.values.messages import NOTHING_HANDED_OVER, AssistantMessage, Text, ToolCallId, ToolMessage
from holmes.values.on_demand import called
from holmes.values.texts import excerpt
from holmes.values.tool_arguments import coerce_arguments
from holmes.values.tools import ToolInvocation, ToolResult, WrapperToolset

if TYPE_CHECKING:
    from asyncio import Semaphore
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from holmes.values.messages import HandedOver, Part, ToolCall
    from holmes.values.tools import Tool, Toolset

MAX_RUNNING_CALLS = 32
MAX_ANSWERED_CALLS = 32
"""Maximum number of calls in one reply that stay in the message but do not run."""
IDENTICAL_CALL = "Identical to the call"
"""The result of a call starts with these words if the call repeats another call of the same reply."""
_MAX_CONCURRENT_TOOL_CALLS = 16
# The cache is larger than the number of calls in a reply, because each call is looked up before and after it runs.
_REMEMBERED_CALLS = 64

_KEYS_KEPT = 64

_log = logging.getLogger(__name__)

_RENEW_SECONDS = 10.0

_CallKey: TypeAlias = tuple[str, str]
Renew: TypeAlias = "Callable[[], Awaitable[Sequence[Toolset]]]"


@lru_cache(maxsize=_KEYS_KEPT)
def call_key(call: ToolCall) -> _CallKey:
    """Return a key that is equal for identical calls. Ignores the call id and the format of the JSON arguments."""
    if call.malformed is not None:
        return call.name, call.malformed
    try:
        return call.name, json.dumps(json.loads(call.arguments), sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return call.name, call.arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedReply:
    """The reply that is added to the history.

    `answers` contains a result for each call that does not run, and None for each call that runs.
    """

    message: AssistantMessage
    answers: tuple[ToolMessage | None, ...]

    @property
    def running(self) -> tuple[ToolCall, ...]:
        return tuple(call for call, answer in zip(self.message.tool_calls, self.answers, strict=True) if answer is None)


def bound_reply(message: AssistantMessage) -> BoundedReply:
    """Limit `message` to 32 calls that run and 32 calls that do not run.

    If no call is removed, the message is the same object.
    """
    if len(message.tool_calls) < 2:
        return BoundedReply(message=message, answers=(None,) * len(message.tool_calls))
    first_ids: dict[_CallKey, ToolCallId] = {}
    kept: list[ToolCall] = []
    answers: list[ToolMessage | None] = []
    answered = 0
    for call in message.tool_calls:
        key = call_key(call)
        answer = _unrun_answer(call, first_ids.get(key), len(first_ids))
        if answer is None:
            first_ids[key] = call.id
        elif answered == MAX_ANSWERED_CALLS:
            continue
        else:
            answered += 1
        kept.append(call)
        answers.append(answer)
    removed = len(message.tool_calls) - len(kept)
    if not removed:
        return BoundedReply(message=message, answers=tuple(answers))
    last = max(index for index, answer in enumerate(answers) if answer is not None)
    answers[last] = _with_removed(answers[last], removed)
    return BoundedReply(message=replace(message, tool_calls=tuple(kept)), answers=tuple(answers))


def _unrun_answer(call: ToolCall, first_id: ToolCallId | None, running: int) -> ToolMessage | None:
    """Return the result of a call that does not run, or None for a call that runs."""
    if first_id is not None:
        text = (
            f"{IDENTICAL_CALL} {first_id!r} of this reply, which runs once. Its result is also the result of this call."
        )
        return ToolMessage(call_id=call.id, tool_name=call.name, status="success", parts=(Text(text=text),))
    if running < MAX_RUNNING_CALLS:
        return None
    text = f"Not run: the limit is {MAX_RUNNING_CALLS} calls for each reply. Repeat this call if it is still needed."
    return ToolMessage(call_id=call.id, tool_name=call.name, status="error", parts=(Text(text=text),))


def _with_removed(answer: ToolMessage | None, removed: int) -> ToolMessage | None:
    if answer is None:
        return None
    more = "1 more call" if removed == 1 else f"{removed:,} more calls"
    note = f"Not run and removed from the conversation: {more} of this reply."
    return replace(answer, parts=(*answer.parts, Text(text=note)))


class Approver(Protocol):
    """Approves or refuses calls. A person or a program decides."""

    async def decide(self, invocation: ToolInvocation, description: str) -> bool | None:
        """Return whether to run the call, or None if no person is available.

        Waits for the decision without a time limit.
        """
        ...


@dataclass(frozen=True, slots=True)
class ApprovalGate(WrapperToolset):
    """Requires approval for a call if its tool name matches one of `patterns`, which are shell globs."""

    patterns: tuple[str, ...]
    approver: Approver | None

    def needs_approval(self, invocation: ToolInvocation) -> bool:
        return any(fnmatchcase(invocation.tool.name, pattern) for pattern in self.patterns)

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Return the result of the wrapped toolset, or status `approval_required` if the call is not approved."""
        name = invocation.tool.name
        if not self.needs_approval(invocation):
            return await self.inner.call(invocation)
        decision = None
        if self.approver is not None:
            decision = await self.approver.decide(invocation, self.inner.describe(invocation))
        if decision is None:
            reason = f"{name!r} requires approval, and no person is available to approve it."
            return ToolResult(status="approval_required", error=reason)
        if not decision:
            return ToolResult(status="approval_required", error=f"The user refused to run {name!r}. Find another way.")
        return await self.inner.call(invocation)


@dataclass(frozen=True, slots=True)
class RunningLimit(WrapperToolset):
    """Runs a call of the wrapped toolset as soon as one of the shared `slots` is free."""

    slots: Semaphore

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        async with self.slots:
            return await self.inner.call(invocation)


def _limit_running(toolset: Toolset, slots: Semaphore) -> WrapperToolset:
    """Insert the limit inside all wrappers of `toolset`, so that a call occupies a slot only while it runs."""
    if isinstance(toolset, WrapperToolset):
        return replace(toolset, inner=_limit_running(toolset.inner, slots))
    return RunningLimit(toolset, slots)


class _Index:
    """The tools of all toolsets by name, shared by executors that offer different tools."""

    def __init__(self, toolsets: Sequence[Toolset], renew: Renew | None, slots: Semaphore) -> None:
        self._renew = renew
        self._slots = slots
        self._finding = _by_name((WrapperToolset(ToolFinder(self._current)),))
        self.owned = self._limited(toolsets)

    @property
    def finding(self) -> tuple[Tool, ...]:
        """The tools that find and run all others."""
        return tuple(each.tool for each in self._finding.values())

    def get(self, name: str) -> OwnedTool | None:
        return self.owned.get(name) or self._finding.get(name)

    def _limited(self, toolsets: Sequence[Toolset]) -> dict[str, OwnedTool]:
        return _by_name([_limit_running(each, self._slots) for each in toolsets])

    async def _current(self) -> tuple[OwnedTool, ...]:
        """Read the lists of servers again. If that fails, the known tools stay."""
        if self._renew is not None:
            with contextlib.suppress(ToolError, TimeoutError):
                async with asyncio.timeout(_RENEW_SECONDS):
                    self.owned = self._limited(await self._renew())
        return tuple(self.owned.values())


def _by_name(toolsets: Sequence[WrapperToolset]) -> dict[str, OwnedTool]:
    owned: dict[str, OwnedTool] = {}
    for toolset in toolsets:
        for tool in toolset.tools:
            if tool.name in owned:
                other = owned[tool.name].toolset.name
                message = f"Tool {tool.name!r} is defined by toolset {other!r} and toolset {toolset.name!r}."
                raise ToolError(message)
            owned[tool.name] = OwnedTool(tool=tool, toolset=toolset)
    return owned


class ToolExecutor:
    """Finds and runs tools by name.

    At most 16 tools run at once, across all runs that share the executor. A call that waits for approval does not
    occupy a slot. `mask` masks secrets in error messages, and is None if redaction is disabled. Wrappers of the
    toolsets mask the results. `renew` returns the toolsets with the present tools of their servers, for `find_tools`.

    `tools` are the tools that requests contain, in the order of the toolsets. The tuple never changes.
    """

    def __init__(
        self,
        toolsets: Sequence[Toolset],
        *,
        max_concurrent: int = _MAX_CONCURRENT_TOOL_CALLS,
        mask: Callable[[str], str] | None = None,
        renew: Renew | None = None,
    ) -> None:
        self._mask = mask or str
        self._index = _Index(toolsets, renew, asyncio.Semaphore(max_concurrent))
        self.tools = self._all_tools
        self._prepare = lru_cache(_REMEMBERED_CALLS)(self._prepared)

    def offering(self, names: Collection[str]) -> ToolExecutor:
        """Return an executor whose requests contain only these tools, and the two that reach all others."""
        chosen = copy.copy(self)
        chosen.tools = (*(tool for tool in self._all_tools if tool.name in names), *self._index.finding)
        return chosen

    @property
    def _all_tools(self) -> tuple[Tool, ...]:
        return tuple(each.tool for each in self._index.owned.values())

    @property
    def free_tools(self) -> tuple[Tool, ...]:
        """All tools that no person must approve, also those that requests do not contain."""
        return tuple(tool for tool in self._all_tools if not self._is_gated(tool))

    def _is_gated(self, tool: Tool) -> bool:
        invocation = ToolInvocation(call_id=ToolCallId(""), tool=tool, arguments={})
        return self._owner(invocation).needs_approval(invocation)

    def _owner(self, invocation: ToolInvocation) -> WrapperToolset:
        owned = self._index.get(invocation.tool.name)
        if owned is None:
            raise ToolError(f"The tool {invocation.tool.name!r} is no longer offered. Search again with find_tools.")
        return owned.toolset

    def toolset_name(self, call: ToolCall) -> str | None:
        """Return the toolset of the called tool, or None if the tool is unknown."""
        owned = self._index.get(called(call).name)
        return owned.toolset.name if owned is not None else None

    def describe(self, call: ToolCall) -> str:
        """Describe `call` on one line for the user. Invalid arguments are shown unchanged."""
        try:
            invocation = self._prepare(call)
            line = self._owner(invocation).describe(invocation)
        except Exception:  # noqa: BLE001  a toolset that cannot describe a call may still run it
            line = f"{call.name}({call.malformed or call.arguments})"
        return " ".join(line.split())

    def problem(self, call: ToolCall) -> str | None:
        """Return why `call` cannot run (an unknown tool or invalid arguments), or None if it can run."""
        try:
            self._prepare(call)
        except Exception as error:  # noqa: BLE001  as in `run`
            return self._failure(call, error).error
        return None

    def needs_approval(self, call: ToolCall) -> bool:
        """Return whether a person must approve `call`. A call that cannot run does not require approval."""
        if self.problem(call) is not None:
            return False
        invocation = self._prepare(call)
        return self._owner(invocation).needs_approval(invocation)

    async def run(self, call: ToolCall, handed_over: HandedOver = NOTHING_HANDED_OVER) -> ToolResult:
        """Run `call`. Every failure, including a bug in a toolset, becomes a result with status `error`."""
        try:
            invocation = replace(self._prepare(call), handed_over=handed_over)
            return await self._owner(invocation).call(invocation)
        except Exception as error:  # noqa: BLE001  a broken toolset must not end the run
            return self._failure(call, error)

    def _failure(self, call: ToolCall, error: Exception) -> ToolResult:
        if isinstance(error, HolmesError):
            return ToolResult(status="error", error=self._mask(str(error)))
        _log.warning("tool %s failed", call.name, exc_info=error)
        text = f"The tool {call.name!r} failed: {type(error).__name__}: {error}"
        return ToolResult(status="error", error=self._mask(text))

    def _prepared(self, call: ToolCall) -> ToolInvocation:
        call = called(call)
        owned = self._index.get(call.name)
        if owned is None:
            raise ToolError(self._unknown_tool(call.name))
        if call.malformed is not None:
            written = repr(excerpt(call.malformed, 200))
            message = f"The arguments of {call.name!r} are not a JSON object: {written}. Send valid JSON."
            raise ToolError(message)
        try:
            arguments = coerce_arguments(owned.tool, json.loads(call.arguments or "{}"))
        except RecursionError as error:
            raise ToolError(f"The arguments of {call.name!r} are nested too deeply. Send flat JSON.") from error
        return ToolInvocation(call_id=call.id, tool=owned.tool, arguments=arguments)

    def _unknown_tool(self, name: str) -> str:
        nearest = difflib.get_close_matches(name, self._index.owned, n=3, cutoff=0.4)
        available = ", ".join(tool.name for tool in self.tools)
        hint = f"Did you mean {', '.join(nearest)}?" if nearest else f"Available tools: {available}."
        return f"Unknown tool {name!r}. {hint}"


def tool_result_message(call: ToolCall, result: ToolResult) -> ToolMessage:
    """Return the tool message for `call`. If the call failed, a line about the failure precedes the data."""
    parts: tuple[Part, ...] = (Text(text=_result_text(result)), *result.images)
    return ToolMessage(call_id=call.id, tool_name=call.name, status=result.status, parts=parts)


def _result_text(result: ToolResult) -> str:
    if result.status == "success" and (result.data or result.images):
        return result.data
    if result.status == "error":
        error = result.error or "the tool returned no error message"
        code = f"exit code {result.return_code}"
        known = not result.return_code or error.startswith(code)
        lines = [f"Error: {error}" if known else f"Error ({code}): {error}", result.data]
    elif result.status == "approval_required":
        lines = [f"Not run: {result.error or 'this call requires approval.'}", result.data]
    else:
        lines = [result.error or "The tool returned no data.", result.data]
    if result.invocation and result.status != "success":
        lines.append(f"Command: {result.invocation}")
    return "\n".join(line for line in lines if line)
