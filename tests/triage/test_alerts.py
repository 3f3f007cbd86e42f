"""Alerts get a cause only if it serves the object that their labels name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holmes.kubernetes.cluster_state import Gap
from holmes.triage.alerts import look_at_alerts
from tests.triage.shop import shop


def test_an_alert_about_a_broken_pod_names_its_cause() -> None:
    labels = {"alertname": "KubePodCrashLooping", "namespace": "shop", "pod": "payments-5d9-x", "container": "payments"}
    found = look_at_alerts([labels], shop())
    assert (found.verdict, found.culprit) == ("cause_found", "Deployment shop/payments")


def test_a_pod_that_is_gone_is_replaced_with_its_workload() -> None:
    labels = {"alertname": "KubePodCrashLooping", "namespace": "shop", "pod": "payments-7b9bbf99ff-c5l4v"}
    assert look_at_alerts([labels], shop()).culprit == "Deployment shop/payments"


@pytest.mark.parametrize(
    "labels",
    [
        {"alertname": "PostgresReplicationLag", "instance": "db-1.corp.example:5432", "job": "postgres"},
        {"alertname": "CertificateExpiresSoon", "instance": "https://www.corp.example", "job": "blackbox"},
        {"alertname": "TargetDown", "job": "legacy-vm", "namespace": "monitoring"},
        {"alertname": "CertificateExpiresSoon", "namespace": "shop", "deployment": "payments"},
        {"alertname": "KafkaConsumerLag", "namespace": "shop", "pod": "payments-5d9-x", "topic": "orders"},
    ],
)
def test_an_alert_about_something_else_never_gets_the_cause_of_another_problem(labels: dict[str, str]) -> None:
    found = look_at_alerts([labels], shop())
    assert found.verdict == "inconclusive"
    assert not found.culprit


def test_a_heartbeat_is_not_investigated() -> None:
    assert look_at_alerts([{"alertname": "Watchdog", "severity": "none"}], shop()).verdict == "not_investigated"


def test_a_healthy_subject_is_healthy() -> None:
    labels = {"alertname": "KubeDeploymentReplicasMismatch", "namespace": "shop", "deployment": "catalog"}
    assert look_at_alerts([labels], shop()).verdict == "healthy"


def test_an_object_that_does_not_exist_is_not_found() -> None:
    labels = {"alertname": "KubeDeploymentReplicasMismatch", "namespace": "shop", "deployment": "search"}
    assert look_at_alerts([labels], shop()).verdict == "not_found"


def test_an_object_of_a_kind_that_was_not_read_may_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    scan = shop()
    reading = replace(scan.state.reading, gaps=(Gap(kind="Deployment", why="forbidden"),))
    monkeypatch.setattr(scan.state, "reading", reading)
    labels = {"alertname": "KubeDeploymentReplicasMismatch", "namespace": "shop", "deployment": "search"}
    found = look_at_alerts([labels], scan)
    assert (found.verdict, "Deployment could not be read" in found.summary) == ("inconclusive", True)
