"""The test cluster is a real one: its faults, its users and its end are what the other tests rely on."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

import pytest

from tests.cluster.fixtures import FAULTS, FaultName, apply_fault, create_namespace, wait_until
from tests.cluster.isolation import GUARDED_SYSCTLS
from tests.cluster.layout import NODE_NAME, Layout
from tests.cluster.lifecycle import describe, down, is_up, up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.cluster.handle import Cluster

pytestmark = pytest.mark.cluster

CONTAINER: Final = "{.items[*].status.containerStatuses[*]"
# What kubectl prints for the pods of each fault once it is ripe: template and pattern.
RIPE: Final[Mapping[FaultName, tuple[str, str]]] = {
    "crash-loop": (CONTAINER + ".lastState.terminated['reason','exitCode']}", "Error 3"),
    "failing-probe": (CONTAINER + ".restartCount} " + CONTAINER + ".ready}", r"[1-9]\d* false"),
    "image-pull-error": (CONTAINER + ".state.waiting.reason}", "ErrImagePull|ImagePullBackOff"),
    "missing-configmap": (CONTAINER + ".state.waiting.reason}", "CreateContainerConfigError"),
    "oom-kill": (CONTAINER + ".lastState.terminated['reason','exitCode']}", "OOMKilled 137"),
    "service-wrong-selector": (CONTAINER + ".ready}", "true"),
    "unschedulable": ('{.items[*].status.conditions[?(@.type=="PodScheduled")].reason}', "Unschedulable"),
}
# What the warnings about each fault name, for those whose cause stands in an event.
EVENTS: Final[Mapping[FaultName, str]] = {
    "crash-loop": "Back-off restarting failed container checkout",
    "failing-probe": "8081/healthz",
    "image-pull-error": "registry.shop.example/catalog:3.1.0-typo",
    "missing-configmap": 'configmap "payments-settings" not found',
    "unschedulable": "Insufficient cpu",
}


@pytest.fixture(scope="module")
def faulty(cluster: Cluster) -> Iterator[Mapping[FaultName, str]]:
    """All faults at once, each in its own namespace: the slow ones ripen while the others are looked at."""
    namespaces: dict[FaultName, str] = {}
    for name in RIPE:
        namespaces[name] = create_namespace(cluster, name)
        apply_fault(cluster, namespaces[name], name)
    yield namespaces
    cluster.run("delete", "namespace", "--wait=false", *namespaces.values())


def ripen(cluster: Cluster, namespace: str, name: FaultName) -> str:
    template, pattern = RIPE[name]

    def observe() -> str:
        return cluster.run("get", "pods", f"--namespace={namespace}", f"--output=jsonpath={template}")

    return wait_until(f"{name} in {namespace}", observe, lambda state: re.fullmatch(pattern, state) is not None)


def test_every_fault_has_an_expected_state() -> None:
    assert set(RIPE) == set(get_args(FaultName)) == {path.stem for path in FAULTS.glob("*.yaml")}


def test_node_is_ready(cluster: Cluster) -> None:
    assert cluster.run("get", "nodes", "--no-headers").split()[:2] == [NODE_NAME, "Ready"]


@pytest.mark.parametrize("name", RIPE)
def test_fault_is_real(cluster: Cluster, faulty: Mapping[FaultName, str], name: FaultName) -> None:
    ripen(cluster, faulty[name], name)

    def warnings() -> str:
        return cluster.run("events", f"--namespace={faulty[name]}", "--types=Warning")

    if name in EVENTS:
        wait_until(f"warning about {name}", warnings, lambda events: EVENTS[name] in events)


@pytest.mark.parametrize("options", [[], ["--previous"]])
def test_log_of_a_crashed_container_tells_the_cause(
    cluster: Cluster, faulty: Mapping[FaultName, str], options: list[str]
) -> None:
    ripen(cluster, faulty["crash-loop"], "crash-loop")
    command = ["logs", "deployment/checkout", f"--namespace={faulty['crash-loop']}", *options]
    # Around a restart the kubelet may just have removed the container that it is asked about.
    log = wait_until("log", lambda: cluster.attempt(*command).stdout, lambda text: "FATAL" in text)
    assert "connecting to db.shop.svc:5432" in log
    assert "FATAL: could not connect to db.shop.svc:5432: connection refused" in log


def test_service_answers_once_its_selector_is_right(cluster: Cluster, faulty: Mapping[FaultName, str]) -> None:
    namespace = faulty["service-wrong-selector"]
    ripen(cluster, namespace, "service-wrong-selector")
    in_namespace = f"--namespace={namespace}"
    addresses = "--output=jsonpath={.items[*].endpoints[*].addresses}"
    assert cluster.run("get", "endpointslices", in_namespace, addresses) == ""

    cluster.run("patch", "service", "web", in_namespace, '--patch={"spec":{"selector":{"app":"web"}}}')
    address = cluster.run("get", "service", "web", in_namespace, "--output=jsonpath={.spec.clusterIP}")
    # The static busybox crashes when it is given a timeout, or an address without a port.
    fetch = f"exec deployment/web {in_namespace} -- wget -q -O - http://{address}:80/".split()
    page = "welcome to the shop\n"
    wait_until("answer of the service", lambda: cluster.attempt(*fetch).stdout, lambda answer: answer == page)


def test_viewer_reads_everything_but_secrets(cluster: Cluster, namespace: str) -> None:
    cluster.run("create", "secret", "generic", "payments-key", "--from-literal=key=hunter2", f"--namespace={namespace}")
    for resource in ("pods", "events", "configmaps", "nodes", "persistentvolumes", "namespaces"):
        cluster.run("get", resource, f"--namespace={namespace}", user="viewer")
    denied = cluster.attempt("get", "secret", "payments-key", f"--namespace={namespace}", user="viewer")
    assert denied.returncode == 1
    assert "Forbidden" in denied.stderr
    assert cluster.attempt("delete", "namespace", namespace, user="viewer").returncode == 1


@pytest.mark.parametrize("resource", ["pods", "nodes", "namespaces", "events"])
def test_nobody_is_forbidden_everything(cluster: Cluster, resource: str) -> None:
    denied = cluster.attempt("get", resource, user="nobody")
    assert denied.returncode == 1
    assert f'{resource} is forbidden: User "nobody" cannot list resource' in denied.stderr


@pytest.fixture
def own_layout() -> Iterator[Layout]:
    """A place for a second cluster beside the shared one."""
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:  # not /tmp: its path may be long, sockets' are not
        layout = Layout(Layout.from_environment().cache, Path(folder, "run"))
        yield layout
        down(layout)


@pytest.mark.slow
def test_up_survives_a_kill_and_down_leaves_nothing(cluster: Cluster, own_layout: Layout) -> None:
    before = host_state()
    up(own_layout)
    os.kill(int(own_layout.pid_file.read_text().split()[0]), signal.SIGKILL)
    wait_until("end of the killed cluster", lambda: is_up(own_layout), lambda running: not running)

    second = up(own_layout)
    assert up(own_layout) == second == describe(own_layout)
    assert second.server != cluster.server
    namespace = create_namespace(second, "test")
    apply_fault(second, namespace, "service-wrong-selector")
    ripen(second, namespace, "service-wrong-selector")

    down(own_layout)
    assert not own_layout.run.exists()
    assert list(Path("/sys/fs/cgroup").glob(f"**/{own_layout.cgroup}")) == []
    wait_until("end of all its processes", lambda: processes_of(own_layout), lambda processes: processes == [])
    assert str(own_layout.run) not in Path("/proc/mounts").read_text()
    assert host_state() == before
    assert cluster.run("get", "--raw=/readyz") == "ok"


def host_state() -> dict[str, str]:
    """What a cluster without walls would change: kernel settings, and files in the places that daemons write to."""
    settings = {name: Path("/proc/sys", name).read_text() for name in GUARDED_SYSCTLS}
    folders = ("/run", "/run/netns", "/var/lib", "/var/lib/kubelet", "/var/log", "/usr/libexec", "/sys/class/net")
    return settings | {folder: str(sorted(Path(folder).glob("*"))) for folder in folders}


def processes_of(layout: Layout) -> list[str]:
    """Command lines that name the cluster's folder."""
    commands = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # ended in the meantime
            continue
        if str(layout.run) in command:
            commands.append(command)
    return commands
