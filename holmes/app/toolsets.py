"""Builds the toolsets from the settings, and checks which toolsets work."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from holmes.app.cluster import default_cluster, of_cluster, with_choices
from holmes.assets import toolset_files
from holmes.core.tools_utils.tool_executor import ApprovalGate
from holmes.core.tools_utils.tool_search import FINDER_NAME
from holmes.kubernetes.scope import scope_of
from holmes.settings.process import process_environment, tool_environment
from holmes.toolsets.catalogue import CatalogueFiles, load_catalogue, read_catalogue
from holmes.toolsets.mcp.session import McpSessions, open_sessions
from holmes.toolsets.pictured import Pictured
from holmes.toolsets.readiness import CheckPolicy, check_toolsets, renewed_servers
from holmes.toolsets.registry import ToolsetContext
from holmes.toolsets.source_clusters import METRICS_TOOLSET, config_for_cluster
from holmes.toolsets.stored_results import TOOL_NAMES, TOOLSET_NAME, StoredResultsToolset
from holmes.toolsets.watch import ToolsetWatch
from holmes.toolsets.wrappers import Redacted
from holmes.values.errors import ConfigError, HolmesError
from holmes.values.on_demand import FIND_TOOLS, USE_TOOL

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from holmes.core.model_chain import LoopModel
    from holmes.core.tools_utils.tool_executor import Approver
    from holmes.observability.access import SourceAccess
    from holmes.redaction.redactor import Redactor
    from holmes.settings.settings import Settings
    from holmes.toolsets.catalogue import Catalogue, WrittenCatalogue
    from holmes.toolsets.discovery import FoundSource
    from holmes.toolsets.readiness import Readiness
    from holmes.toolsets.registry import ToolsetStatus
    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonValue
    from holmes.values.tools import ResultStore, Toolset

_RESERVED_TOOLS: Final = {
    **dict.fromkeys(TOOL_NAMES, TOOLSET_NAME),
    **dict.fromkeys((FIND_TOOLS.name, USE_TOOL.name), FINDER_NAME),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetReport:
    """The states of all toolsets, sorted by name, the configuration warnings, and the systems found in the cluster."""

    statuses: tuple[ToolsetStatus, ...]
    warnings: tuple[str, ...]
    found: tuple[FoundSource, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenToolsets:
    """The checked toolsets. `warnings` are for the user, and `unavailable` is for the model.

    `lint_warnings` are for toolset authors and report commands that work but should be changed. `own_files` contains
    the names of user files that define toolsets. `found` are monitoring systems in the cluster.
    """

    readiness: Readiness
    warnings: tuple[str, ...]
    lint_warnings: tuple[str, ...]
    own_files: tuple[str, ...]
    found: tuple[FoundSource, ...] = ()

    @property
    def broken(self) -> tuple[str, ...]:
        """The warnings for failed user-defined toolsets. Bundled toolsets may fail if they do not suit the cluster."""
        return tuple(
            f"toolset {status.name!r} cannot be used: {status.reason}"
            for status in self.readiness.statuses
            if status.state == "failed" and (status.is_chosen or status.source.startswith(self.own_files))
        )

    @property
    def report(self) -> ToolsetReport:
        warnings = (*self.warnings, *self.lint_warnings)
        return ToolsetReport(statuses=self.readiness.statuses, warnings=warnings, found=self.found)

    @property
    def unavailable(self) -> tuple[str, ...]:
        """The failed toolsets with the cause of each failure, so that the model does not call their tools.

        One line lists all toolsets that fail for the same reason, for example because the cluster does not respond.
        """
        names: dict[str | None, list[str]] = {}
        for status in self.readiness.statuses:
            if status.state == "failed" and not status.on_demand:
                names.setdefault(status.reason, []).append(status.name)
        return tuple(f"{', '.join(failed)}: {reason}" for reason, failed in names.items())

    @property
    def on_demand(self) -> frozenset[str]:
        """The names of the toolsets that only some questions need."""
        return frozenset(ready.toolset.name for ready in self.readiness.ready if ready.on_demand)

    @property
    def has_servers(self) -> bool:
        """Whether tools may be added while a question is answered."""
        return any(status.revision for status in self.readiness.statuses)

    async def renewed(self) -> OpenToolsets:
        """Return the toolsets with the tools that the MCP servers offer now."""
        ready = await renewed_servers(self.readiness.ready, _RESERVED_TOOLS)
        return replace(self, readiness=replace(self.readiness, ready=ready))

    def create(
        self,
        models: Sequence[LoopModel],
        store: ResultStore | None,
        approver: Approver | None,
        redactor: Redactor | None,
    ) -> tuple[Toolset, ...]:
        """Wrap the toolsets, and add the toolset that reads stored results if `store` is set.

        `models` is the whole chain, because text from stored results must fit the smallest configured context window.
        Context windows that are later learned from errors are ignored. Only the wrapper that draws charts is outside of
        redaction, so that secrets never leave a toolset.
        """
        toolsets: list[Toolset] = []
        for ready in self.readiness.ready:
            toolset = ready.toolset
            if ready.approval_patterns:
                toolset = ApprovalGate(toolset, ready.approval_patterns, approver)
            toolsets.append(Pictured(Redacted(toolset, redactor if ready.redaction else None)))
        if store is not None:
            toolsets.append(
                StoredResultsToolset(
                    store=store,
                    counter=models[0].make_counter(),
                    cap_tokens=min(
                        each.policy.spill.cap_tokens(each.model.limits.context_window_tokens) for each in models
                    ),
                    vision=models[0].model.limits.vision,
                )
            )
        return tuple(toolsets)


async def open_toolsets(
    settings: Settings,
    sessions: McpSessions,
    *,
    redactor: Redactor | None = None,
    refresh: bool = False,
    decided: Sequence[ToolsetStatus] | None = None,
    asks_llm: bool = True,
) -> OpenToolsets:
    """Read all toolset files and check which toolsets work. Raises `ConfigError`.

    `sessions` keeps the connections to MCP servers, and the caller closes it.
    If `asks_llm` is false, toolsets that only an LLM calls are omitted.
    If another process has checked the toolsets, `decided` contains their states, and the checks are skipped.
    """
    # Names in the configuration are checked against those of the bundled files, which only an LLM calls.
    is_read = asks_llm or bool(settings.tools.toolsets or settings.tools.custom_toolsets)
    written = _written_catalogue(settings, toolset_files() if is_read else ())
    if not asks_llm:
        written = written.without(toolset_files())
    environment = _environment(settings, written)
    catalogue = load_catalogue(written, environment, _default_configs(settings), deferred=toolset_files())
    discovered = await _discovered(settings, written, catalogue, environment)
    context = ToolsetContext(
        environment=environment,
        memory_limit_mb=settings.tools.memory_limit_megabytes,
        redactor=redactor,
        sessions=sessions,
        cluster=settings.cluster,
        clusters=tuple(settings.clusters.clusters),
        is_recorded=settings.is_recorded,
    )
    policy = CheckPolicy(
        deadline_seconds=settings.tools.prerequisite_timeout_seconds,
        cache_directory=settings.storage.cache_path,
        refresh=refresh,
        reserved_tools=_RESERVED_TOOLS,
        decided=None if decided is None else {status.name: status for status in decided},
    )
    readiness = await check_toolsets(discovered.catalogue, context, policy)
    return OpenToolsets(
        readiness=discovered.described(readiness),
        found=discovered.found,
        warnings=_warnings(settings, catalogue, written.variable_names),
        lint_warnings=_lint_warnings(catalogue),
        own_files=tuple(str(path) for path in (*settings.tools.custom_toolsets, settings.config_file) if path),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Discovered:
    """The catalogue with the systems that were found. Only the toolsets in `used` read one of them."""

    catalogue: Catalogue
    found: tuple[FoundSource, ...] = ()
    used: frozenset[str] = frozenset()

    def described(self, readiness: Readiness) -> Readiness:
        if not self.found:
            return readiness
        from holmes.toolsets.discovery import with_reasons

        return replace(readiness, statuses=with_reasons(readiness.statuses, self.found, self.used))


async def _discovered(
    settings: Settings, written: WrittenCatalogue, catalogue: Catalogue, environment: Environment
) -> _Discovered:
    """Search the cluster if this process runs inside it."""
    if not (settings.tools.discover_sources and await _is_inside(environment)):
        return _Discovered(catalogue=catalogue)
    from holmes.toolsets.discovery import find_sources, with_found

    search = await find_sources(environment, catalogue.statuses)
    completed = with_found(catalogue, written.factories, search)
    used = frozenset(each.factory.name for each in completed.python if each.is_found)
    return _Discovered(catalogue=completed, found=search.found, used=used)


async def _searched(settings: Settings, report: ToolsetReport) -> ToolsetReport:
    """Search the cluster from outside, only to tell what could be configured."""
    environment = with_choices(settings, tool_environment(process_environment(), ()))
    if not settings.tools.discover_sources or await _is_inside(environment):
        return report
    from holmes.toolsets.discovery import find_sources, with_reasons

    found = (await find_sources(environment, report.statuses)).found
    return replace(report, found=found, statuses=with_reasons(report.statuses, found, frozenset()))


async def _is_inside(environment: Environment) -> bool:
    """Return whether `environment` selects the cluster of this process, by the service account of its pod."""
    if not environment.get("KUBERNETES_SERVICE_HOST"):
        return False
    from holmes.kubernetes.kubeconfig import load_access

    try:
        return (await asyncio.to_thread(load_access, environment)).is_service_account
    except HolmesError:
        return False


def _written_catalogue(settings: Settings, shipped: tuple[Path, ...]) -> WrittenCatalogue:
    return read_catalogue(
        CatalogueFiles(
            shipped=shipped,
            custom=settings.tools.custom_toolsets,
            overrides=settings.tools.toolsets,
            servers=settings.tools.mcp_servers,
            overrides_source=str(settings.config_file or "the configuration"),
            overrides_lines=settings.config_lines,
        )
    )


def _environment(settings: Settings, written: WrittenCatalogue) -> Environment:
    return with_choices(settings, tool_environment(process_environment(), written.variable_names))


def _default_configs(settings: Settings) -> Mapping[str, Mapping[str, JsonValue]]:
    """Return the `config` that settings of their own give to Python toolsets."""
    tools, alerts = settings.tools, settings.sources
    logs: Mapping[str, JsonValue] = {
        "timeout_seconds": tools.kubernetes_logs_timeout_seconds,
        "default_tail_lines": tools.logs_default_tail_lines,
        "max_tail_lines": tools.logs_max_tail_lines,
    }
    metrics = {"prometheus_url": tools.prometheus_url} if tools.prometheus_url is not None else {}
    manager = {
        "url": alerts.alertmanager_url,
        "username": alerts.alertmanager_username,
        "password": alerts.alertmanager_password.get_secret_value() if alerts.alertmanager_password else None,
    }
    return {
        "kubernetes/logs": logs,
        METRICS_TOOLSET: metrics,
        "alertmanager/alerts": manager if alerts.alertmanager_url is not None else {},
    }


def metric_sources(settings: Settings) -> tuple[SourceAccess, ...]:
    """Return the configured sources of metrics of the chosen cluster. Raises `ConfigError` if there is none."""
    from holmes.toolsets.instances import instances_of
    from holmes.toolsets.metrics.toolset import KIND

    written = _written_catalogue(settings, toolset_files()).without(toolset_files())
    environment = _environment(settings, written)
    catalogue = load_catalogue(written, environment, _default_configs(settings))
    found = next((each for each in catalogue.python if each.factory.name == METRICS_TOOLSET), None)
    clusters = tuple(settings.clusters.clusters)
    context = ToolsetContext(environment=environment, cluster=settings.cluster, clusters=clusters)
    config = config_for_cluster(found.config, context) if found is not None else None
    if config is None:
        raise ConfigError(
            f"no source of metrics is configured for this cluster; set PROMETHEUS_URL or configure {METRICS_TOOLSET!r}"
        )
    if scope_of(environment):
        raise ConfigError("queries of metrics can show all namespaces, which SCOPED_NAMESPACES forbids")
    return instances_of(config, KIND)


def watch_toolsets(
    settings: Settings,
    *,
    redactor: Redactor | None = None,
    adopts: bool = False,
    on_check: Callable[[tuple[ToolsetStatus, ...]], None] = lambda _: None,
) -> ToolsetWatch[OpenToolsets]:
    """Create the watch that checks the server's toolsets again after a failure."""
    sessions = McpSessions(settings.storage.mcp_tokens_path)
    check = partial(open_toolsets, settings, sessions, redactor=redactor)
    return ToolsetWatch(
        check,
        retry_seconds=settings.tools.toolset_retry_seconds,
        adopts=adopts,
        on_check=on_check,
        close=sessions.aclose,
        place=settings.cluster or "",
    )


