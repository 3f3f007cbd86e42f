"""Process 1 of the cluster's pid namespace: `python -m tests.cluster.supervisor SOCKET_FD`, started by `lifecycle`.

Starts the daemons in the order of their needs, then waits. All or nothing: when one daemon ends, so does this
process, and the kernel kills everything else in the namespace. That is also how the cluster is stopped.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.cluster import control_groups, daemons, isolation
from tests.cluster.api import ApiServer
from tests.cluster.errors import ClusterError, tail
from tests.cluster.layout import INNER_SERVER, NODE_NAME, Layout
from tests.cluster.programs import Programs, locate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Supervisor:
    """Starts daemons and notices when one of them ends."""

    def __init__(self, layout: Layout, programs: Programs) -> None:
        self._layout = layout
        self._programs = programs
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._started = time.monotonic()

    def start(self, name: str, command: Sequence[str], pass_fds: Sequence[int] = ()) -> None:
        """Start the daemon `name` with its output in its own log."""
        with self._layout.log(name).open("w") as log:
            daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=pass_fds)
        self._daemons[name] = daemon

    def wait_for(self, what: str, is_there: Callable[[], bool], timeout_seconds: float = 90) -> None:
        """Ask until the answer is yes; raise ClusterError when a daemon ends or the time is over."""
        deadline = time.monotonic() + timeout_seconds
        while not is_there():
            self._check_daemons()
            if time.monotonic() > deadline:
                raise ClusterError(f"no {what} within {timeout_seconds} s")
            time.sleep(0.1)
        print(f"{time.monotonic() - self._started:5.1f} s  {what}", flush=True)  # noqa: T201

    def run(self, *command: str) -> None:
        """Run a short command to its end."""
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ClusterError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")

    def serve(self) -> None:
        """Reap orphans, as process 1 must, until a daemon ends."""
        names = {daemon.pid: name for name, daemon in self._daemons.items()}
        while True:
            ended, status = os.wait()
            if ended in names:
                raise ClusterError(self._obituary(names[ended], os.waitstatus_to_exitcode(status)))

    def _check_daemons(self) -> None:
        for name, daemon in self._daemons.items():
            code = daemon.poll()
            if code is not None:
                raise ClusterError(self._obituary(name, code))

    def _obituary(self, name: str, code: int) -> str:
        return f"{name} ended with {code}, the end of its log:\n{tail(self._layout.log(name))}"


def start_cluster(supervisor: Supervisor, layout: Layout, programs: Programs, listener: int) -> None:
    """Bring everything up; returns when the node is Ready and pods can be made."""
    api = ApiServer(layout)
    supervisor.start("containerd", daemons.containerd(layout))
    supervisor.start("etcd", daemons.etcd(layout, programs))
    supervisor.start("api-server", daemons.api_server(layout, programs))
    forward = [sys.executable, "-m", "tests.cluster.forward", str(listener)]
    supervisor.start("forward", forward, pass_fds=[listener])
    supervisor.wait_for("containerd", layout.containerd_socket.is_socket)
    ctr = ["ctr", "--address", str(layout.containerd_socket), "--namespace", "k8s.io"]
    supervisor.run(*ctr, "images", "import", f"{layout.run}/images.tar")
    supervisor.wait_for("API server", lambda: api.get("/readyz") == "ok")
    supervisor.start("controller-manager", daemons.controller_manager(layout, programs))
    supervisor.start("scheduler", daemons.scheduler(layout, programs))
    supervisor.start("kubelet", daemons.kubelet(layout, programs))
    supervisor.start("proxy", daemons.proxy(layout, programs))
    kubectl = [str(programs.kubectl), f"--kubeconfig={layout.kubeconfig('admin')}", f"--server={INNER_SERVER}"]
    supervisor.run(*kubectl, "create", "--validate=false", "--filename", f"{layout.run}/users.yaml")
    supervisor.wait_for("Ready node", lambda: '"KubeletReady"' in api.get(f"/api/v1/nodes/{NODE_NAME}"))
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    supervisor.wait_for("service account", lambda: api.get(account) != "")


def main(listener: int) -> None:
    """Make the node, start the cluster, say so, and watch over it."""
    layout = Layout.from_environment()
    programs = locate(layout)
    supervisor = Supervisor(layout, programs)
    try:
        isolation.cover_host_folders()
        isolation.guard_sysctls()
        isolation.cut_name_resolution(layout.run / "resolv.conf")
        isolation.make_network()
        control_groups.create(layout.cgroup)
        start_cluster(supervisor, layout, programs, listener)
        layout.ready_file.touch()
        supervisor.serve()
    except (ClusterError, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
