"""`auth can-i` on a recording: reads for whoever looks at it, the recorded roles for everybody else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holmes.snapshot.server.access_reviews import Subject
from tests.snapshot.recordings import Asked, ask, recording, thing

RBAC = "rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1"


ACCOUNT = "system:serviceaccount:shop:web"


def _binding(binding: str, called: str, role: tuple[str, str], **subject: str) -> dict[str, Any]:
    return thing(binding, called, version=RBAC, roleRef={"kind": role[0], "name": role[1]}, subjects=[subject])


def _rule(verbs: list[str], group: str, resources: list[str], *names: str) -> dict[str, Any]:
    return {
        "verbs": verbs,
        "apiGroups": [group],
        "resources": resources,
        **({"resourceNames": [*names]} if names else {}),
    }


CLUSTER = recording(
    thing("Role", "reader", version=RBAC, rules=[_rule(["get"], "", ["pods", "pods/log"])]),
    thing("ClusterRole", "scaler", version=RBAC, rules=[_rule(["*"], "apps", ["*/scale"])]),
    thing("ClusterRole", "one-secret", version=RBAC, rules=[_rule(["get"], "", ["secrets"], "tls")]),
    thing("ClusterRole", "health", version=RBAC, rules=[{"verbs": ["get"], "nonResourceURLs": ["/livez/*"]}]),
    _binding("RoleBinding", "a", ("Role", "reader"), kind="ServiceAccount", name="web", namespace="shop"),
    _binding("RoleBinding", "b", ("ClusterRole", "one-secret"), kind="User", name="jane"),
    _binding("ClusterRoleBinding", "c", ("ClusterRole", "scaler"), kind="Group", name="operators"),
    _binding("ClusterRoleBinding", "d", ("ClusterRole", "health"), kind="Group", name="system:authenticated"),
)


def _review(plural: str, content: object, caller: Subject | None = None) -> Asked:
    return ask(CLUSTER, f"{REVIEWS}/{plural}", caller=caller, body=json.dumps({"spec": content}).encode())


@pytest.mark.parametrize(("verb", "allowed"), [("get", True), ("list", True), ("watch", True), ("delete", False)])
def test_the_reader_of_a_recording_may_read_and_nothing_else(verb: str, allowed: bool) -> None:
    answer = _review("selfsubjectaccessreviews", {"resourceAttributes": {"verb": verb, "resource": "pods"}})
    assert (answer.status_code, answer.body["status"]["allowed"]) == (201, allowed)


@pytest.mark.parametrize(
    ("user", "groups", "attributes", "allowed"),
    [
        (ACCOUNT, [], {"verb": "get", "resource": "pods", "namespace": "shop"}, True),
        (ACCOUNT, [], {"verb": "get", "resource": "pods", "namespace": "other"}, False),
        (ACCOUNT, [], {"verb": "get", "resource": "pods"}, False),
        (
            ACCOUNT,
            [],
            {"verb": "get", "resource": "pods", "subresource": "log", "namespace": "shop"},
            True,
        ),
        (ACCOUNT, [], {"verb": "list", "resource": "pods", "namespace": "shop"}, False),
        ("system:serviceaccount:other:web", [], {"verb": "get", "resource": "pods", "namespace": "shop"}, False),
        ("jane", [], {"verb": "get", "resource": "secrets", "namespace": "shop", "name": "tls"}, True),
        ("jane", [], {"verb": "get", "resource": "secrets", "namespace": "shop", "name": "other"}, False),
        (
            "joe",
            ["operators"],
            {"verb": "update", "group": "apps", "resource": "deployments", "subresource": "scale"},
            True,
        ),
        ("joe", ["operators"], {"verb": "update", "group": "apps", "resource": "deployments"}, False),
        ("root", ["system:masters"], {"verb": "delete", "resource": "nodes"}, True),
    ],
)
def test_other_subjects_may_what_the_recorded_roles_allow(
    user: str, groups: list[str], attributes: dict[str, str], allowed: bool
) -> None:
    posted = _review("subjectaccessreviews", {"user": user, "groups": groups, "resourceAttributes": attributes})
    caller = Subject.of(user, tuple(groups))
    impersonated = _review("selfsubjectaccessreviews", {"resourceAttributes": attributes}, caller)
    assert [answer.body["status"]["allowed"] for answer in (posted, impersonated)] == [allowed, allowed]


@pytest.mark.parametrize(("path", "allowed"), [("/livez/ping", True), ("/metrics", False)])
def test_paths_outside_of_resources_go_by_their_rules(path: str, allowed: bool) -> None:
    answer = _review("subjectaccessreviews", {"user": "jane", "nonResourceAttributes": {"verb": "get", "path": path}})
    assert answer.body["status"]["allowed"] is allowed


def test_the_rules_of_a_subject_can_be_listed() -> None:
    answer = _review("selfsubjectrulesreviews", {"namespace": "shop"}, Subject.of(ACCOUNT, ()))
    assert answer.body["status"] == {
        "resourceRules": [_rule(["get"], "", ["pods", "pods/log"])],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/livez/*"]}],
        "incomplete": False,
    }


@pytest.mark.parametrize("body", [b"", b"rubbish", b"[]", b"{}", b"k8s\x00", b"k8s\x00\xff\xff", b"k8s\x00\x0a\x7f"])
def test_a_review_that_asks_for_nothing_is_refused(body: bytes) -> None:
    answer = ask(CLUSTER, f"{REVIEWS}/selfsubjectaccessreviews", body=body)
    assert (answer.status_code, answer.body["reason"]) == (400, "BadRequest")


def _field(number: int, content: bytes) -> bytes:
    """A field of a protobuf message, as clients write it."""
    return bytes([number << 3 | 2, len(content)]) + content


def test_a_review_in_protobuf_is_understood_as_kubectl_posts_it() -> None:
    head = _field(1, b"authorization.k8s.io/v1") + _field(2, b"SubjectAccessReview")
    attributes = _field(1, b"shop") + _field(2, b"get") + _field(5, b"pods") + _field(6, b"log")
    spec = _field(1, attributes) + _field(3, ACCOUNT.encode()) + _field(4, b"a") + _field(4, b"b")
    number = bytes([7 << 3 | 0, 5])  # a number, which is passed over
    body = b"k8s\x00" + _field(1, head) + _field(2, _field(1, b"") + _field(2, spec + number)) + _field(3, b"")
    answer = ask(CLUSTER, f"{REVIEWS}/subjectaccessreviews", body=body).body
    wanted = {"namespace": "shop", "verb": "get", "resource": "pods", "subresource": "log"}
    assert answer["spec"] == {"resourceAttributes": wanted, "user": ACCOUNT, "groups": ["a", "b"]}
    assert answer["status"] == {"allowed": True}


def test_who_am_i_on_a_recording() -> None:
    answer = ask(CLUSTER, "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=b"{}")
    assert answer.body["status"]["userInfo"]["username"] == "reader-of-a-recording"


def test_without_recorded_roles_the_answer_says_that_it_does_not_know() -> None:
    body = json.dumps({"spec": {"user": "jane", "resourceAttributes": {"verb": "get", "resource": "pods"}}}).encode()
    answer = ask(recording(), f"{REVIEWS}/subjectaccessreviews", body=body)
    assert answer.body["status"] == {
        "allowed": False,
        "reason": "clusterroles and clusterrolebindings are not part of this recording",
    }
