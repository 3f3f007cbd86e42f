"""The transformer `kubernetes_view` of YAML toolsets shows the output of kubectl or helm without secrets.

The values of Secrets are removed before columns, expressions or layouts are applied. This works wherever the Secret is:
alone, in nested lists, in another object, or copied into a string. The forms `text` and `describe` are for text that
kubectl itself formats. This package never connects to a cluster. The module `forms` implements the forms.
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
    """The input or an expression is invalid. The message is one line and never quotes the input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRequest:
    """The output of kubectl or helm, and the form in which to show it.

    `argument` is the jq expression, the columns, or the path by which the counts are grouped. `objects` is the JSON of
    the objects in a table.
    """

    form: ViewForm
    text: str
    argument: str = ""
    objects: str = ""
