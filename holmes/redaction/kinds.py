"""What a kind of secret is, and all kinds of the families, which are found by looking at the folder.

A kind is known by its shape or place; a family fills in its fields, the search runs it.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from holmes.redaction import families

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Before a token: no character of a token, unless it belongs to an escape (`\n`, `%3D`). Also what keeps patterns
# linear: within one long run of letters a pattern starts once.
EDGE: Final = r"(?:(?<![A-Za-z0-9_\-])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
# The same for base64, whose alphabet has other signs.
BASE64: Final = "A-Za-z0-9+/"
BASE64_EDGE: Final = rf"(?:(?<![{BASE64}])|(?<=\\[nrt]))"
_WORD: Final = r"A-Za-z0-9_\-"
_LETTERS: Final = "A-Za-z0-9"
# Before a token whose prefix nothing else has.
_GLUED_EDGE: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
_SURE_PREFIX: Final = 4
END: Final = r"(?![A-Za-z0-9_\-])"

# `key=` with a long word behind it, as in the queries of URLs: one search for all kinds that stand there.
LONG_ARGUMENT: Final = re.compile(r"=(?=[A-Za-z0-9%+/_\-.~]{16})(?:(?<=ey=)|(?<=ode=)|(?<=ture=)|(?<=sig=))")

# Options of commands that take a secret: one search for all such commands.
OPTION: Final = re.compile(
    r"-(?<![A-Za-z0-9_.\-]-)(?:[a-zA-Z]{0,5}[upawUP]|-(?:proxy-)?user|-(?:src-|dest-)?creds|-from-literal)"
)

PASSWORD: Final = "password"  # noqa: S105
TOKEN: Final = "token"  # noqa: S105
SECRET: Final = "secret"  # noqa: S105
_FEW_LITERALS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A secret at `start` to `end` of the text.

    `label` is what the placeholder calls it, `secret` what is hashed, `quote` what surrounds the placeholder so that
    JSON stays JSON.
    """

    start: int
    end: int
    label: str
    secret: str
    quote: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """A place to mask: `start` to `end` of the text.

    `label` and `number` go into the placeholder, `quote` around it.
    """

    start: int
    end: int
    label: str
    number: int
    quote: str


def anything(_: str) -> bool:
    """Accept every match."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A secret that a pattern recognises.

    The pattern runs only over pieces of text that contain one of `literals` and, when there is one, a match of `gate`
    (a pattern that starts with one plain character, which is the fastest search there is). Group `secret` is what gets
    masked, all of the match when there is no such group. `label` is the name in the placeholder, when it differs from
    the kind's own. `before` is a pattern of fixed length that ends in the last sign of the literals and says more than
    they do. With `folded` literals and pattern are in lower case and any case matches. `prefixed` says that the token
    begins with a literal that nothing else begins with, so that it is known even when a line ends in the middle of it.
    `long_word` says that it has twenty letters, digits, `+` and `/` in a row.

    A pattern whose literals are common should start with plain letters: those are searched ten times faster.
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
        """Where this kind is in `piece`, of which `lower` is the lower case."""
        group = "secret" if "secret" in self.pattern.groupindex else 0
        for match in self.pattern.finditer(lower if self.folded else piece):
            start, end = match.span(group)
            if start < end and self.accepts(piece[start:end]):
                yield start, end

    def is_exactly(self, value: str) -> bool:
        """Whether `value` is one secret of this kind and nothing else."""
        match = self.pattern.match(value)
        return match is not None and match.end() == len(value) and self.accepts(value)


def starting(prefix: str, before: str = _WORD) -> str:
    """The pattern of `prefix` at the edge of a word of `before`. It starts with plain letters: a fast search."""
    plain = re.escape(prefix)
    return rf"{plain}(?:(?<![{before}]{plain})|(?<=\\[nrt]{plain})|(?<=%[0-9A-Fa-f]{{2}}{plain}))"


def token(name: str, prefix: str, body: str, *, literals: tuple[str, ...] = (), long_word: bool = False) -> Kind:
    """A token with a fixed prefix, or a pattern of prefixes whose `literals` are given; `body` is what follows.

    A word may be glued to it (`hook-ghp_...`) unless it could be a hash, or is so long that searching it from every
    prefix in it would take too long.
    """
    shortest = min(map(len, literals or (prefix,)))
    glued = shortest >= _SURE_PREFIX and "0-9a-f]" not in body and ",}" not in body
    first = (_GLUED_EDGE if glued else EDGE) + prefix if literals else starting(prefix, _LETTERS if glued else _WORD)
    return Kind(
        name=name,
        literals=literals or (prefix,),
        pattern=re.compile(first + body + END),
        prefixed=True,
        long_word=long_word,
    )


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
