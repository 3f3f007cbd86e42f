"""What the parts of the view share: JSON, the forms, what one view is made of, and its only error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
ViewForm: TypeAlias = Literal[
    "text", "describe", "status", "yaml", "jq", "columns", "count", "manifest", "values", "table"
]
FORMS: Final[tuple[ViewForm, ...]] = get_args(ViewForm)


class ViewError(Exception):
    """The input or an expression cannot be used; the message says why in one line and holds nothing of the input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRequest:
    """What kubectl or helm wrote, and how to show it.

    `argument` is the expression of jq, the specification of columns or the path to count by; `objects` is what kubectl
    says in JSON of the objects of a table.
    """

    form: ViewForm
    text: str
    argument: str = ""
    objects: str = ""
