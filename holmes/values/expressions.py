"""Regular expressions that are compiled when they are first used.

Compiling all 2,000 expressions of Holmes takes longer than a question that uses few of them.
"""

from __future__ import annotations

import re
from typing import AnyStr, Final, Generic, cast

_MEMBERS: Final = (
    "search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn", "scanner", "flags", "groups",
    "groupindex",
)  # fmt: skip


class LazyExpression(Generic[AnyStr]):
    """Compiles its pattern when one of the members of `re.Pattern` is read for the first time."""

    __slots__ = ("_flags", "pattern", *_MEMBERS)

    flags: int

    def __init__(self, pattern: AnyStr, flags: int) -> None:
        self.pattern: AnyStr = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        """Set all members. Python calls this only while the slot `name` is empty."""
        if name not in _MEMBERS:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message)
        compiled = re.compile(self.pattern, self._flags)
        for member in _MEMBERS:
            setattr(self, member, getattr(compiled, member))
        return getattr(self, name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LazyExpression):
            return NotImplemented
        return (self.pattern, self._flags) == (other.pattern, other._flags)

    def __hash__(self) -> int:
        return hash((self.pattern, self._flags))


def expression(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return an expression with the members of a `re.Pattern`. It cannot be passed to the functions of `re`."""
    return cast("re.Pattern[AnyStr]", LazyExpression(pattern, flags))
