"""The trace that the request in hand belongs to: set by the middleware (`http`), read by `tracing`."""

from __future__ import annotations

from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

incoming_trace: ContextVar[Mapping[str, str]] = ContextVar("holmes_incoming_trace", default=_NOTHING)
"""The W3C headers `traceparent` and `tracestate`, as they came; tasks that the request starts inherit them."""
