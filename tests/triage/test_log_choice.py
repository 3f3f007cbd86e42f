"""Which logs an answer reads: along the edges, whatever the alphabet says, and every workload before a second pod."""

from __future__ import annotations

from typing import Any

from holmes.kubernetes.cluster_state import LogKey
from holmes.triage.log_choice import MOST_LOGS
from holmes.triage.looks import LookRequest, wanted_logs
from tests.triage.corpus.loading import scan_of
from tests.triage.corpus.servers import server_objects

SERVERS = {"checkout": {"env": {"PRICING": "http://zone-pricing:8080"}}, "zone-pricing": {}, "accounts": {}}


def more_pods(name: str, number: int, *, image: str = "") -> list[dict[str, Any]]:
    """Pods of the same ReplicaSet beside the first one."""
    (pod,) = (each for each in server_objects(name, {"image": image} if image else {}) if each["kind"] == "Pod")
    return [
        {**pod, "metadata": {**pod["metadata"], "name": f"{name}-5d9-{index}{image[-1:]}"}} for index in range(number)
    ]


def chosen(question: str, *objects: dict[str, Any]) -> tuple[LogKey, ...]:
    return wanted_logs(LookRequest(question=question), scan_of({"servers": SERVERS, "objects": objects}))


def test_the_dependency_gets_a_log_before_the_second_pod_of_the_subject() -> None:
    keys = chosen("why does checkout fail?", *more_pods("checkout", 60))

    assert len(keys) == MOST_LOGS
    assert [key.container for key in keys[:3]] == ["checkout", "zone-pricing", "checkout"]


def test_a_pod_of_each_image_comes_before_a_second_pod_of_one_image() -> None:
    keys = chosen("why does checkout fail?", *more_pods("checkout", 9), *more_pods("checkout", 1, image="canary:2"))

    assert "checkout-5d9-02" in [key.pod.name for key in keys[:3]]


def test_what_the_subject_does_not_need_is_not_read() -> None:
    assert {key.container for key in chosen("why does checkout fail?")} == {"checkout", "zone-pricing"}
    assert {key.container for key in chosen("is zone-pricing ok?")} == {"zone-pricing", "checkout"}
    assert chosen("which image does checkout use?") == ()
    assert chosen("how many pods are there?") == ()


def test_in_a_namespace_the_workloads_that_others_use_come_first() -> None:
    keys = chosen("are there errors in namespace shop?")

    assert keys[0].container == "zone-pricing"
    assert {key.container for key in keys} == set(SERVERS)
