"""Fixtures of the tests of the chart and its image."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cluster.fixtures import Cluster
from tests.cluster.layout import REGISTRY, Layout
from tests.helm.chart import Helm
from tests.helm.container_image import import_image, pack_image
from tests.helm.release import IMAGE
from tests.helm.root_file_system import make_root
from tests.support import readme


@pytest.fixture(scope="session")
def chart_helm(helm: Path, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm without a cluster."""
    return Helm(program=helm, home=tmp_path_factory.mktemp("helm-home"))


@pytest.fixture(scope="session")
def image_root(helm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root file system of the image."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount it")
    root = tmp_path_factory.mktemp("image") / "root"
    make_root(root, helm)
    return root


@pytest.fixture(scope="session")
def image(
    cluster: Cluster,  # noqa: ARG001  it must run
    image_root: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The image, in the cluster."""
    archive = tmp_path_factory.mktemp("archive") / "image.tar"
    pack_image(image_root, (f"{REGISTRY}/{IMAGE}", readme.image()), archive)
    import_image(Layout.from_environment(), archive)
    archive.unlink()
