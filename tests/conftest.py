"""Fixtures that every test may use."""

from __future__ import annotations

import os
import signal
import ssl
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest
from hypothesis import settings

from tests.support.kubernetes_api import KubernetesApi, document, kubernetes_api, write_kubeconfig
from tests.support.long_form import LONG

# A busy machine is no reason to fail; the timeout of every test still holds. The examples are the same in every run, so
# that a change is judged by what it changed; `HYPOTHESIS_PROFILE=explore pytest ...` looks for new ones.
settings.register_profile("holmes", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "holmes"))

# A shell ignores Ctrl-C in its background jobs, and every process of the slow half would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["tests.cluster.fixtures", "tests.services.fixtures", "tests.support.clean_environment"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only `make test-long` runs, and put what waits for processes and the cluster into the slow half.

    So only one half starts the cluster, and the processes of whole runs are not slowed down by coverage.
    """
    for item in items:
        if "end_to_end" in item.path.parts or item.get_closest_marker("cluster"):
            item.add_marker(pytest.mark.slow)
    left_out = [] if LONG else [item for item in items if item.get_closest_marker("long")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


@pytest.fixture(scope="session", autouse=True)
def _one_public_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Trust one public authority instead of all: no test asks a public server, and each client takes 40 ms for all."""
    all_authorities = {certifi.where(), os.environ.get("SSL_CERT_FILE", "")}
    first, end, _ = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----\n")
    one = tmp_path_factory.mktemp("authorities") / "one.pem"
    one.write_text(first + end)
    real = ssl.create_default_context

    def create(purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH, *, cafile: str | None = None, **more: str) -> object:
        return real(purpose, cafile=str(one) if cafile in all_authorities else cafile, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", create)
        yield


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