async def log_in_to_server(
    settings: Settings,
    name: str,
    *,
    say: Callable[[str], None],
    opens_browser: bool,
    scopes: tuple[str, ...] = (),
) -> str:
    """Log a person in to the MCP server `name`, store the tokens, and return one line about what the server offers.

    `scopes` are requested beside the usual ones. Raises `ConfigError` and `ToolError`.
    """
    written = _written_catalogue(settings, toolset_files())
    environment = _environment(settings, written)
    catalogue = load_catalogue(written, environment)
    servers = {server.name: server for server in catalogue.servers}
    server = servers.get(name)
    if server is None:
        failed = next((each for each in catalogue.statuses if each.name == name and each.state == "failed"), None)
        known = ", ".join(servers) or "none"
        raise ConfigError(
            failed.reason or "" if failed else f"unknown MCP server {name!r}; configured servers: {known}"
        )
    from holmes.toolsets.mcp.login import log_in

    folder = settings.storage.mcp_tokens_path
    listing = await log_in(server, environment, folder=folder, say=say, opens_browser=opens_browser, scopes=scopes)
    return f"logged in to {name!r} ({listing.product}): {len(listing.tools)} tools"


async def toolset_report(settings: Settings, *, refresh: bool) -> ToolsetReport:
    """Check all toolsets. If `refresh` is true, ignore earlier checks. Raises `ConfigError`."""
    if settings.serves_several and (default := default_cluster(settings)):
        settings = of_cluster(settings, default)
    async with open_sessions(settings.storage.mcp_tokens_path) as sessions:
        return await _searched(settings, (await open_toolsets(settings, sessions, refresh=refresh)).report)


def _warnings(settings: Settings, catalogue: Catalogue, declared: Collection[str]) -> tuple[str, ...]:
    """Return the warnings for the user.

    Toolsets use the variables in `declared`, so these variables cause no warning.
    """
    keys = (key for key in settings.ignored_keys if key not in declared)
    ignored = (*keys, *(f"toolset {name}" for name in catalogue.ignored_names))
    return (*settings.warnings(ignored), *catalogue.warnings)


def _lint_warnings(catalogue: Catalogue) -> tuple[str, ...]:
    return tuple(
        f"{warning.place}: tool {warning.tool!r}: {warning.message}"
        for definition in catalogue.definitions
        for warning in definition.lint_warnings
    )
