"""The named policies: one file for each published system and one for our own, found by the name of its file.

A file holds one value, `POLICY`, with the numbers of the system's documents; what a document leaves open is as in
`balanced`, except that nothing is switched on that the document does not have. Refuses a name that has no file.
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
    """The policy of this name. Raises `ConfigError` when there is none."""
    if name not in POLICY_NAMES:
        message = f"There is no context policy {name!r}: choose one of {', '.join(POLICY_NAMES)}."
        raise ConfigError(message)
    policy: ContextPolicy = import_module(f"{__name__}.{name}").POLICY
    return policy
