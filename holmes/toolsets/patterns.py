"""Compiles regular expressions from models and users, within limits.

A timeout limits only the matching. Compilation unrolls counted repetitions and cannot be interrupted:
`((a{1000}){1000}){1000}` needs gigabytes of memory before it matches anything. Each pattern is therefore measured
first.

Recursion and patterns that are too long or unroll too far are rejected. Comments and the flags x, V0 and V1 are also
rejected, because they prevent a reliable search for brackets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.values.errors import ToolError
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from regex import Pattern

_LONGEST_PATTERN: Final = 2_000
LONGEST_OF_USERS: Final = 10_000
# Each element of a compiled pattern takes about 270 bytes of memory and one microsecond to compile.
_MOST_ELEMENTS: Final = 10_000

_UNSUPPORTED: Final = expression(r"\(\?#|\(\?[\w-]*[xV][\w-]*[:)]")
_CALL: Final = expression(r"\(\?(?:R|[+-]?\d|&|P[>&])")
_POSIX_CLASS: Final = r"\[:\^?(?:alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]"
_TOKEN: Final = expression(
    rf"""
    (?P<set>\[\^?\]?(?:\\.|{_POSIX_CLASS}|(?!\[:)[^\]\\])*\])
    |(?P<broken_set>\[)
    |(?P<repeat>[*+?]|\{{(?P<least>\d*)(?P<range>,(?P<most>\d*))?\}})
    |(?P<open>\()
    |(?P<close>\))
    |\\.
    |.
    """,
    re.VERBOSE | re.DOTALL,
)


def bounded_pattern(
    written: str, *, name: str, ignore_case: bool = False, longest: int = _LONGEST_PATTERN
) -> Pattern[str]:
    """Compile `written`.

    Raises `ToolError` for a rejected or invalid pattern. `name` is its name in the error message.
    """
    import regex  # slow to import, and needed only for a pattern

    if len(written) > longest:
        raise ToolError(f"{name} is longer than {longest:,} characters; shorten it")
    if _UNSUPPORTED.search(written) is not None:
        raise ToolError(f"{name} {written!r} uses a comment or one of the flags x, V0 and V1; remove it")
    if _calls_a_group(written):
        raise ToolError(
            f"{name} {written!r} uses recursion, such as (?R), (?1) or (?&name); write it without recursion"
        )
    if any(token["broken_set"] for token in _TOKEN.finditer(written)):
        reason = "is not a valid regular expression: a set is not closed or has an unknown class"
        raise ToolError(f"{name} {written!r} {reason}; correct it or escape the [")
    if _expanded_elements(written) > _MOST_ELEMENTS:
        reason = f"repeats too much: its unrolled form has more than {_MOST_ELEMENTS:,} elements"
        raise ToolError(f"{name} {written!r} {reason}; use *, + or smaller numbers")
    try:
        # The pattern is not cached, because the library's cache would keep hundreds of large patterns.
        return regex.compile(written, regex.IGNORECASE if ignore_case else 0, cache_pattern=False)
    except (regex.error, ValueError, LookupError, ArithmeticError) as error:
        reason = f"is not a valid regular expression: {error}"
        raise ToolError(f"{name} {written!r} {reason}; correct it or escape characters like ( [ * + ?") from error
    except RecursionError as error:
        raise ToolError(f"{name} {written!r} has too many nested groups; use a simpler pattern") from error


def _calls_a_group(written: str) -> bool:
    """Return whether the pattern contains a group call such as `(?R)` or `(?1)`, which repeats the pattern of a group.

    Such a pattern can use unlimited memory.
    """
    return any(token["open"] and _CALL.match(written, token.start()) for token in _TOKEN.finditer(written))


def _expanded_elements(written: str) -> int:
    """Calculate the maximum number of elements after compilation."""
    totals = [0]
    last = 0
    for token in _TOKEN.finditer(written):
        if token["open"]:
            totals.append(0)
            last = 0
        elif token["close"]:
            # Stop here, because the compiler will report the unbalanced bracket.
            if len(totals) == 1:
                break
            last = totals.pop() + 1
            totals[-1] += last
        elif token["repeat"]:
            more = last * (_copies(token) - 1)
            totals[-1] += more
            last += more
        else:
            last = 1
            totals[-1] += 1
    return sum(totals)


def _copies(repeat: re.Match[str]) -> int:
    """Return how many copies the compiler creates: the minimum number of repetitions, plus one if more are allowed."""
    if repeat["repeat"] in {"*", "?"}:
        return 1
    if repeat["repeat"] == "+":
        return 2
    least = _number(repeat["least"])
    if not repeat["range"]:
        return max(1, least)
    return least if repeat["most"] and _number(repeat["most"]) == least else least + 1


def _number(digits: str) -> int:
    # The compiler rejects longer numbers. Converting all their digits would be slow.
    return int(digits[:12] or "0")
