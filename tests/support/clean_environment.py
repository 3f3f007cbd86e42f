"""An environment as a user has it after `pip install`: it does not know the checkout. Used as a pytest plugin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
# What pip reads when it installs from a checkout.
SOURCES: Final = ("CHANGELOG.md", "LICENSE", "README.md", "helm", "holmes", "prompts", "pyproject.toml", "toolsets")
# pip's other settings (index, cache) come from the user's configuration, as on any machine.
_TIMEOUT_SECONDS: Final = 500


@pytest.fixture(scope="session")
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a virtual environment with the locked packages, in which every test installs Holmes itself."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=_TIMEOUT_SECONDS)
    pip = [str(folder / "bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
    locked = ["--require-hashes", "--requirement", str(ROOT / "requirements.lock")]
    subprocess.run([*pip, *locked], check=True, timeout=_TIMEOUT_SECONDS, cwd=folder)
    return folder
