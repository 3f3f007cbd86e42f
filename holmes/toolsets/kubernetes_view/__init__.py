"""The transformer `kubernetes_view` of YAML toolsets: shows the output of kubectl or helm without secrets.

The values of Secrets are removed before any column, expression or layout is applied, wherever a Secret is: alone, in a
list, in a list of lists, in another object, copied into a text. Text that kubectl lays out itself uses the forms `text`
and `describe`. Never connects to a cluster. `forms` has the forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
ViewForm: TypeAlias = Literal[
    "text", "describe", "status", "yaml", "jq", "columns", "count", "manifest", "values", "table"
]
FORMS: Final[tuple[ViewForm, ...]] = get_args(ViewForm)


class ViewError(Exception):
    """The input or an expression cannot be used. The message is one line and contains nothing of the input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRequest:
    """The output of kubectl or helm, and how to show it.

    `argument` is the jq expression, the columns or the path to count by. `objects` is the JSON of the objects in a
    table.
    """

    form: ViewForm
    text: str
    argument: str = ""
    objects: str = ""
