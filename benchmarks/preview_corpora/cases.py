"""What a made-up text is: its family, its one fault, and the facts that tell it. Used by every family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Family = Literal["logs", "table", "json", "yaml", "events"]
FAMILIES: tuple[Family, ...] = ("logs", "table", "json", "yaml", "events")


Made: TypeAlias = tuple[str, str, tuple[str, ...]]
"""Name of the fault, text, facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A text and the facts of its one fault. A preview finds the fault when it contains every fact."""

    family: Family
    seed: int
    name: str
    text: str
    facts: tuple[str, ...]

    def found_in(self, preview: str) -> bool:
        """Whether `preview` shows the fault."""
        return all(fact in preview for fact in self.facts)
