"""The requests that stage and observe scenarios: apply, patch, delete, list, log.

kubectl is not used, because observing sixty scenarios twice a second would take most of the CPU.
"""

from __future__ import annotations

import json
import ssl
from base64 import b64decode
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import httpx
import yaml

from holmes.kubernetes.fields import children, text, texts
from holmes.values.json_types import JsonObject, JsonValue

TIMEOUT_SECONDS: Final = 30
PATCH_TYPES: Final = {
    "apply": "application/apply-patch+yaml",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
_DISCOVERY: Final = {"Accept": "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"}
_ENOUGH_LOG_BYTES: Final = 20_000


class ApiRefusalError(Exception):
    """The API server refused the request; the text has the reason."""


@dataclass(frozen=True)
class Resource:
    """The path of the objects of a kind."""

    base: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """The path of one object, or of all objects in the namespace."""
        scope = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{self.base}{scope}/{self.plural}" + (f"/{name}" if name else "")


class Api:
    """The API server, as the user of a kubeconfig with a token. Thread-safe."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = b64decode(cluster["certificate-authority-data"]).decode()
        self._client = httpx.Client(
            base_url=cluster["server"],
            headers={"Authorization": f"Bearer {user['token']}"},
            verify=ssl.create_default_context(cadata=authority),
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
        )
        self._resources: dict[str, Resource] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def resource(self, kind: str, api_version: str = "") -> Resource:
        """The path of a kind. An unknown kind is looked up again; KeyError when it stays unknown."""
        key = f"{api_version}/{kind}" if api_version else kind
        if key not in self._resources:
            self._discover()
        return self._resources[key]

    def apply(self, manifest: JsonObject, namespace: str) -> None:
        """Creates the object or changes it to match the manifest, like `kubectl apply --server-side`."""
        resource = self.resource(text(manifest, "kind"), text(manifest, "apiVersion"))
        path = resource.path(text(manifest, "metadata", "namespace") or namespace, text(manifest, "metadata", "name"))
        self._send("PATCH", f"{path}?fieldManager=kubectl&force=true", json.dumps(manifest), PATCH_TYPES["apply"])

    def patch(self, path: str, change: JsonObject, how: str) -> None:
        """Changes the object at `path`."""
        self._send("PATCH", f"{path}?fieldManager=kubectl-edit", json.dumps(change), PATCH_TYPES[how])

    def delete(self, path: str) -> None:
        """Deletes without waiting; a missing object is not an error."""
        response = self._client.delete(path)
        if response.status_code not in {200, 202, 404, 409}:
            raise ApiRefusalError(f"DELETE {path}: {response.text}")

    def objects(self, kind: str, namespace: str) -> tuple[JsonObject, ...]:
        """All objects of a kind, in the namespace if the kind is namespaced."""
        resource = self.resource(kind)
        if kind == "Namespace":
            return (self._get(f"{resource.base}/namespaces/{namespace}"),)
        return children(self._get(resource.path(namespace)), "items")

    def uid(self, kind: str, namespace: str, name: str) -> str:
        """The uid of an object that exists."""
        return text(self._get(self.resource(kind).path(namespace, name)), "metadata", "uid")

    def labelled(self, kind: str, label: str) -> tuple[str, ...]:
        """Names of the cluster-wide objects of a kind that have this label."""
        found = self._get(f"{self.resource(kind).path('')}?labelSelector={label}")
        return tuple(text(each, "metadata", "name") for each in children(found, "items"))

    def log(self, namespace: str, pod: str, container: str, *, previous: bool) -> str:
        """The log of a container, or an empty text without a log."""
        options = {"container": container, "limitBytes": str(_ENOUGH_LOG_BYTES), "previous": str(previous).lower()}
        response = self._client.get(f"/api/v1/namespaces/{namespace}/pods/{pod}/log", params=options)
        return response.text if response.status_code == 200 else ""

    def exists(self, path: str) -> bool:
        """Whether an object exists at `path`."""
        return self._client.get(path).status_code == 200

    def _get(self, path: str) -> JsonObject:
        response = self._client.get(path)
        if response.status_code == 404:
            return {}
        if response.status_code != 200:
            raise ApiRefusalError(f"GET {path}: {response.text}")
        found: JsonObject = response.json()
        return found

    def _send(self, method: str, path: str, content: str, media_type: str) -> None:
        response = self._client.request(method, path, content=content, headers={"Content-Type": media_type})
        if response.status_code not in {200, 201}:
            raise ApiRefusalError(f"{method} {path}: {response.text}")

    def _discover(self) -> None:
        for root in ("/api", "/apis"):
            response = self._client.get(root, headers=_DISCOVERY)
            for group in children(response.json(), "items"):
                name = text(group, "metadata", "name")
                for version in children(group, "versions"):
                    self._add_version(name, version)

    def _add_version(self, group: str, version: JsonValue) -> None:
        api_version = f"{group}/{text(version, 'version')}" if group else text(version, "version")
        base = f"/apis/{api_version}" if group else f"/api/{api_version}"
        for each in children(version, "resources"):
            kind = text(each, "responseKind", "kind")
            if "list" not in texts(each, "verbs"):
                continue
            found = Resource(base, text(each, "resource"), text(each, "scope") == "Namespaced")
            self._resources.setdefault(kind, found)
            self._resources[f"{api_version}/{kind}"] = found
