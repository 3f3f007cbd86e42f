"""A subject with a critical fault that explains something else is never called healthy."""

from __future__ import annotations

from typing import Any, Final

import pytest

from holmes.triage.looks import LookRequest, take_first_look
from holmes.values.first_look import FirstLook
from tests.triage.corpus.loading import scan_of

_LABELS: Final = {"app": "ingest", "pod-template-hash": "new"}
NEW_POD: Final[dict[str, Any]] = {
    "kind": "Pod",
    "metadata": {"name": "ingest-new-1", "namespace": "shop", "owner": "ReplicaSet/ingest-new", "labels": _LABELS},
    "spec": {"nodeName": "elm-1", "containers": [{"name": "ingest", "image": "registry.shop.example/ingest:4.1.O"}]},
    "status": {
        "phase": "Pending",
        "conditions": [{"type": "Ready", "status": "False"}, {"type": "PodScheduled", "status": "True"}],
        "containerStatuses": [
            {
                "name": "ingest",
                "image": "registry.shop.example/ingest:4.1.O",
                "ready": False,
                "restartCount": 0,
                "state": {
                    "waiting": {
                        "reason": "ImagePullBackOff",
                        "message": "Back-off pulling image: registry.shop.example/ingest:4.1.O: not found",
                    }
                },
            }
        ],
    },
}
OBJECTS: Final[list[dict[str, Any]]] = [
    {"kind": "Namespace", "metadata": {"name": "shop"}, "status": {"phase": "Active"}},
    {
        "kind": "ReplicaSet",
        "metadata": {"name": "ingest-new", "namespace": "shop", "owner": "Deployment/ingest", "labels": _LABELS},
    },
    NEW_POD,
]


def look(question: str) -> FirstLook:
    scan = scan_of({"objects": OBJECTS, "servers": {"ingest": {}}})
    return take_first_look(LookRequest(question=question), scan)


@pytest.mark.parametrize("question", ["is ingest down", "is ingest serving traffic?", "is ingest completely down"])
def test_the_other_fault_is_named(question: str) -> None:
    found = look(question)
    assert found.verdict == "inconclusive"  # no log tells whether it works
    assert "4.1.O" in found.summary
    assert "No fault was found" not in found.summary
