"""Packs a root file system as a container image and gives it to the test cluster, without a builder or a registry."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from typing import TYPE_CHECKING

from tests.cluster.images import ARCHITECTURES
from tests.helm.dockerfile import stages

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.cluster.layout import Layout


def pack_image(root: Path, names: Sequence[str], archive: Path) -> None:
    """Write an archive in docker's format: one layer, with the configuration of the Dockerfile's last stage.

    The image gets all `names`, each with its registry and tag.
    """
    parts = archive.with_suffix(".parts")
    parts.mkdir()
    layer = parts / "layer.tar"
    _tar(layer, root, ".")
    with layer.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    manifest = [{"Config": "config.json", "RepoTags": [*names], "Layers": [layer.name]}]
    (parts / "config.json").write_text(json.dumps(_config(digest)))
    (parts / "manifest.json").write_text(json.dumps(manifest))
    _tar(archive, parts, "manifest.json", "config.json", layer.name)
    layer.unlink()


def import_image(layout: Layout, archive: Path) -> None:
    """Give the image to the cluster's containerd."""
    command = ["ctr", f"--address={layout.containerd_socket}", "--namespace=k8s.io", "images", "import", str(archive)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr


def _tar(target: Path, folder: Path, *names: str) -> None:
    # The files of the root are hard links to others, but no two of them to the same.
    options = ["--create", "--numeric-owner", "--hard-dereference", f"--file={target}", f"--directory={folder}"]
    subprocess.run(["tar", *options, *names], check=True)


def _config(digest: str) -> dict[str, object]:
    stage = stages()[-1]
    return {
        "architecture": ARCHITECTURES[platform.machine()],
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {
            "Env": [f"{name}={value}" for name, value in stage.variables().items()],
            "User": stage.one("USER"),
            "WorkingDir": stage.one("WORKDIR"),
            "Entrypoint": json.loads(stage.one("ENTRYPOINT")),
            "Cmd": json.loads(stage.one("CMD")),
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created": "1970-01-01T00:00:00Z"}],
    }
