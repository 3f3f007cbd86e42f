"""The protocol of a source of alerts, and the values that it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.observability.access import SourceAccess

AlertState: TypeAlias = Literal["active", "silenced", "inhibited"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedAlert:
    """An alert that the source knows. Times are in RFC 3339.

    `silences` contains the ids of the silences that mute it, and `receivers` those who get it.
    """

    name: str
    labels: tuple[tuple[str, str], ...]
    state: AlertState
    since: str = ""
    summary: str = ""
    silences: tuple[str, ...] = ()
    inhibitors: int = 0
    receivers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """A silence that is `active`, `pending` or `expired`. `matchers` are written as in PromQL."""

    id: str
    state: str
    matchers: tuple[str, ...]
    starts: str
    ends: str
    author: str = ""
    comment: str = ""


class AlertSource(Protocol):
    """A source of alerts. Every method raises `ToolError` with one line."""

    @property
    def access(self) -> SourceAccess: ...

    async def version(self) -> str:
        """Return the product and version."""
        ...

    async def alerts(self, matchers: Sequence[str] = ()) -> tuple[ListedAlert, ...]:
        """Return all alerts that match, also those that are muted."""
        ...

    async def silences(self, matchers: Sequence[str] = ()) -> tuple[Silence, ...]: ...

    async def receivers(self) -> tuple[str, ...]: ...
