"""The named policies: `balanced`, and one for each published system.

The name of a policy is the name of its file. Each file defines `POLICY` with the documented numbers of the system. If
its documentation does not state a number, the number of `balanced` applies. Features that the system does not have are
disabled.
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
    """Return the policy `name`. Raises `ConfigError` if the name is unknown."""
    if name not in POLICY_NAMES:
        message = f"unknown context policy {name!r}; available policies: {', '.join(POLICY_NAMES)}"
        raise ConfigError(message)
    policy: ContextPolicy = import_module(f"{__name__}.{name}").POLICY
    return policy
