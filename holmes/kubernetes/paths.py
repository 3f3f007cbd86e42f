"""Builds paths of the Kubernetes API from names that a model wrote. Refuses every name that could leave its place."""

from __future__ import annotations

import re

from holmes.values.errors import ToolError

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?")


def api_path(
    group_version: str, resource: str, *, namespace: str | None = None, name: str | None = None, subresource: str = ""
) -> str:
    """The path of a resource: `api_path("apps/v1", "deployments", namespace="shop", name="cart")`.

    Raises `ToolError` when a name is empty or has characters that no Kubernetes name has.
    """
    root = "api" if "/" not in group_version else "apis"
    parts = [root, group_version]
    if namespace is not None:
        parts += ["namespaces", checked_name(namespace, "namespace")]
    parts.append(resource)
    if name is not None:
        parts.append(checked_name(name, "name"))
    if subresource:
        parts.append(subresource)
    return "/" + "/".join(parts)


def checked_name(name: str, what: str) -> str:
    """`name` itself when Kubernetes could have given it to something."""
    if not _NAME.fullmatch(name):
        raise ToolError(f"{name!r} cannot be a Kubernetes {what}: use letters, digits, '-' and '.' only")
    return name
