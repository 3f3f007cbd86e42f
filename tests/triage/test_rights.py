"""Questions about rights are answered from the bindings, and never with the fault of a workload."""

from __future__ import annotations

from typing import Any, Final

import pytest

from holmes.triage.looks import LookRequest, take_first_look
from holmes.values.first_look import FirstLook
from tests.triage.corpus.loading import scan_of

_API: Final = "rbac.authorization.k8s.io"
OBJECTS: Final[list[dict[str, Any]]] = [
    *({"kind": "Namespace", "metadata": {"name": name}, "status": {"phase": "Active"}} for name in ("shop", "sho")),
    {
        "kind": "Role",
        "metadata": {"name": "reader", "namespace": "shop"},
        "rules": [{"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]}],
    },
    {
        "kind": "RoleBinding",
        "metadata": {"name": "readers", "namespace": "shop"},
        "roleRef": {"apiGroup": _API, "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "Group", "name": "hydrologists", "apiGroup": _API}],
    },
]


def look(question: str) -> FirstLook:
    scan = scan_of({"objects": OBJECTS, "servers": {"web": {}}})
    return take_first_look(LookRequest(question=question), scan)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("can hydrologists read logs in shop", "Yes: Group hydrologists may get pods/log"),
        ("can hydrologists read logs", "Only in namespace shop: Group hydrologists may get pods/log there"),
        ("can hydrologists read logs in namespaces shop and sho", "Only in namespace shop, and not in sho: "),
        ("can the hydrologists list pods in shop?", "Yes: Group hydrologists may list pods"),
        ("may hydrologists delete pods in shop?", "No binding that was read allows `hydrologists` to delete pods"),
        ("dürfen hydrologists Pods in shop löschen?", "No binding that was read allows `hydrologists` to delete pods"),
        ("who can read logs in shop", "1 may get pods/log in namespace shop: Group hydrologists"),
    ],
)
def test_the_bindings_answer(question: str, told: str) -> None:
    found = look(question)
    assert found.verdict == "answered"
    assert found.summary.startswith(told)


@pytest.mark.parametrize(
    "question", ["can the operators restart pods in shop", "who can restart it", "can the developers restart it"]
)
def test_what_no_binding_tells_is_neither_a_fault_nor_health(question: str) -> None:
    assert look(question).verdict in ("inconclusive", "not_found", "not_understood")


def test_a_workload_that_can_start_is_asked_about_its_health() -> None:
    assert look("can web start?").verdict == "healthy"
