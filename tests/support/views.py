"""A form of the view in this process, as tests write it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from holmes.toolsets.kubernetes_view import ViewRequest
from holmes.toolsets.kubernetes_view.__main__ import show_jq
from holmes.toolsets.kubernetes_view.forms import view as view_of

if TYPE_CHECKING:
    from holmes.toolsets.kubernetes_view import ViewForm


def view(arguments: list[str], text: str, *, objects: str = "") -> str:
    """What `[form]` or `[form, argument]` shows of `text`, without redaction. The form `jq` empties our variables."""
    form, argument = (*arguments, "")[:2]
    shown = view_of(ViewRequest(form=cast("ViewForm", form), text=text, argument=argument, objects=objects))
    return show_jq(shown, argument) if form == "jq" else shown
