"""The protocol of a source of metrics. A further backend is one more file that implements it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holmes.observability.access import SourceAccess
    from holmes.observability.metrics.series import Metric, QueryResult, Rule, Target


class MetricsSource(Protocol):
    """A source of metrics. Times are in seconds since 1970. Every method raises `ToolError` with one line."""

    @property
    def access(self) -> SourceAccess: ...

    async def version(self) -> str:
        """Return the product and version. Raises `ToolError` if the source does not answer as its API requires."""
        ...

    async def instant(self, query: str, at: float) -> QueryResult: ...

    async def range(self, query: str, *, start: float, end: float, step_seconds: float) -> QueryResult: ...

    async def syntax_error(self, query: str) -> str | None:
        """Return the source's own description of an error in the syntax of `query`, or None if it has none."""
        ...

    async def metrics(self) -> tuple[Metric, ...]:
        """Return all metrics, sorted by name."""
        ...

    async def label_names(self, selector: str) -> tuple[str, ...]: ...

    async def label_values(self, label: str, selector: str = "") -> tuple[str, ...]: ...

    async def rules(self) -> tuple[Rule, ...]: ...

    async def targets(self) -> tuple[Target, ...]: ...
