"""Packs container images without a registry or a container builder: called by `lifecycle` before the start.

There is one file system, Debian's static busybox, under the names of all the shop's services, and an image for
the pod sandboxes. A name that is missing here cannot be pulled: that is a real ErrImagePull.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.cluster.layout import REGISTRY, Layout

if TYPE_CHECKING:
    from collections.abc import Iterable

BUSYBOX: Final = Path("/bin/busybox")
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
SHOP: Final = (
    "busybox:1.0",
    "cart:0.9.3",
    "catalog:3.0.4",
    "checkout:2.4.1",
    "payments:1.12.0",
    "recommendations:1.8.0",
    "search:5.0.2",
    "web:4.2.0",
)
FOLDERS: Final = ("bin", "etc", "proc", "root", "sys", "dev", "tmp", "usr", "usr/bin", "var", "var/log", "www")
ACCOUNTS: Final = {
    "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": b"root:x:0:\nnogroup:x:65534:\n",
}
ManifestEntry = dict[str, str | list[str]]


def pack_images(archive: Path) -> None:
    """Write an archive in docker's format to `archive`, ready for `ctr images import`."""
    with tarfile.open(archive, "w", format=tarfile.USTAR_FORMAT) as target:
        shop = _add_image(target, _shop_layer(), [f"{REGISTRY}/{name}" for name in SHOP], ["/bin/sh"])
        pause = _add_image(target, _pause_layer(), [f"{REGISTRY}/pause:1"], ["/sleep", "2147483647"])
        _add_file(target, "manifest.json", json.dumps([shop, pause]).encode())


def add_names(layout: Layout, names: Iterable[str]) -> None:
    """Give busybox further names in the running cluster, until it stops."""
    for name in names:
        command = ["ctr", "--address", str(layout.containerd_socket), "--namespace", "k8s.io", "images", "tag"]
        subprocess.run([*command, "--force", f"{REGISTRY}/{SHOP[0]}", name], capture_output=True, check=True)


def _add_image(target: tarfile.TarFile, layer: bytes, names: list[str], command: list[str]) -> ManifestEntry:
    digest = hashlib.sha256(layer).hexdigest()
    config = {
        "architecture": ARCHITECTURES[platform.machine()],
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {"Env": ["PATH=/usr/local/bin:/bin:/usr/bin"], "Cmd": command, "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created": "1970-01-01T00:00:00Z"}],
    }
    content = json.dumps(config).encode()
    config_name = f"{hashlib.sha256(content).hexdigest()}.json"
    _add_file(target, config_name, content)
    _add_file(target, f"{digest}.tar", layer)
    return {"Config": config_name, "RepoTags": names, "Layers": [f"{digest}.tar"]}


def _shop_layer() -> bytes:
    applets = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as layer:
        for folder in FOLDERS:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            layer.addfile(entry)
        for name, content in ACCOUNTS.items():
            _add_file(layer, name, content)
        _add_file(layer, "bin/busybox", BUSYBOX.read_bytes(), mode=0o755)
        for applet in applets:
            if applet != "busybox":
                _add_link(layer, f"bin/{applet}", "busybox")
    return buffer.getvalue()


def _pause_layer() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as layer:
        _add_file(layer, "busybox", BUSYBOX.read_bytes(), mode=0o755)
        _add_link(layer, "sleep", "busybox")
    return buffer.getvalue()


def _add_file(target: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    target.addfile(entry, io.BytesIO(content))


def _add_link(target: tarfile.TarFile, name: str, destination: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, destination, 0o777
    target.addfile(entry)
