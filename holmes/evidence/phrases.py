"""Finds words of an assertion in the keys and sentences of a record, and determines what the assertion denies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.evidence.records import plain_key, tokens_of
from holmes.evidence.words import words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holmes.evidence.records import Record
    from holmes.evidence.words import Token

_ENDING = expression(r"(?:ing|ed|es|e|s)$")
_RATIO = expression(r"(\d+) / (\d+)")
_SHORTEST_STEMMED: Final = 4
_BETWEEN: Final = ("", " :", " =", " is", " to", " of")
_WAYS: Final = ("from", "to", "by")
_ENDS: Final = frozenset({",", ";", "."})
_CLAUSE: Final = 8
_MOST_PLACES: Final = 8
_MOST_PAIRS: Final = 300
_SHORTEST_WORD: Final = 3
_MOST_WORDS: Final = 400
_FARTHEST: Final = 8
_SHORT_WAY: Final = 3
_AT: Final = frozenset({"at", "is", "are", "with", "status"})
_LONGEST_KEY: Final = 4


def with_keys(tokens: Sequence[Token], record: Record) -> tuple[Token, ...]:
    """Join adjacent words of `tokens` that form a key of the record: `kubelet version`."""
    keys = frozenset(plain_key(part) for each in record.fields for part in each.path)
    found: list[Token] = []
    position = 0
    while position < len(tokens):
        for length in range(_LONGEST_KEY, 0, -1):
            run = tokens[position : position + length]
            key = plain_key("".join(token.text for token in run))
            is_phrase = len(run) > 1 or (
                " " in run[0].text and not any(run[0].has(each) for each in ("kind", "state", "not", "compare", "gap"))
            )
            if is_phrase and len(run) == length and key in keys and all(token.shape == "word" for token in run):
                text = " ".join(token.text for token in run)
                last = frozenset({("last", "")}) if any(token.has("last") for token in run) else frozenset()
                found.append(replace(run[0], text=text, tags=last | {("field", key)}))
                position += length
                break
        else:
            found.append(tokens[position])
            position += 1
    return tuple(found)


def said_in(text: str, tokens: Sequence[Token], places: Iterable[int], denied: frozenset[int]) -> set[int]:
    """Return the indexes in `places` of the longest chain of tokens that a text contains in the same order.

    `text` consists of words and signs, separated by spaces. A number must be followed by the same word, with no other
    number in between. The text must deny exactly the tokens in `denied`.
    """
    words = _RATIO.sub(r"\1/\2", text).split()[:_MOST_WORDS]
    stems = [stem(word) for word in words]
    told = _told(tokens)
    found = [
        (place, at, len(tokens_of(tokens[place].text).split()))
        for place in sorted(places)
        for at in _positions(tokens[place], words, stems)[:_MOST_PLACES]
        if _is_unreal(words, at, told) is (place in denied) and not _is_turned(tokens, place, words, at)
    ][:_MOST_PAIRS]
    counts = any(tokens[place].is_count for place, *_ in found)
    best: list[tuple[int, int]] = []  # for each match: length of the chain that ends there, index of the previous match
    for index, (place, at, _) in enumerate(found):
        length, before = 1, -1
        for other, (other_place, start, size) in enumerate(found[:index]):
            is_next = other_place < place and start < at
            is_near = _is_near(words, start + size - 1, at, counts=counts)
            is_near = is_near or (tokens[place].quoted and _is_reason_of(words[start + size : at]))
            if is_next and best[other][0] + 1 > length and is_near:
                length, before = best[other][0] + 1, other
        best.append((length, before))
    chain: list[tuple[int, int, int]] = []
    position = max(range(len(best)), key=lambda each: best[each][0], default=-1)
    while position >= 0:
        chain.append(found[position])
        position = best[position][1]
    if chain and tokens[chain[0][0]].shape == "number" and not stands_beside(text, tokens, chain[0][0]):
        del chain[: not _follows(words, chain)]
    return {place for place, *_ in chain} if len(chain) > 1 else set()


def _is_reason_of(between: Sequence[str]) -> bool:
    """Return whether the words after `between` end a chain of causes: `failed: Get "http://a": timed out`."""
    said = [word for word in between if word[:1].isalnum()]
    return between[-1:] == [":"] and len(said) <= _FARTHEST and _ENDS.isdisjoint(set(between) - {"."})


def _follows(words: Sequence[str], chain: Sequence[tuple[int, int, int]]) -> bool:
    """Return whether only filler words separate the last two tokens of a chain: `heap usage at 98%`."""
    if len(chain) < 2:
        return False
    between = words[chain[1][1] + chain[1][2] : chain[0][1]]
    plain = words_of("uses") | _AT
    return 0 < len(between) <= _SHORT_WAY and all(word in plain for word in between)


def stands_beside(text: str, tokens: Sequence[Token], index: int) -> bool:
    """Return whether the number is next to the same word in the text and in the claim: `line 61`."""
    text = _RATIO.sub(r"\1/\2", text)
    number = tokens_of(tokens[index].text).casefold().strip()
    before = [token for token in tokens[max(0, index - 2) : index] if len(token.text) >= _SHORTEST_WORD]
    after = [token for token in tokens[index + 1 : index + 2] if len(token.text) >= _SHORTEST_WORD]
    if any(f" {number} {tokens_of(each.text).casefold().strip()} " in text for each in after):
        return True
    starts = [tokens_of(each.text).casefold().strip() for each in before]
    return any(f" {start}{sign} {number} " in text for start in starts for sign in _BETWEEN)


def is_unreal(text: str, name: str, tokens: Sequence[Token]) -> bool:
    """Return whether a text only denies a name or presents it as possible: `failed to acquire`, `would delete`."""
    words, wanted = text.split(), tokens_of(name).casefold().split()
    places = [at for at in range(len(words)) if words[at : at + len(wanted)] == wanted][:_MOST_PLACES]
    return bool(places) and all(_is_unreal(words, at, _told(tokens)) for at in places)


def is_turned(text: str, tokens: Sequence[Token], place: int) -> bool:
    """Return whether a text reverses the direction of an action before each occurrence of a name.

    Example: the text contains `replaced by b`, and the claim contains `replaced b`.
    """
    words, wanted = text.split(), tokens_of(tokens[place].text).casefold().split()
    places = [at for at in range(len(words)) if words[at : at + len(wanted)] == wanted][:_MOST_PLACES]
    return bool(places) and all(_is_turned(tokens, place, words, at) for at in places)


def _is_turned(tokens: Sequence[Token], place: int, words: Sequence[str], at: int) -> bool:
    if not tokens[place].is_value:
        return False
    claimed = _direction([token.text.casefold() for token in tokens[max(0, place - 3) : place]])
    told = _direction(words[max(0, at - 3) : at])
    return bool(told) and told != claimed if claimed else told == "by"


def _direction(words: Sequence[str]) -> str:
    """Return the direction that the last of these words expresses, or an empty string if none does."""
    return next((way for word in reversed(words) for way in _WAYS if word in words_of(f"direction {way}")), "")


def _told(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the stems of all words of a claim, including denials."""
    return frozenset(stem(word) for token in tokens for word in token.text.split())


