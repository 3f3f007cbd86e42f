"""Selects the cluster for a command, which is a live cluster, a recording or the demo cluster.

A local server serves the recording, so that all other code works as with a live cluster.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.scope import SCOPE_VARIABLE, within
from holmes.settings.process import process_environment, tool_environment
from holmes.toolsets.source_clusters import METRICS_TOOLSET, RECORDING
from holmes.values.environment import Environment
from holmes.values.errors import ClusterUnreachable, ConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from holmes.diagnosis.scan import ScanRequest
    from holmes.kubernetes.state_reader import Progress
    from holmes.settings.investigation import ToolSettings
    from holmes.settings.server import InvestigationsSettings
    from holmes.settings.settings import Settings
    from holmes.snapshot.server.serving import SnapshotServer
    from holmes.values.errors import HolmesError
    from holmes.values.findings import DiagnosisReport
    from holmes.values.json_types import JsonValue

_RECORDINGS_DATABASE = "recordings.db"
_EXCLUSIVE: Final = "--demo, --snapshot, --cluster and --kubeconfig/--context are mutually exclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChoice:
    """The command options that select the cluster. By default, the configuration or the kubeconfig selects it.

    `name` is a configured cluster. `by_kubeconfig` is true if options name a kubeconfig or a context.
    """

    snapshot: Path | None = None
    demo: bool = False
    name: str | None = None
    by_kubeconfig: bool = False

    @property
    def clash(self) -> str:
        """The message for options that choose more than one cluster, or an empty string."""
        chosen = (self.snapshot is not None, self.demo, self.name is not None, self.by_kubeconfig)
        return _EXCLUSIVE if sum(chosen) > 1 else ""

    @property
    def notice(self) -> str:
        """A warning that the cluster is not live, or an empty string for a live cluster."""
        if self.demo:
            return "this is the recorded demo cluster bundled with Holmes, not a live cluster"
        return f"this is the recording in {str(self.snapshot)!r}, not a live cluster" if self.snapshot else ""


@asynccontextmanager
async def chosen_cluster(
    settings: Settings, choice: ClusterChoice, *, needs_one: bool = True
) -> AsyncIterator[Settings]:
    """Yield the settings for the chosen cluster. A recording is served until the context exits.

    If `needs_one` is false and several clusters are configured, the settings may stay without a cluster. Raises
    `ConfigError` for an unreadable recording, an unknown cluster, and if a cluster must be chosen.
    """
    path = _recording(choice)
    if path is None:
        yield _live(settings, choice, needs_one=needs_one)
        return
    # This server is imported only for a recording, because a live cluster does not need it.
    from holmes.app.redaction import make_redactor
    from holmes.snapshot.server.serving import serve_snapshot

    async with serve_snapshot(path, redactor=make_redactor(settings)) as server:
        investigation = settings.investigation.model_copy(
            update={"kubeconfig": server.kubeconfig, "kube_context": None, "cluster_name": None}
        )
        yield replace(
            settings,
            investigation=investigation,
            investigations=_apart(settings),
            tools=_with_metrics(settings.tools, server),
            cluster="",
            is_recorded=True,
        )


def notice_of(settings: Settings, choice: ClusterChoice) -> str:
    """Return one line about the chosen cluster, or an empty string if it has no name in the configuration."""
    return choice.notice or (f"cluster {settings.cluster}" if settings.cluster else "")


def _live(settings: Settings, choice: ClusterChoice, *, needs_one: bool) -> Settings:
    configured = settings.clusters.clusters
    if choice.by_kubeconfig:  # the configured name is that of another cluster
        investigation = settings.investigation.model_copy(update={"cluster_name": None})
        return replace(settings, investigation=investigation, cluster="" if configured else None)
    if choice.name is not None:
        return of_cluster(settings, choice.name)
    default = default_cluster(settings)
    if not needs_one or not configured:
        return settings
    if default is None:
        raise ConfigError(
            f"several clusters are configured: {', '.join(configured)}; choose one with --cluster or default_cluster"
        )
    return of_cluster(settings, default)


def default_cluster(settings: Settings) -> str | None:
    """Return the cluster that is used without a choice, or None. Raises `ConfigError` for an unknown cluster."""
    default, names = settings.clusters.default_cluster, tuple(settings.clusters.clusters)
    if default is not None:
        require_known(settings, default, "default_cluster: ")
        return default
    return names[0] if len(names) == 1 else None


def require_known(settings: Settings, name: str, place: str = "") -> None:
    """Raise `ConfigError` if no cluster with this name is configured."""
    known = settings.clusters.clusters
    if name not in known:
        there = f"configured clusters: {', '.join(known)}" if known else "add it below `clusters` in the configuration"
        raise ConfigError(f"{place}unknown cluster {name!r}; {there}")


def of_cluster(settings: Settings, name: str) -> Settings:
    """Return the settings that are bound to a configured cluster. Raises `ConfigError` for an unknown name."""
    require_known(settings, name)
    own, investigation = settings.clusters.clusters[name], settings.investigation
    place = {
        "kubeconfig": own.kubeconfig_or(investigation.kubeconfig),
        "kube_context": own.context,
        "cluster_name": name,
    }
    return replace(settings, investigation=investigation.model_copy(update=place), cluster=name)


def _with_metrics(tools: ToolSettings, server: SnapshotServer) -> ToolSettings:
    """Return the settings with the recorded metrics, at the time of the recording, instead of all live sources."""
    if not server.metrics:
        return tools
    place: dict[str, JsonValue] = {"cluster": RECORDING, "time": server.recorded_at.isoformat()}
    instances: dict[str, JsonValue] = {name: {"url": url, **place} for name, url in server.metrics.items()}
    written = tools.toolsets.get(METRICS_TOOLSET)
    own = {key: value for key, value in written.items() if key != "config"} if isinstance(written, dict) else {}
    toolsets = {**tools.toolsets, METRICS_TOOLSET: {**own, "config": {"instances": instances}}}
    return tools.model_copy(update={"toolsets": toolsets, "prometheus_url": None})


def _apart(settings: Settings) -> InvestigationsSettings:
    """Select a separate database, so that queued investigations of a live cluster never run against a recording."""
    from pydantic import SecretStr

    if settings.investigations.database_url:
        return settings.investigations
    file = settings.storage.results_path.parent / _RECORDINGS_DATABASE
    with suppress(OSError):  # the error is reported when the database is opened
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return settings.investigations.model_copy(update={"database_url": SecretStr(f"sqlite:///{file}")})


def with_demo_hint(error: HolmesError, cluster: str | None = None) -> HolmesError:
    """Add the name of a configured cluster to an error about an unreachable cluster, or the advice to use the demo."""
    if not isinstance(error, ClusterUnreachable):
        return error
    if cluster:
        return ClusterUnreachable(f"cluster {cluster!r}: {error}")
    return ClusterUnreachable(f"{error}; or try the demo cluster with --demo")


def _recording(choice: ClusterChoice) -> Path | None:
    if choice.demo:
        from holmes.assets import demo_recording

        return demo_recording()
    return choice.snapshot


def cluster_environment(settings: Settings) -> Environment:
    """Return the environment variables for cluster access, without variables that toolsets declare."""
    return with_choices(settings, tool_environment(process_environment()))


def with_choices(settings: Settings, variables: Mapping[str, str]) -> Environment:
    """Add the chosen kubeconfig, context and namespaces to `variables`, under the names that tools read.

    Raises `ConfigError` for a namespace that is not allowed.
    """
    investigation = settings.investigation
    scope = investigation.scoped_namespaces
    within((investigation.namespace,) if investigation.namespace else (), scope)
    chosen = {
        "KUBECONFIG": str(investigation.kubeconfig or ""),
        "HOLMES_KUBE_CONTEXT": investigation.kube_context,
        "HOLMES_KUBE_NAMESPACE": investigation.namespace,
        SCOPE_VARIABLE: ",".join(scope),
    }
    return Environment.of(variables).with_variables({name: value for name, value in chosen.items() if value})


async def require_cluster(settings: Settings) -> None:
    """Raise `ClusterUnreachable` if the API server does not respond."""
    from holmes.kubernetes.client import ClusterClient

    async with await ClusterClient.connect(cluster_environment(settings)) as client:
        await client.probe()


async def scan_cluster(settings: Settings, request: ScanRequest, progress: Progress | None = None) -> DiagnosisReport:
    """Scan the configured cluster, and mask secrets in the report.

    Raises `ClusterUnreachable` or `ConfigError`.
    """
    from holmes.app.redaction import make_redactor, text_mask
    from holmes.diagnosis.reports import masked_report
    from holmes.diagnosis.scan import scan
    from holmes.kubernetes.client import ClusterClient

    redactor = make_redactor(settings)
    async with await ClusterClient.connect(cluster_environment(settings)) as client:
        await client.probe()
        report = replace((await scan(client, request, progress)).report, cluster=settings.cluster or "")
    return masked_report(report, text_mask(redactor))
