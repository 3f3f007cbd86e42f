"""Starts and stops the cluster: called by `fixtures` and by the command line.

The whole cluster lives in one pid namespace under one `unshare` process. Killing that process is all it takes to
end every daemon, container, mount and network of it; what can be left are files and empty control groups, and
both `up` and `down` remove those first. So nothing depends on an earlier run having ended well.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.cluster import control_groups
from tests.cluster.credentials import write_credentials
from tests.cluster.errors import ClusterError, tail
from tests.cluster.handle import Cluster
from tests.cluster.images import pack_images
from tests.cluster.layout import SOURCES, Layout
from tests.cluster.locks import exclusive
from tests.cluster.prerequisites import UNSHARE, require_machine
from tests.cluster.programs import build, locate

START_TIMEOUT_SECONDS: Final = 150
# The daemons get this and nothing else: a proxy variable of the caller would break their calls to each other.
SEARCH_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def up(layout: Layout) -> Cluster:
    """Return the running cluster, started (and built) first if need be; raise ClusterError with the reason if not."""
    require_machine(layout)
    build(layout)
    with exclusive(layout.lock):
        if not is_up(layout):
            _clean(layout)
            try:
                _start(layout)
            except BaseException:
                _clean(layout)
                raise
    return describe(layout)


def down(layout: Layout) -> None:
    """Stop the cluster and remove all that it left; fine when there is none."""
    with exclusive(layout.lock):
        _clean(layout)


def is_up(layout: Layout) -> bool:
    """Say whether the cluster runs and became ready; it does not outlive any of its daemons."""
    return layout.ready_file.exists() and _running_pid(layout) is not None


def describe(layout: Layout) -> Cluster:
    """Return the handle of the cluster of `layout`, which must be up."""
    return Cluster(
        admin=layout.kubeconfig("admin"),
        viewer=layout.kubeconfig("viewer"),
        nobody=layout.kubeconfig("nobody"),
        kubectl=locate(layout).kubectl,
        server=(layout.run / "server").read_text(),
    )


def _start(layout: Layout) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        _prepare(layout, f"https://127.0.0.1:{listener.getsockname()[1]}")
        _launch(layout, listener)
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while not layout.ready_file.exists():
        if _running_pid(layout) is None:
            raise ClusterError(f"the cluster did not start:\n{tail(layout.log('supervisor'), 40)}")
        if time.monotonic() > deadline:
            raise ClusterError(f"the cluster hangs:\n{tail(layout.log('supervisor'), 40)}")
        time.sleep(0.05)


def _prepare(layout: Layout, server: str) -> None:
    """Write everything that the daemons will read."""
    (layout.run / "log").mkdir(parents=True)
    layout.run.chmod(0o700)
    (layout.run / "server").write_text(server)
    (layout.run / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    write_credentials(layout, server)
    pack_images(layout.run / "images.tar")
    layout.fill("containerd.toml", layout.run / "containerd.toml")
    layout.fill("kubelet.yaml", layout.run / "kubelet.yaml")
    layout.fill("cni.conflist", layout.run / "cni" / "10-pods.conflist")
    layout.fill("users.yaml", layout.run / "users.yaml")


def _launch(layout: Layout, listener: socket.socket) -> None:
    """Start `unshare`, detached from this process, with its process id and birth on record."""
    supervisor = [sys.executable, "-m", "tests.cluster.supervisor", str(listener.fileno())]
    # The shell becomes `unshare`, so its process id is the one to keep; field 22 tells it from a later namesake.
    record = f'echo $$ $(cut -d" " -f22 /proc/$$/stat) >"{layout.pid_file}"; exec "$@"'
    with layout.log("supervisor").open("w") as log:
        subprocess.run(
            ["setsid", "--fork", "sh", "-c", record, "sh", *UNSHARE, *supervisor],
            cwd=SOURCES.parents[1],
            env={
                "PATH": SEARCH_PATH,
                "HOME": str(layout.run),
                "HOLMES_TEST_CACHE": str(layout.cache),
                "HOLMES_TEST_CLUSTER_DIR": str(layout.run),
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[listener.fileno()],
            check=True,
        )
    _wait_for_record(layout)


def _wait_for_record(layout: Layout) -> None:
    deadline = time.monotonic() + 5
    while not (layout.pid_file.exists() and layout.pid_file.read_text().endswith("\n")):
        if time.monotonic() > deadline:
            raise ClusterError(f"`setsid` started nothing:\n{tail(layout.log('supervisor'))}")
        time.sleep(0.01)


def _running_pid(layout: Layout) -> int | None:
    """Return the recorded process unless it has ended or its number belongs to another process by now."""
    try:
        pid, birth = layout.pid_file.read_text().split()
        fields = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return int(pid) if fields[0] != "Z" and fields[19] == birth else None


def _clean(layout: Layout) -> None:
    pid = _running_pid(layout)
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
    # Only when the last container is gone can its control group be removed: this also waits for the end.
    control_groups.remove(layout.cgroup)
    while _running_pid(layout) is not None:
        time.sleep(0.02)
    if layout.run.exists():
        shutil.rmtree(layout.run)
