"""The recorded shop: the reports of `reports` with matching logs, events and objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.values.tools import ToolResult
from tests.triage.recorded_cluster import RecordedCluster, refused
from tests.triage.reports import SHOP, report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.findings import DiagnosisReport
    from holmes.values.json_types import JsonValue
    from tests.triage.recorded_cluster import Answer, Answers

NAMESPACES = "NAME   STATUS   AGE\ndefault   Active   40d\nshop   Active   12d\nshop-staging   Active   3d\n"
LOG = """Logs of Pod 'cart-5d8f6bb7c9-qwz7x' in namespace 'shop': 1 of 1 pods, 1 container log, showing 4 of 4 lines
=== pod cart-5d8f6bb7c9-qwz7x, container app: running, ready, 3 restarts
showing 4 of 4 lines
2026-11-22T04:58:00.000Z starting
2026-11-22T04:58:01.000Z loading the price list
2026-11-22T04:58:40.000Z ERROR cannot allocate 32 MiB for the price list
2026-11-22T04:58:41.000Z ERROR cannot allocate 48 MiB for the price list
"""
EVENTS = """LAST SEEN   TYPE      REASON    OBJECT                         MESSAGE
4m          Normal    Pulled    Pod/cart-5d8f6bb7c9-qwz7x      Container image already present
2m          Warning   BackOff   Pod/cart-5d8f6bb7c9-qwz7x      Back-off restarting failed container app
"""
RELATED = {
    "payments": "Deployment shop/payments: 2/2 ready, age 12d\npods:\n"
    "  Pod shop/payments-7f9c8d6b5-k4qx2: Running, ready, 0 restarts\n"
    "changed in the last 24 h:\n  2026-11-22T03:00:00Z Deployment shop/payments: image 1.8 -> 1.9",
    "cart": "Deployment shop/cart: 0/1 ready, age 12d",
    "worker-1": "Node worker-1: present, age 40d",
}


USAGE = "NAMESPACE   NAME   CPU(cores)   MEMORY(bytes)\nshop   cart-1   5m   60Mi\nshop   web-1   90m   1Gi\n"


def diagnosis(arguments: Mapping[str, JsonValue], whole: DiagnosisReport = SHOP) -> Answer:
    namespace, resource = arguments.get("namespace"), str(arguments.get("resource", ""))
    if namespace not in (None, "*", "shop", "default", "shop-staging"):
        return refused(f"namespace {namespace!r} does not exist; the closest existing name is 'shop'")
    if namespace in ("default", "shop-staging"):
        return report(namespaces=(str(namespace),))
    if resource:
        name = resource.rpartition("/")[2]
        kept = tuple(each for each in whole.incidents if name in (each.culprit.name, *(a.name for a in each.affected)))
        return report(*kept, resource=resource)
    return whole


def logs(arguments: Mapping[str, JsonValue]) -> Answer:
    if str(arguments["name"]).startswith("cart"):
        return LOG
    return ToolResult(status="no_data", data=f"No log lines found. Logs of {arguments['name']!r}")


def related(arguments: Mapping[str, JsonValue]) -> Answer:
    name = str(arguments["resource"]).rpartition("/")[2]
    if name in RELATED and arguments.get("namespace") in (None, "*", "shop"):
        return RELATED[name]
    near = "; did you mean 'payments'?" if name.startswith("pay") else ""
    return refused(f"{arguments['resource']!r} not found{near}")


def objects(arguments: Mapping[str, JsonValue]) -> Answer:
    if arguments["kind"] == "namespaces":
        name = arguments.get("name")
        known = name in (None, "shop", "default", "shop-staging")
        return NAMESPACES if known else refused(f'namespaces "{name}" not found')
    return ToolResult(status="no_data", error="No resources found")


def shop(**changed: Answers) -> RecordedCluster:
    """The cluster. Keyword arguments replace answers of tools."""
    answers: dict[str, Answers] = {
        "kubernetes_diagnose": diagnosis,
        "kubernetes_related": related,
        "kubernetes_logs": logs,
        "kubectl_events": lambda given: EVENTS if "cart" in str(given.get("object", "cart")) else "",
        "kubectl_get": objects,
        "kubectl_columns": "",
        "kubectl_jq": "",
        "kubectl_count": "12\n",
        "kubectl_describe": "Name:   cart\nNamespace:   shop\n",
        "kubectl_top": USAGE,
        "kubectl_rollout_history": "deployment.apps/cart\nREVISION  CHANGE-CAUSE\n1  <none>\n",
    }
    return RecordedCluster(answers={**answers, **changed})
