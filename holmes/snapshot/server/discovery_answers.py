"""Answers what the cluster can be asked for: plain discovery as it was recorded, and the aggregated form of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import boolean, children, text, texts
from holmes.snapshot.server.failures import no_such_path

if TYPE_CHECKING:
    from holmes.snapshot.discovery import Discovery
    from holmes.values.json_types import JsonObject, JsonValue

_DEPRECATED: Final = {
    ("", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
    ("", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
_CORE_VERSIONS: JsonObject = {
    "kind": "APIVersions",
    "versions": ["v1"],
    "serverAddressByClientCIDRs": [],
}


def deprecation(group: str, plural: str) -> str:
    """The warning that goes with every answer about an old kind; empty for the others."""
    return _DEPRECATED.get((group, plural), "")


def plain_answer(discovery: Discovery, parts: tuple[str, ...]) -> JsonObject:
    """The answer for `/api`, `/apis`, `/api/v1`, `/apis/GROUP` or `/apis/GROUP/VERSION`. Raises `ApiFailure`."""
    match parts:
        case ("api",):
            return _CORE_VERSIONS
        case ("apis",):
            return discovery.groups
        case ("api", version):
            found = discovery.resource_list(version)
        case ("apis", group):
            groups = children(discovery.groups, "groups")
            named = next((each for each in groups if text(each, "name") == group), None)
            found = None if named is None else {"kind": "APIGroup", "apiVersion": "v1", **named}
        case ("apis", group, version):
            found = discovery.resource_list(f"{group}/{version}")
        case _:
            found = None
    if found is None:
        raise no_such_path()
    return found


def aggregated_answer(discovery: Discovery, root: str) -> JsonObject:
    """All groups below `/api` or `/apis` with their resources in one document."""
    if root == "api":
        items: list[JsonValue] = [_group(discovery, "", ["v1"])]
    else:
        items = [
            _group(discovery, text(group, "name"), [text(each, "version") for each in children(group, "versions")])
            for group in children(discovery.groups, "groups")
        ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _group(discovery: Discovery, name: str, versions: list[str]) -> JsonObject:
    return {
        "metadata": {"name": name} if name else {},
        "versions": [
            {"version": version, "resources": _resources(found, name, version), "freshness": "Current"}
            for version in versions
            for found in (discovery.resource_list(f"{name}/{version}" if name else version),)
            if found is not None
        ],
    }


def _resources(found: JsonObject, group: str, version: str) -> list[JsonValue]:
    entries = children(found, "resources")
    return [
        {
            "resource": text(entry, "name"),
            "responseKind": _kind(entry, group, version),
            "scope": "Namespaced" if boolean(entry, "namespaced") else "Cluster",
            "singularResource": text(entry, "singularName"),
            "verbs": texts(entry, "verbs"),
            "shortNames": texts(entry, "shortNames"),
            "categories": texts(entry, "categories"),
            "subresources": [
                {
                    "subresource": text(below, "name").partition("/")[2],
                    "responseKind": _kind(below, group, version),
                    "verbs": texts(below, "verbs"),
                }
                for below in entries
                if text(below, "name").startswith(f"{text(entry, 'name')}/")
            ],
        }
        for entry in entries
        if "/" not in text(entry, "name")
    ]


def _kind(entry: JsonObject, group: str, version: str) -> JsonObject:
    return {
        "group": text(entry, "group") or group,
        "version": text(entry, "version") or version,
        "kind": text(entry, "kind"),
    }
