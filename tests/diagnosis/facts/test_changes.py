"""Recent changes: rollouts with their differences, scaling, edits of the objects that a workload depends on."""

from __future__ import annotations

from typing import Any

import pytest

from holmes.diagnosis.facts.changes import recent_changes, template_differences
from holmes.kubernetes.fields import moment, written
from holmes.values.findings import ObjectRef
from tests.diagnosis.row_cases import NOW, state_of

WEB = ObjectRef(kind="Deployment", namespace="shop", name="web")


def template(image: str, **more: object) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": image, **more}]},
    }


def deployment(**more: object) -> dict[str, Any]:
    return {
        "kind": "Deployment",
        "metadata": {"name": "web", "age": 9000, **more},
        "spec": {"template": template("w:2")},
    }


def replica_set(revision: int, age: int, image: str, **more: object) -> dict[str, Any]:
    annotations = {"deployment.kubernetes.io/revision": str(revision)}
    metadata = {"name": f"web-{revision}", "age": age, "owner": "Deployment/web", "annotations": annotations}
    return {"kind": "ReplicaSet", "metadata": metadata, "spec": {"template": template(image, **more)}}


def edit(manager: str, age: int, **more: object) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "time": {"ago": age}, **more}


def test_a_rollout_tells_what_differs_from_the_one_before() -> None:
    state = state_of(
        {
            "objects": [
                deployment(),
                replica_set(10, 300, "registry.shop.example/web:1.1"),
                replica_set(9, 4000, "registry.shop.example/web:1.0"),
            ]
        }
    )
    (change,) = recent_changes(state, WEB, NOW - 200)
    assert change.object == WEB
    assert change.at == written(NOW - 300)
    images = "registry.shop.example/web:1.0 → registry.shop.example/web:1.1"
    assert change.what == f"rollout of ReplicaSet web-10: container web image {images}"


def test_a_pod_has_the_changes_of_its_deployment() -> None:
    pod = {"kind": "Pod", "metadata": {"name": "web-2-x", "owner": "ReplicaSet/web-2", "age": 290}}
    state = state_of({"objects": [deployment(), pod, replica_set(2, 300, "w:2"), replica_set(1, 9000, "w:1")]})
    (change,) = recent_changes(state, ObjectRef(kind="Pod", namespace="shop", name="web-2-x"), None)
    assert change.object == WEB


def test_what_happened_after_the_incident_or_long_before_it_is_no_change_before_it() -> None:
    objects = [deployment(), replica_set(2, 300, "w:2"), replica_set(1, 9000, "w:1")]
    state = state_of({"objects": objects})
    assert recent_changes(state, WEB, NOW - 600) == ()
    assert recent_changes(state, WEB, NOW, window_seconds=120) == ()
    assert recent_changes(state, WEB, None) != ()


def test_an_edit_of_a_config_map_that_the_workload_takes_its_environment_from_is_told() -> None:
    source = {"envFrom": [{"configMapRef": {"name": "web-settings"}}]}
    web = deployment()
    web["spec"]["template"] = template("w:1", **source)
    settings = {
        "kind": "ConfigMap",
        "metadata": {
            "name": "web-settings",
            "age": 9000,
            "managedFields": [edit("kubectl-edit", 100)],
        },
    }
    other = {"kind": "ConfigMap", "metadata": {"name": "other", "age": 20}}
    (change,) = recent_changes(state_of({"objects": [web, settings, other]}), WEB, None)
    assert str(change.object) == "ConfigMap shop/web-settings"
    assert change.what == "was changed by kubectl-edit"


def test_writes_of_controllers_and_of_the_status_are_no_changes() -> None:
    written_by = [
        edit("kube-controller-manager", 100),
        edit("some-operator", 90, subresource="status"),
    ]
    assert recent_changes(state_of({"objects": [deployment(managedFields=written_by)]}), WEB, None) == ()


def test_scaling_by_hand_counts_and_the_scaling_of_a_rollout_does_not() -> None:
    objects = [deployment(), replica_set(2, 3000, "w:2"), replica_set(1, 9000, "w:1")]
    told = [
        ("Scaled up replica set web-2 from 0 to 1", 2999),
        ("Scaled down replica set web-1 from 1 to 0", 2990),
        ("Scaled down replica set web-2 from 3 to 0", 60),
    ]
    events = [
        {"object": "Deployment/web", "reason": "ScalingReplicaSet", "message": message, "age": age}
        for message, age in told
    ]
    changes = recent_changes(state_of({"objects": objects, "events": events}), WEB, None)
    assert [change.what.partition(":")[0] for change in changes] == ["scaled", "rollout of ReplicaSet web-2"]
    assert changes[0].what == "scaled: Scaled down replica set web-2 from 3 to 0"


