"""Fixtures that every test may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.kubernetes_api import KubernetesApi, document, kubernetes_api, write_kubeconfig

# A busy machine is no reason to fail; the timeout of every test still holds.
settings.register_profile("holmes", deadline=None)
settings.load_profile("holmes")

pytest_plugins = ["tests.cluster.fixtures"]


@pytest.fixture
def quiet_cluster() -> Iterator[KubernetesApi]:
    """A cluster that answers the probe and nothing else, for what does not depend on the cluster."""
    with kubernetes_api() as api:
        api.on("/version", document({"gitVersion": "v1.34.0"}))
        yield api


@pytest.fixture
def kubeconfig(quiet_cluster: KubernetesApi, tmp_path: Path) -> Path:
    """The kubeconfig of the quiet cluster."""
    return write_kubeconfig(tmp_path, quiet_cluster.url)
