"""`holmes investigate alertmanager` as a user meets it: answers under headings, and exit codes that mean something."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.services.fixtures import RunMonitor
from tests.support.command_line import Home

RECOMMENDATIONS = {
    "alertname": "KubePodCrashLooping", "namespace": "shop", "pod": "recommendations-59c8d7c4cc-bxzb9",
    "container": "recommendations", "job": "kube-state-metrics", "severity": "warning",
}  # fmt: skip
CATALOG = {
    "alertname": "KubeDeploymentReplicasMismatch", "namespace": "shop", "deployment": "catalog", "severity": "critical",
    "job": "kube-state-metrics", "pod": "kube-state-metrics-5b97c5c8b6-2xzvq", "container": "kube-state-metrics",
}  # fmt: skip
WATCHDOG = {"alertname": "Watchdog", "severity": "none"}
ROUTES = """
alerts:
  routes:
    - name: silent
      match: {severity: none}
      investigate: false
"""
CONFIG = {"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.make(tmp_path / "home", config=ROUTES)


def write_payload(folder: Path, *labels: dict[str, str], status: str = "firing") -> Path:
    """A webhook's payload in a file."""
    file = folder / "alerts.json"
    alerts = [{"status": status, "labels": each, "annotations": {"summary": "it is bad"}} for each in labels]
    file.write_text(json.dumps({"version": "4", "alerts": alerts}))
    return file


def test_each_incident_is_answered_under_its_title(home: Home, tmp_path: Path) -> None:
    file = write_payload(tmp_path, RECOMMENDATIONS, CATALOG, WATCHDOG)
    done = home.run("investigate", "alertmanager", f"--alertmanager-file={file}", "--demo", "--model=builtin/triage")

    assert done.exit_code == 0, done.stderr
    first, second = done.stdout.split("\n# 2 of 2: ")
    assert first.startswith("# 1 of 2: KubePodCrashLooping: shop/recommendations\n\n**Root cause** ")
    assert "`Deployment shop/recommendations`" in first.splitlines()[2]
    assert second.startswith("KubeDeploymentReplicasMismatch: shop/catalog\n\n**Root cause** ")
    assert "`Deployment shop/catalog`" in second.splitlines()[2]
    assert "it is bad" not in done.stdout
    assert done.stderr.count("recorded demo cluster") == 1


def test_alerts_of_a_real_alertmanager_that_match_up_to_the_limit(
    home: Home, tmp_path: Path, alertmanager: RunMonitor
) -> None:
    with alertmanager(CONFIG) as monitor:
        alerts = [{"labels": each} for each in (RECOMMENDATIONS, CATALOG, {**CATALOG, "deployment": "search"})]
        httpx.post(f"{monitor.url}/api/v2/alerts", json=alerts, timeout=10).raise_for_status()
        config = tmp_path / "config.yaml"
        config.write_text(
            f'alertmanager_url: {monitor.url}\nalertmanager_label: namespace=~"shop|legacy"\n'
            "alertmanager_alertname: KubeDeploymentReplicasMismatch\nmodel: builtin/triage\n"
        )
        one = home.run("investigate", "alertmanager", f"--config={config}", "--alertmanager-limit=1", "--demo")
        none = home.run("investigate", "alertmanager", f"--config={config}", "--alertmanager-label=severity=info")
    assert one.exit_code == 0, one.stderr
    assert one.stdout.startswith("# 1 of 1: KubeDeploymentReplicasMismatch: shop/")
    assert (none.exit_code, none.stdout, none.stderr) == (0, "", "holmes: no matching alert is firing\n")


def test_alerts_that_no_route_investigates_are_counted(home: Home, tmp_path: Path) -> None:
    file = write_payload(tmp_path, WATCHDOG)
    done = home.run("investigate", "alertmanager", f"--alertmanager-file={file}", "--demo")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "disables the investigation of 1 firing alert" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        ((), 2, "no alert source"),
        (("--alertmanager-file=missing.json",), 2, "cannot be read"),
        (("--alertmanager-url=nonsense",), 2, "--alertmanager-url"),
        (("--alertmanager-url=http://x", "--alertmanager-file=y"), 2, "are mutually exclusive"),
        (("--alertmanager-url=http://x", "--alertmanager-label=a-b"), 2, "not a valid label matcher"),
        (("--alertmanager-url=http://127.0.0.1:1",), 3, "cannot be reached"),
    ],
)
def test_what_is_wrong_is_one_line(home: Home, arguments: tuple[str, ...], exit_code: int, said: str) -> None:
    done = home.run("investigate", "alertmanager", *arguments)
    assert (done.exit_code, done.stdout) == (exit_code, "")
    assert said in done.stderr
    assert done.stderr.startswith("holmes: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_file_that_is_no_payload_and_a_missing_cluster(home: Home, tmp_path: Path) -> None:
    nonsense = tmp_path / "nonsense.json"
    nonsense.write_text("{}")
    refused = home.run("investigate", "alertmanager", f"--alertmanager-file={nonsense}")
    file = write_payload(tmp_path, RECOMMENDATIONS)
    lost = home.run("investigate", "alertmanager", f"--alertmanager-file={file}", "--model=builtin/triage")
    assert (refused.exit_code, lost.exit_code) == (2, 3)
    assert "no 'alerts' list" in refused.stderr
    assert "--demo" in lost.stderr
    assert lost.stdout == ""
