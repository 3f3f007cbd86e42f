"""Corrects misspelled words of a question that have one clear meaning: words of the vocabulary, and namespaces.

Two or three words that together are the name of an object are read as this name: "claims portal" for `claims-portal`.

The names of objects are corrected by `search.py`. A word is read as another one only if a single slip of the hand
separates the two, so that the name of something that does not exist is not taken for an ordinary word.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.program_nouns import kind_of_word
from holmes.triage.question import parse_question
from holmes.triage.vocabulary import folded, sightings, symptoms_in, vocabulary, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.triage.names import Names
    from holmes.triage.question import Question

_GLUE: Final = word_list("determiners") | word_list("quantifiers") | word_list("interrogatives")
_TOKEN: Final = expression(r"[^\W\d_](?:[\w-]*\w)?")
_LETTERS: Final = expression(r"[a-z][a-z-]*")
_NAMEABLE: Final = frozenset({*WORKLOADS, "Service", "Ingress"})
_LIKE_A_NAME: Final = 0.85
_LEAST_SWAPPED: Final = 4
_LEAST_WRITTEN: Final = 5
_LEAST_REPLACED: Final = 7
_LEAST_NEGATED: Final = 6
_AMOUNTS: Final = frozenset({"minimum", "maximum"})
_MOST_WORDS: Final = 60
_KEYBOARD: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_VOWELS: Final = frozenset("aeiouy")


_JOINED: Final = expression(
    r"(?:(?P<article>\b(?:the|this|our|das|dem|den|der|die|im|beim|vom|el|la|le|du|au) )|(?<![\w./:@=-]))"
    r"(?P<name>[A-Za-z0-9][\w-]*)-(?P<noun>[^\W\d_]{3,})(?![\w./:@=-])(?P<next> [^\W\d_]+)?"
)
_NOUNS: Final = word_list("nouns of objects")
_SERVED: Final = frozenset({"Service", "Ingress"})
_RUNNING: Final = frozenset({*WORKLOADS, "Pod"})
_JOINABLE: Final = _SERVED | _RUNNING
_ENTRY: Final = ("ingress", "controller")
_RUN: Final = ("Deployment", "DaemonSet")


def with_nouns_apart(text: str, names: Names) -> str:
    """Return a question in which names are apart from nouns joined to them: "the oven-rollout", "das basket-Log".

    The whole word must be the name of nothing, also in part, and the rest the name of what has the noun. Without an
    article or a German noun, it can be the name of something that does not exist: "is oven-log ok".
    """

    def apart(match: re.Match[str]) -> str:
        name, noun = folded(match["name"]), folded(match["noun"])
        kind, whole = kind_of_word(noun), f"{name}-{noun}"
        placed = match["article"] or match["noun"][0].isupper()
        if not placed or kind_of_word(folded((match["next"] or "").strip())):
            return match[0]
        if (kind not in _JOINABLE and noun not in _NOUNS) or names.knows(whole) or names.begins(whole):
            return match[0]
        known = {each.kind for each in names.named(name)}
        fits = kind in known if kind in _SERVED else known & _RUNNING if kind else known
        return match[0].replace(f"-{match['noun']}", f" {match['noun']}", 1) if fits else match[0]

    return _JOINED.sub(apart, text)


def with_whole_names(text: str, names: Names) -> str:
    """Return a question in which the parts of a name, written apart, are joined to the name."""
    tokens = [*_TOKEN.finditer(text)]
    joined, end, index = "", 0, 0
    while index < len(tokens):
        size, name = next(_names_at(text, tokens, index, names), (1, ""))
        if name:
            joined, end = f"{joined}{text[end : tokens[index].start()]}{name}", tokens[index + size - 1].end()
        index += size
    return joined + text[end:]


def _names_at(text: str, tokens: Sequence[re.Match[str]], first: int, names: Names) -> Iterator[tuple[int, str]]:
    """Yield the names that several words beginning with a token make, each with their number, the longest first.

    "The orders deployment" is not `orders-deployment` if `orders` exists, and neither is a list of names one name.
    """
    if tuple(folded(each[0]) for each in tokens[first : first + 2]) == _ENTRY:
        found = {each.name for each in names.containing(_ENTRY[1], ()) if _ENTRY[0] in each.name and each.kind in _RUN}
        yield from ((2, name) for name in found if len(found) == 1)
    for size in (3, 2):
        parts = [folded(each[0]) for each in tokens[first : first + size]]
        between = {text[one.end() : other.start()] for one, other in pairwise(tokens[first : first + size])}
        known = [bool(names.named(part) or part in names.namespaces) for part in parts]
        named_kind = any(known) and any(each.sense == "kind" for each in sightings(parts))
        plain = vocabulary().stop & {*parts}
        ends = plain == {parts[-1]} and known[0] and not sightings(parts[:-1])  # "the invoice run", but not "check out"
        if len(parts) < size or between != {" "} or all(known) or named_kind or (plain and not ends):
            continue
        spellings = (*_spellings(parts), *_spellings((*parts[:-1], parts[-1].removesuffix("s"))))
        for name in dict.fromkeys(spellings[:1] if ends else spellings):
            if any(each.kind in _NAMEABLE for each in names.named(name)):
                yield size, name


def _spellings(parts: Sequence[str]) -> tuple[str, str]:
    return "-".join(parts), "".join(parts)


def spelled(question: Question, names: Names, text: str) -> Question:
    """Return the question with its misspelled words corrected. `text` is the question as written."""
    read = dict(_corrections(question, names))
    if not read:
        return question
    corrected = _TOKEN.sub(lambda match: read.get(folded(match[0]), match[0]), text)
    return replace(parse_question(corrected), corrections=tuple(read.items()))


def _corrections(question: Question, names: Names) -> Iterator[tuple[str, str]]:
    if len(question.words) > _MOST_WORDS:  # pasted text
        return
    known = {index for each in question.found for index in range(each.first, each.last + 1)}
    quoted = {each.lower() for each in question.quoted}
    for index, word in enumerate(question.words):
        plain = index not in known and word not in quoted and _LETTERS.fullmatch(word) is not None
        if not plain or _is_spelled(word) or symptoms_in((word,)) or names.knows(word) or names.with_image(word):
            continue
        space = _only(word, names.namespaces)
        meant = (
            space or _glue(word) or ("" if names.nearest(word, least=_LIKE_A_NAME) else _meant(question.words, index))
        )
        if meant:
            yield word, meant


def _is_spelled(word: str) -> bool:
    """Return whether a word has no slip: an ordinary one, one that tells of trouble, or the plural of a phrase's."""
    plural = not word.endswith("ss") and word.removesuffix("s") in _targets()
    told = plural or word in word_list("signs of trouble")
    return told or vocabulary().is_ordinary(word)


