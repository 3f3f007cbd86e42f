"""The environment variables for tools and prerequisites, which cannot read any other variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The allowed variables, sorted by name, so that two environments with the same variables are equal."""

    variables: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> Environment:
        """Return an environment with exactly these variables."""
        return cls(variables=tuple(sorted(variables.items())))

    def get(self, name: str) -> str | None:
        """Return the value of `name`, or None if the variable is unset or not allowed."""
        return next((value for key, value in self.variables if key == name), None)

    def as_dict(self) -> dict[str, str]:
        """Return the variables as a dictionary for `subprocess`."""
        return dict(self.variables)

    def with_variables(self, extra: Mapping[str, str]) -> Environment:
        """Return an environment with these variables and `extra`. Values in `extra` have priority."""
        return Environment.of({**self.as_dict(), **extra})
