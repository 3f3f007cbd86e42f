"""The main job: `holmes ask` finds each of seven faults on a real cluster, through litellm and a real HTTP provider.

The provider is scripted: it asks for the tools that a model would ask for, takes the pod's name from the first result,
and its answer quotes the evidence that it was really sent. Without the evidence there is nothing to quote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.fixtures import Cluster, FaultName, apply_fault, create_namespace, wait_until
from tests.support.command_line import Home, provider_config, read_report, tool_results
from tests.support.openai_server import Call, OpenAIServer, Reply, call

pytestmark = pytest.mark.cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A fault: whom it hits, when it shows in `kubectl get pods` or events, and the lines that prove it."""

    fault: FaultName
    workload: str
    shows: str
    evidence: tuple[str, ...]


CASES = (
    Case(
        fault="crash-loop",
        workload="checkout",
        shows=r"CrashLoopBackOff",
        evidence=(r"FATAL: could not connect to db\.shop\.svc:5432: connection refused", r"Exit Code:\s+3"),
    ),
    Case(
        fault="oom-kill",
        workload="recommendations",
        shows=r"OOMKilled|CrashLoopBackOff",
        evidence=(r"Reason:\s+OOMKilled", r"Exit Code:\s+137", r"memory:\s+32Mi"),
    ),
    Case(
        fault="image-pull-error",
        workload="catalog",
        shows=r"ImagePullBackOff|ErrImagePull",
        evidence=(r"Failed to pull image \"registry\.shop\.example/catalog:3\.1\.0-typo\"", r"ErrImagePull"),
    ),
    Case(
        fault="missing-configmap",
        workload="payments",
        shows=r"CreateContainerConfigError",
        evidence=(r"configmap \"payments-settings\" not found",),
    ),
    Case(
        fault="unschedulable",
        workload="search",
        shows=r"Pending",
        evidence=(r"0/1 nodes are available: 1 Insufficient cpu",),
    ),
    Case(
        fault="failing-probe",
        workload="cart",
        shows=r"[1-9]\d* \(|CrashLoopBackOff",
        evidence=(r"(Readiness|Liveness) probe failed: .*:8081/healthz.*connection refused",),
    ),
    Case(
        fault="service-wrong-selector",
        workload="web",
        shows=r"1/1\s+Running",
        evidence=(r"Selector:\s+app=web-frontend\b", r"(?m)Endpoints:[ \t]*(<none>)?`?$", r"app=web\b"),
    ),
)


@pytest.fixture(scope="module")
def shops(cluster: Cluster) -> Iterator[dict[FaultName, str]]:
    """Every fault in a namespace of its own, applied at once so that the slow ones ripen together."""
    namespaces = {case.fault: create_namespace(cluster, case.fault) for case in CASES}
    for fault, namespace in namespaces.items():
        apply_fault(cluster, namespace, fault)
    yield namespaces
    cluster.run("delete", "namespace", *namespaces.values(), "--wait=false")


@dataclass(frozen=True, slots=True)
class Investigator:
    """What the scripted provider does: list, look closer, answer with quotes."""

    case: Case
    namespace: str

    def __call__(self, body: dict[str, Any]) -> Reply:
        results = tool_results(body)
        if not results:
            listing = call("kubectl_get", kind="pods,services", namespace=self.namespace)
            return Reply(text="I list what is there.", tool_calls=(listing,))
        pod = re.search(rf"pod/({self.case.workload}-\S+)", results[0])
        assert pod is not None, results[0]
        if len(results) == 1:
            return Reply(text="Now the details, the events and the logs.", tool_calls=self._closer_look(pod[1]))
        seen = "\n".join(results)
        quotes = [match[0].strip() if (match := re.search(line, seen)) else "MISSING" for line in self.case.evidence]
        lines = "\n".join(f"- `{quote}`" for quote in quotes)
        return Reply(text=f"**{self.case.workload}** in `{self.namespace}` fails.\n\n**Evidence**\n\n{lines}\n")

    def _closer_look(self, pod: str) -> tuple[Call, ...]:
        here = {"namespace": self.namespace}
        common = (
            call("kubectl_describe", kind="pod", name=pod, **here),
            call("kubectl_events", **here),
            call("kubernetes_logs", kind="Deployment", name=self.case.workload, **here),
        )
        if self.case.fault != "service-wrong-selector":
            return common
        return (*common, call("kubectl_describe", kind="service", name=self.case.workload, **here))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("case", CASES, ids=[case.fault for case in CASES])
def test_ask_finds_the_fault_through_real_kubectl_and_log_calls(
    case: Case, shops: dict[FaultName, str], cluster: Cluster, tmp_path: Path
) -> None:
    namespace = shops[case.fault]
    wait_until(
        f"{case.workload} shows its fault",
        lambda: cluster.run("get", "pods", "--namespace", namespace, "--no-headers"),
        lambda pods: re.search(case.shows, pods) is not None,
        timeout_seconds=120,
    )
    question = f"why is the {case.workload} pod in namespace {namespace} failing?"
    report_path = tmp_path / "report.json"
    with OpenAIServer(Investigator(case, namespace)) as server:
        home = Home.make(tmp_path / "home", config=provider_config(server.base_url), KUBECONFIG=str(cluster.viewer))
        done = home.run("ask", "-n", question, "--json-output-file", str(report_path), "--show-tool-output")
        requests = list(server.requests)
    assert done.exit_code == 0, done.stderr
    assert "MISSING" not in done.stdout, done.stderr
    seen_by_model = "\n".join(tool_results(requests[-1].body))
    report = read_report(report_path)
    for line in case.evidence:
        assert re.search(line, seen_by_model), f"the model was never sent {line}"
        assert re.search(line, str(report["answer"]))
        assert any(re.search(line, tool_call["result"]) for tool_call in report["tool_calls"])
    assert len(requests) == report["steps"] == 3
    assert all("kube" in tool_call["invocation"] for tool_call in report["tool_calls"])
    assert report["stats"]["prompt_tokens"] == 300
    assert report["stats"]["calls"] == 3
    assert re.search(r"3 steps · \d tool calls · 360 tokens", done.stderr), done.stderr
