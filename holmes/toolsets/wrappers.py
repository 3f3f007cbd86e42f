"""Defines wrappers around a toolset. `Redacted` masks its results, and `Selected` offers only some of its tools."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, overload

from holmes.redaction.redactor import redact_off_loop
from holmes.redaction.views import strip_escape_sequences
from holmes.values.tools import WrapperToolset

if TYPE_CHECKING:
    from holmes.redaction.redactor import Redactor
    from holmes.values.tools import Tool, ToolInvocation, ToolResult


@dataclass(frozen=True, slots=True)
class Redacted(WrapperToolset):
    """Masks every result of the wrapped toolset, and the description of each call.

    This must be the outermost wrapper, so that unmasked text is never stored, summarised or sent. Images are not
    masked. If `redactor` is None, only escape sequences are removed. The executor masks exceptions.
    """

    redactor: Redactor | None

    def describe(self, invocation: ToolInvocation) -> str:
        line = self.inner.describe(invocation)
        return strip_escape_sequences(line) if self.redactor is None else self.redactor.redact(line)

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Return the result with masked `data`, `error` and `invocation`. A result without secrets is not copied."""
        result = await self.inner.call(invocation)
        data = await self._masked(result.data)
        error = await self._masked(result.error)
        ran = await self._masked(result.invocation)
        if data is result.data and error is result.error and ran is result.invocation:
            return result
        return replace(result, data=data, error=error, invocation=ran)

    @overload
    async def _masked(self, text: str) -> str: ...
    @overload
    async def _masked(self, text: None) -> None: ...
    async def _masked(self, text: str | None) -> str | None:
        if text is None:
            return None
        if self.redactor is not None:
            return await redact_off_loop(self.redactor, text)
        return await asyncio.to_thread(strip_escape_sequences, text)


@dataclass(frozen=True, slots=True)
class Selected(WrapperToolset):
    """Offers only those tools of the wrapped toolset that are in `names`, in their original order."""

    names: frozenset[str]

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(tool for tool in self.inner.tools if tool.name in self.names)
