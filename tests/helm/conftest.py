"""Fixtures of the tests of the chart and its image."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.helm.chart import Helm
from tests.helm.root_file_system import make_root


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
