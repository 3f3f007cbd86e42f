"""Keeps commands inside the namespaces that may be read, as far as a command says which it reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.core.errors import ToolError
from holmes.kubernetes.scope import objection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.json_types import JsonObject
    from holmes.core.tools import Tool

_COMMAND: Final = re.compile(r"\b(?:kubectl|oc|helm)\s[^|;&\n]*")
_EVERYWHERE: Final = re.compile(r"\s(?:-A|--all-namespaces)(?:=true)?(?=\s|$)")
_NAMESPACE: Final = re.compile(r"\s(?:-n|--namespace)[\s=]*['\"]?([a-z0-9*-]*)")


def with_namespace(tool: Tool, arguments: JsonObject, scope: Sequence[str]) -> JsonObject:
    """The arguments, with the first namespace of the scope where the tool takes one and none is given.

    Raises `ToolError` for a namespace outside.
    """
    if not scope or all(parameter.name != "namespace" for parameter in tool.parameters):
        return arguments
    given = arguments.get("namespace")
    if isinstance(given, str) and given and (reason := objection(given, scope)):
        raise ToolError(reason)
    return arguments if given else {**arguments, "namespace": scope[0]}


def refuse_outside(command: str, scope: Sequence[str]) -> None:
    """Raises `ToolError` for a command that names another namespace, or all of them."""
    for part in _COMMAND.findall(command) if scope else ():
        named = ["*"] if _EVERYWHERE.search(part) else _NAMESPACE.findall(part)
        for namespace in named:
            if reason := objection(namespace, scope):
                raise ToolError(reason)
