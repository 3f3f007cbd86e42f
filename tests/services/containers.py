"""A real Docker engine in namespaces of its own, and crictl for the containerd of the test cluster.

    with docker_engine(layout) as engine:
        engine.run("ps")

Debian's package is unpacked into the cache instead of installed, so that the machine has no engine after the tests. The
engine has no network and keeps no containers. `build` fetches what is missing; everything else only looks.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.cluster.errors import CannotRunHereError, ClusterError
from tests.cluster.images import pack_images
from tests.cluster.programs import appearing_at, building, run
from tests.services.service import Service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.layout import Layout

DOCKER: Final = ".".join(("docker", "io"))  # noqa: FLY002  the package has the name of a host
CRICTL: Final = "sigs.k8s.io/cri-tools/cmd/crictl@v1.34.0"
# The daemons find their sockets in /run, which is private here. A container that ends takes its control group with it.
_ENGINE: Final = """
set -e
mount -t tmpfs tmpfs /run
ip link set lo up
containerd --root "$1/containerd" --state "$1/state" --address "$1/containerd.sock" &
while [ ! -S "$1/containerd.sock" ]; do sleep 0.1; done
exec dockerd --containerd="$1/containerd.sock" --host="unix://$1/docker.sock" --data-root="$1/data" \\
  --exec-root="$1/exec" --pidfile="$1/docker.pid" --bridge=none --iptables=false --ip6tables=false --storage-driver=vfs
"""


def build(layout: Layout) -> None:
    """Fetch the engine and compile crictl (about a minute when cold, nothing when all is there)."""
    docker, crictl = _docker_folder(layout), crictl_path(layout)
    if docker.is_dir() and crictl.is_file():
        return
    with building(layout):
        if not docker.is_dir():
            with appearing_at(docker) as unfinished:
                run(["apt-get", "download", DOCKER], layout.cache / "download-docker.log", cwd=unfinished)
                (package,) = unfinished.glob("*.deb")
                run(["dpkg", "--extract", str(package), str(unfinished)], layout.cache / "unpack-docker.log")
                package.unlink()
        if not crictl.is_file():
            with appearing_at(crictl.parent) as unfinished:
                run(
                    ["go", "install", CRICTL], layout.cache / "build-crictl.log", environment={"GOBIN": str(unfinished)}
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A running Docker engine: its client, its address, and the folder of its programs."""

    programs: Path
    host: str

    def run(self, *arguments: str) -> str:
        """Run the client and return its output; raise ClusterError when it fails."""
        done = self._attempt(*arguments)
        if done.returncode != 0:
            raise ClusterError(f"`docker {' '.join(arguments)}` failed: {done.stderr.strip()}")
        return done.stdout

    def answers(self) -> bool:
        """Whether the engine answers."""
        return self._attempt("ps").returncode == 0

    def _attempt(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.programs / "docker"), f"--host={self.host}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@contextmanager
def docker_engine(layout: Layout) -> Iterator[Engine]:
    """Yield an engine with the images of the shop, and remove its containers at the end."""
    root = _docker_folder(layout)
    if not root.is_dir():
        raise CannotRunHereError("the Docker engine is not fetched: run `python -m tests.services build` once")
    if os.geteuid() != 0:
        raise CannotRunHereError("only root can run a Docker engine of its own")
    # `unshare` ignores other signals while it waits; its child, the first process of its namespace, ends with it.
    service = Service("docker", end_signal=signal.SIGKILL)
    engine = Engine(programs=root / "usr" / "bin", host=f"unix://{service.folder}/docker.sock")
    path = f"{root}/usr/bin:{root}/usr/sbin:/usr/sbin:{os.environ['PATH']}"
    namespaces = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
    command = ("env", f"PATH={path}", *namespaces, "bash", "-c", _ENGINE, "engine", str(service.folder))
    try:
        service.start(command, engine.answers)
        images = service.folder / "images.tar"
        pack_images(images)
        engine.run("load", f"--input={images}")
        yield engine
        for name in engine.run("ps", "--all", "--quiet").split():
            engine.run("rm", "--force", name)
    finally:
        service.close()


def crictl_path(layout: Layout) -> Path:
    """Return where crictl is, or will be."""
    return layout.cache / f"crictl-{CRICTL.partition('@')[2]}" / "crictl"


def write_crictl(layout: Layout, folder: Path) -> Path:
    """Write a program `crictl` into `folder` that runs the real one on the cluster's node, where the log files are."""
    program = crictl_path(layout)
    if not program.is_file():
        raise CannotRunHereError("crictl is not built: run `python -m tests.services build` once")
    supervisor, _, _ = layout.pid_file.read_text().partition(" ")
    (node,) = _children(int(supervisor))
    settings = folder / "crictl.yaml"
    settings.write_text(json.dumps({"runtime-endpoint": f"unix://{layout.containerd_socket}", "timeout": 20}))
    script = folder / "crictl"
    script.write_text(f'#!/bin/sh\nexec nsenter --target={node} --mount --pid -- {program} --config={settings} "$@"\n')
    script.chmod(0o755)
    return script


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _docker_folder(layout: Layout) -> Path:
    return layout.cache / "docker-engine"
