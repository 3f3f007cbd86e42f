"""The examples of the toolsets: a question that people ask, the call of a tool, and what the call must show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from tests.toolsets.shipped.kinds import FOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from holmes.values.json_types import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One call. `shows` must be in its result, `hides` must not be: the answer, and what is healthy."""

    system: str
    tool: str
    question: str
    arguments: Mapping[str, JsonValue]
    shows: tuple[str, ...]
    hides: tuple[str, ...] = ()
    number: int = 1

    @property
    def output(self) -> Path:
        """The file with the whole result. HOLMES_UPDATE_GOLDEN=1 writes it, to be read in the diff."""
        suffix = f"-{self.number}" if self.number > 1 else ""
        return FOLDER / self.system / "outputs" / f"{self.tool}{suffix}.txt"

    @property
    def call(self) -> str:
        """The call as it is written in the documentation."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.tool}({arguments})".replace("'", '"')


def examples(system: str) -> tuple[Example, ...]:
    """Return the examples of a system, in the order of its file."""
    found: list[Example] = []
    for each in yaml.safe_load((FOLDER / system / "examples.yaml").read_text()):
        number = 1 + sum(other.tool == each["tool"] for other in found)
        found.append(
            Example(
                system=system,
                tool=each["tool"],
                question=each["question"],
                arguments=each.get("arguments") or {},
                shows=tuple(each["shows"]),
                hides=tuple(each.get("hides", ())),
                number=number,
            )
        )
    return tuple(found)


def documented_systems() -> tuple[str, ...]:
    """Return the folders that have examples. Each is named after a file of `toolsets/`."""
    return tuple(sorted(path.parent.name for path in FOLDER.glob("*/examples.yaml")))
