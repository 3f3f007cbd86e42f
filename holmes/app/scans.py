"""From the settings to a scan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.app.environment import cluster_environment
from holmes.app.redaction import make_redactor, text_mask
from holmes.diagnosis.reports import masked_report
from holmes.diagnosis.scan import scan
from holmes.kubernetes.client import ClusterClient

if TYPE_CHECKING:
    from holmes.diagnosis.scan import ScanRequest
    from holmes.kubernetes.state_reader import Progress
    from holmes.settings.settings import Settings
    from holmes.values.findings import DiagnosisReport


async def scan_cluster(settings: Settings, request: ScanRequest, progress: Progress | None = None) -> DiagnosisReport:
    """Scan the cluster of these settings; secrets are masked in the report.

    Raises `ClusterUnreachable` and `ConfigError`.
    """
    redactor = make_redactor(settings)
    async with await ClusterClient.connect(cluster_environment(settings)) as client:
        await client.probe()
        report = (await scan(client, request, progress)).report
    return masked_report(report, text_mask(redactor))
