"""A release of the chart on the test cluster, for the tests that install it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from holmes.values.json_types import JsonObject
from tests.cluster.fixtures import Cluster, create_namespace
from tests.cluster.layout import REGISTRY
from tests.helm.chart import Helm, at

IMAGE: Final = "holmes:under-test"
VALUES: Final[JsonObject] = {
    "registry": REGISTRY,
    "image": IMAGE,
    "config": {"cluster_name": "test"},
    "persistence": {"storageClassName": "-", "size": "1Gi"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The release `holmes` in a namespace of its own."""

    cluster: Cluster
    helm: Helm
    namespace: str

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.run(f"--namespace={self.namespace}", *arguments)

    def helm_run(self, *arguments: str, values: JsonObject | None = None) -> str:
        return self.helm.run(*arguments, f"--namespace={self.namespace}", values=values)

    def keys(self) -> JsonObject:
        """The keys as the Secret has them."""
        return at(json.loads(self.kubectl("get", "secret", "holmes", "--output=json")), "data")

    def inside(self, script: str) -> str:
        """What a shell in the server's container prints."""
        return self.kubectl("exec", "deployment/holmes", "--", "sh", "-c", f"exec 2>&1; {script}")


def place_for_release(cluster: Cluster, helm: Helm) -> Release:
    """A namespace whose API server refuses pods that break the strictest of the Pod Security Standards."""
    namespace = create_namespace(cluster, "holmes")
    cluster.run("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    own = Helm(program=helm.program, home=helm.home, kubeconfig=cluster.admin)
    return Release(cluster=cluster, helm=own, namespace=namespace)
