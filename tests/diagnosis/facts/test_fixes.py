"""Steps of a fix are given only if they fit the state of the cluster, and are quoted for a shell."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from holmes.diagnosis.engine import all_rules, findings_of
from holmes.diagnosis.facts.evidence import value
from holmes.diagnosis.facts.fixes import (
    changed,
    created,
    instruction,
    kept_steps,
    provided,
    replaced,
    restarted,
    scaled_up,
    uncordoned,
)
from holmes.diagnosis.reports import masked_report
from holmes.kubernetes.cluster_state import ClusterState
from holmes.values.findings import DiagnosisReport, FixStep, Incident, ObjectRef, ScanCost
from holmes.values.findings_json import report_from_json, report_to_json
from holmes.values.fixes import fix_line, fix_lines
from tests.diagnosis.row_cases import all_cases, state_of

WEB = ObjectRef(kind="Deployment", namespace="shop", name="web")
CONFIG = ObjectRef(kind="ConfigMap", namespace="shop", name="web-config")


def state(*objects: dict[str, Any], **more: Any) -> ClusterState:  # noqa: ANN401  whatever a case holds
    return state_of({"objects": objects, **more})


def deployment(replicas: int = 0, **metadata: Any) -> dict[str, Any]:  # noqa: ANN401  whatever an object holds
    return {"kind": "Deployment", "metadata": {"name": "web", **metadata}, "spec": {"replicas": replicas}}


def lines(steps: tuple[FixStep, ...]) -> list[str]:
    return [fix_line(step) for step in steps]


def scaled(found: ClusterState) -> tuple[FixStep, ...]:
    return kept_steps((scaled_up(found, found.of("Deployment")[0]),), found)


def test_a_workload_gets_the_replicas_that_it_had() -> None:
    event = {"object": "Deployment/web", "reason": "ScalingReplicaSet", "type": "Normal"}
    found = state(deployment(), events=[{**event, "message": "Scaled down replica set web-5d to 0 from 4"}])

    (step,) = scaled(found)

    assert fix_line(step) == "kubectl -n shop scale deployment/web --replicas=4"
    assert step.check == "kubectl -n shop rollout status deployment/web --timeout=2m"
    assert lines(scaled(state(deployment())))[0].endswith("--replicas=1")


def test_a_workload_with_replicas_is_never_scaled() -> None:
    assert scaled(state(deployment(replicas=2))) == ()


def test_nothing_is_changed_that_another_object_controls_or_that_is_deleted() -> None:
    owned = state(deployment(owner="ReplicaSet/parent"))
    deleted = state(deployment(deletionTimestamp="2026-11-22T04:59:00Z"))

    assert scaled(owned) == ()
    assert scaled(deleted) == ()
    assert kept_steps((changed(WEB, "spec.paused", right=False),), owned) == ()


def test_nothing_is_created_that_exists_or_that_could_not_be_listed() -> None:
    account = ObjectRef(kind="ServiceAccount", namespace="shop", name="web")
    step = created(account, "serviceaccount", "web")

    assert lines(kept_steps((step,), state())) == ["kubectl -n shop create serviceaccount web"]
    assert kept_steps((step,), state({"kind": "ServiceAccount", "metadata": {"name": "web"}})) == ()
    assert kept_steps((step,), state(gaps=["ServiceAccount"])) == ()
    assert kept_steps((provided(CONFIG, WEB),), state({"kind": "ConfigMap", "metadata": {"name": "web-config"}})) == ()


def test_a_patch_tests_the_old_value() -> None:
    found = state(
        {"kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app.kubernetes.io/name": "wbe"}}}
    )
    service = ObjectRef(kind="Service", namespace="shop", name="web")

    (step,) = kept_steps((changed(service, "spec.selector", "web", "app.kubernetes.io/name"),), found)
    words = shlex.split(fix_line(step))

    assert words[:6] == ["kubectl", "-n", "shop", "patch", "service/web", "--type=json"]
    path = "/spec/selector/app.kubernetes.io~1name"
    assert json.loads(words[-1]) == [
        {"op": "test", "path": path, "value": "wbe"},
        {"op": "replace", "path": path, "value": "web"},
    ]


@pytest.mark.parametrize(
    ("kind", "path", "right"),
    [
        ("Pod", "spec.nodeName", "node1"),  # cannot be changed
        ("StatefulSet", "spec.serviceName", "peers"),
        ("RoleBinding", "roleRef.name", "reader"),
        ("Service", "spec.type", "ClusterIP"),  # is right already
        ("Service", "spec.no.such.place", "x"),
    ],
)
def test_a_patch_that_cannot_work_is_not_given(kind: str, path: str, right: str) -> None:
    found = state(
        {
            "kind": kind,
            "metadata": {"name": "web"},
            "spec": {"nodeName": "node9", "serviceName": "x", "type": "ClusterIP"},
            "roleRef": {"name": "raeder"},
        }
    )
    assert kept_steps((changed(ObjectRef(kind=kind, namespace="shop", name="web"), path, right),), found) == ()


def test_a_node_that_accepts_pods_is_not_uncordoned() -> None:
    cordoned = state({"kind": "Node", "metadata": {"name": "node1"}, "spec": {"unschedulable": True}})
    open_node = state({"kind": "Node", "metadata": {"name": "node1"}, "spec": {}})

    assert lines(kept_steps((uncordoned(cordoned.of("Node")[0]),), cordoned)) == ["kubectl uncordon node1"]
    assert kept_steps((uncordoned(open_node.of("Node")[0]),), open_node) == ()


def test_only_the_wrong_word_of_a_setting_is_replaced() -> None:
    url = "http://cart:8081/cart?next=my-cart"
    found = state({"kind": "ConfigMap", "metadata": {"name": "web-config"}, "data": {"url": url}}, deployment())
    setting = value(found.of("ConfigMap")[0], "data.url", url)

    steps = kept_steps(replaced(setting, "cart:8081", "cart:8080", WEB), found)

    assert json.loads(steps[0].action) == "http://cart:8080/cart?next=my-cart"
    assert lines(steps)[1] == "kubectl -n shop rollout restart deployment/web"


def test_a_setting_that_changed_meanwhile_or_is_a_file_is_not_patched() -> None:
    found = state({"kind": "ConfigMap", "metadata": {"name": "web-config"}, "data": {"url": "http://other"}})
    config = found.of("ConfigMap")[0]

    assert kept_steps(replaced(value(config, "data.url", "http://crat"), "crat", "cart", WEB), found) == ()
    (step,) = replaced(value(config, "data.file", "a\nhttp://crat\n"), "crat", "cart", WEB)
    assert step is not None
    assert step.kind == "instruction"


def test_a_tool_that_would_undo_the_change_is_named() -> None:
    found = state(deployment(annotations={"meta.helm.sh/release-name": "shop"}))

    assert lines(scaled(found))[1] == ("# Make the change in the source, too: Deployment shop/web is managed by Helm.")


def test_lines_end_with_the_last_check() -> None:
    found = state(deployment(), {"kind": "ConfigMap", "metadata": {"name": "web-config"}, "data": {"a": "b"}})
    steps = kept_steps((changed(CONFIG, "data.a", "c"), restarted(WEB), instruction(WEB, "Look.")), found)

    assert fix_lines(steps)[1:] == (
        "kubectl -n shop rollout restart deployment/web",
        "# Look.",
        "kubectl -n shop rollout status deployment/web --timeout=2m  # shows whether it worked",
    )


def test_every_step_of_every_rule_is_a_complete_command() -> None:
    rules = {rule.id: rule for rule in all_rules()}
    steps = [
        step
        for case in all_cases()
        if case.fires
        for finding in findings_of(rules[case.rule_id], case.state)
        for step in finding.fix
    ]
    verbs = {
        shlex.split(fix_line(step))[shlex.split(fix_line(step)).index("kubectl") + 1 :][0]
        for step in steps
        if step.kind != "instruction"
    }

    assert len(steps) > 60
    assert verbs <= {"-n", "patch", "uncordon"}
    for step in steps:
        line = fix_line(step)
        assert "<" not in line, line
        assert "\n" not in line
        assert step.kind == "instruction" or shlex.split(step.check)[0] == "kubectl"


def report(step: FixStep) -> DiagnosisReport:
    incident = Incident(id="a", severity="warning", title="t", culprit=WEB, cause="c", findings=(), fix=(step,))
    cost = ScanCost(list_calls=0, requests=0, logs_read=0, seconds=0)
    return DiagnosisReport(
        taken_at="", namespaces=(), incidents=(incident,), checked=(), not_checked=(), rules_run=0, cost=cost
    )


def test_steps_survive_their_json_and_are_dropped_with_a_secret() -> None:
    step = FixStep(kind="patch", object=CONFIG, action='"c"', path="/data/a", old='"b"', check="kubectl get x")

    assert report_from_json(report_to_json(report(step))).incidents[0].fix == (step,)
    assert masked_report(report(step), lambda text: text.replace('"b"', "***")).incidents[0].fix == ()
