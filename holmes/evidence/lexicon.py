"""The words that a claim may use and still be checked: `lexicon.yaml`, read once when the first claim is judged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Tag: TypeAlias = tuple[str, str]
"""A class of words, and what a word stands for in it; empty where it is only of that class."""

_FILE: Final = Path(__file__).with_name("lexicon.yaml")
_PRONOUNS: Final = ("c", "d", "j", "l", "m", "n", "s", "t", "qu")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What shows a state in a record; the words of `lexicon.yaml` are described there."""

    words: str
    statuses: str = ""
    reasons: str = ""
    opposed: str = ""
    conditions: str = ""
    ratios: str = ""
    above_zero: str = ""
    negative: bool = False
    soft: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """What words stand for. Phrases are looked up word by word."""

    phrases: Mapping[tuple[str, ...], frozenset[Tag]]
    states: Mapping[str, State]
    lists: Mapping[str, frozenset[str]]
    columns: Mapping[str, tuple[str, ...]]

    def tags(self, words: Sequence[str]) -> frozenset[Tag]:
        """What a word or phrase stands for; nothing for an unknown one."""
        return self.phrases.get(tuple(word.casefold() for word in words), frozenset())


@cache
def words_of(category: str) -> frozenset[str]:
    """All words of a class or of a plain list, phrases with single spaces."""
    if category in lexicon().lists:
        return lexicon().lists[category]
    entries = lexicon().phrases.items()
    return frozenset(" ".join(phrase) for phrase, tags in entries if any(each == category for each, _ in tags))


@cache
def lexicon() -> Lexicon:
    """The lexicon."""
    import yaml

    raw = yaml.load(_FILE.read_text(encoding="utf-8"), yaml.CSafeLoader)
    states = {name: State(**entry) for name, entry in raw.pop("state").items()}
    columns = {kind: tuple(keys.split()) for kind, keys in raw.pop("columns").items()}
    lists = {
        name: frozenset(word.replace("_", " ") for word in words.split()) for name, words in raw.pop("list").items()
    }
    phrases: dict[tuple[str, ...], set[Tag]] = {}
    for tag, words in _entries(raw, states):
        for phrase in words.split():
            phrases.setdefault(tuple(_parts(phrase)), set()).add(tag)
    return Lexicon(
        phrases={phrase: frozenset(tags) for phrase, tags in phrases.items()},
        states=states,
        lists=lists,
        columns=columns,
    )


def _entries(raw: Mapping[str, str | Mapping[str, str]], states: Mapping[str, State]) -> Iterator[tuple[Tag, str]]:
    for category, entry in raw.items():
        if isinstance(entry, str):
            yield (category, ""), entry
        else:
            yield from (((category, concept), words) for concept, words in entry.items())
    yield from ((("state", name), state.words) for name, state in states.items())


def _parts(phrase: str) -> Iterator[str]:
    """The words of a phrase; an elided article is one of its own, as in a claim."""
    for part in phrase.split("_"):
        start, sign, rest = part.partition("'")
        if sign and rest and start in _PRONOUNS:
            yield f"{start}'"
            yield rest
        else:
            yield part
