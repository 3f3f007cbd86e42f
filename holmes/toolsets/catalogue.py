"""Merges toolset definitions from bundled files, custom files, the configuration (`toolsets:`) and entry points.

`read_catalogue` reads and merges the definitions, and `load_catalogue` checks each entry against the schema.
`holmes.toolsets.readiness` then checks which toolsets can run here. A broken file or an unknown toolset name raises
`ConfigError`. An error inside one toolset affects only the status of that toolset.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from holmes.toolsets.old_sources import as_instance
from holmes.toolsets.registry import ToolsetStatus, discover_factories
from holmes.toolsets.yaml.loader import (
    WrittenToolset,
    declared_variable_names,
    read_toolsets,
    with_current_names,
    written_servers,
    written_toolsets,
)
from holmes.values.errors import ConfigError
from holmes.yaml_documents import YamlDocument

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from holmes.toolsets.mcp.servers import McpServer
    from holmes.toolsets.registry import PythonToolsetFactory
    from holmes.toolsets.yaml.definition import YamlToolsetDefinition
    from holmes.toolsets.yaml.schema import ToolsetKeys
    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonValue
    from holmes.yaml_documents import KeyPath

# HolmesGPT toolsets that Holmes does not support yet. Their names are ignored with a warning.
# Any other unknown name is an error. Remove a name from the list when Holmes supports the toolset.
# The unsupported configuration keys are in `holmes.settings.config_keys`.
UPSTREAM_TOOLSETS = frozenset(
    {
        "aks/core", "aks/node-health", "aws/rds", "aws/security", "azure/sql", "bash",
        "confluence", "connectivity_check", "core_investigation", "coralogix", "coralogix/logs",
        "database/sql", "datadog/general", "datadog/logs", "datadog/metrics", "datadog/traces",
        "elasticsearch/cluster", "elasticsearch/data", "git", "github", "grafana/loki", "grafana/tempo",
        "hubble/observability", "inspektor-gadget/node", "internet", "jira", "kafka/admin",
        "kubernetes/krew-extras", "kubernetes/kube-lineage-extras", "kubernetes/kube-prometheus-stack",
        "kubernetes/live-metrics", "kubevela/core", "mongodb", "mongodb-atlas", "newrelic", "notion",
        "openshift/live-metrics", "openshift/logs", "openshift/security", "opensearch/logs",
        "opensearch/query_assist", "opensearch/status", "opensearch/traces",
        "rabbitmq/core", "robusta", "runbook", "servicenow", "servicenow/tables", "slab", "slack", "splunk"
    }
)  # fmt: skip
NOT_CONFIGURED = "not configured"
"""The reason of a toolset that needs a configuration and has none."""
_ADDRESSES = frozenset({"url", "prometheus_url", "instances"})
_SLOW_KEYS = frozenset({"tools", "transformers", "llm_instructions"})
_CONFIG_ONLY_TYPES = ("http", "database", "mongodb")


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonToolset:
    """The factory of an enabled toolset, and the settings from the configuration entry of the toolset.

    If `is_found` is true, `config` is that of a system that was found in the cluster.
    """

    factory: PythonToolsetFactory
    source: str
    config: Mapping[str, JsonValue] = field(default_factory=dict)
    approval_patterns: tuple[str, ...] = ()
    redaction: bool = True
    on_demand: bool = False
    is_found: bool = False

    @property
    def status(self) -> ToolsetStatus:
        factory = self.factory
        return ToolsetStatus(
            name=factory.name,
            state="enabled",
            source=self.source,
            tags=factory.tags,
            description=factory.description,
            is_chosen=not factory.enabled_by_default,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalToolset:
    """A toolset for software that may be absent. `outline` is its definition without tools.

    Its commands are compiled only if the software is there, because most clusters have little of it.
    """

    outline: YamlToolsetDefinition
    entry: WrittenToolset
    variables: Mapping[str, str]

    def complete(self) -> YamlToolsetDefinition:
        """Check the entry and return its definition with tools. Raises `ConfigError`."""
        from holmes.toolsets.yaml.building import build_definition, checked_keys

        return build_definition(self.entry, checked_keys(self.entry, self.variables).keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The enabled toolsets, the statuses that are known without a check, and warnings for the user.

    `optional` are the bundled toolsets for software that may be absent, if `load_catalogue` defers them.
    `ignored_names` are HolmesGPT toolsets that Holmes does not support yet.
    """

    definitions: tuple[YamlToolsetDefinition, ...]
    python: tuple[PythonToolset, ...]
    servers: tuple[McpServer, ...]
    statuses: tuple[ToolsetStatus, ...]
    warnings: tuple[str, ...]
    ignored_names: tuple[str, ...]
    optional: tuple[OptionalToolset, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueFiles:
    """Files that define toolsets.

    `overrides` and `servers` are the sections `toolsets:` and `mcp_servers:` of `overrides_source`, the configuration
    file. `overrides_lines` maps the path of each key, starting with its section, to its line in that file.
    """

    shipped: tuple[Path, ...]
    custom: tuple[Path, ...] = ()
    overrides: Mapping[str, object] = field(default_factory=dict)
    servers: Mapping[str, object] = field(default_factory=dict)
    overrides_source: str = "the configuration"
    overrides_lines: Mapping[KeyPath, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCatalogue:
    """The merged toolset entries before the schema check.

    `variable_names` are the variables that custom toolsets declare. The caller must make them available to tools before
    it calls `load_catalogue`.
    """

    entries: tuple[WrittenToolset, ...]
    python_entries: Mapping[str, WrittenToolset]
    factories: tuple[PythonToolsetFactory, ...]
    statuses: tuple[ToolsetStatus, ...]
    warnings: tuple[str, ...]
    ignored_names: tuple[str, ...]

    @property
    def variable_names(self) -> frozenset[str]:
        """Names of the variables in `{{ env.NAME }}` and in `env` prerequisites."""
        return declared_variable_names((*self.entries, *self.python_entries.values()))

    def without(self, files: Iterable[Path]) -> WrittenCatalogue:
        """Return the catalogue without the YAML toolsets that only these files define, and without MCP servers."""
        sources = {str(path) for path in files}
        entries = (
            entry
            for entry in self.entries
            if {value.document.source for value in entry.keys.values()} - sources and not entry.is_server
        )
        return replace(self, entries=tuple(entries))


def read_catalogue(files: CatalogueFiles, *, entry_points: Iterable[EntryPoint] | None = None) -> WrittenCatalogue:
    """Read and merge the definitions from all files and entry points.

    `entry_points` overrides the installed entry points. Raises `ConfigError`.
    """
    factories, broken = discover_factories(entry_points)
    reading = _Reading({factory.name: factory for factory in factories})
    for path in files.shipped:
        reading.add_file(path)
    for path in files.custom:
        reading.add_file(path)
    own = YamlDocument(source=files.overrides_source, content=files.overrides, lines=files.overrides_lines)
    reading.add_entries(written_toolsets(files.overrides, own, ("toolsets",)))
    reading.add_entries(written_servers(files.servers, own, ("mcp_servers",)))
    statuses = tuple(
        ToolsetStatus(name=each.name, state="failed", reason=each.reason, source="entry point") for each in broken
    )
    return WrittenCatalogue(
        entries=tuple(reading.entries.values()),
        python_entries=reading.python_entries,
        factories=factories,
        statuses=statuses,
        warnings=tuple(reading.warnings),
        ignored_names=tuple(sorted(reading.ignored_names)),
    )


class _Reading:
    def __init__(self, factories: Mapping[str, PythonToolsetFactory]) -> None:
        self.entries: dict[str, WrittenToolset] = {}
        self.python_entries: dict[str, WrittenToolset] = {}
        self._factories = factories
        self.warnings: list[str] = []
        self.ignored_names: set[str] = set()

    def add_file(self, path: Path) -> None:
        file = read_toolsets(path)
        self.warnings += file.warnings
        self.add_entries(file.toolsets)

    def add_entries(self, entries: Sequence[WrittenToolset]) -> None:
        """Merge entries. An entry overrides an earlier entry with the same name."""
        for entry in entries:
            written, warnings = with_current_names(as_instance(entry))
            self.warnings += warnings
            self._add(written)

    def _add(self, written: WrittenToolset) -> None:
        name = written.name
        group = self.python_entries if name in self._factories else self.entries
        if name in group:
            group[name] = group[name].overridden_by(written)
        elif name in self._factories or "tools" in written.keys or "type" in written.keys:
            group[name] = written
        elif name in UPSTREAM_TOOLSETS:
            self.ignored_names.add(name)
        elif not set(written.keys) - {"enabled", "config", "name"}:
            known = (*self.entries, *self._factories, *UPSTREAM_TOOLSETS)
            nearest = get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"did you mean {nearest[0]!r}?" if nearest else "a custom toolset requires 'tools'"
            raise ConfigError(f"{written.source}: unknown toolset {name!r}; {hint}")
        else:
            group[name] = written


def load_catalogue(
    written: WrittenCatalogue,
    environment: Environment,
    default_configs: Mapping[str, Mapping[str, JsonValue]] | None = None,
    *,
    deferred: Iterable[Path] = (),
) -> Catalogue:
    """Check every enabled entry. An error in one toolset affects only its status.

    `default_configs` maps the names of Python toolsets to the default values of `config`. Of the toolsets in the files
    `deferred`, those for software that may be absent are not compiled yet.
    """
    loading = _Loading(environment.as_dict(), list(written.statuses), list(written.warnings), deferred)
    for entry in written.entries:
        loading.add(entry)
    python, python_statuses = _python_toolsets(written, loading.variables, default_configs or {})
    return Catalogue(
        definitions=tuple(loading.definitions),
        python=python,
        servers=tuple(loading.servers),
        statuses=(*loading.statuses, *python_statuses),
        warnings=loading.all_warnings(),
        ignored_names=written.ignored_names,
        optional=tuple(loading.optional),
    )


class _Loading:
    def __init__(
        self,
        variables: Mapping[str, str],
        statuses: list[ToolsetStatus],
        warnings: list[str],
        deferred: Iterable[Path],
    ) -> None:
        self.variables = variables
        self.statuses = statuses
        self.optional: list[OptionalToolset] = []
        self._deferred = {str(path) for path in deferred}
        self.definitions: list[YamlToolsetDefinition] = []
        self.servers: list[McpServer] = []
        self._warnings = warnings
        self._transformed: list[str] = []

    def add(self, entry: WrittenToolset) -> None:
        """Check one entry. An error becomes its status."""
        decided = _decided_already(entry)
        if decided is not None:
            self.statuses.append(decided)
            return
        try:
            if entry.is_server:
                from holmes.toolsets.mcp.config import server_of

                self.servers.append(server_of(entry, self.variables))
            else:
                self._add_yaml(entry)
        except ConfigError as error:
            self.statuses.append(_status_of(entry, "failed", str(error)))

    def _add_yaml(self, entry: WrittenToolset) -> None:
        # Imported here, because `builtin/triage` reads no such entry, and templates and schemas slow down the start.
        from holmes.toolsets.yaml.building import build_definition, checked_keys, has_ignored_transformers, outline_of

        if entry.is_optional and entry.keys["tools"].document.source in self._deferred:
            keys = {key: value for key, value in entry.keys.items() if key not in _SLOW_KEYS}
            outline = outline_of(entry, checked_keys(replace(entry, keys=keys), self.variables).keys)
            self.optional.append(OptionalToolset(outline=outline, entry=entry, variables=self.variables))
            return
        checked = checked_keys(entry, self.variables)
        _refuse_empty(entry, checked.keys)
        self.definitions.append(build_definition(entry, checked.keys))
        self._warnings += checked.warnings
        if has_ignored_transformers(checked.keys):
            self._transformed.append(entry.name)

    def all_warnings(self) -> tuple[str, ...]:
        if not self._transformed:
            return tuple(self._warnings)
        names = ", ".join(repr(name) for name in self._transformed)
        ignored = f"transformers other than 'kubernetes_view' are not supported and are ignored in: {names}"
        return (*self._warnings, ignored)


def _decided_already(entry: WrittenToolset) -> ToolsetStatus | None:
    values = entry.values()
    if values.get("enabled") is False:
        return _status_of(entry, "disabled", "disabled in the configuration")
    kind = values.get("type")
    if kind in _CONFIG_ONLY_TYPES:
        return _status_of(entry, "failed", f"type {kind!r} is not supported yet")
    return None


def _refuse_empty(entry: WrittenToolset, keys: ToolsetKeys) -> None:
    if not keys.tools:
        raise ConfigError(f"{entry.source}: the toolset {entry.name!r} has no tools")
    if not keys.description:
        raise ConfigError(f"{entry.source}: the toolset {entry.name!r} has no 'description'")


def _status_of(entry: WrittenToolset, state: str, reason: str) -> ToolsetStatus:
    values = entry.values()
    tags = values.get("tags")
    tools = values.get("tools")
    return ToolsetStatus(
        name=entry.name,
        state="disabled" if state == "disabled" else "failed",
        reason=reason,
        source=entry.source,
        tool_count=len(tools) if isinstance(tools, list) else 0,
        tags=tuple(str(tag) for tag in tags) if isinstance(tags, list) else (),
        description=str(values.get("description") or ""),
    )


def _with_defaults(own: Mapping[str, JsonValue], defaults: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the configuration with defaults. Those of one address, such as a password, are not used for another."""
    return dict(own) if own.keys() & _ADDRESSES else {**defaults, **own}


def _python_toolsets(
    written: WrittenCatalogue, variables: Mapping[str, str], default_configs: Mapping[str, Mapping[str, JsonValue]]
) -> tuple[tuple[PythonToolset, ...], tuple[ToolsetStatus, ...]]:
    toolsets: list[PythonToolset] = []
    statuses: list[ToolsetStatus] = []
    for factory in written.factories:
        source = type(factory).__module__
        status = ToolsetStatus(
            name=factory.name, state="disabled", source=source, tags=factory.tags, description=factory.description
        )
        entry = written.python_entries.get(factory.name)
        made = PythonToolset(factory=factory, source=source, config=default_configs.get(factory.name, {}))
        enabled = factory.enabled_by_default or bool(made.config)
        if entry is not None:
            from holmes.toolsets.yaml.building import checked_keys

            try:
                keys = checked_keys(entry, variables).keys
            except ConfigError as error:
                statuses.append(replace(status, state="failed", reason=str(error)))
                continue
            config = _with_defaults(keys.config or {}, made.config)
            enabled = (enabled or bool(config)) if keys.enabled is None else keys.enabled
            made = replace(
                made,
                config=config,
                approval_patterns=tuple(keys.approval_required_tools),
                redaction=keys.redaction,
                on_demand=keys.on_demand,
            )
        if enabled:
            toolsets.append(made)
        else:
            statuses.append(
                replace(status, reason="disabled in the configuration" if entry is not None else NOT_CONFIGURED)
            )
    return tuple(toolsets), tuple(statuses)
