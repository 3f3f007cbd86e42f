"""What the modules of this package share."""

from __future__ import annotations

from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


class ViewError(Exception):
    """The input or the expression cannot be used; the message is for the model."""
