"""What the two processes of the server say to each other. Between `work_process` and `work_main`.

Pickled by `multiprocessing`: nobody else can reach the pipe. No more than one order of a kind is under way, so that the
pipe always has room and nobody waits for a process that has stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from prometheus_client import Metric

    from holmes.settings.settings import Settings
    from holmes.toolsets.registry import ToolsetStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Work with these settings. The first order."""

    settings: Settings


@dataclass(frozen=True, slots=True)
class Wake:
    """Something was queued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UseToolsets:
    """How the toolsets stand, by the last check."""

    statuses: tuple[ToolsetStatus, ...]


@dataclass(frozen=True, slots=True)
class BeginToEnd:
    """Take nothing new; what runs may finish meanwhile."""


@dataclass(frozen=True, slots=True)
class End:
    """Finish in order, and exit. The last order."""


@dataclass(frozen=True, slots=True)
class TellFigures:
    """Answer with `Figures`."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The work has begun."""


@dataclass(frozen=True, slots=True)
class Woken:
    """`Wake` was heard; the next one may come."""


@dataclass(frozen=True, slots=True)
class ToolsetsUsed:
    """`UseToolsets` was heard; the next one may come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The work cannot begin; the text and exit code of the error."""

    message: str
    exit_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was counted there since it began."""

    families: tuple[Metric, ...]


Order: TypeAlias = Begin | Wake | UseToolsets | BeginToEnd | End | TellFigures
Report: TypeAlias = Begun | Woken | ToolsetsUsed | Failed | Figures
