"""Denied requests as the API server and client libraries write them."""

from __future__ import annotations

import pytest

from holmes.diagnosis.facts.access_review import denials_in, misses_token

LIST_PODS = (
    'pods is forbidden: User "system:serviceaccount:shop:robot" cannot list resource "pods" in API group ""'
    ' in the namespace "shop"'
)


@pytest.mark.parametrize(
    "line",
    [
        LIST_PODS,
        f"Error from server (Forbidden): {LIST_PODS}",
        f"E1122 05:00:00.1 reflector.go:150] failed to list *v1.Pod: {LIST_PODS}",
        '{"level":"error","msg":"' + LIST_PODS.replace('"', '\\"') + '"}',
        '{"log":"' + LIST_PODS.replace('"', '\\\\\\"') + '"}',
    ],
)
def test_a_denial_is_read_however_it_is_quoted(line: str) -> None:
    ((denial, quoted),) = denials_in(f"starting\n{line}\n")
    assert denial.request == "list pods in namespace shop"
    assert str(denial.service_account) == "ServiceAccount shop/robot"
    assert quoted == line


def test_a_denial_about_the_whole_cluster_and_one_about_an_object_are_told_apart() -> None:
    text = """
nodes is forbidden: User "system:serviceaccount:shop:robot" cannot list resource "nodes" in API group "" at the cluster scope
deployments.apps "web" is forbidden: User "system:serviceaccount:shop:robot" cannot patch resource "deployments/scale" in API group "apps" in the namespace "shop"
"""  # noqa: E501  as it is written
    whole, one = (denial for denial, _ in denials_in(text))
    assert (whole.namespace, whole.request) == ("", "list nodes in the whole cluster")
    assert (one.name, one.resource, one.group) == ("web", "deployments/scale", "apps")


def test_people_and_other_words_are_no_denials_of_a_service_account() -> None:
    assert list(denials_in('pods is forbidden: User "alice" cannot list resource "pods" in API group ""')) == []
    assert list(denials_in("access to /admin is forbidden")) == []


def test_a_hostile_log_has_no_denials() -> None:
    assert list(denials_in(("a" * 5_000 + ' "' + "b" * 5_000 + '" is forbidden: User ') * 200)) == []


@pytest.mark.parametrize(
    ("line", "misses"),
    [
        ("open /var/run/secrets/kubernetes.io/serviceaccount/token: no such file or directory", True),
        ("unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST must be defined", True),
        ("reading /var/run/secrets/kubernetes.io/serviceaccount/token", False),
        ("open /etc/app/config.yaml: no such file or directory", False),
    ],
)
def test_a_missing_token_is_recognised(line: str, misses: bool) -> None:
    assert misses_token(line) is misses
