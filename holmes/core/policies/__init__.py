"""The named policies: one file for each published system and one for our own, found by file name.

Each file holds one value, `POLICY`, with the numbers of the system's documents. Everything else is as in `balanced`,
but no feature is on that the documents do not have.
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
    """The policy of this name. Raises `ConfigError` for an unknown name."""
    if name not in POLICY_NAMES:
        message = f"unknown context policy {name!r}; available policies: {', '.join(POLICY_NAMES)}"
        raise ConfigError(message)
    policy: ContextPolicy = import_module(f"{__name__}.{name}").POLICY
    return policy
