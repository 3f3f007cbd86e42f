"""Masks secrets in what tools return. A wrapper around a toolset; `holmes.app` puts it outside of all others.

So nothing unmasked is stored, summarised or sent. Images are not read. What a tool raises is masked by the executor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holmes.core.redaction.redactor import redact_off_loop
from holmes.core.tools import WrapperToolset

if TYPE_CHECKING:
    from holmes.core.redaction.redactor import Redactor
    from holmes.core.tools import ToolInvocation, ToolResult


@dataclass(frozen=True, slots=True)
class Redacted(WrapperToolset):
    """Masks secrets in every result of the wrapped toolset, and in the line that describes a call."""

    redactor: Redactor

    def describe(self, invocation: ToolInvocation) -> str:
        """The wrapped toolset's line, masked."""
        return self.redactor.redact(self.inner.describe(invocation))

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """The wrapped result with masked `data`, `error` and `invocation`; the same object when nothing was secret."""
        result = await self.inner.call(invocation)
        data = await redact_off_loop(self.redactor, result.data)
        error = await self._masked(result.error)
        ran = await self._masked(result.invocation)
        if data is result.data and error is result.error and ran is result.invocation:
            return result
        return replace(result, data=data, error=error, invocation=ran)

    async def _masked(self, text: str | None) -> str | None:
        return None if text is None else await redact_off_loop(self.redactor, text)
