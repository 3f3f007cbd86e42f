"""The way to the server: proxies come from the kubeconfig and the `Environment`, never from the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holmes.kubernetes.client import ClusterClient
from holmes.kubernetes.transport import environment_proxy
from holmes.values.environment import Environment
from holmes.values.errors import ClusterUnreachable
from tests.support.kubernetes_api import document, kubernetes_api, write_kubeconfig

if TYPE_CHECKING:
    from pathlib import Path

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "excluded", "expected"),
    [
        ("https://api.example:6443", "", PROXY),
        ("https://api.example:6443", "other.example,.internal", PROXY),
        ("https://api.example:6443", "example", None),
        ("https://api.example:6443", ".example", None),
        ("https://api.example:6443", "*.example", None),
        ("https://api.example:6443", "API.example:6443", None),
        ("https://api.example:6443", "*", None),
        ("https://10.1.2.3", "10.0.0.0/8", None),
        ("https://10.1.2.3", "192.168.0.0/16, 10.1.2.4", PROXY),
        ("https://127.0.0.1:6443", "", None),
        ("https://localhost:6443", "", None),
        ("http://api.example", "", None),
    ],
)
def test_the_environment_decides_about_the_proxy(server: str, excluded: str, expected: str | None) -> None:
    environment = Environment.of({"HTTPS_PROXY": PROXY, "NO_PROXY": excluded})

    assert environment_proxy(server, environment) == expected


async def test_the_proxy_of_the_kubeconfig_is_used(tmp_path: Path) -> None:
    with kubernetes_api() as proxy:
        proxy.on("/version", document({"gitVersion": "v1.34.4"}))
        path = write_kubeconfig(tmp_path, "http://cluster.invalid", cluster={"proxy-url": proxy.url})
        async with await ClusterClient.connect(Environment.of({"KUBECONFIG": str(path)})) as client:
            assert (await client.probe()).version == "v1.34.4"


async def test_a_proxy_of_an_unknown_kind_is_one_line(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, "http://cluster.invalid", cluster={"proxy-url": "gopher://proxy"})

    async with await ClusterClient.connect(Environment.of({"KUBECONFIG": str(path)})) as client:
        with pytest.raises(ClusterUnreachable, match="the server or proxy address cannot be used"):
            await client.probe()
