"""Defines kinds of secrets, which have a known shape or position, and loads all kinds from `families`."""

from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from holmes.redaction import families
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# No token character may precede a token, except at the end of an escape (`\n`, `%3D`). The search is therefore linear,
# because a pattern starts only once in a long run of letters.
EDGE: Final = r"(?:(?<![A-Za-z0-9_\-])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
# Base64 uses `+` and `/` but not `-` and `_`, so it needs its own edge pattern.
BASE64: Final = "A-Za-z0-9+/"
BASE64_EDGE: Final = rf"(?:(?<![{BASE64}])|(?<=\\[nrt]))"
_WORD: Final = r"A-Za-z0-9_\-"
_LETTERS: Final = "A-Za-z0-9"
# A unique prefix may also follow `_` or `-`.
_GLUED_EDGE: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
_SURE_PREFIX: Final = 4
END: Final = r"(?![A-Za-z0-9_\-])"

# `key=` before a long word, as in URL queries. All kinds of this form share one search.
LONG_ARGUMENT: Final = expression(r"=(?=[A-Za-z0-9%+/_\-.~]{16})(?:(?<=ey=)|(?<=ode=)|(?<=ture=)|(?<=sig=))")

# Command options that take a secret. All commands with these options share one search.
OPTION: Final = expression(
    r"-(?<![A-Za-z0-9_.\-]-)(?:[a-zA-Z]{0,5}[upawUP]|-(?:proxy-)?user|-(?:src-|dest-)?creds|-from-literal)"
)

PASSWORD: Final = "password"  # noqa: S105
TOKEN: Final = "token"  # noqa: S105
SECRET: Final = "secret"  # noqa: S105
_FEW_LITERALS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A secret that extends from `start` to `end` in the text.

    `label` is the name in the placeholder, and `secret` is the hashed text. `quote` surrounds the placeholder so that
    JSON stays valid.
    """

    start: int
    end: int
    label: str
    secret: str
    quote: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """A span to mask, which extends from `start` to `end` in the text.

    `label` and `number` are part of the placeholder, and `quote` surrounds it.
    """

    start: int
    end: int
    label: str
    number: int
    quote: str


def anything(_: str) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of secret that a pattern recognises.

    The pattern runs only on text that contains one of `literals` and, if set, a match of `gate`. The search is fastest
    if the gate starts with one plain character. The group `secret` is masked. Without this group, the whole match is
    masked. `label` is the name in the placeholder, by default `name`. `before` is a more specific pattern of fixed
    length that ends with the last character of the literals. If `folded` is true, literals and pattern are in lower
    case and match any case. `prefixed` means that the prefix is unique, so that a token is recognised even if a line
    break splits it. `long_word` means that the secret contains twenty letters, digits, `+` or `/` in a row.

    Patterns with common literals should start with plain letters, which makes the search ten times faster.
    """

    name: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] = anything
    gate: re.Pattern[str] | None = None
    before: str = ""
    label: str = ""
    folded: bool = False
    prefixed: bool = False
    long_word: bool = False

    def find(self, piece: str, lower: str) -> Iterator[tuple[int, int]]:
        """Yield the matches in `piece`. `lower` is `piece` in lower case."""
        group = "secret" if "secret" in self.pattern.groupindex else 0
        for match in self.pattern.finditer(lower if self.folded else piece):
            start, end = match.span(group)
            if start < end and self.accepts(piece[start:end]):
                yield start, end

    def is_exactly(self, value: str) -> bool:
        """Return whether `value` is exactly one secret of this kind."""
        match = self.pattern.match(value)
        return match is not None and match.end() == len(value) and self.accepts(value)


def starting(prefix: str, before: str = _WORD) -> str:
    """Return a pattern that matches `prefix` at the start of a word. `before` contains the word characters.

    The pattern starts with plain letters for a fast search.
    """
    plain = re.escape(prefix)
    return rf"{plain}(?:(?<![{before}]{plain})|(?<=\\[nrt]{plain})|(?<=%[0-9A-Fa-f]{{2}}{plain}))"


