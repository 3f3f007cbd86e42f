"""Which tokens of an assertion are denied. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.evidence.lexicon import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.evidence.words import Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Denials:
    """`words` are the denials themselves, `denied` what they deny, `nothing_of` the words for a field that is nothing.

    `is_unclear` says that more than one thing could be denied.
    """

    words: frozenset[int] = frozenset()
    denied: frozenset[int] = frozenset()
    nothing_of: tuple[int, ...] = ()
    is_unclear: bool = False


def denied_tokens(tokens: Sequence[Token]) -> Denials:
    """What is denied: the next thing that can be, else the one before."""
    places = frozenset(index for index, token in enumerate(tokens) if token.has("not") and not token.quoted)
    if not places:
        return Denials()
    words = {tokens[index].text.casefold() for index in places}
    is_unclear = len(words) > 1 and not words <= words_of("denies once with another")
    deniable = [index for index, token in enumerate(tokens) if _is_deniable(token)]
    after = [index for index in deniable if index > max(places)]
    before = [index for index in deniable if index < max(places)]
    target = after[:1] or before[-1:]
    run = _field_run(tokens, target[0]) if target else ()
    if len(run) > 1:
        return Denials(words=places, nothing_of=run, is_unclear=is_unclear)
    is_open = len(before) > 1 if not after else len(after) > 1 and not _are_one([tokens[index] for index in after])
    is_restart = bool(target) and (
        "restarts" in tokens[target[0]].concept("field") or tokens[target[0]].concept("state") == "restarted"
    )
    is_unclear = is_unclear or (
        bool(words & words_of("never")) and not is_restart
    )  # the present says nothing about the past
    is_open = is_open and not (after and tokens[max(places)].has("none") and tokens[after[0]].has("kind"))
    return Denials(words=places, denied=frozenset(target), is_unclear=is_unclear or is_open or not target)


def _field_run(tokens: Sequence[Token], start: int) -> tuple[int, ...]:
    """`no available replicas`: several words for one field, which must be nothing."""
    end = start
    while end < len(tokens) and tokens[end].has("field") and not tokens[end].quoted:
        end += 1
    return tuple(range(start, end))


def _are_one(tokens: Sequence[Token]) -> bool:
    """Whether all of them are one thing that is denied: a kind or field and its name."""
    return not any(token.has("state") for token in tokens[1:]) and all(token.shape != "number" for token in tokens)


def _is_deniable(token: Token) -> bool:
    return token.shape == "number" or token.is_value or any(token.has(each) for each in ("state", "field", "kind"))
