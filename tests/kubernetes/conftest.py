"""Fixtures of the tests that read a Kubernetes API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.kubernetes_api import KubernetesApi, kubernetes_api


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    with kubernetes_api() as server:
        yield server
