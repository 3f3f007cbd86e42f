"""Chooses between the senses of words that are spelled alike, by the words around them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from holmes.triage.vocabulary import Sighting, word_list

_DOING: Final = word_list("doing")
_OPENING: Final = word_list("openings")
_INTERRUPTING: Final = word_list("fillers") | word_list("interrogatives") | {"how", "who", "when", "where", "why"}
_PERSONS, _WISHED = word_list("persons"), word_list("wished")
_HANGS: Final = word_list("hanging")
_GOING: Final = word_list("going")
_LEANS: Final = word_list("leaning")
_ENDED: Final = word_list("ended by force")
_REASONS: Final = word_list("reasons of an end")
_MEMORY: Final = word_list("memory")
_SHORT: Final = word_list("short of")
_FEW: Final = 3
"""The length of the longest question in which "geht" asks for health."""
_FARTHEST: Final = 6
"""The largest number of words between the reason and the memory, or between the memory and the verb."""


def without_homographs(
    words: tuple[str, ...], found: tuple[Sighting, ...], breaks: frozenset[int], *, dated: bool
) -> tuple[Sighting, ...]:
    """Drop the state of a word that begins a clause and is also an order: Spanish `lista` is `list` or `ready`.

    French `ne … pas` is one negation, so its first word is dropped. Without a time, `deployments` are a kind.
    """
    kinds = {each.first for each in found if each.sense == "kind"}
    found = tuple(each for each in found if dated or each.name != "changes" or each.first not in kinds)
    if words[:1] == ("geht",) and len(words) <= _FEW:  # "geht web noch?", not "geht web an die Datenbank?"
        found = (*found, Sighting(sense="concept", name="health", first=0, last=0))
    listed = {each.first for each in found if each.sense == "concept" and each.name == "list"}
    leading = listed & {0, *breaks}
    found = _with_memory_kills(words, tuple(map(partial(_leaning, words), found)))
    found = tuple(replace(each, name="polite") if _is_wish(words, each, breaks, kinds) else each for each in found)
    found = tuple(replace(each, name="polite") if _is_other_word(words, each, breaks) else each for each in found)
    found = tuple(replace(each, name="polite") if _is_permitted(words, each, found, breaks) else each for each in found)
    denied = {each.first for each in found if each.name in ("negation", "never_restarted")}
    doubled = {at for at in denied if words[at] == "ne" and denied & set(range(at + 1, at + 5))}
    return tuple(
        each for each in found if each.first not in doubled and (each.sense != "state" or each.first not in leading)
    )


def _is_wish(words: tuple[str, ...], place: Sighting, breaks: frozenset[int], kinds: set[int]) -> bool:
    """Return whether a word of permission only states a wish of the person who asks: "so that I may report"."""
    start = max((each for each in breaks if each <= place.first), default=0)
    clause = range(start, min((each for each in breaks if each > place.first), default=len(words)))
    persons = _PERSONS & {words[at] for at in clause}
    wished = place.name == "permission" and words[place.first] in _WISHED
    return wished and bool(persons) and not kinds & {*clause}


def _is_permitted(words: tuple[str, ...], place: Sighting, found: tuple[Sighting, ...], breaks: frozenset[int]) -> bool:
    """Return whether "change" is what an account may do, and not what happened: "who is allowed to change Secrets"."""
    if place.name != "changes" or words[place.first] not in word_list("changing"):
        return False
    start = max((each for each in breaks if each <= place.first), default=0)
    end = min((each for each in breaks if each > place.first), default=len(words))
    allowed = any(each.name == "permission" and start <= each.first < end for each in found)
    who = not word_list("who").isdisjoint(words[start:end])
    return who and (allowed or not word_list("modals").isdisjoint(words[start:end]))


def _is_other_word(words: tuple[str, ...], place: Sighting, breaks: frozenset[int]) -> bool:
    """Return whether a word has another sense: "what does it mean" asks for no average, "going forward" for no port."""
    word, before, after = words[place.first], words[: place.first], words[place.last + 1 : place.last + 2]
    counted = word == "calls" and before[-1:] != () and before[-1].isdigit()
    opens = place.name == "health" and word in _OPENING and not before and bool(after)
    opens = opens and (1 in breaks or after[0] in _INTERRUPTING)
    onward = word == "forward" and not _GOING.isdisjoint(before[-1:])
    return counted or opens or onward or (word == "mean" and not _DOING.isdisjoint(before))


def _leaning(words: tuple[str, ...], place: Sighting) -> Sighting:
    """Read German "hängt an" as a use: "wer hängt alles an ticket-db"."""
    hangs = place.name == "trouble" and words[place.first] in _HANGS
    leans = hangs and not _LEANS.isdisjoint(words[place.last + 1 : place.last + 4])
    return replace(place, name="uses") if leans else place


def _with_memory_kills(words: tuple[str, ...], found: tuple[Sighting, ...]) -> tuple[Sighting, ...]:
    """Read an end because of memory as the state `oom`: "killed for memory" asks for no amount of memory."""
    for at, word in enumerate(words):
        reason = _reason_before(words, at) if word in _MEMORY else -1
        before = range(max(0, reason - 3), reason)
        after = range(at + 1, min(len(words), at + 1 + _FARTHEST))
        verb = next((one for one in (*reversed(before), *after) if reason >= 0 and words[one] in _ENDED), -1)
        if verb >= 0:
            first, last = min(verb, reason), max(verb, at)
            others = (each for each in found if each.last < first or last < each.first)
            return (*others, Sighting(sense="state", name="oom", first=first, last=last))
    return found


def _reason_before(words: tuple[str, ...], at: int) -> int:
    """Return the position of the word that makes the memory at `at` a reason: "because of", "wegen". Otherwise -1."""
    for one in range(at - 1, max(-1, at - 1 - _FARTHEST), -1):
        if words[one] in _REASONS:
            return one
        if words[one] not in _SHORT:
            break
    return -1
