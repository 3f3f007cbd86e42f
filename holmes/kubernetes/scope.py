"""The namespaces that Holmes reads (SCOPED_NAMESPACES). By default it reads the whole cluster.

This limit of Holmes applies in addition to the permissions of the credentials. Cluster-scoped kinds are not limited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.errors import ApiPath, Forbidden
from holmes.kubernetes.kinds import EVENT, KINDS
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.environment import Environment

SCOPE_VARIABLE: Final = "HOLMES_SCOPED_NAMESPACES"
"""The variable in the `Environment` of tools."""

_NAMESPACED: Final = frozenset((kind.group, kind.resource) for kind in (EVENT, *KINDS) if kind.namespaced)


def scope_of(environment: Environment) -> tuple[str, ...]:
    """The namespaces to read; empty for all."""
    return tuple(name for name in (environment.get(SCOPE_VARIABLE) or "").split(",") if name)


def default_namespace(environment: Environment) -> str:
    """The default namespace within a scope; empty without a scope."""
    scope, chosen = scope_of(environment), environment.get("HOLMES_KUBE_NAMESPACE") or ""
    return chosen if chosen in scope else next(iter(scope), "")


def objection(namespace: str, scope: Sequence[str]) -> str | None:
    """Why `namespace` (empty or `*` for all) is not allowed; None if it is allowed."""
    if not scope or namespace in scope:
        return None
    what = f"namespace {namespace!r} is" if namespace not in {"", "*"} else "other namespaces are"
    return f"{what} outside SCOPED_NAMESPACES; available: {', '.join(scope)}"


def within(namespaces: tuple[str, ...], scope: tuple[str, ...]) -> tuple[str, ...]:
    """The `namespaces` to read, by default the whole scope. Raises `ConfigError` for a namespace outside it."""
    for namespace in namespaces:
        if reason := objection(namespace, scope):
            raise ConfigError(reason)
    return namespaces or scope


def refuse_outside(path: str, scope: Sequence[str]) -> None:
    """Raise `Forbidden` for a request that reads objects outside the scope."""
    if not scope:
        return
    parts = ApiPath.parse(path)
    namespace = parts.name if (parts.group, parts.resource) == ("", "namespaces") else parts.namespace
    # The kubelet of a node answers for all pods on the node.
    through_node = (parts.resource, parts.subresource) == ("nodes", "proxy")
    if namespace or through_node or (parts.group, parts.resource) in _NAMESPACED:
        reason = objection(namespace, scope)
        if reason is not None:
            raise Forbidden(reason, status_code=403, reason="Forbidden", detail=reason)
