"""Reads the Dockerfile: what the tests of the image take from its last stage instead of repeating it."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from typing import Final

from tests.helm.chart import ROOT

DOCKERFILE: Final = ROOT / "Dockerfile"
_INSTRUCTION: Final = re.compile(r"^([A-Z]+) +(.*)$", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage; instructions of the same name in their order."""

    base: str
    instructions: dict[str, list[str]] = field(default_factory=dict)

    def one(self, name: str) -> str:
        """The only instruction of that name."""
        (found,) = self.instructions[name]
        return found

    def command(self) -> list[str]:
        """What the container runs."""
        return [*json.loads(self.one("ENTRYPOINT")), *json.loads(self.one("CMD"))]

    def variables(self) -> dict[str, str]:
        """The environment that the image sets."""
        pairs = (word.partition("=") for line in self.instructions.get("ENV", []) for word in shlex.split(line))
        return {name: value for name, _, value in pairs}

    def user(self) -> int:
        """The number of the user."""
        return int(self.one("USER").partition(":")[0])


def stages() -> list[Stage]:
    """The stages of the Dockerfile in their order."""
    lines = [line for line in DOCKERFILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    text = re.sub(r"\\\n\s*", "", "\n".join(lines))
    found: list[Stage] = []
    for line in text.splitlines():
        match = _INSTRUCTION.match(line)
        if match is None:
            continue
        name, rest = match.groups()
        if name == "FROM":
            found.append(Stage(base=rest))
        elif found:
            found[-1].instructions.setdefault(name, []).append(rest)
    return found
