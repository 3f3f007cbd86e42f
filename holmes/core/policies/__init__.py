"""The named policies: `balanced`, and one for each published system. A policy is found by the name of its file.

A file has one value, `POLICY`, with the documented numbers of the system. Numbers that the document does not give are
those of `balanced`; features that it does not have are disabled.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from holmes.core.policy import ContextPolicy

POLICY_NAMES: tuple[str, ...] = tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def named_policy(name: str) -> ContextPolicy:
    """The policy with this name. Raises `ConfigError` for an unknown name."""
    if name not in POLICY_NAMES:
        message = f"unknown context policy {name!r}; available policies: {', '.join(POLICY_NAMES)}"
        raise ConfigError(message)
    policy: ContextPolicy = import_module(f"{__name__}.{name}").POLICY
    return policy
