"""The interface of Python toolsets, which are found through the entry point group `holmes.toolsets`.

An entry point refers to a class or a function that returns a `PythonToolsetFactory` when it is called without
arguments. A package that cannot be imported disables only its own toolset.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.metadata import EntryPoint

    from holmes.redaction.redactor import Redactor
    from holmes.toolsets.mcp.session import McpSessions
    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonValue
    from holmes.values.tools import Toolset

_ENTRY_POINT_GROUP = "holmes.toolsets"

ToolsetState: TypeAlias = Literal["enabled", "disabled", "absent", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetStatus:
    """The status of one toolset.

    `absent` means that the cluster or the machine does not have the software of the toolset, which is not a failure.
    `reason` explains why the toolset is disabled, absent or failed, and `source` is its file or package. `detail` is
    what the check found out, for people. `revision` changes when the tools of a server change. `is_chosen` is true for
    a toolset that only the user's configuration enables. A toolset `on_demand` that failed is not mentioned to models.
    """

    name: str
    state: ToolsetState
    reason: str | None = None
    tool_count: int = 0
    source: str = ""
    tags: tuple[str, ...] = ()
    description: str = ""
    detail: str = field(default="", compare=False)
    revision: str = ""
    is_chosen: bool = False
    on_demand: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetContext:
    """Arguments for the creation of a toolset.

    `environment` contains the chosen context and namespace as HOLMES_KUBE_CONTEXT and HOLMES_KUBE_NAMESPACE. `config`
    is the `config:` section of the toolset's configuration entry, and `others` has those of all enabled Python toolsets
    by name. `memory_limit_mb` limits every process of a tool.
    `redactor` masks secrets, or is None if redaction is off. A wrapper masks results, so the redactor is needed only by
    tools whose results omit the names of values. `sessions` holds the connections that outlive a check. A catalogue
    with MCP servers requires it. `cluster` is the chosen cluster, which is one of `clusters`. It is None without a
    choice and empty for a cluster without a name. `is_recorded` is true if the cluster is a recording.
    """

    environment: Environment
    config: Mapping[str, JsonValue] = field(default_factory=dict)
    others: Mapping[str, Mapping[str, JsonValue]] = field(default_factory=dict)
    memory_limit_mb: int = 800
    redactor: Redactor | None = None
    sessions: McpSessions | None = None
    cluster: str | None = None
    clusters: tuple[str, ...] = ()
    is_recorded: bool = False


class PythonToolsetFactory(Protocol):
    """Creates one toolset. The attributes of a factory are available without slow imports."""

    @property
    def name(self) -> str:
        """The key of the toolset's entry under `toolsets:` in the configuration, for example `kubernetes/logs`."""
        ...

    @property
    def description(self) -> str:
        """The description that `holmes toolset list` shows, on one line."""
        ...

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the toolset: any of `core`, `cluster` and `cli`."""
        ...

    @property
    def enabled_by_default(self) -> bool:
        """Whether the toolset is enabled without an entry in the configuration. `config` enables it as well."""
        ...

    async def check(self, context: ToolsetContext) -> str:
        """Check `config`, and whether the toolset can run. The checks of all toolsets share one deadline.

        Returns what was found, for people, for example a product and its version, or an empty string. Raises
        `HolmesError` with one line: why the toolset cannot run, and the next step.
        """
        ...

    def create(self, context: ToolsetContext) -> Toolset:
        """Create the toolset, after `check` succeeded."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenFactory:
    """An entry point that could not be loaded. `reason` contains the package and the error."""

    name: str
    reason: str


def discover_factories(
    entry_points: Iterable[EntryPoint] | None = None,
) -> tuple[tuple[PythonToolsetFactory, ...], tuple[BrokenFactory, ...]]:
    """Load the factories of all installed packages, sorted by entry point name, and the broken entry points.

    `entry_points` overrides the installed entry points.
    """
    if entry_points is None:
        from importlib.metadata import (
            entry_points as installed_entry_points,
        )

        entry_points = installed_entry_points(group=_ENTRY_POINT_GROUP)
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
