"""The name of a pod that is gone tells its workload only if a controller of that kind makes such names."""

from __future__ import annotations

import pytest

from holmes.values.pod_names import cron_job_of, deployment_of, is_pod_name_of


@pytest.mark.parametrize(
    ("pod", "kind", "workload"),
    [
        ("web-7b9bbf99ff-c5l4v", "Deployment", "web"),
        ("web-worker-7b9bbf99ff-c5l4v", "Deployment", "web-worker"),
        ("web-7764f-c5l4v", "Deployment", "web"),
        ("web-7b9bbf99ff-c5l4v", "ReplicaSet", "web-7b9bbf99ff"),
        ("agent-x2f4z", "DaemonSet", "agent"),
        ("report-zz6wp", "Job", "report"),
        ("render-3-zz6wp", "Job", "render"),
        ("report-28391020-zz6wp", "CronJob", "report"),
        ("report-28391020-zz6wp", "Job", "report-28391020"),
        ("cart-0", "StatefulSet", "cart"),
        ("cart-12", "StatefulSet", "cart"),
    ],
)
def test_a_pod_has_the_name_that_its_controller_makes(pod: str, kind: str, workload: str) -> None:
    assert is_pod_name_of(pod, kind, workload)


@pytest.mark.parametrize(
    ("pod", "kind", "workload"),
    [
        ("web-worker-x2k4p", "Deployment", "web"),  # a DaemonSet web-worker
        ("web-db-x2k4p", "Deployment", "web"),
        ("web-v2-x2k4p", "Deployment", "web"),
        ("web-worker-7b9bbf99ff-c5l4v", "Deployment", "web"),
        ("web-7b9bbf99ff-c5l4v", "DaemonSet", "web"),
        ("web-7b9bbf99ff", "Deployment", "web"),
        ("web-cache", "Deployment", "web"),
        ("agent-cache", "DaemonSet", "agent"),  # a and e are in no generated name
        ("agent-x2f4", "DaemonSet", "agent"),
        ("agent-x2f4z1", "DaemonSet", "agent"),
        ("cart-x2f4z", "StatefulSet", "cart"),
        ("cart-01", "StatefulSet", "cart"),
        ("cart-0", "Deployment", "cart"),
        ("web", "Deployment", "web"),
        ("report-28391020-zz6wp", "Job", "report-2839"),
    ],
)
def test_a_similar_name_is_not_that_of_a_pod(pod: str, kind: str, workload: str) -> None:
    assert not is_pod_name_of(pod, kind, workload)


def test_jobs_and_replica_sets_tell_what_made_them() -> None:
    assert cron_job_of("report-28391020") == "report"
    assert cron_job_of("report-2024") == ""
    assert deployment_of("web-68658b558c") == "web"
    assert deployment_of("web-server") == ""