def token(name: str, prefix: str, body: str, *, literals: tuple[str, ...] = (), long_word: bool = False) -> Kind:
    """Create the kind for tokens with a fixed prefix, or with a pattern of prefixes and their `literals`.

    `body` is the rest of the token. A word may precede the token without a separator (`hook-ghp_...`), unless the
    prefix is short, or the body is hexadecimal or has no maximum length.
    """
    shortest = min(map(len, literals or (prefix,)))
    glued = shortest >= _SURE_PREFIX and "0-9a-f]" not in body and ",}" not in body
    first = (_GLUED_EDGE if glued else EDGE) + prefix if literals else starting(prefix, _LETTERS if glued else _WORD)
    return Kind(
        name=name,
        literals=literals or (prefix,),
        pattern=expression(first + body + END),
        prefixed=True,
        long_word=long_word,
    )


@cache
def kinds() -> tuple[Kind, ...]:
    """Return every kind, in the order of the family names."""
    names = sorted(module.name for module in pkgutil.iter_modules(families.__path__))
    modules = [importlib.import_module(f"{families.__name__}.{name}") for name in names]
    return tuple(kind for module in modules for kind in module.KINDS)


def kind_of(secret: str) -> Kind | None:
    """Return the kind of `secret` if its shape alone determines the kind, otherwise None."""
    literals, shapes = _shapes()
    if not literals.search(secret):
        return None
    return next((kind for kind in shapes if kind.is_exactly(secret)), None)


@cache
def _shapes() -> tuple[re.Pattern[str], tuple[Kind, ...]]:
    """Return the kinds that need no context, with a pattern for their literals."""
    shapes = tuple(kind for kind in kinds() if "secret" not in kind.pattern.groupindex)
    literals = {re.escape(literal) for kind in shapes for literal in kind.literals}
    return expression("|".join(sorted(literals))), shapes


@cache
def gated_kinds() -> tuple[tuple[re.Pattern[str] | None, tuple[Kind, ...], bool], ...]:
    """Return the kinds in groups. Each group has a gate that must match before its kinds are searched.

    The third item is true if a group has few literals. The results for a few literals are cached, but a search for many
    literals costs more than a search for one gate.

    Tokens whose prefixes end in the same character share one search for this character before a long word. Ordinary
    logs have no match, so forty kinds need only three searches.
    """
    groups: dict[tuple[str, str], list[Kind]] = {}
    for kind in kinds():
        groups.setdefault((_own_gate(kind), _sign_of(kind)), []).append(kind)
    return tuple(
        (
            expression(gate) if gate else _gate_of(sign, members),
            tuple(members),
            sum(len(kind.literals) for kind in members) <= _FEW_LITERALS,
        )
        for (gate, sign), members in sorted(groups.items())
    )


def _own_gate(kind: Kind) -> str:
    return kind.gate.pattern if kind.gate and not kind.before else ""


def _sign_of(kind: Kind) -> str:
    """Return the last character of all prefixes of a kind without a gate, or an empty string if they differ."""
    signs = {literal[-1] for literal in kind.literals}
    return signs.pop() if not _own_gate(kind) and len(signs) == 1 and signs <= {"-", "_", "."} else ""


def _gate_of(sign: str, members: Sequence[Kind]) -> re.Pattern[str] | None:
    if not sign:
        return None
    prefixes = {re.escape(literal) for kind in members for literal in kind.literals if not kind.before}
    before = "|".join(
        f"(?<={prefix})" for prefix in sorted(prefixes | {kind.before for kind in members if kind.before})
    )
    # `rest` matches a long word, or the end of a line that splits a token.
    last = "".join(
        sorted({re.escape(literal[-2]) for kind in members for literal in kind.literals if len(literal) > 1})
    )
    first = "" if any(kind.before for kind in members) else rf"(?<=[{last}]{re.escape(sign)})"
    rest = r"(?=[A-Za-z0-9_\-]{4,15}+(?:[A-Za-z0-9_\-]|[ \t\\\"'+=|]{0,8}(?:\r?\n|(?<=\\)n)))"
    return expression(rf"{re.escape(sign)}{first}{rest}(?:{before})")
