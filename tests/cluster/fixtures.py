"""pytest plugin with the real cluster: `pytest_plugins = ["tests.cluster.fixtures"]` in tests/conftest.py.

A machine that cannot run the cluster skips the tests that need it and says why in one line; with CI=true the
same is a failure. A cluster that can run but does not start is a failure everywhere.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, Literal, NoReturn

import pytest

from tests.cluster.errors import CannotRunHereError, ClusterError
from tests.cluster.handle import Cluster, wait_until
from tests.cluster.layout import SOURCES, Layout, in_ci, keep_cluster
from tests.cluster.lifecycle import down, up
from tests.cluster.locks import only_holder, share
from tests.cluster.prerequisites import require_machine, require_system
from tests.cluster.programs import locate_helm, require_built

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["FAULTS", "Cluster", "FaultName", "apply_fault", "create_namespace", "wait_until"]

FaultName = Literal[
    "crash-loop",
    "failing-probe",
    "image-pull-error",
    "missing-configmap",
    "oom-kill",
    "service-wrong-selector",
    "unschedulable",
]
FAULTS: Final = SOURCES / "faults"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Yield the real cluster, started once and shared by all sessions that run at the same time."""
    layout = Layout.from_environment()
    _check_machine(layout)
    with share(layout.users_lock) as users:
        try:
            yield _start(layout)
        finally:
            if not keep_cluster() and only_holder(users):
                down(layout)


@pytest.fixture(scope="session")
def helm() -> Path:
    """Return the real helm; a machine for which there is none skips the test, also in CI."""
    try:
        program = locate_helm(Layout.from_environment())
    except CannotRunHereError as error:
        pytest.skip(str(error))
    if not program.is_file():
        _cannot_run("helm is not fetched: run `python -m tests.cluster build` once")
    return program


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """Yield the name of a fresh namespace, which is deleted afterwards without waiting for the end of its pods."""
    name = create_namespace(cluster, "test")
    yield name
    cluster.run("delete", "namespace", name, "--wait=false")


def create_namespace(cluster: Cluster, prefix: str) -> str:
    """Create a namespace with a unique name in which pods can start at once, and return its name."""
    name = f"{prefix}-{secrets.token_hex(3)}"
    cluster.run("create", "namespace", name)
    # Bare pods are refused until the namespace has its service account.
    cluster.run("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=30s")
    return name


def apply_fault(cluster: Cluster, namespace: str, name: FaultName) -> None:
    """Apply `faults/<name>.yaml` in `namespace`; returns at once, the fault needs seconds to show."""
    cluster.run("apply", f"--namespace={namespace}", f"--filename={FAULTS / name}.yaml")


def _check_machine(layout: Layout) -> None:
    try:
        require_system(layout)
        # Building takes minutes: that would look like a hang, and the test's timeout would end it.
        require_built(layout)
        require_machine(layout)
    except CannotRunHereError as error:
        _cannot_run(str(error))


def _cannot_run(reason: str) -> NoReturn:
    if in_ci():
        pytest.fail(f"no test cluster: {reason}", pytrace=False)
    pytest.skip(reason.splitlines()[0])


def _start(layout: Layout) -> Cluster:
    try:
        return up(layout)
    except ClusterError as error:
        pytest.fail(f"no test cluster: {error}", pytrace=False)
