"""docs/deploy.md, typed into one shell: with a real Alertmanager, PostgreSQL, cluster and Helm.

Only what is slow or elsewhere is replaced: ports that may be taken, the namespace, and where PostgreSQL and Slack are.
The packages that Holmes needs come from the environment of the tests; the wheel is built and installed as written.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.fixtures import Cluster
from tests.cluster.layout import Layout
from tests.helm.container_image import import_image, pack_image
from tests.helm.root_file_system import make_root
from tests.services.fixtures import Monitor, RunMonitor
from tests.services.service import free_port
from tests.support.clean_environment import SOURCES
from tests.support.document_shell import Shell, commands_of, shell
from tests.support.slack_server import SlackServer

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(400)]

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "deploy.md"
SILENT = {"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that looks like a checkout."""
    folder = tmp_path / "home"
    (folder / ".holmes").mkdir(parents=True)
    for name in SOURCES:
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.fixture
def port() -> str:
    """Where Holmes listens instead of 5050."""
    return str(free_port())


@pytest.fixture
def slack() -> Iterator[SlackServer]:
    with SlackServer() as server:
        yield server


@pytest.fixture
def manager(alertmanager: RunMonitor, home: Path) -> Iterator[Monitor]:
    """An Alertmanager that sends nothing to nobody, until somebody changes `alertmanager.yml`."""
    with alertmanager(SILENT) as running:
        (home / "alertmanager.yml").symlink_to(running.service.folder / "config.yaml")
        (running.service.folder / "holmes-webhook-key").symlink_to(home / "holmes-webhook-key")
        yield running


@pytest.fixture
def images(cluster: Cluster, helm: Path, tmp_path: Path) -> None:  # noqa: ARG001  the cluster must run
    """The images that the guide names, as if they had been pushed: the Job of the chart runs the first one."""
    make_root(tmp_path / "root", helm)
    names = [f"registry.shop.example/tools/holmes:{tag}" for tag in ("0.1.0", "0.1.1")]
    archive = tmp_path / "image.tar"
    pack_image(tmp_path / "root", names, archive)
    import_image(Layout.from_environment(), archive)
    archive.unlink()


@pytest.fixture
def guide(namespace: str, manager: Monitor, postgresql_url: str, slack: SlackServer, port: str) -> str:
    """The document with the addresses of this test."""
    replacements = {
        "kubectl create namespace holmes\nnamespace/holmes created": "true",
        "--namespace holmes": f"--namespace {namespace}",
        "serviceaccount:holmes:": f"serviceaccount:{namespace}:",
        "holmes.holmes.svc": f"holmes.{namespace}.svc",
        "127.0.0.1:5050": f"127.0.0.1:{port}",
        "5051": str(free_port()),
        "group_wait: 10s": "group_wait: 1s",
        "127.0.0.1:9093": manager.address,
        "postgresql://holmes@127.0.0.1:5432/holmes": postgresql_url,
        "xoxb-your-token": slack.token,
        # The server of this guide reads the demo.
        "~/.holmes/investigations.db": "~/.holmes/recordings.db",
        'channel: "#alerts"': f'channel: "#alerts"\n      api_url: {slack.api_url}',
    }
    text = DOCUMENT.read_text()
    for old, new in replacements.items():
        assert old in text, f"the document does not say {old!r} any more"
        text = text.replace(old, new)
    return text


@pytest.fixture
def prompt(home: Path, cluster: Cluster, helm: Path, port: str) -> Iterator[Shell]:
    """The shell. pip finds what Holmes needs, and what builds it, where the tests have it."""
    programs = (helm.parent, cluster.kubectl.parent, Path(sys.executable).parent, "/usr/bin", "/bin")
    variables = {
        "PATH": os.pathsep.join(map(str, programs)),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "KUBECONFIG": str(cluster.admin),
        "HOLMES_PORT": port,
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
    }
    with shell(home, variables) as opened:
        yield opened


def blocks_of(text: str) -> list[tuple[str, str]]:
    """Language and content of the fenced blocks."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def play(text: str, home: Path, prompt: Shell) -> int:
    """Write every file and run every command, in order; how many there were."""
    count = 0
    for language, content in blocks_of(text):
        if language == "yaml":
            first, _, rest = content.partition("\n")
            assert first.startswith("# file: "), "a yaml block must say which file it is"
            (home / first.removeprefix("# file: ")).write_text(rest)
            continue
        assert language == "console", f"nobody knows how to execute {language!r}"
        for command in commands_of(content):
            prompt.run(command)
            count += 1
    return count


@pytest.mark.usefixtures("images")
def test_every_command_of_the_guide_does_what_it_says(
    guide: str, home: Path, prompt: Shell, slack: SlackServer
) -> None:
    assert play(guide, home, prompt) > 30
    assert [message for message in slack.messages("alerts") if "catalog" in message.shown]