def test_scaling_a_stateful_set_by_hand_is_told() -> None:
    sts = {
        "kind": "StatefulSet",
        "metadata": {"name": "db", "age": 9000, "managedFields": [edit("kubectl", 60, subresource="scale")]},
    }
    (change,) = recent_changes(
        state_of({"objects": [sts]}), ObjectRef(kind="StatefulSet", namespace="shop", name="db"), None
    )
    assert change.what == "was scaled by kubectl"


def test_scaling_a_stateful_set_to_zero_is_told_although_it_leaves_no_managed_field() -> None:
    sts = {"kind": "StatefulSet", "metadata": {"name": "db", "age": 9000}, "spec": {"replicas": 0}}
    deleted = {"object": "StatefulSet/db", "reason": "SuccessfulDelete", "message": "delete Pod db-0", "age": 60}
    ref = ObjectRef(kind="StatefulSet", namespace="shop", name="db")
    (change,) = recent_changes(state_of({"objects": [sts], "events": [deleted]}), ref, None)
    assert change.what == "scaled to zero: delete Pod db-0"


def test_what_was_made_together_with_the_workload_is_told_once() -> None:
    service = {"kind": "Service", "metadata": {"name": "web", "age": 101}, "spec": {"selector": {"app": "web"}}}
    web = {"kind": "Deployment", "metadata": {"name": "web", "age": 100}, "spec": {"template": template("w:1")}}
    changes = recent_changes(state_of({"objects": [web, service]}), WEB, None)
    assert [(str(change.object), change.what) for change in changes] == [("Deployment shop/web", "was created")]


def test_at_most_five_changes_are_told_and_the_newest_first() -> None:
    entries = [edit(f"tool-{age}", age) for age in range(100, 800, 100)]
    changes = recent_changes(state_of({"objects": [deployment(managedFields=entries)]}), WEB, None)
    assert [change.at for change in changes] == [written(NOW - age) for age in (100, 200, 300, 400, 500)]


def test_an_object_that_does_not_exist_has_no_changes() -> None:
    assert recent_changes(state_of({"objects": []}), WEB, None) == ()


def test_template_differences_name_the_field_and_compare_lists_by_name() -> None:
    old = template(
        "w:1",
        env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "DB_PASSWORD", "value": "x"}],
        resources={"limits": {"memory": "1Gi"}},
        volumeMounts=[{"name": "data", "mountPath": "/data"}],
    )
    new = template(
        "w:2",
        env=[{"name": "B", "value": "2"}, {"name": "A", "value": "9"}, {"name": "DB_PASSWORD", "value": "y"}],
        resources={"limits": {"memory": "64Mi"}},
        command=["serve", "--port=81"],
    )
    new["metadata"]["labels"] = {"app": "web", "pod-template-hash": "5d4"}
    found = {each.path: str(each) for each in template_differences(old, new)}
    container = "spec.template.spec.containers[0]"
    assert found == {
        f"{container}.image": "container web image w:1 → w:2",
        f"{container}.command": 'container web command (not set) → ["serve", "--port=81"]',
        f"{container}.env[1].value": "container web env A 1 → 9",
        f"{container}.env[2].value": "container web env DB_PASSWORD (not shown) → (not shown)",
        f"{container}.resources.limits.memory": "container web resources limits memory 1Gi → 64Mi",
        f"{container}.volumeMounts[0]": 'container web mount /data {"name": "data"} → (not set)',
    }
    assert next(iter(found)) == f"{container}.image"


@pytest.mark.parametrize("name", ["DB_PASSWORD", "DB_PASS", "DB_PWD", "REDIS_AUTH", "API_KEY", "SESSION_TOKEN"])
def test_the_value_of_a_variable_with_a_secret_name_is_not_shown(name: str) -> None:
    old, new = (template("w:1", env=[{"name": name, "value": value}]) for value in ("hunter2", "hunter3"))
    new["metadata"]["annotations"] = {f"shop.example/{name}": "hunter2"}
    said = " ".join(f"{each} {each.old} {each.new}" for each in template_differences(old, new))
    assert "hunter" not in said
    assert f"container web env {name} (not shown)" in said


def test_a_variable_that_only_names_a_secret_is_shown() -> None:
    old, new = (template("w:1", env=[{"name": "DB_PASSWORD_FILE", "value": value}]) for value in ("/a", "/b"))
    assert str(template_differences(old, new)[0]) == "container web env DB_PASSWORD_FILE /a → /b"


def test_equal_and_odd_templates_do_not_differ() -> None:
    assert template_differences(template("w:1"), template("w:1")) == ()
    assert template_differences({}, {"spec": {"containers": "none"}})[0].new == "none"
    assert template_differences({"spec": None}, {"spec": {"containers": [None, {"name": 3}]}}) != ()


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+12:00", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00Z"])
def test_a_time_at_the_end_of_the_calendar_is_no_time(text: str) -> None:
    assert moment(text) is None
