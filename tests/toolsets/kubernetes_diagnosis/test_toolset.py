"""The diagnosis tools on a recorded cluster: incidents within their tokens, and what belongs to an object."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holmes.assets import demo_recording
from holmes.snapshot.server.serving import SnapshotServer, serve_snapshot
from holmes.toolsets.kubernetes_diagnosis.toolset import (
    DIAGNOSE_TOOL,
    KubernetesDiagnosisFactory,
    KubernetesDiagnosisToolset,
)
from holmes.toolsets.registry import ToolsetContext
from holmes.values.environment import Environment
from holmes.values.errors import ConfigError, HolmesError, ToolError
from holmes.values.findings import DiagnosisReport
from holmes.values.findings_json import report_from_json
from holmes.values.first_look import RELATED_TOOL
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation, ToolResult


@pytest.fixture
async def server() -> AsyncIterator[SnapshotServer]:
    async with serve_snapshot(demo_recording()) as running:
        yield running


@pytest.fixture
def toolset(server: SnapshotServer) -> KubernetesDiagnosisToolset:
    return KubernetesDiagnosisToolset(Environment.of({"KUBECONFIG": str(server.kubeconfig)}))


async def call(toolset: KubernetesDiagnosisToolset, name: str, **arguments: str | int) -> ToolResult:
    tool = next(tool for tool in toolset.tools if tool.name == name)
    defaults = {parameter.name: parameter.default for parameter in tool.parameters if parameter.default is not None}
    given = ToolInvocation(call_id=ToolCallId("call"), tool=tool, arguments={**defaults, **arguments})
    assert toolset.describe(given)
    return await toolset.call(given)


async def diagnosis(toolset: KubernetesDiagnosisToolset, **arguments: str | int) -> DiagnosisReport:
    return report_from_json((await call(toolset, DIAGNOSE_TOOL, **arguments)).data)


async def test_incidents_of_a_namespace_name_their_culprits(toolset: KubernetesDiagnosisToolset) -> None:
    found = await diagnosis(toolset, namespace="shop")

    assert str(found.incidents[0].culprit) == "ConfigMap shop/payments-config"
    assert "Deployment shop/checkout" in map(str, found.incidents[0].affected)
    assert all(incident.culprit.namespace != "legacy" for incident in found.incidents)


async def test_the_whole_cluster_is_looked_at_when_no_namespace_is_meant(toolset: KubernetesDiagnosisToolset) -> None:
    found = await diagnosis(toolset)

    assert {incident.culprit.namespace for incident in found.incidents if incident.severity == "critical"} == {
        "shop",
        "legacy",
    }


async def test_the_namespace_that_the_user_chose_is_meant_when_none_is_given(server: SnapshotServer) -> None:
    variables = {"KUBECONFIG": str(server.kubeconfig), "HOLMES_KUBE_NAMESPACE": "legacy"}
    chosen = KubernetesDiagnosisToolset(Environment.of(variables))

    assert (await diagnosis(chosen)).namespaces == ("legacy",)
    assert (await diagnosis(chosen, namespace="*")).namespaces == ()


@pytest.mark.parametrize(
    ("resource", "culprit"),
    [
        ("deployment/checkout", "ConfigMap shop/payments-config"),
        ("svc/search", "Service shop/search"),
        ("recommendations", "Deployment shop/recommendations"),
    ],
)
async def test_only_what_concerns_an_object_is_told(
    toolset: KubernetesDiagnosisToolset, resource: str, culprit: str
) -> None:
    found = await diagnosis(toolset, namespace="shop", resource=resource)

    assert [str(incident.culprit) for incident in found.incidents if incident.severity != "info"] == [culprit]


async def test_the_answer_keeps_to_its_tokens(toolset: KubernetesDiagnosisToolset) -> None:
    long = await call(toolset, DIAGNOSE_TOOL, namespace="*", max_tokens=20_000)
    short = await call(toolset, DIAGNOSE_TOOL, namespace="*", max_tokens=1_500)

    assert len(short.data) < len(long.data)
    assert len(short.data) < 1_500 * 5


@pytest.mark.parametrize("max_tokens", [0, 499, 100_001])
async def test_a_size_that_makes_no_sense_is_refused(toolset: KubernetesDiagnosisToolset, max_tokens: int) -> None:
    with pytest.raises(ToolError, match="between 500 and"):
        await call(toolset, DIAGNOSE_TOOL, max_tokens=max_tokens)


async def test_a_namespace_that_does_not_exist_is_told_with_the_nearest(toolset: KubernetesDiagnosisToolset) -> None:
    with pytest.raises((ConfigError, ToolError), match="shop"):
        await call(toolset, DIAGNOSE_TOOL, namespace="shopp")


async def test_related_shows_what_is_around_a_workload(toolset: KubernetesDiagnosisToolset) -> None:
    text = (await call(toolset, RELATED_TOOL, resource="deploy/payments", namespace="shop")).data

    assert text.startswith("Deployment shop/payments: 0/2 ready")
    assert "ConfigMap shop/payments-config: present" in text
    assert "Service shop/payments" in text
    assert "CreateContainerConfigError" in text


async def test_related_shows_who_uses_a_configmap(toolset: KubernetesDiagnosisToolset) -> None:
    text = (await call(toolset, RELATED_TOOL, resource="cm/payments-config", namespace="shop")).data

    assert "used by:\n  Deployment shop/payments" in text


async def test_related_names_the_nearest_when_there_is_no_such_object(toolset: KubernetesDiagnosisToolset) -> None:
    with pytest.raises(ToolError, match="did you mean 'payments'"):
        await call(toolset, RELATED_TOOL, resource="deploy/payment", namespace="shop")


async def test_without_a_cluster_the_toolset_says_why_it_cannot_be_used(tmp_path: object) -> None:
    context = ToolsetContext(environment=Environment.of({"HOME": str(tmp_path)}))

    with pytest.raises(HolmesError, match="No cluster is configured"):
        await KubernetesDiagnosisFactory().check(context)
