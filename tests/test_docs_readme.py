"""The README, typed into one shell in which Holmes is installed as the README says.

The port and the environment of `make` are replaced; everything else is executed as it is written. The image is only
linted here; `tests/helm/test_install.py` installs the chart.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.helm.chart import Helm
from tests.services.service import free_port
from tests.support.clean_environment import ROOT, SOURCES
from tests.support.document_shell import Command, Shell, commands_of, shell
from tests.support.readme import README, blocks, image, install_commands

PROGRAMS = ("curl", "jq", "make")


@pytest.fixture
def port() -> str:
    return str(free_port())


@pytest.fixture
def prompt(tmp_path: Path, port: str, clean_environment: Path) -> Iterator[Shell]:
    """A shell in a checkout, with the environment into which it is installed."""
    for name in (*SOURCES, "Makefile", "requirements.lock"):
        (tmp_path / name).symlink_to(ROOT / name)
    environment = tmp_path / "environment"
    environment.mkdir()
    (environment / "bin").symlink_to(clean_environment / "bin")
    (environment / ".installed").touch()
    variables = {
        "PATH": os.pathsep.join((str(clean_environment / "bin"), os.defpath)),
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "HOLMES_PORT": port,
        # The locked environment has what builds the wheel.
        "PIP_NO_BUILD_ISOLATION": "0",
        "MAKEFLAGS": f"--no-print-directory -- VENV={environment}",
    }
    with shell(tmp_path, variables) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not all(map(shutil.which, PROGRAMS)), reason=f"needs {', '.join(PROGRAMS)}")
def test_every_command_prints_what_the_readme_shows(prompt: Shell, port: str) -> None:
    (install,) = re.findall(r"^pip install .*", blocks("bash")[0], flags=re.MULTILINE)
    prompt.run(Command(text=install, expected="…"))
    commands = [command for block in blocks("console") for command in commands_of(block.replace("5050", port))]
    assert len(commands) > 5
    for command in commands:
        prompt.run(command)


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 90


def test_the_readme_has_no_other_blocks() -> None:
    assert set(re.findall(r"^```(\w+)$", README.read_text(), flags=re.MULTILINE)) == {"bash", "console"}
    assert len(blocks("bash")) == 2


def test_make_has_both_commands() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert blocks("bash")[1] == "make test\n"
    assert install_commands()["make ask"] == []
    assert {"ask", "test"} <= set(targets)


def test_pip_installs_extras_that_exist() -> None:
    (package,) = install_commands()["pip install"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert package == ".[server,kubectl]"
    assert {"server", "kubectl"} <= set(extras)


def test_the_chart_runs_the_image_that_was_built(helm: Path, tmp_path: Path) -> None:
    commands = install_commands()
    assert commands["docker push"] == [image()]
    (name, chart, *options) = commands["helm install"]
    options.remove("--create-namespace")
    rendered = Helm(program=helm, home=tmp_path).run("template", name, str(ROOT / chart), *options)
    images = {
        container["image"]
        for document in yaml.safe_load_all(rendered)
        if document and document["kind"] == "Deployment"
        for container in document["spec"]["template"]["spec"]["containers"]
    }
    assert images == {image()}
