"""All kinds of the families, found by looking at the folder. Called by the redactor and by the documentation."""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache
from typing import TYPE_CHECKING, Final

from holmes.redaction import families

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.redaction.kinds import Kind

_FEW_LITERALS: Final = 4


@cache
def kinds() -> tuple[Kind, ...]:
    """Every kind, in the order of the families' names."""
    names = sorted(module.name for module in pkgutil.iter_modules(families.__path__))
    modules = [importlib.import_module(f"{families.__name__}.{name}") for name in names]
    return tuple(kind for module in modules for kind in module.KINDS)


def kind_of(secret: str) -> Kind | None:
    """The kind that `secret` has by its shape alone."""
    literals, shapes = _shapes()
    if not literals.search(secret):
        return None
    return next((kind for kind in shapes if kind.is_exactly(secret)), None)


@cache
def _shapes() -> tuple[re.Pattern[str], tuple[Kind, ...]]:
    """The kinds that need no surroundings, and what is in every secret of them."""
    shapes = tuple(kind for kind in kinds() if "secret" not in kind.pattern.groupindex)
    literals = {re.escape(literal) for kind in shapes for literal in kind.literals}
    return re.compile("|".join(sorted(literals))), shapes


@cache
def gated_kinds() -> tuple[tuple[re.Pattern[str] | None, tuple[Kind, ...], bool], ...]:
    """The kinds in groups, each with a pattern that must be found in a text before its kinds are looked at.

    The third part says that a group has few literals. Many of them cost more than one gate; few are known already.

    Tokens whose prefixes end in the same sign share one search: for that sign with a long word behind and one of the
    prefixes before it. Ordinary logs have no match, so forty kinds cost three searches.
    """
    groups: dict[tuple[str, str], list[Kind]] = {}
    for kind in kinds():
        groups.setdefault((_own_gate(kind), _sign_of(kind)), []).append(kind)
    return tuple(
        (
            re.compile(gate) if gate else _gate_of(sign, members),
            tuple(members),
            sum(len(kind.literals) for kind in members) <= _FEW_LITERALS,
        )
        for (gate, sign), members in sorted(groups.items())
    )


def _own_gate(kind: Kind) -> str:
    return kind.gate.pattern if kind.gate and not kind.before else ""


def _sign_of(kind: Kind) -> str:
    """The sign that all prefixes of a kind without a gate end in; empty when they end differently."""
    signs = {literal[-1] for literal in kind.literals}
    return signs.pop() if not _own_gate(kind) and len(signs) == 1 and signs <= {"-", "_", "."} else ""


def _gate_of(sign: str, members: Sequence[Kind]) -> re.Pattern[str] | None:
    if not sign:
        return None
    prefixes = {re.escape(literal) for kind in members for literal in kind.literals if not kind.before}
    before = "|".join(
        f"(?<={prefix})" for prefix in sorted(prefixes | {kind.before for kind in members if kind.before})
    )
    # A long word, or the end of a line that breaks a token.
    last = "".join(
        sorted({re.escape(literal[-2]) for kind in members for literal in kind.literals if len(literal) > 1})
    )
    first = "" if any(kind.before for kind in members) else rf"(?<=[{last}]{re.escape(sign)})"
    rest = r"(?=[A-Za-z0-9_\-]{4,15}+(?:[A-Za-z0-9_\-]|[ \t\\\"'+=|]{0,8}(?:\r?\n|(?<=\\)n)))"
    return re.compile(rf"{re.escape(sign)}{first}{rest}(?:{before})")
