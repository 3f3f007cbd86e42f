"""Offers only some tools of a toolset: the wrapper that `holmes.app` uses for models with small windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.values.tools import WrapperToolset

if TYPE_CHECKING:
    from holmes.values.tools import Tool


@dataclass(frozen=True, slots=True)
class Selected(WrapperToolset):
    """The tools of the wrapped toolset whose names are in `names`, in their own order."""

    names: frozenset[str]

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the model can call."""
        return tuple(tool for tool in self.inner.tools if tool.name in self.names)
