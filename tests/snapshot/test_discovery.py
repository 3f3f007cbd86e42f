"""Discovery: the plain form that libraries ask for, and the aggregated form that kubectl prefers, say the same."""

from __future__ import annotations

import pytest

from tests.snapshot.recordings import ask, recording, thing

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
SHOP = recording(thing("Pod", "web"), thing("Promotion", "spring", version="shop.example/v1"))


def test_both_forms_name_the_same_resources() -> None:
    plain = {("v1", entry["name"]) for entry in ask(SHOP, "/api/v1").body["resources"] if "/" not in entry["name"]}
    for group in ask(SHOP, "/apis").body["groups"]:
        for version in group["versions"]:
            resources = ask(SHOP, f"/apis/{version['groupVersion']}").body["resources"]
            plain |= {(version["groupVersion"], entry["name"]) for entry in resources}
    aggregated = set()
    for root in ("/api", "/apis"):
        for group in ask(SHOP, root, accept=AGGREGATED).body["items"]:
            for version in group["versions"]:
                name = group["metadata"].get("name")
                group_version = f"{name}/{version['version']}" if name else version["version"]
                aggregated |= {(group_version, entry["resource"]) for entry in version["resources"]}
    assert aggregated == plain
    assert ("shop.example/v1", "promotions") in plain


def test_the_aggregated_form_has_what_the_command_line_needs() -> None:
    core = ask(SHOP, "/api", accept=AGGREGATED).body["items"][0]["versions"][0]
    pods = next(entry for entry in core["resources"] if entry["resource"] == "pods")
    assert pods == {
        "resource": "pods",
        "responseKind": {"group": "", "version": "v1", "kind": "Pod"},
        "scope": "Namespaced",
        "singularResource": "pod",
        "verbs": ["get", "list", "watch"],
        "shortNames": ["po"],
        "categories": ["all"],
        "subresources": [
            {"subresource": "log", "responseKind": {"group": "", "version": "v1", "kind": "Pod"}, "verbs": ["get"]}
        ],
    }


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api", "APIVersions"),
        ("/apis", "APIGroupList"),
        ("/api/v1", "APIResourceList"),
        ("/apis/apps", "APIGroup"),
        ("/apis/apps/v1", "APIResourceList"),
    ],
)
def test_plain_discovery(path: str, kind: str) -> None:
    assert ask(SHOP, path).body.get("kind") == kind


@pytest.mark.parametrize("path", ["/api/v2", "/apis/nothing", "/apis/apps/v9"])
def test_groups_that_are_not_there_are_not_found(path: str) -> None:
    assert ask(SHOP, path).status_code == 404
