"""Builds the toolsets from the settings, and checks which toolsets work."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from holmes.app.cluster import with_choices
from holmes.assets import toolset_files
from holmes.core.tools_utils.tool_executor import ApprovalGate
from holmes.settings.process import process_environment, tool_environment
from holmes.toolsets.catalogue import CatalogueFiles, load_catalogue, read_catalogue
from holmes.toolsets.mcp.session import McpSessions, open_sessions
from holmes.toolsets.readiness import CheckPolicy, check_toolsets
from holmes.toolsets.registry import ToolsetContext
from holmes.toolsets.stored_results import TOOL_NAMES, TOOLSET_NAME, StoredResultsToolset
from holmes.toolsets.watch import ToolsetWatch
from holmes.toolsets.wrappers import Redacted
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from holmes.core.model_chain import LoopModel
    from holmes.core.tools_utils.tool_executor import Approver
    from holmes.redaction.redactor import Redactor
    from holmes.settings.settings import Settings
    from holmes.toolsets.catalogue import Catalogue, WrittenCatalogue
    from holmes.toolsets.readiness import Readiness
    from holmes.toolsets.registry import ToolsetStatus
    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonValue
    from holmes.values.tools import ResultStore, Toolset


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetReport:
    """The states of all toolsets, sorted by name, and the configuration warnings."""

    statuses: tuple[ToolsetStatus, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenToolsets:
    """The checked toolsets. `warnings` are for the user, and `unavailable` is for the model.

    `lint_warnings` are for toolset authors and report commands that work but should be changed. `own_files` contains
    the names of user files that define toolsets.
    """

    readiness: Readiness
    warnings: tuple[str, ...]
    lint_warnings: tuple[str, ...]
    own_files: tuple[str, ...]

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
        return ToolsetReport(statuses=self.readiness.statuses, warnings=(*self.warnings, *self.lint_warnings))

    @property
    def unavailable(self) -> tuple[str, ...]:
        """The failed toolsets with the cause of each failure, so that the model does not call their tools."""
        return tuple(
            f"{status.name}: {status.reason}" for status in self.readiness.statuses if status.state == "failed"
        )

    def create(
        self,
        models: Sequence[LoopModel],
        store: ResultStore | None,
        approver: Approver | None,
        redactor: Redactor | None,
    ) -> tuple[Toolset, ...]:
        """Wrap the toolsets, and add the toolset that reads stored results if `store` is set.

        `models` is the whole chain, because text from stored results must fit the smallest configured context window.
        Context windows that are later learned from errors are ignored. Redaction is the outermost wrapper, so that
        secrets never leave a toolset.
        """
        toolsets: list[Toolset] = []
        for ready in self.readiness.ready:
            toolset = ready.toolset
            if ready.approval_patterns:
                toolset = ApprovalGate(toolset, ready.approval_patterns, approver)
            toolsets.append(Redacted(toolset, redactor if ready.redaction else None))
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
    written = _written_catalogue(settings)
    if not asks_llm:
        written = written.without(toolset_files())
    environment = _environment(settings, written)
    catalogue = load_catalogue(written, environment, _default_configs(settings))
    context = ToolsetContext(
        environment=environment,
        memory_limit_mb=settings.tools.memory_limit_megabytes,
        redactor=redactor,
        sessions=sessions,
    )
    policy = CheckPolicy(
        deadline_seconds=settings.tools.prerequisite_timeout_seconds,
        cache_directory=settings.storage.cache_path,
        refresh=refresh,
        reserved_tools=dict.fromkeys(TOOL_NAMES, TOOLSET_NAME),
        decided=None if decided is None else {status.name: status for status in decided},
    )
    readiness = await check_toolsets(catalogue, context, policy)
    return OpenToolsets(
        readiness=readiness,
        warnings=_warnings(settings, catalogue, written.variable_names),
        lint_warnings=_lint_warnings(catalogue),
        own_files=tuple(str(path) for path in (*settings.tools.custom_toolsets, settings.config_file) if path),
    )


def _written_catalogue(settings: Settings) -> WrittenCatalogue:
    return read_catalogue(
        CatalogueFiles(
            shipped=toolset_files(),
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
        "prometheus/metrics": metrics,
        "alertmanager/alerts": manager if alerts.alertmanager_url is not None else {},
    }


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
    )


async def log_in_to_server(settings: Settings, name: str, *, say: Callable[[str], None], opens_browser: bool) -> str:
    """Log a person in to the MCP server `name`, store the tokens, and return one line about what the server offers.

    Raises `ConfigError` and `ToolError`.
    """
    written = _written_catalogue(settings)
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
    listing = await log_in(server, environment, folder=folder, say=say, opens_browser=opens_browser)
    return f"logged in to {name!r} ({listing.product}): {len(listing.tools)} tools"


async def toolset_report(settings: Settings, *, refresh: bool) -> ToolsetReport:
    """Check all toolsets. If `refresh` is true, ignore earlier checks. Raises `ConfigError`."""
    async with open_sessions(settings.storage.mcp_tokens_path) as sessions:
        return (await open_toolsets(settings, sessions, refresh=refresh)).report


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
