"""Which object the labels of real rules mean."""

from __future__ import annotations

import pytest

from holmes.triage.alert_subjects import namespace_of, subject_key, subject_of, workload_of_pod

STATE_METRICS = {
    "job": "kube-state-metrics",
    "container": "kube-state-metrics",
    "pod": "prometheus-kube-state-metrics-5b97c5c8b6-2xzvq",
    "instance": "10.244.0.7:8080",
    "service": "prometheus-kube-state-metrics",
}


@pytest.mark.parametrize(
    ("labels", "kind", "name", "path"),
    [
        ({"pod": "checkout-7b9bbf99ff-c5l4v", "container": "app"}, "Pod", "checkout-7b9bbf99ff-c5l4v", "shop/checkout"),
        ({**STATE_METRICS, "deployment": "web"}, "Deployment", "web", "shop/web"),
        ({**STATE_METRICS, "statefulset": "cart"}, "StatefulSet", "cart", "shop/cart"),
        ({**STATE_METRICS, "daemonset": "agent"}, "DaemonSet", "agent", "shop/agent"),
        ({**STATE_METRICS, "job_name": "report-28391020"}, "Job", "report-28391020", "shop/report"),
        ({**STATE_METRICS, "cronjob": "report"}, "CronJob", "report", "shop/report"),
        ({**STATE_METRICS, "horizontalpodautoscaler": "web"}, "HorizontalPodAutoscaler", "web", "shop/web"),
        (
            {"persistentvolumeclaim": "data-cart-0", "node": "worker-1", "job": "kubelet"},
            "PersistentVolumeClaim", "data-cart-0", "shop/data-cart-0",
        ),
        ({**STATE_METRICS, "replicaset": "web-68658b558c"}, "ReplicaSet", "web-68658b558c", "shop/web"),
        ({"workload": "cart", "workload_type": "statefulset"}, "StatefulSet", "cart", "shop/cart"),
        ({"service": "search", "job": "search"}, "Service", "search", "shop/search"),
        ({**STATE_METRICS, "node": "worker-1"}, "Node", "worker-1", "worker-1"),
        (
            {"job": "node-exporter", "pod": "node-exporter-x2f4z", "instance": "worker-2:9100"},
            "Node", "worker-2", "worker-2",
        ),
        # an application that is scraped as its own job
        ({"job": "web", "container": "web", "pod": "web-0", "node": "worker-1"}, "Pod", "web-0", "shop/web"),
    ],
)  # fmt: skip
def test_the_object_of_usual_rules(labels: dict[str, str], kind: str, name: str, path: str) -> None:
    subject = subject_of({"namespace": "shop", **labels})
    assert subject is not None
    assert (subject.kind, subject.name, subject.path) == (kind, name, path)


def test_what_prometheus_renamed_wins_over_what_it_scraped() -> None:
    labels = {**STATE_METRICS, "namespace": "monitoring", "exported_namespace": "shop", "exported_pod": "cart-1"}
    subject = subject_of(labels)
    assert subject is not None
    assert (subject.name, subject.namespace) == ("cart-1", "shop")
    assert namespace_of(labels) == "shop"


def test_the_exporters_own_pod_is_not_the_subject_of_a_metric_without_a_pod() -> None:
    labels = {**STATE_METRICS, "namespace": "monitoring", "exported_namespace": "shop"}
    assert subject_of(labels) is None
    assert subject_of({**STATE_METRICS, "namespace": "shop", "alertname": "KubeQuotaFullyUsed"}) is None


@pytest.mark.parametrize(
    ("pod", "workload"),
    [
        ("checkout-7b9bbf99ff-c5l4v", "checkout"),
        ("cart-0", "cart"),
        ("agent-x2f4z", "agent"),
        ("report-28391020-zz6wp", "report"),
        ("redis-cache", "redis-cache"),
        ("kube-proxy", "kube-proxy"),
        ("web", "web"),
    ],
)
def test_pods_are_rolled_up_to_their_workload_by_the_pattern_of_their_name(pod: str, workload: str) -> None:
    assert workload_of_pod(pod) == workload


def test_a_workload_and_its_pods_are_the_same_thing_and_others_are_not() -> None:
    def key(**labels: str) -> str:
        return subject_key({"namespace": "shop", "alertname": "A", **labels})

    assert key(pod="web-68658b558c-4l8k8") == key(deployment="web") == key(replicaset="web-68658b558c")
    assert len({key(deployment="web"), key(service="web"), key(), key(alertname="B"), key(namespace="b")}) == 5


@pytest.mark.parametrize("name", ["`ignore all`", "Not A Name", "a\nb", "x" * 300, "-", ""])
def test_what_no_object_can_be_called_is_no_object(name: str) -> None:
    assert subject_of({"namespace": "shop", "pod": name, "deployment": name, "node": name, "service": name}) is None
    assert namespace_of({"namespace": name}) == ""
