"""What a toolset written in Python offers, and how it is found: entry point group `holmes.toolsets`.

Called by `holmes.toolsets.catalogue`; implemented by every Python toolset, ours and those of other packages alike.
An entry point names a class (or a function) that takes no argument and gives a `PythonToolsetFactory`; nothing here
knows a toolset by name. A package that cannot be imported costs its own toolset only, never the run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.metadata import EntryPoint

    from holmes.redaction.redactor import Redactor
    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonValue
    from holmes.values.tools import Toolset

ENTRY_POINT_GROUP = "holmes.toolsets"

ToolsetState: TypeAlias = Literal["enabled", "disabled", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetStatus:
    """How one toolset stands. `reason` says why it is disabled or failed; `source` is its file or package."""

    name: str
    state: ToolsetState
    reason: str | None = None
    tool_count: int = 0
    source: str = ""
    tags: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetContext:
    """What a toolset is given when it is made.

    `environment` has the context and namespace that the user chose as HOLMES_KUBE_CONTEXT and HOLMES_KUBE_NAMESPACE;
    `config` is the `config:` of the toolset's entry in the configuration; `memory_limit_mb` bounds every process a tool
    starts. `redactor` masks secrets; results are masked by a wrapper, so only a tool that loses the names of values on
    its way needs it. None when redaction is switched off.
    """

    environment: Environment
    config: Mapping[str, JsonValue] = field(default_factory=dict)
    memory_limit_mb: int = 800
    redactor: Redactor | None = None


class PythonToolsetFactory(Protocol):
    """Makes one toolset. Its attributes are known before anything is imported that costs time."""

    @property
    def name(self) -> str:
        """For example `kubernetes/logs`; the key of its entry under `toolsets:` in the configuration."""
        ...

    @property
    def description(self) -> str:
        """One line for `holmes toolset list`."""
        ...

    @property
    def tags(self) -> tuple[str, ...]:
        """Out of `core`, `cluster` and `cli`."""
        ...

    @property
    def enabled_by_default(self) -> bool:
        """Whether it is offered when the configuration does not mention it."""
        ...

    async def prerequisites(self, context: ToolsetContext) -> str | None:
        """None when it can work, else one line that says why not and what to do.

        A wrong `config` is such a reason too. Bounded by the deadline that all toolsets share.
        """
        ...

    def create(self, context: ToolsetContext) -> Toolset:
        """The toolset, after `prerequisites` gave None."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenFactory:
    """An entry point that could not be loaded: `reason` says which package and why."""

    name: str
    reason: str


def discover_factories(
    entry_points: Iterable[EntryPoint] | None = None,
) -> tuple[tuple[PythonToolsetFactory, ...], tuple[BrokenFactory, ...]]:
    """The factories of all installed packages in the order of their entry points' names, and those that are broken.

    `entry_points` replaces the installed ones.
    """
    if entry_points is None:
        from importlib.metadata import (
            entry_points as installed_entry_points,
        )

        entry_points = installed_entry_points(group=ENTRY_POINT_GROUP)
    factories: list[PythonToolsetFactory] = []
    broken: list[BrokenFactory] = []
    for entry_point in sorted(entry_points, key=lambda point: (point.name, point.value)):
        try:
            factories.append(entry_point.load()())
        except (ImportError, AttributeError, TypeError) as error:
            package = entry_point.dist.name if entry_point.dist is not None else "an unknown package"
            reason = f"entry point {entry_point.value!r} of {package} cannot be loaded: {error}"
            broken.append(BrokenFactory(name=entry_point.name, reason=reason))
    return tuple(factories), tuple(broken)
