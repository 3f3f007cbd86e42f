"""The image's command in the image's file system under the chart's security context, without a container engine.

The file system comes from this machine (see `root_file_system`), the command, the variables and the user from the
Dockerfile, read-only root, lost capabilities and no new privileges from the kernel. What only a container runtime can
add, the seccomp profile, is proven by `test_install`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.helm.dockerfile import stages

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

KEY: Final = "0123456789abcdef"
# Mounts are private to the namespace of `unshare` and end with it.
SCRIPT: Final = """
set -e
root=$1 user=$2; shift 2
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o "mode=2770,gid=$user" tmpfs "$root/var/lib/holmes"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
exec chroot "$root" setpriv --reuid="$user" --regid="$user" --clear-groups --bounding-set=-all --inh-caps=-all \
  --no-new-privs env -i "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confined:
    """Runs commands in the image's file system as the chart's user."""

    root: Path

    def command(self, *arguments: str, **variables: str) -> list[str]:
        """The command line; `variables` come on top of those of the image."""
        environment = [f"{name}={value}" for name, value in (stages()[-1].variables() | variables).items()]
        isolation = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", SCRIPT, "sh"]
        return [*isolation, str(self.root), str(stages()[-1].user()), *environment, *arguments]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run to the end."""
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def confined(image_root: Path) -> Confined:
    return Confined(root=image_root)


@pytest.fixture
def server(confined: Confined) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`holmes serve` as the image starts it, and its address."""
    command = confined.command(*stages()[-1].command(), HOLMES_PORT="0", HOLMES_HOST="0.0.0.0", HOLMES_API_KEY=KEY)  # noqa: S104
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if found := re.search(r"listening on (http://\S+)", line):
                break
        else:
            pytest.fail("".join(lines))  # the output has ended, and so has the process
        try:
            yield process, found[1]
        finally:
            _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Signal the server itself: it outlives `unshare`, because the kernel forgets such ties when the user changes."""
    if process.poll() is None:
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            os.kill(int(child), number)


def test_serve_answers_its_probes_asks_for_the_key_and_ends_when_it_is_told_to(
    server: tuple[subprocess.Popen[str], str],
) -> None:
    process, address = server
    with httpx.Client(base_url=address, timeout=30) as client:
        assert client.get("/healthz").json() == {"status": "healthy"}
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (200, "ready")
        assert client.get("/api/model").status_code == 401
        assert client.get("/api/model", headers={"X-API-Key": KEY}).status_code == 200
    _signal(process, signal.SIGTERM)
    assert process.wait(timeout=30) == 0


def test_the_process_has_no_rights_and_writes_only_where_it_may(confined: Confined) -> None:
    status = dict(line.split(":\t", 1) for line in confined.run("cat", "/proc/self/status").stdout.splitlines())
    assert set(status["Uid"].split()) == {"10001"}
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    for folder in ("/", "/opt/holmes", "/usr/local/bin"):
        assert "Read-only file system" in confined.run("sh", "-c", f": > {folder}/probe").stderr, folder
    for folder in ("/tmp", "/var/lib/holmes"):
        assert confined.run("sh", "-c", f": > {folder}/probe").returncode == 0, folder


def test_kubectl_helm_and_bash_are_inside(confined: Confined) -> None:
    assert "Client Version" in confined.run("kubectl", "version", "--client").stdout
    assert confined.run("helm", "version", "--short").stdout.startswith("v4.")
    assert confined.run("bash", "-c", "echo $BASH_VERSION").stdout.startswith("5.")


def test_the_wheel_has_everything_that_a_diagnosis_needs(confined: Confined) -> None:
    shown = confined.run("holmes", "scan", "--demo")
    assert "critical" in shown.stdout, shown.stderr
