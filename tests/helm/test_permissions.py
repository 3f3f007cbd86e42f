"""What the service account may do, asked of the real API server for every resource that it has."""

from __future__ import annotations

import asyncio
import json
import ssl
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import httpx
import pytest
import yaml

from holmes.kubernetes.kinds import KINDS
from holmes.values.json_types import JsonObject
from tests.cluster.fixtures import Cluster, create_namespace
from tests.helm.chart import CHART, Helm, Manifests, at, items

pytestmark = pytest.mark.cluster

READS: Final = ("get", "list", "watch")
WRITES: Final = (
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "impersonate",
    "bind",
    "escalate",
    "approve",
)
# What everybody may create who is logged in: questions about himself. They change nothing.
ABOUT_ONESELF: Final = {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}
# Reading these opens a connection into a pod or a node, or shows what is secret.
FORBIDDEN_READS: Final = (
    ("", "secrets"), ("", "pods/exec"), ("", "pods/attach"), ("", "pods/portforward"), ("", "pods/proxy"),
    ("", "services/proxy"), ("", "nodes/proxy"), ("", "nodes/log"), ("", "nodes/configz"),
    ("", "serviceaccounts/token"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """May the account do `verb` to `resource` (with its subresource after a slash)?"""

    verb: str
    group: str
    resource: str
    namespace: str = ""

    def review(self, account: str) -> JsonObject:
        """The SubjectAccessReview that asks it."""
        resource, _, subresource = self.resource.partition("/")
        place = {"namespace": self.namespace, "group": self.group, "resource": resource, "subresource": subresource}
        spec: JsonObject = {
            "user": account,
            "groups": _groups(account),
            "resourceAttributes": {"verb": self.verb, **place},
        }
        return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A release without pods, its account, and how to ask about it."""

    cluster: Cluster
    namespace: str
    account: str
    manifests: Manifests

    def allowed(self, questions: Sequence[Question]) -> set[Question]:
        """The questions that are answered with yes."""
        return asyncio.run(_ask(self.cluster, self.account, questions))


def _groups(account: str) -> list[str]:
    return ["system:serviceaccounts", f"system:serviceaccounts:{account.split(':')[2]}", "system:authenticated"]


def _install(cluster: Cluster, helm: Helm, values: JsonObject) -> Iterator[Installed]:
    namespace = create_namespace(cluster, "rights")
    admin = Helm(program=helm.program, home=helm.home, kubeconfig=cluster.admin)
    # A Secret that is there needs no Job, and so no image.
    chosen: JsonObject = {
        "replicas": 0,
        "persistence": {"enabled": False},
        "auth": {"existingSecret": "keys"},
        **values,
    }
    try:
        admin.run("install", "holmes", str(CHART), f"--namespace={namespace}", values=chosen)
        yield Installed(
            cluster=cluster,
            namespace=namespace,
            account=f"system:serviceaccount:{namespace}:holmes",
            manifests=helm.template(chosen, namespace=namespace),
        )
        admin.run("uninstall", "holmes", f"--namespace={namespace}")
    finally:
        cluster.run("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="module")
def installed(cluster: Cluster, chart_helm: Helm) -> Iterator[Installed]:
    yield from _install(cluster, chart_helm, {})


async def _ask(cluster: Cluster, account: str, questions: Sequence[Question]) -> set[Question]:
    async with _client(cluster) as client:
        gate = asyncio.Semaphore(16)

        async def allowed(question: Question) -> bool:
            async with gate:
                path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
                answer = (await client.post(path, json=question.review(account))).raise_for_status().json()
            return bool(answer["status"]["allowed"])

        answers = await asyncio.gather(*map(allowed, questions))
    return {question for question, yes in zip(questions, answers, strict=True) if yes}


def _client(cluster: Cluster) -> httpx.AsyncClient:
    config = yaml.safe_load(cluster.admin.read_text(encoding="utf-8"))
    authority = b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    return httpx.AsyncClient(
        base_url=cluster.server,
        headers={"Authorization": f"Bearer {config['users'][0]['user']['token']}"},
        verify=ssl.create_default_context(cadata=authority),
        timeout=30,
    )


def _served(cluster: Cluster) -> dict[tuple[str, str], bool]:
    """Every resource and subresource of the API server by group and name, and whether it lies in namespaces."""
    versions = [("", "/api/v1")]
    groups = json.loads(cluster.run("get", "--raw", "/apis"))["groups"]
    versions += [(group["name"], f"/apis/{group['preferredVersion']['groupVersion']}") for group in groups]
    return {
        (group, resource["name"]): resource["namespaced"]
        for group, path in versions
        for resource in json.loads(cluster.run("get", "--raw", path))["resources"]
    }


def _listed_reads(rules: Iterator[JsonObject]) -> list[tuple[str, str, str]]:
    """Verb, group and resource of every read that the rules name."""
    found: list[tuple[str, str, str]] = []
    for rule in rules:
        verbs, groups, resources = (rule[key] for key in ("verbs", "apiGroups", "resources"))
        assert isinstance(verbs, list)
        assert isinstance(groups, list)
        assert isinstance(resources, list)
        found += [
            (str(verb), str(group), str(resource)) for verb in verbs for group in groups for resource in resources
        ]
    return found


def test_every_listed_read_is_allowed_in_every_namespace(installed: Installed) -> None:
    listed = _listed_reads(items(installed.manifests.one("ClusterRole"), "rules"))
    questions = [Question(verb=verb, group=group, resource=resource) for verb, group, resource in listed]
    assert len(questions) > 300
    assert installed.allowed(questions) == set(questions)


def test_everything_that_a_scan_lists_may_be_read_except_secrets(installed: Installed) -> None:
    questions = [Question(verb=verb, group=kind.group, resource=kind.resource) for kind in KINDS for verb in READS]
    refused = set(questions) - installed.allowed(questions)
    assert {question.resource for question in refused} == {"secrets"}


def test_no_write_is_allowed_to_any_resource_that_the_api_server_has(installed: Installed) -> None:
    served = _served(installed.cluster)
    assert len(served) > 100
    questions = [
        Question(verb=verb, group=group, resource=name, namespace=namespace)
        for (group, name), namespaced in served.items()
        for verb in WRITES
        for namespace in ([installed.namespace] if namespaced else [""])
    ]
    allowed = installed.allowed(questions)
    assert {(question.verb, question.resource) for question in allowed} == {("create", name) for name in ABOUT_ONESELF}


def test_secrets_and_ways_into_pods_and_nodes_stay_shut(installed: Installed) -> None:
    questions = [
        Question(verb=verb, group=group, resource=resource, namespace=namespace)
        for group, resource in FORBIDDEN_READS
        for verb in (*READS, *WRITES)
        for namespace in ("", installed.namespace, "kube-system", "default")
    ]
    assert installed.allowed(questions) == set()


def test_kubectl_auth_can_i_says_the_same(installed: Installed) -> None:
    table = [
        ("get", "pods", "yes"), ("get", "pods/log", "yes"), ("list", "events.events.k8s.io", "yes"),
        ("watch", "deployments.apps", "yes"), ("create", "selfsubjectaccessreviews.authorization.k8s.io", "yes"),
        ("get", "secrets", "no"), ("list", "secrets", "no"), ("create", "pods", "no"),
        ("delete", "deployments.apps", "no"), ("create", "pods/exec", "no"), ("*", "*.*", "no"), ("get", "*.*", "no"),
    ]  # fmt: skip
    for verb, resource, expected in table:
        asked = ("auth", "can-i", verb, resource, "--all-namespaces", f"--as={installed.account}")
        assert installed.cluster.attempt(*asked).stdout.strip() == expected, (verb, resource)


def test_namespaced_roles_open_their_namespaces_and_nothing_else(cluster: Cluster, chart_helm: Helm) -> None:
    with contextmanager(_install)(cluster, chart_helm, {"rbac": {"namespaces": ["default"]}}) as installed:

        def may(verb: str, resource: str, namespace: str, group: str = "") -> bool:
            question = Question(verb=verb, group=group, resource=resource, namespace=namespace)
            return bool(installed.allowed([question]))

        assert may("list", "pods", "default")
        assert may("get", "pods/log", "default")
        assert may("list", "deployments", "default", "apps")
        assert not may("list", "pods", "kube-system")
        assert not may("list", "pods", "")
        assert not may("list", "nodes", "")
        assert not may("get", "secrets", "default")
        assert not may("delete", "pods", "default")
        assert at(installed.manifests.one("Role"), "metadata")["namespace"] == "default"
