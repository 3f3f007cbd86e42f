"""The commands of the README, for the tests that execute them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

README: Final = Path(__file__).parents[2] / "README.md"


def blocks(language: str) -> list[str]:
    """The contents of the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(), flags=re.MULTILINE | re.DOTALL)


def install_commands() -> dict[str, list[str]]:
    """The arguments of the installation's commands, by program and subcommand."""
    lines = [shlex.split(line) for line in blocks("bash")[0].splitlines() if not line.startswith("#")]
    return {" ".join(line[:2]): line[2:] for line in lines}


def image() -> str:
    """The name of the image that the README builds."""
    return install_commands()["docker build"][1]
