"""The wrapper around a toolset that masks its results."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, overload

from holmes.redaction.redactor import redact_off_loop
from holmes.redaction.views import strip_escape_sequences
from holmes.values.charts import with_texts
from holmes.values.tools import WrapperToolset

if TYPE_CHECKING:
    from holmes.redaction.redactor import Redactor
    from holmes.values.tools import ToolInvocation, ToolResult


@dataclass(frozen=True, slots=True)
class Redacted(WrapperToolset):
    """Masks every result of the wrapped toolset, and the description of each call.

    No wrapper outside may add text, so that unmasked text is never stored, summarised or sent. Charts are masked, but
    images are not. If `redactor` is None, only escape sequences are removed. The executor masks exceptions.
    """

    redactor: Redactor | None

    def describe(self, invocation: ToolInvocation) -> str:
        return self._masked_line(self.inner.describe(invocation))

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Return the result with masked `data`, `error` and `invocation`. A result without secrets is not copied."""
        result = await self.inner.call(invocation)
        data = await self._masked(result.data)
        error = await self._masked(result.error)
        ran = await self._masked(result.invocation)
        chart = None if result.chart is None else await asyncio.to_thread(with_texts, result.chart, self._masked_line)
        if data is result.data and error is result.error and ran is result.invocation and chart == result.chart:
            return result
        return replace(result, data=data, error=error, invocation=ran, chart=chart)

    def _masked_line(self, text: str) -> str:
        return strip_escape_sequences(text) if self.redactor is None else self.redactor.redact(text)

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
