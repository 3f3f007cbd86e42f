"""Leads commands that read the cluster to the context and the namespace that are meant, and says so when that fails.

A default, no limit: what a command names itself wins. The limit is `scope`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.scope import default_namespace, objection, scope_of
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonObject
    from holmes.values.tools import Tool

_REQUEST_TIMEOUT: Final = "--request-timeout=30s"
_RELEASE_NOT_FOUND: Final = "release: not found"
# bash takes a function from a variable of this form. Later options win, so a command that names a namespace itself goes
# there; and plugins accept no options before their name, so others than these verbs stay as they are.
_FUNCTION: Final = """() {{
  case "$1" in
    get|describe|logs|events|top|rollout|exec|auth|cp|wait|api-resources|api-versions|explain|cluster-info|diff)
      command {program} "$1" {options} "${{@:2}}" ;;
    -*) command {program} {options} "$@" ;;
    *) command {program} "$@" ;;
  esac
}}"""


def with_namespace(tool: Tool, arguments: JsonObject, environment: Environment) -> JsonObject:
    """The arguments, with the default namespace of the scope where the tool takes one and none is given.

    Raises `ToolError` for a namespace outside.
    """
    scope = scope_of(environment)
    if not scope or all(parameter.name != "namespace" for parameter in tool.parameters):
        return arguments
    given = arguments.get("namespace")
    if isinstance(given, str) and given and (reason := objection(given, scope)):
        raise ToolError(reason)
    return arguments if given else {**arguments, "namespace": default_namespace(environment)}


def default_variables(environment: Environment, *, chosen_cluster: bool) -> Mapping[str, str]:
    """Variables that lead commands which name no namespace into the scope.

    With `chosen_cluster` also into the context and the namespace that the user chose, each request with a time limit.
    """
    namespace, context = default_namespace(environment), ""
    if chosen_cluster:
        namespace = namespace or environment.get("HOLMES_KUBE_NAMESPACE") or ""
        context = environment.get("HOLMES_KUBE_CONTEXT") or ""
    options = {
        _REQUEST_TIMEOUT: chosen_cluster, f"--context={context}": context, f"--namespace={namespace}": namespace
    }  # fmt: skip
    wanted = shlex.join(option for option, value in options.items() if value)
    programs = ("kubectl", "oc") if wanted else ()
    helm = {"HELM_NAMESPACE": namespace, "HELM_KUBECONTEXT": context}
    return {
        **{f"BASH_FUNC_{program}%%": _FUNCTION.format(program=program, options=wanted) for program in programs},
        **{name: value for name, value in helm.items() if value},
    }


def hint(stderr: str, arguments: JsonObject, environment: Environment) -> str:
    """What helm, which says no more than `release: not found`, leaves out; empty for any other error."""
    if _RELEASE_NOT_FOUND not in stderr:
        return ""
    namespace = arguments.get("namespace") or environment.get("HOLMES_KUBE_NAMESPACE")
    place = f", namespace {namespace}" if namespace else ""
    return f"(release {arguments.get('release')}{place}; helm_list shows every release and its namespace)\n"
