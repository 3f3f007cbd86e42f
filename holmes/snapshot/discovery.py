"""Stores the API groups and resources of a cluster, in the format of the Kubernetes discovery endpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.kubernetes.fields import boolean, child, children, text, texts

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceType:
    """One kind of object in one version, for example `deployments` in `apps/v1`.

    `group` is empty for the core group.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def group_version(self) -> str:
        """The group and version in API paths, for example `v1` or `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The name in API server messages, for example `pods` or `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "") -> str:
        """Return the API path of the list, in one namespace or in all namespaces."""
        root = f"/apis/{self.group_version}" if self.group else f"/api/{self.version}"
        return f"{root}/namespaces/{namespace}/{self.plural}" if namespace else f"{root}/{self.plural}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """Responses of the discovery endpoints. `groups` is the response of `/apis`.

    `resources` contains the response of each group version, the core group first.
    """

    groups: JsonObject
    resources: tuple[JsonObject, ...]

    def resource_list(self, group_version: str) -> JsonObject | None:
        """Return the response for one group version, or None if the cluster does not have it."""
        return next((each for each in self.resources if text(each, "groupVersion") == group_version), None)

    def find(self, group: str, version: str, plural: str) -> ResourceType | None:
        resources = self.resource_list(f"{group}/{version}" if group else version) or {}
        for entry in children(resources, "resources"):
            if text(entry, "name") == plural:
                return _resource_type(group, version, entry)
        return None

    def listable(self) -> tuple[ResourceType, ...]:
        """Return all resources that can be listed, each in the preferred version of its group."""
        found: dict[tuple[str, str], ResourceType] = {}
        for group, version in self._versions():
            resources = self.resource_list(f"{group}/{version}" if group else version) or {}
            for entry in children(resources, "resources"):
                kind = _resource_type(group, version, entry)
                if "/" not in kind.plural and "list" in texts(entry, "verbs"):
                    found.setdefault((group, kind.plural), kind)
        return tuple(found.values())

    def _versions(self) -> list[tuple[str, str]]:
        """Return all groups and versions. In each group, the preferred version is first."""
        versions = [("", "v1")]
        for group in children(self.groups, "groups"):
            name, preferred = text(group, "name"), text(group, "preferredVersion", "version")
            others = [text(version, "version") for version in children(group, "versions")]
            versions += [(name, version) for version in dict.fromkeys([preferred, *others]) if version]
        return versions


def _resource_type(group: str, version: str, entry: JsonObject) -> ResourceType:
    return ResourceType(
        group=group,
        version=version,
        plural=text(entry, "name"),
        kind=text(entry, "kind"),
        namespaced=boolean(entry, "namespaced"),
    )


def crd_of(discovered: JsonObject) -> tuple[str, str]:
    """Return the group and plural of the kind that a CustomResourceDefinition defines."""
    spec = child(discovered, "spec")
    return text(spec, "group"), text(spec, "names", "plural")
