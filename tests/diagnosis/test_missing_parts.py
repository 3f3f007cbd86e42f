"""No rule fails on an object of which a part is missing, null or of another type.

The API server guarantees types only for built-in kinds. A recording, a manifest and a custom resource can contain
anything, for example a budget without a selector, or an autoscaler without a target.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.diagnosis.engine import all_rules
from holmes.diagnosis.incidents import incidents_of
from holmes.diagnosis.scan import run_rules
from holmes.kubernetes.cluster_state import Reading
from holmes.kubernetes.fields import moment
from tests.diagnosis.row_cases import NOW, ROWS, bodies_of, event_bodies_of, log_texts_of, raw_cases, state_of_bodies
from tests.diagnosis.scenarios.recording import RECORDINGS, recorded_names
from tests.support.long_form import count

REMOVED: Final = object()
VALUES: Final[tuple[Any, ...]] = (
    REMOVED, None, [], {}, "", "x", "5", "²", "--5", "9" * 5_000, "\x00", 5, -1, 1.5, 10**30, True, [None], ["x"], [[]],
    [{}], {"": None}, {"x": "y"},
)  # fmt: skip
IDENTITY: Final = frozenset({"kind", "apiVersion", "name", "namespace"})
"""Fields without which the reader does not accept an object, and the links between owners, which the reader follows."""

Path = tuple[str | int, ...]
DAMAGE: Final = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(VALUES)), min_size=1, max_size=8
)


def paths(value: object, place: Path = ()) -> Iterator[Path]:
    """The paths of all values, except for those that identify an object."""
    items: Sequence[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        items = [each for each in value.items() if each[0] not in IDENTITY or place[:1] not in ((), ("metadata",))]
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, item in items:
        yield (*place, key)
        yield from paths(item, (*place, key))


def damage(bodies: Sequence[Any], operations: Sequence[tuple[int, int, Any]]) -> None:
    for which, where, value in operations:
        body = bodies[which % len(bodies)]
        places = list(paths(body))
        if not places:
            continue
        *above, last = places[where % len(places)]
        parent: Any = body
        for key in above:
            parent = parent[key]
        if value is REMOVED:
            del parent[last]
        else:
            parent[last] = copy.deepcopy(value)


def no_rule_fails(reading: Reading, bodies: list[Any], events: list[Any], logs: Mapping[Any, str]) -> None:
    state = state_of_bodies(reading, bodies, events, logs)
    run = run_rules(all_rules(), state)
    assert not run.failed
    incidents_of(run.findings, state)


ROW_CASES: Final = tuple(
    each for path in sorted(ROWS.glob("*.yaml")) for each in raw_cases(path) if each.get("objects")
)


@pytest.mark.timeout(900)  # the long form on a busy machine
@given(st.sampled_from(ROW_CASES), DAMAGE)
@settings(max_examples=count(long=20_000, short=1_000))
def test_no_rule_fails_on_objects_of_the_rows(raw: Mapping[str, Any], operations: list[tuple[int, int, Any]]) -> None:
    bodies, events = copy.deepcopy(list(bodies_of(raw))), copy.deepcopy(list(event_bodies_of(raw)))
    damage([*bodies, *events], operations)

    no_rule_fails(Reading(now=NOW), bodies, events, log_texts_of(raw))


@cache
def recorded(name: str) -> tuple[float, str, str]:
    """The time of a recording, its objects and its events, in JSON."""
    files = json.loads((RECORDINGS / f"{name}.recorded.json").read_text(encoding="utf-8"))
    bodies = [
        {"kind": each["kind"].removesuffix("List"), "apiVersion": each["apiVersion"], **item}
        for path, each in files.items()
        if path.startswith("objects/")
        for item in each.get("items", ())
    ]
    events = [each for each in bodies if each["kind"] == "Event"]
    objects = [each for each in bodies if each["kind"] != "Event"]
    return moment(files["recording.json"]["recordedAt"]) or 0.0, json.dumps(objects), json.dumps(events)


@pytest.mark.timeout(900)
@given(st.sampled_from(sorted(recorded_names())), DAMAGE)
@settings(max_examples=count(long=5_000, short=100))
def test_no_rule_fails_on_objects_of_the_recordings(name: str, operations: list[tuple[int, int, Any]]) -> None:
    now, objects, events = recorded(name)
    bodies, told = json.loads(objects), json.loads(events)
    damage([*bodies, *told], operations)

    no_rule_fails(Reading(now=now), bodies, told, {})


def serving(port: object, probe_port: object = 80, revision: object = "1", bound: object = "1") -> Mapping[str, Any]:
    """A Service, its Deployment and its pods, with odd numbers."""
    gpus = {"key": "gpus", "operator": "Gt", "values": [bound]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [gpus]}]}
    spec = {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "containers": [
            {
                "name": "app",
                "ports": [{"name": "http", "containerPort": 80}],
                "readinessProbe": {"httpGet": {"port": probe_port}},
            }
        ],
    }
    labels = {"app": "web"}
    unready = {"phase": "Running", "containerStatuses": [{"name": "app", "state": {"running": {}}}]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    selector = {"matchLabels": labels}
    objects = [
        {"kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": labels, "ports": [{"targetPort": port}]}},
        {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"selector": selector, "template": template}},
        {
            "kind": "ReplicaSet",
            "metadata": {
                "name": "web-1",
                "owner": "Deployment/web",
                "annotations": {"deployment.kubernetes.io/revision": revision},
            },
            "spec": {"template": template},
        },
        *(
            {
                "kind": "Pod",
                "metadata": {"name": name, "owner": owner, "labels": labels},
                "spec": spec,
                "status": unready,
            }
            for name, owner in (("web-1-a", "ReplicaSet/web-1"), ("other", "ReplicaSet/other"))
        ),
        {"kind": "Node", "metadata": {"name": "node-1", "labels": {"gpus": "--5"}}},
        {
            "kind": "NetworkPolicy",
            "metadata": {"name": "web"},
            "spec": {"podSelector": selector, "ingress": [{"ports": [{"port": port}]}]},
        },
    ]
    probe = {"object": "Pod/web-1-a", "reason": "Unhealthy", "message": "Readiness probe failed: connection refused"}
    return {"objects": objects, "events": [probe]}


@pytest.mark.parametrize("odd", ["²", "--5", "9" * 5_000, [], {}, [80], None, 10**30, True])
def test_a_number_that_is_none_is_not_read_as_one(odd: object) -> None:
    for raw in (serving(odd), serving(80, probe_port=odd), serving(80, revision=odd), serving(80, bound=odd)):
        no_rule_fails(Reading(now=NOW), list(bodies_of(raw)), list(event_bodies_of(raw)), {})
