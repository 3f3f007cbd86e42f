"""The environment variables for tools and prerequisites, the only ones that they can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A frozen, allow-listed set of variables, sorted by name, so that equal content is an equal value."""

    variables: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> Environment:
        """An environment with exactly these variables."""
        return cls(variables=tuple(sorted(variables.items())))

    def get(self, name: str) -> str | None:
        """The value of `name`, None if it is unset or not allowed."""
        return next((value for key, value in self.variables if key == name), None)

    def as_dict(self) -> dict[str, str]:
        """A copy for `subprocess`."""
        return dict(self.variables)

    def with_variables(self, extra: Mapping[str, str]) -> Environment:
        """These variables plus `extra`, which has priority."""
        return Environment.of({**self.as_dict(), **extra})