def _glue(word: str) -> str:
    """Return the article or preposition with swapped letters: `the` for `teh`. Only those of every sentence count."""
    found = [each for each in sorted(_GLUE) if _is_swapped(word, each)]
    return found[0] if len(found) == 1 else ""


def _only(word: str, known: Iterable[str]) -> str:
    """Return the only known word that a slip turns into `word`, or an empty string."""
    found = [each for each in known if _is_swapped(word, each) or _is_missed(word, each)]
    return found[0] if len(found) == 1 else ""


def _meant(words: Sequence[str], index: int) -> str:
    """Return the word that gives the sentence the most meaning, or an empty string if it is unclear."""
    word = words[index]
    leads = index == 0  # an interrogative, which no name is mistaken for
    swappable = len(word) >= _LEAST_SWAPPED or leads
    possible = [each for each in _targets() if swappable and _is_swapped(word, each)]
    possible = possible or [each for each in _targets() if _is_missed(word, each, least=_LEAST_WRITTEN - leads)]
    covered = {each: _covered((*words[:index], each, *words[index + 1 :]), index) for each in possible}
    if len(word) < _LEAST_NEGATED and not any(_is_swapped(word, each) for each in possible):  # "nadia" is not "nada"
        covered = {
            each: (size, what) for each, (size, what) in covered.items() if all(one[1] != "negation" for one in what)
        }
    if len(word) < _LEAST_WRITTEN and not leads:  # "cups" are not "cpus"
        covered = {
            each: (size, what) for each, (size, what) in covered.items() if any(one[0] == "kind" for one in what)
        }
    longest = max((length for length, _ in covered.values()), default=0)
    best = [each for each, (length, _) in covered.items() if length == longest > 0]
    shared = frozenset.intersection(*(covered[each][1] for each in best)) if best else frozenset()
    if len(word) < _LEAST_NEGATED and any(meaning in _AMOUNTS for _, meaning in shared):  # "minio" is not "minimo"
        return ""
    return best[0] if shared else ""


def _covered(words: Sequence[str], index: int) -> tuple[int, frozenset[tuple[str, str]]]:
    """Return the length and the meanings of the phrase at a position."""
    here = [each for each in sightings(words) if each.first <= index <= each.last]
    length = here[0].last - here[0].first + 1 if here else 0
    return length, frozenset((each.sense, each.name) for each in here)


@cache
def _targets() -> frozenset[str]:
    """Return the words of all phrases."""
    return frozenset(word for words in vocabulary().phrases for word in words if _LETTERS.fullmatch(word))


def _is_swapped(written: str, meant: str) -> bool:
    """Return whether two neighbouring letters are swapped: `lsit` for `list`."""
    if len(written) != len(meant) or written == meant:
        return False
    first = next(index for index, (one, other) in enumerate(zip(written, meant, strict=True)) if one != other)
    swapped = written[:first] + written[first + 1 : first + 2] + written[first] + written[first + 2 :]
    return swapped == meant


def _is_missed(written: str, meant: str, *, least: int = _LEAST_WRITTEN) -> bool:
    """Return whether a letter is missing, doubled, added or wrong, but neither the first nor the last one."""
    if len(written) < least or written[0] != meant[0] or written[-1] != meant[-1] or abs(len(written) - len(meant)) > 1:
        return False
    if len(written) == len(meant):
        differing = sum(one != other for one, other in zip(written, meant, strict=True))
        return differing == 1 and len(meant) >= _LEAST_REPLACED and _is_beside(written, meant)
    shorter, longer = sorted((written, meant), key=len)
    return any(longer[:index] + longer[index + 1 :] == shorter for index in range(1, len(longer) - 1))


def _is_beside(written: str, meant: str) -> bool:
    """Return whether the wrong letter is beside the right one on the keyboard, or both are vowels.

    Otherwise the word is another one: "charges" are not "changes".
    """
    one, other = next((one, other) for one, other in zip(written, meant, strict=True) if one != other)
    if {one, other} <= _VOWELS:
        return True
    places = {letter: (row, column) for row, letters in enumerate(_KEYBOARD) for column, letter in enumerate(letters)}
    first, second = places.get(one, (9, 9)), places.get(other, (-9, -9))
    return abs(first[0] - second[0]) <= 1 and abs(first[1] - second[1]) <= 1
