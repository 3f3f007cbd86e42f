"""The namespaces that may be read (SCOPED_NAMESPACES). Without any, all of the cluster may be read.

A limit of Holmes itself, on top of what the credentials allow; kinds that lie in no namespace are not limited.
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
"""Where tools find it in their `Environment`."""

_NAMESPACED: Final = frozenset((kind.group, kind.resource) for kind in (EVENT, *KINDS) if kind.namespaced)


def scope_of(environment: Environment) -> tuple[str, ...]:
    """The namespaces that may be read; empty for all."""
    return tuple(name for name in (environment.get(SCOPE_VARIABLE) or "").split(",") if name)


def default_namespace(environment: Environment) -> str:
    """The namespace that is meant when a scope is set and none is named; empty without a scope."""
    scope, chosen = scope_of(environment), environment.get("HOLMES_KUBE_NAMESPACE") or ""
    return chosen if chosen in scope else next(iter(scope), "")


def objection(namespace: str, scope: Sequence[str]) -> str | None:
    """Why `namespace` (empty or `*`: all of them) may not be read; None when it may."""
    if not scope or namespace in scope:
        return None
    what = f"namespace {namespace!r} is" if namespace not in {"", "*"} else "other namespaces are"
    return f"{what} outside SCOPED_NAMESPACES; available: {', '.join(scope)}"


def within(namespaces: tuple[str, ...], scope: tuple[str, ...]) -> tuple[str, ...]:
    """The `namespaces` to read, all of the scope when none is named. Raises `ConfigError` for one outside."""
    for namespace in namespaces:
        if reason := objection(namespace, scope):
            raise ConfigError(reason)
    return namespaces or scope


def refuse_outside(path: str, scope: Sequence[str]) -> None:
    """Raises `Forbidden` for a request that would read objects outside the scope."""
    if not scope:
        return
    parts = ApiPath.parse(path)
    namespace = parts.name if (parts.group, parts.resource) == ("", "namespaces") else parts.namespace
    # A node's kubelet answers for all of its pods.
    through_node = (parts.resource, parts.subresource) == ("nodes", "proxy")
    if namespace or through_node or (parts.group, parts.resource) in _NAMESPACED:
        reason = objection(namespace, scope)
        if reason is not None:
            raise Forbidden(reason, status_code=403, reason="Forbidden", detail=reason)
