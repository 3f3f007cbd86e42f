"""Guesses what the words of a question mean that no object has as its name: a workload, a missing name or nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from holmes.triage.names import alike
from holmes.triage.subjects import Missing, Named
from holmes.triage.vocabulary import vocabulary, word_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.names import Names
    from holmes.triage.question import Question
    from holmes.values.findings import ObjectRef

SURE: Final = 0.8
"""Names that are at least as similar as this are taken for each other."""
LEAST_TYPED: Final = 5
_MOST_CONTENT: Final = 3
_NOUNS: Final = frozenset({"server", "servers", "servidor", "serveur", "host", "system", "app", "application"})
"""Words for what runs that are also a part of the names of some products."""
_INFLECTED: Final = ("ing", "ly", "en", "ees", "ed", "ado", "ada", "ados", "ido", "ida", "idos")
_SAYING: Final = word_list("saying")
_ACTORS: Final = (("you",), ("i",), ("we",), ("to",), ("please",), ("ich",), ("wir",), ("je",), ("nous",))


def guessed_from(
    names: Names,
    question: Question,
    unknown: Iterable[str],
    spaces: Sequence[str],
    nearest: Callable[[str, str, Sequence[str]], tuple[ClusterObject, ...]],
) -> tuple[list[Named], list[str]]:
    """Find workloads whose names contain an unknown word, or have a similar name. Return the other words, too."""
    guessed: list[Named] = []
    rest, words = [], question.words
    match: Literal["part", "similar"]
    for word in unknown:
        at = words.index(word) if word in words else 0
        verb = at > 0 and words[at - 1 : at] in _ACTORS
        if not _SAYING.isdisjoint(words[at + 1 : at + 2]) and vocabulary().is_plural(word):  # "readers complain"
            continue
        found, match = () if verb else names.containing(word, spaces), "part"
        found = found or (() if verb else names.with_image(word, spaces))
        near = nearest(word, "", spaces) if len(word) >= LEAST_TYPED and not found else ()
        if near and alike(word, near[0].name) >= SURE:
            found, match = names.named(near[0].name, "", spaces), "similar"
        found = _of_both(found, word, words)
        if match == "part" and guessed and _is_noun_of(question, guessed[-1], word, found):
            rest.append(word)
        elif found and len({each.name for each in found}) <= _MOST_CONTENT:
            guessed.append(Named(name=word, objects=found, match=match))
        else:
            rest.append(word)
    return guessed, rest


def _of_both(found: Sequence[ClusterObject], word: str, words: Sequence[str]) -> tuple[ClusterObject, ...]:
    """Return the objects whose names have another word of the question, too, or all: `ldap` and `sync` of ldap-sync."""
    others = {each for each in words if each != word and each not in vocabulary().stop}
    both = [each for each in found if not others.isdisjoint(re.split(r"[-.]", each.name))]
    return tuple(both or found)


def _is_noun_of(question: Question, named: Named, word: str, found: Sequence[ClusterObject]) -> bool:
    """Return whether a word says what the name before it is, and no other object: the `server` of "the ldap server"."""
    at = question.words.index(word) if word in question.words else 0
    follows = at > 0 and question.words[at - 1] == named.name and at not in question.breaks and word in _NOUNS
    return follows and {each.name for each in named.objects}.isdisjoint(each.name for each in found)


def sorted_out(
    question: Question,
    named: Sequence[Named],
    missing: list[Missing],
    unknown: list[str],
    elsewhere: Sequence[ObjectRef],
    place: str,
) -> tuple[list[Missing], list[str]]:
    """Return missing names and unknown words, by their place beside the names that were found.

    An unknown word in a list with names is missing. A plain word that only an object of another namespace has as its
    name is unknown: "web has no rates for today".
    """
    if not named:
        return missing, unknown
    others = {ref.name for ref in elsewhere if ref.name.isalpha() and ref.name not in question.quoted_names}
    chance = [each.name for each in missing if each.name in others and not each.kind]
    words = [*unknown, *chance]
    listed = [word for word in words if _is_in_list(question.text, word, named)]
    kept = [each for each in missing if each.name not in chance]
    more = (Missing(name=word, namespace=place) for word in listed)
    return [*kept, *more], [word for word in words if word not in listed]


def _is_in_list(text: str, word: str, named: Sequence[Named]) -> bool:
    """Return whether an unknown word is in a list with names: "are web, kafka and db ok"."""
    names, name = "|".join(re.escape(each.name) for each in named), re.escape(word)
    joined = r"(?:,| and| und| y| et|, and)"
    last = rf"(?:{names}){joined} {name}(?=,|\?|$| (?:and|und|y|et|in|im|en|dans|ok|okay|healthy|down|gut|bien)\b)"
    found = re.search(rf"{last}|(?<!\S){name}{joined} (?:{names})", text)
    return found is not None and not word.endswith(_INFLECTED)
