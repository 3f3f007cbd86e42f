"""Finds the words of `vocabulary.yaml` in a question: what it asks for, which kinds and states it names.

Questions are compared without accents and in lower case. The longest phrase at each position wins, and each word counts
once for the kinds, states and concepts together. Symptoms are counted apart, because a word can be both.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Sense: TypeAlias = Literal["concept", "state", "kind", "word"]
_LETTERS: Final = str.maketrans({"ß": "ss", "œ": "oe", "æ": "ae", "ø": "o", "\u2019": "'", "\u2018": "'", "`": "'"})
_LEAST_LETTERS: Final = 4
_LEAST_PART: Final = 2
_JOINTS: Final = expression(r"[-'/]")
_SHARED: Final = frozenset({"hier"})
"""Words that the lists know in fewer languages than have them."""
_WORD: Final = expression(r"[a-z0-9_](?:[a-z0-9._/:@-]*[a-z0-9_])?(?:'[a-z]+)?(?:…|\*)?|[<>]=?")
_CAPITALIZED: Final = expression(r"[A-Z][a-z]+")
_PAIR: Final = expression(r"[\w./-]+=[\w.-]*")
_ENDINGS: Final = expression(r"'(?:s|re|ll|d|ve|m)$")
_INVERTED: Final = expression(r"(?:-t)?-(?:il|elle|ils|elles|on|vous|tu|je|nous|ce|moi)$")
_ELIDED: Final = expression(r"^([ldnscjmt]|qu|jusqu|lorsqu|puisqu)'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A phrase of the vocabulary at the words `first` to `last` of a question. `name` is for example `count`."""

    sense: Sense
    name: str
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """A symptom. `found` contains the beginnings of words for it in the titles and causes of findings."""

    name: str
    said: tuple[str, ...]
    found: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The words of questions.

    `phrases` maps the words of each phrase to its meanings, and `stems` the beginnings of words. `longest` is the
    largest number of words in a phrase.

    `custom_kinds` maps custom kinds to words for them in other languages, and `columns` phrases to columns of lists.

    Words in `stop` carry no meaning here. Words in `common` are ordinary English words, which can also be names.
    """

    phrases: Mapping[tuple[str, ...], tuple[tuple[Sense, str], ...]]
    stems: Mapping[str, tuple[tuple[Sense, str], ...]]
    longest: int
    absences: Mapping[str, frozenset[str]]
    custom_kinds: Mapping[str, tuple[str, ...]]
    columns: Mapping[tuple[str, ...], tuple[str, ...]]
    symptoms: tuple[Symptom, ...]
    stop: frozenset[str]
    common: frozenset[str]
    lists: Mapping[str, frozenset[str]]
    beginnings: Mapping[str, re.Pattern[str]]

    def beginning(self, word: str) -> tuple[tuple[Sense, str], ...] | None:
        """Return the meanings of a word that begins like a verb of the vocabulary, in any of its forms."""
        beginnings = (word[:length] for length in range(len(word), _LEAST_LETTERS - 1, -1))
        return next((self.stems[each] for each in beginnings if each in self.stems), None)

    def is_plural(self, word: str) -> bool:
        """Return whether a word of a kind is a plural: `pods` and `pvs`, but not `sts` and `ingress`."""
        long = len(word) >= _LEAST_LETTERS or (word.removesuffix("s"),) in self.phrases
        return word.endswith("s") and not word.endswith("ss") and long

    def is_ordinary(self, word: str) -> bool:
        """Return whether a word, or each part of a compound, carries no meaning of its own."""
        if word in self.lists["qualifiers"]:
            return False
        return self._is_plain(word) or all(
            len(part) < _LEAST_PART or self._is_plain(part) for part in _JOINTS.split(word)
        )

    def _is_plain(self, word: str) -> bool:
        return word not in self.lists["qualifiers"] and (word in self.stop or word in self.common)


def folded(text: str) -> str:
    """Return `text` in lower case and without accents: `für` becomes `fur`."""
    lowered = text.lower().translate(_LETTERS)
    if lowered.isascii():
        return lowered
    plain = unicodedata.normalize("NFKD", lowered)
    return "".join(each for each in plain if not unicodedata.combining(each))


def words_of(text: str) -> tuple[str, ...]:
    """Split folded text into words. "what's" becomes `what`, and "l'application" becomes `l` and `application`."""
    words: list[str] = []
    for match in _WORD.finditer(text):
        word = _INVERTED.sub("", _ENDINGS.sub("", match[0]))
        elided = _ELIDED.match(word)
        words += [elided[1], word[elided.end() :]] if elided else [word]
    return tuple(filter(None, words))


@cache
def vocabulary() -> Vocabulary:
    """Read the vocabulary once for each process."""
    from importlib.resources import files

    import yaml  # imported late because only questions to the built-in rules need it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    raw = yaml.load(files("holmes.triage").joinpath("vocabulary.yaml").read_bytes(), Loader=loader)  # noqa: S506  safe
    phrases: dict[tuple[str, ...], list[tuple[Sense, str]]] = {}
    stems: dict[tuple[str, ...], list[tuple[Sense, str]]] = {}
    senses: tuple[tuple[Sense, Mapping[str, list[str]]], ...] = (
        ("kind", raw["kinds"]),
        ("state", raw["states"]),
        ("concept", raw["concepts"]),
        ("word", {name: raw[name] for name in ("workloads", "containers")}),
    )
    for sense, names in senses:
        for name, said in names.items():
            for phrase in (*said, *(_in_words(name) if sense == "kind" else ())):
                where = stems if str(phrase).endswith("*") else phrases
                where.setdefault(words_of(folded(str(phrase).removesuffix("*"))), []).append((sense, name))
    columns: dict[tuple[str, ...], list[str]] = {}
    for name, said in raw["columns"].items():
        for phrase in said:
            columns.setdefault(words_of(folded(str(phrase))), []).append(name)
    lists = {name: frozenset(words.split()) for name, words in raw["lists"].items()}
    meaningful = lists["qualifiers"]
    return Vocabulary(
        phrases={words: tuple(dict.fromkeys(meant)) for words, meant in phrases.items()},
        stems={words[0]: tuple(dict.fromkeys(meant)) for words, meant in stems.items()},
        longest=max(map(len, phrases)),
        absences={name: frozenset(map(folded, said)) for name, said in raw["absences"].items()},
        custom_kinds={name: tuple(said) for name, said in raw["custom kinds"].items()},
        columns={words: tuple(names) for words, names in columns.items()},
        symptoms=tuple(_symptom(name, each) for name, each in raw["symptoms"].items()),
        stop=frozenset(raw["stop"].split()) | (_function_words("de", "es", "fr") - meaningful),
        common=(_function_words("en") | lists["light verbs"]) - meaningful,
        lists=lists,
        beginnings={name: _beginnings(words) for name, words in raw["beginnings"].items()},
    )


def _in_words(kind: str) -> tuple[str, str]:
    """Return a kind as separate words: `horizontal pod autoscaler`, and its plural."""
    name = " ".join(_CAPITALIZED.findall(kind)).lower()
    return name, f"{name[:-1]}ies" if name.endswith("y") else f"{name}{'es' if name.endswith('s') else 's'}"


def _function_words(*languages: str) -> frozenset[str]:
    """Return the words of at least four letters without a meaning of their own. Shorter ones are often names."""
    from stopwordsiso import stopwords  # imported late because it reads the words of all languages

    return frozenset(word for each in stopwords(languages) if len(word := folded(each)) >= _LEAST_LETTERS)


def language_of(words: Sequence[str]) -> str:
    """Return the language with the most function words among `words`: `en`, `de`, `es` or `fr`."""
    found = {language: sum(word in known for word in words) for language, known in _languages().items()}
    return max(found, key=lambda language: found[language])


@cache
def _languages() -> Mapping[str, frozenset[str]]:
    """Return the words of questions and the function words that only one of the languages has."""
    from stopwordsiso import stopwords

    known = {each: frozenset(map(folded, stopwords(each))) - _SHARED for each in ("en", "de", "es", "fr")}
    return {
        each: words - frozenset().union(*(others for other, others in known.items() if other != each))
        for each, words in known.items()
    }


def word_list(name: str) -> frozenset[str]:
    """Return a list of words, for example the `determiners`."""
    return vocabulary().lists[name]


def _symptom(name: str, raw: Mapping[str, list[str]]) -> Symptom:
    found = expression(rf"(?<![a-z])(?:{'|'.join(map(re.escape, raw['found']))})")
    return Symptom(name=name, said=tuple(map(str, raw["said"])), found=found)


def sightings(words: Sequence[str]) -> tuple[Sighting, ...]:
    """Return the phrases in `words`, longest first at each position. Words of a longer phrase are not used again."""
    known = vocabulary()
    found: list[Sighting] = []
    index = 0
    while index < len(words):
        for length in range(min(known.longest, len(words) - index), 0, -1):
            meant = known.phrases.get(tuple(words[index : index + length])) or (
                known.beginning(words[index]) if length == 1 else None
            )
            if meant is not None:
                found += (
                    Sighting(sense=sense, name=name, first=index, last=index + length - 1) for sense, name in meant
                )
                index += length
                break
        else:
            index += 1
    return tuple(found)


def beginnings(name: str) -> re.Pattern[str]:
    """Return an expression for words that begin like one of a list, for example for words of a restart."""
    return vocabulary().beginnings[name]


def _beginnings(words: str) -> re.Pattern[str]:
    each = (
        re.escape(word.rstrip("$")).replace("_", r"\s") + (r"\b" if word.endswith("$") else "")
        for word in words.split()
    )
    return expression(rf"(?<![a-z0-9])(?:{'|'.join(each)})")


_LASTS: Final = expression(
    r"\b(?:takes?|took|taking|needs?|dauert|braucht|tardan?|met|prend) (?:\w+ ){0,2}?"
    r"(?:long|ages|forever|lange?|ewig|mucho|longtemps|\d+ ?(?:s|m|min|mins|sec|secs|seconds?|minutes?"
    r"|sekunden?|minuten?|segundos?|minutos?|secondes?))\b"
    r"(?! (?:to|until|bis|para|pour) (?:\w+ ){0,2}?"
    r"(?:start\w*|come|ready|roll|deploy\w*|boot\w*|launch\w*|schedul\w*|pull\w*))"
)
"""Words that something takes long. It is slow then, although no word says so: "search takes 20 seconds"."""


def symptoms_in(words: Iterable[str]) -> frozenset[str]:
    """Return the names of the symptoms that `words` mention."""
    spoken = tuple(words)
    lasts = frozenset({"slow"} if _LASTS.search(" ".join(spoken)) else ())
    said = set(spoken)
    return lasts | {each.name for each in vocabulary().symptoms if any(_matches(each, said))}


def _matches(symptom: Symptom, said: set[str]) -> Iterator[bool]:
    for each in symptom.said:
        beginning = each.removesuffix("*")
        yield any(word.startswith(beginning) for word in said) if beginning != each else each in said


def symptoms_of_text(text: str) -> frozenset[str]:
    """Return the names of the symptoms that a title or cause of a finding mentions."""
    lowered = _PAIR.sub(" ", text.lower())  # `disktype=ssd` is not about a disk
    return frozenset(symptom.name for symptom in vocabulary().symptoms if symptom.found.search(lowered))
