"""Limits the namespaces that Holmes reads (SCOPED_NAMESPACES). By default, Holmes reads the whole cluster.

This limit applies in addition to the permissions of the credentials. Cluster-scoped kinds are not limited.
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
"""The variable in the tools' `Environment` that contains SCOPED_NAMESPACES."""

_NAMESPACED: Final = frozenset((kind.group, kind.resource) for kind in (EVENT, *KINDS) if kind.namespaced)


def scope_of(environment: Environment) -> tuple[str, ...]:
    """Return the namespaces that Holmes may read. Empty means all namespaces."""
    return tuple(name for name in (environment.get(SCOPE_VARIABLE) or "").split(",") if name)


def default_namespace(environment: Environment) -> str:
    """Return the default namespace within the scope, or "" if no scope is set."""
    scope, chosen = scope_of(environment), environment.get("HOLMES_KUBE_NAMESPACE") or ""
    return chosen if chosen in scope else next(iter(scope), "")


def objection(namespace: str, scope: Sequence[str]) -> str | None:
    """Return why `namespace` (empty or `*` for all) is outside the scope, or None if it is inside."""
    if not scope or namespace in scope:
        return None
    what = f"namespace {namespace!r} is" if namespace not in {"", "*"} else "other namespaces are"
    return f"{what} outside SCOPED_NAMESPACES; available: {', '.join(scope)}"


def within(namespaces: tuple[str, ...], scope: tuple[str, ...]) -> tuple[str, ...]:
    """Return `namespaces`, or the whole scope if it is empty.

    Raises `ConfigError` for a namespace outside the scope.
    """
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
    # The proxy of a node gives access to all pods on the node.
    through_node = (parts.resource, parts.subresource) == ("nodes", "proxy")
    if namespace or through_node or (parts.group, parts.resource) in _NAMESPACED:
        reason = objection(namespace, scope)
        if reason is not None:
            raise Forbidden(reason, status_code=403, reason="Forbidden", detail=reason)
