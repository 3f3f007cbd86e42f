"""Builds and caches the cluster's programs: called by `lifecycle`, and by `python -m tests.cluster build`.

Kubernetes and etcd come from their Go modules (pins/go.mod, pins/go.sum), kubectl from its wheel
(pins/kubectl.txt): versions and hashes are pinned there. A cache folder is named after what went into it and
appears under that name only when it is complete, so an interrupted build is never mistaken for a finished one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from tests.cluster.errors import CannotRunHereError, ClusterError, tail
from tests.cluster.layout import SOURCES
from tests.cluster.locks import exclusive

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.cluster.layout import Layout

PINS: Final = SOURCES / "pins"
UNFINISHED: Final = ".unfinished-"
Program = Literal["etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubelet"]
# Go names a program after its folder: etcd's comes out as `server`.
GO_NAMES: Final[dict[Program, str]] = {
    "etcd": "server",
    "kube-apiserver": "kube-apiserver",
    "kube-controller-manager": "kube-controller-manager",
    "kube-proxy": "kube-proxy",
    "kube-scheduler": "kube-scheduler",
    "kubelet": "kubelet",
}
# No debug information: a third less to compile, link and keep.
GO_FLAGS: Final = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-tags=providerless", "-gcflags=all=-dwarf=false")


@dataclass(frozen=True)
class Programs:
    """Paths of everything that the cluster runs and Debian does not have."""

    directory: Path
    kubectl: Path

    def path(self, program: Program) -> Path:
        """Return where `program` lies."""
        return self.directory / program


def locate(layout: Layout) -> Programs:
    """Say where the programs of the pinned versions lie, or will lie once they are built."""
    version, wheel_version = _pinned("go.mod", r"k8s\.io/kubernetes (v\S+)"), _pinned("kubectl.txt", r"==(\S+)")
    built = _digest("go.mod", "go.sum", extra=" ".join((*GO_FLAGS, *_linker_flags(version))))
    return Programs(
        directory=layout.cache / f"kubernetes-{version}-{built}",
        kubectl=layout.cache / f"kubectl-{wheel_version}-{_digest('kubectl.txt')}" / "bin" / "kubectl",
    )


def are_built(programs: Programs) -> bool:
    """Say whether nothing is left to build."""
    return programs.directory.is_dir() and programs.kubectl.is_file()


def require_built(layout: Layout) -> None:
    """Raise CannotRunHereError when `build` would have something to do."""
    if not are_built(locate(layout)):
        raise CannotRunHereError("the test cluster is not built: run `python -m tests.cluster build` once")


def build(layout: Layout) -> Programs:
    """Build what the cache lacks (minutes when cold, seconds with Go's own cache, nothing when all is there)."""
    programs = locate(layout)
    if not are_built(programs):
        with exclusive(layout.cache / "build.lock"):
            for leftover in layout.cache.glob(f"{UNFINISHED}*"):  # of a build that was killed
                shutil.rmtree(leftover)
            if not programs.kubectl.is_file():
                _fetch_kubectl(layout, programs.kubectl.parents[1])
            if not programs.directory.is_dir():
                _build_kubernetes(layout, programs.directory)
    return programs


def _pinned(file: str, pattern: str) -> str:
    match = re.search(pattern, (PINS / file).read_text())
    if match is None:
        raise ClusterError(f"pins/{file} pins no version: nothing matches {pattern!r}")
    return match[1]


def _digest(*files: str, extra: str = "") -> str:
    content = b"\0".join([*((PINS / file).read_bytes() for file in files), extra.encode()])
    return hashlib.sha256(content).hexdigest()[:12]


def _linker_flags(version: str) -> list[str]:
    """Without these the API server calls itself v0.0.0, and the kubelet and kubectl compare versions with that."""
    major, minor, _ = version.removeprefix("v").split(".", 2)
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return ["-s", "-w", *(f"-X={package}.{key}={value}" for package in packages for key, value in values.items())]


def _build_kubernetes(layout: Layout, target: Path) -> None:
    if shutil.which("go") is None:
        raise CannotRunHereError("the test cluster is not built yet and there is no Go to build it with")
    version = _pinned("go.mod", r"k8s\.io/kubernetes (v\S+)")
    with _appearing_at(target) as unfinished, tempfile.TemporaryDirectory() as module:
        # A copy, so that switching branches in the checkout does not disturb a build that runs for minutes.
        for pin in ("go.mod", "go.sum"):
            shutil.copy(PINS / pin, module)
        # The last word means every package in go.mod's `tool` block; all share one compilation.
        command = [
            "go",
            "build",
            *GO_FLAGS,
            f"-ldflags={' '.join(_linker_flags(version))}",
            f"-o={unfinished}/",
            "tool",
        ]
        environment = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": ""}
        _run(command, layout.cache / "build-kubernetes.log", cwd=Path(module), environment=environment)
        for name, go_name in GO_NAMES.items():
            (unfinished / go_name).rename(unfinished / name)


def _fetch_kubectl(layout: Layout, target: Path) -> None:
    with _appearing_at(target) as unfinished:
        arguments = ["install", "--no-deps", "--require-hashes", "--requirement", f"{PINS / 'kubectl.txt'}"]
        _run([*_pip(), *arguments, "--target", f"{unfinished}"], layout.cache / "fetch-kubectl.log")


def _pip() -> list[str]:
    """Virtual environments made by uv have no pip of their own."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    for candidate in (["uv", "pip"], ["pip3"]):
        if shutil.which(candidate[0]) is not None:
            return candidate
    raise CannotRunHereError("the test cluster has no kubectl yet and there is no pip to fetch it with")


@contextmanager
def _appearing_at(target: Path) -> Iterator[Path]:
    """Yield a folder to fill, which becomes `target` in one step when the block ends well."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=UNFINISHED) as parent:
        unfinished = Path(parent) / "content"
        unfinished.mkdir()
        yield unfinished
        unfinished.rename(target)


def _run(command: Sequence[str], log: Path, cwd: Path | None = None, environment: dict[str, str] | None = None) -> None:
    with log.open("w") as output:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=cwd,
            env=os.environ | (environment or {}),
            check=False,
        )
    if done.returncode != 0:
        raise ClusterError(f"`{' '.join(command[:3])} …` failed, the end of {log}:\n{tail(log)}")
