"""The current usage comes from `metrics.k8s.io`. Without a metrics server, the answer says that it is unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from holmes.diagnosis.usage import read_usage
from holmes.kubernetes.client import ClusterClient, ObjectList
from holmes.kubernetes.errors import NotFound
from holmes.triage.looks import LookRequest, take_first_look, wants_usage
from holmes.values.first_look import FirstLook
from tests.triage.shop import shop

PODS = {"checkout-5d9-x": ("250m", "90Mi"), "catalog-5d9-x": ("40m", "300Mi")}


class MetricsServer:
    """A client of a cluster that serves the usage of two pods, but not of nodes."""

    async def list(self, path: str) -> ObjectList:
        if not path.endswith("/pods"):
            raise NotFound(f"GET {path}: not found", status_code=404)
        items = [
            {
                "metadata": {"name": name, "namespace": "shop"},
                "containers": [{"name": "app", "usage": {"cpu": cpu, "memory": memory}}],
            }
            for name, (cpu, memory) in PODS.items()
        ]
        return ObjectList(items=tuple(cast("list[Any]", items)), complete=True)


async def ask(question: str) -> FirstLook:
    usage = await read_usage(cast("ClusterClient", MetricsServer()))
    return take_first_look(LookRequest(question=question), replace(shop(), usage=usage))


async def test_the_highest_usage_is_first() -> None:
    found = await ask("which pods use the most memory?")
    assert found.verdict == "answered"
    assert found.summary.startswith("Pod shop/catalog-5d9-x uses 300Mi of memory; 2 Pods")
    assert "390Mi together" in found.summary


async def test_the_usage_of_a_workload_is_that_of_its_pods() -> None:
    assert "uses 250m of cpu" in (await ask("what is the cpu usage of checkout?")).summary
    assert (await ask("how much memory does payments use?")).verdict == "inconclusive"


async def test_a_part_that_cannot_be_read_is_unknown() -> None:
    found = await ask("which nodes use the most cpu?")
    assert found.verdict == "inconclusive"
    assert "not found" in found.summary


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("which pods use the most memory?", True),
        ("cpu usage of checkout", True),
        ("what is the memory limit of checkout?", False),
        ("why does payments crash?", False),
    ],
)
def test_usage_is_read_only_for_questions_about_it(question: str, *, wanted: bool) -> None:
    assert wants_usage(LookRequest(question=question), shop()) is wanted