def _is_unreal(words: Sequence[str], at: int, told: frozenset[str]) -> bool:
    """Return whether an earlier word of the same clause denies this word or presents it as possible.

    Words that the claim also uses are ignored.
    """
    unreal = words_of("unreal") | words_of("not")
    for index in range(at - 1, max(-1, at - _CLAUSE), -1):
        if words[index] in _ENDS:
            return False
        is_attempt = words[index] in ("failed", "fails", "failing") and words[index + 1 : index + 2] == ["to"]
        if (not unreal.isdisjoint(words[index].split("-")) or is_attempt) and stem(words[index]) not in told:
            return True
    return False


def _positions(token: Token, words: Sequence[str], stems: Sequence[str]) -> list[int]:
    """Return the positions of a token among the words of a record."""
    if token.is_neutral or any(token.has(each) for each in ("not", "cause", "only", "unreal")):
        return []
    number = token.quantity.number("count") if token.quantity is not None and token.is_count else None
    wanted = tokens_of(token.text if number is None else str(number)).casefold().split()
    if not wanted:
        return []
    if len(wanted) == 1 and not token.quoted:
        wanted_stem = stem(wanted[0])
        places = [index for index, each in enumerate(stems) if each == wanted_stem]
        if wanted[0].endswith("ed"):  # `connecting` does not mean `connected`
            places = [place for place in places if not words[place].endswith("ing")]
    else:
        places = [index for index in range(len(words)) if words[index : index + len(wanted)] == wanted]
    if token.is_value:  # a namespace in a path is not a name
        places = [place for place in places if words[place + len(wanted) : place + len(wanted) + 1] != ["/"]]
    if number is not None:  # `1 of 3` does not mean three
        places = [place for place in places if words[max(0, place - 1) : place] not in (["of"], ["/"])]
    return places


def _is_near(words: Sequence[str], first: int, second: int, *, counts: bool) -> bool:
    """Return whether two words belong together. In a claim with counts, no other number may be between them."""
    between = words[first + 1 : second]
    if counts and any(word.isdigit() for word in between):
        return False
    if any(word in _ENDS for word in between):
        return False
    return len(between) <= _FARTHEST


def stem(word: str) -> str:
    """Remove the ending of a word, so that `fails` matches `failed`."""
    folded = word.casefold()
    return _ENDING.sub("", folded) if len(folded) > _SHORTEST_STEMMED else folded


@dataclass(frozen=True, slots=True, kw_only=True)
class Denials:
    """The denials of an assertion.

    The numbers are token indexes: `words` for the denying tokens, `denied` for their targets, and `nothing_of` for the
    words that name a field that must be empty. `is_unclear` means that the target is ambiguous.
    """

    words: frozenset[int] = frozenset()
    denied: frozenset[int] = frozenset()
    nothing_of: tuple[int, ...] = ()
    is_unclear: bool = False


def denied_tokens(tokens: Sequence[Token]) -> Denials:
    """Find the target of each denial: the next token that can be denied, or the previous one if none follows."""
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
    )  # a current value does not prove `never`
    is_open = is_open and not (after and tokens[max(places)].has("none") and tokens[after[0]].has("kind"))
    return Denials(words=places, denied=frozenset(target), is_unclear=is_unclear or is_open or not target)


def _field_run(tokens: Sequence[Token], start: int) -> tuple[int, ...]:
    """Return the indexes of the words that name one field, which must be empty: `no available replicas`."""
    end = start
    while end < len(tokens) and tokens[end].has("field") and not tokens[end].quoted:
        end += 1
    return tuple(range(start, end))


def _are_one(tokens: Sequence[Token]) -> bool:
    """Return whether the tokens denote one denied object or field: a kind or field with its name."""
    return not any(token.has("state") for token in tokens[1:]) and all(token.shape != "number" for token in tokens)


def _is_deniable(token: Token) -> bool:
    return token.shape == "number" or token.is_value or any(token.has(each) for each in ("state", "field", "kind"))
