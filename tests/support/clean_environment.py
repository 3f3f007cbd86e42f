"""An environment as a user has it after `pip install`: it does not know the checkout. Used as a pytest plugin."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

import pytest

from tests.support.long_form import LONG

ROOT: Final = Path(__file__).parents[2]
# What pip reads when it installs from a checkout.
SOURCES: Final = ("CHANGELOG.md", "LICENSE", "README.md", "helm", "holmes", "prompts", "pyproject.toml", "toolsets")
# pip's other settings (index, cache) come from the user's configuration, as on any machine.
_TIMEOUT_SECONDS: Final = 500


@pytest.fixture(scope="session")
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a virtual environment with the locked packages, in which every test installs Holmes itself.

    `make` has installed the locked packages already, so the short form links to them.
    """
    folder = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=_TIMEOUT_SECONDS)
    if LONG:
        pip = [str(folder / "bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
        locked = ["--require-hashes", "--requirement", str(ROOT / "requirements.lock")]
        subprocess.run([*pip, *locked], check=True, timeout=_TIMEOUT_SECONDS, cwd=folder)
    else:
        (packages,) = folder.glob("lib/python*/site-packages")
        installed = sysconfig.get_path("purelib")
        shutil.copytree(installed, packages, ignore=_without_checkout, copy_function=_link, dirs_exist_ok=True)
    return folder


def _without_checkout(_folder: str, names: list[str]) -> list[str]:
    return [each for each in names if each.lstrip("_").startswith("holmes")]


def _link(source: str, target: str) -> None:
    if Path(target).exists():  # pip itself
        return
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
