"""What a kind of secret is. Families of kinds fill it in; the redactor runs them.

A kind is data: where to look cheaply (`literals`, `gate`), the pattern, and a test of what was found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
