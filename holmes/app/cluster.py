"""Selects the cluster for a command, which is a live cluster, a recording or the demo cluster.

A local server serves the recording, so that all other code works as with a live cluster.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holmes.kubernetes.scope import SCOPE_VARIABLE, within
from holmes.settings.process import process_environment, tool_environment
from holmes.values.environment import Environment
from holmes.values.errors import ClusterUnreachable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from holmes.diagnosis.scan import ScanRequest
    from holmes.kubernetes.state_reader import Progress
    from holmes.settings.server import InvestigationsSettings
    from holmes.settings.settings import Settings
    from holmes.values.errors import HolmesError
    from holmes.values.findings import DiagnosisReport

_RECORDINGS_DATABASE = "recordings.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChoice:
    """The command options that select the cluster. By default, the kubeconfig selects the cluster."""

    snapshot: Path | None = None
    demo: bool = False

    @property
    def notice(self) -> str:
        """A warning that the cluster is not live, or an empty string for a live cluster."""
        if self.demo:
            return "this is the recorded demo cluster bundled with Holmes, not a live cluster"
        return f"this is the recording in {str(self.snapshot)!r}, not a live cluster" if self.snapshot else ""


@asynccontextmanager
async def chosen_cluster(settings: Settings, choice: ClusterChoice) -> AsyncIterator[Settings]:
    """Yield the settings for the chosen cluster. A recording is served until the context exits.

    Raises `ConfigError` for an unreadable recording.
    """
    path = _recording(choice)
    if path is None:
        yield settings
        return
    # This server is imported only for a recording, because a live cluster does not need it.
    from holmes.snapshot.server.serving import serve_snapshot

    async with serve_snapshot(path) as server:
        investigation = settings.investigation.model_copy(
            update={"kubeconfig": server.kubeconfig, "kube_context": None}
        )
        yield replace(settings, investigation=investigation, investigations=_apart(settings))


def _apart(settings: Settings) -> InvestigationsSettings:
    """Select a separate database, so that queued investigations of a live cluster never run against a recording."""
    from pydantic import SecretStr

    if settings.investigations.database_url:
        return settings.investigations
    file = settings.storage.results_path.parent / _RECORDINGS_DATABASE
    with suppress(OSError):  # the error is reported when the database is opened
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return settings.investigations.model_copy(update={"database_url": SecretStr(f"sqlite:///{file}")})


def with_demo_hint(error: HolmesError) -> HolmesError:
    """Add the advice to use the demo cluster to an error about an unreachable cluster."""
    if not isinstance(error, ClusterUnreachable):
        return error
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
        report = (await scan(client, request, progress)).report
    return masked_report(report, text_mask(redactor))
