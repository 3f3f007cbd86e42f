"""Which fields of a record the words of an assertion mean, and which value belongs to which word.

Pure. A number or a name belongs to the words for fields right before it (`the exit code of the container is 137`), else
to those right after it (`5 restarts`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from holmes.core.evidence.lexicon import AFTER_WORDS, LINKS, NEGATIONS
from holmes.core.evidence.predicates import is_nothing
from holmes.core.evidence.quantities import count_of, quantities_in
from holmes.core.evidence.records import plain_key, tokens_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.evidence.quantities import Quantity
    from holmes.core.evidence.records import Field, Record
    from holmes.core.evidence.words import Token

_LINKS: Final = frozenset(word.replace("_", " ") for word in LINKS.split())
_AFTER: Final = frozenset(AFTER_WORDS.split())
_PARTS = re.compile(r"\.|\[[\w.-]{0,60}\]")
_LISTS: Final = frozenset({"endpoints", "hosts", "roles", "addresses"})
STATES_OF_REPLICAS: Final = frozenset({"available", "unavailable", "ready", "uptodate"})
_COPULAS: Final = frozenset({"are", "is", "sind", "ist", "sont", "est", "están", "está"})
_PORT = re.compile(r"\d{1,5}")
_RATIO = re.compile(r"(\d+)/(\d+)")
REPLICAS: Final = "desired replicas specreplicas"
_NUMERATORS: Final = frozenset({"ready", "completions"})
NEGATIVE: Final = frozenset(NEGATIONS.split()) | {"non"}
FREE_TEXT: Final = frozenset({"message", "note", "msg", "error", "err"})
_LONGEST_PHRASE: Final = 14
_SHORTEST_WORD: Final = 6
_TIMES: Final = frozenset({"age", "lastseen", "duration", "startedat", "finishedat"})


@dataclass(slots=True, kw_only=True)
class Reading:
    """An assertion over a record; `used` are the tokens that are accounted for, `denied` those that are denied."""

    record: Record
    tokens: Sequence[Token]
    used: set[int] = field(default_factory=set)
    denied: frozenset[int] = frozenset()
    binds_denied: bool = False
    place: int = 0

    def bound(self, index: int, *, to_time: bool = True) -> tuple[Token, ...]:
        """The words for fields that belong to the value at `index`. They are accounted for."""
        self.binds_denied = False
        left = index - 1
        while left >= 0 and left not in self.used and (_is_link(self.tokens[left]) or self.tokens[left].has("compare")):
            left -= 1
        right = index + 1
        while right < len(self.tokens) and self._may_skip(right, is_share=bool(self.tokens[index].parts)):
            right += 1
        return self._fields_from(left, -1, to_time=to_time) or self._fields_from(right, 1, to_time=to_time)

    def _may_skip(self, index: int, *, is_share: bool) -> bool:
        """Whether the word for a field may come after this token: `1 of 2 containers is ready`."""
        token = self.tokens[index]
        if token.text.casefold() in _AFTER or token.has("times") or token.concept("kind") == "container":
            return True
        following = self.tokens[index + 1 : index + 2]
        if token.text.casefold() in _COPULAS and any(set(concepts_of(each)) & STATES_OF_REPLICAS for each in following):
            return True
        return _is_link(token) and (is_share or self.tokens[index - 1].concept("kind") == "container")

    def _fields_from(self, index: int, step: int, *, to_time: bool) -> tuple[Token, ...]:
        found: list[Token] = []
        while 0 <= index < len(self.tokens) and index not in self.used and self.names_field(self.tokens[index]):
            if not to_time and _TIMES & set(concepts_of(self.tokens[index])):
                break
            found.append(self.tokens[index])
            self.used.add(index)
            self.binds_denied = self.binds_denied or index in self.denied
            index += step
        return tuple(found)

    def names_field(self, token: Token) -> bool:
        """Whether a word means a field. A word for a kind does where the record has such a field."""
        if token.has("kind") and token.has("field") and not self.fields((token,)):
            return False
        return token.shape != "number" and (token.has("field") or bool(self.own_key(token)))

    def own_key(self, token: Token) -> tuple[Field, ...]:
        """Fields of the record that have `token` as their key, as `progressDeadlineSeconds` or `spec.replicas`."""
        if len(token.text) < 3 or any(token.has(each) for each in ("unjudged", "not")):
            return ()
        if token.text in self.record.labels | self.record.names:
            return ()
        if not self.is_heading(token) and (_is_link(token) or token.has("state")):
            return ()
        *around, key = [plain_key(part) for part in _PARTS.split(token.text) if part] or [""]
        found = self.record.of((key,))
        return tuple(each for each in found if set(around) <= set(each.path)) if key else ()

    def is_heading(self, token: Token) -> bool:
        """Whether it is the heading of a column of the record: `READY`."""
        is_upper = token.text.isupper() and len(token.text) > 2 and self.record.form in ("row", "event")
        return is_upper and bool(self.record.of((plain_key(token.text),)))

    def fields(self, bound: Sequence[Token]) -> tuple[Field, ...]:
        """The fields of the record that the words `bound` name together: `memory limit` is `limits.memory`."""
        keys = [frozenset(concepts_of(token)) for token in bound]
        if len(keys) > 1:
            keys = [each for each in keys if each != frozenset(REPLICAS.split())] or keys
        own = [
            each
            for token in bound
            for each in self.own_key(token)
            if not token.has("field") or (len(bound) == 1 and plain_key(token.text) not in concepts_of(token))
        ]
        found = tuple(own) or tuple(
            each
            for each in self.record.fields
            if all(names & _ways(each) for names in keys) and any(each.key in names for names in keys)
        )
        if not found:  # the word may be around the value: `requests` in `requests.memory`
            found = tuple(each for each in self.record.fields if keys and all(names & set(each.path) for names in keys))
        if not found and keys == [frozenset(REPLICAS.split())]:
            found = tuple(each for each in self.record.of(("ready",)) if _RATIO.fullmatch(each.value))
        found = self._in_context(found, bound)
        if any(token.has("last") for token in self.tokens):
            return tuple(each for each in found if "laststate" in each.path) or found
        current = tuple(each for each in found if "laststate" not in each.path)
        return (
            found if any(token.concept("state") in ("oom", "terminated") for token in self.tokens) else current or found
        )

    def _in_context(self, found: tuple[Field, ...], bound: Sequence[Token]) -> tuple[Field, ...]:
        """Those of `found` that are below what else the assertion names: the port of `the readiness probe`."""
        leaves = frozenset(each.key for each in self.record.fields)
        for token in self.tokens:
            around = token.concept("field")
            if token not in bound and around and around not in leaves and " " not in around:
                found = tuple(each for each in found if around in each.path) or found
        return found

    def phrase_from(self, start: int) -> int:
        """Where the longest phrase that begins at `start` and stands in the record ends; `start` for none."""
        first = self.tokens[start]
        if first.is_neutral or first.has("not") or first.has("unjudged"):
            return start
        best, text, content = start, "", 0
        for end in range(start, min(len(self.tokens), start + _LONGEST_PHRASE)):
            token = self.tokens[end]
            text = f"{text} {token.text}"
            if (
                end in self.used
                or end in self.denied
                or token.has("not")
                or tokens_of(text).casefold() not in self.record.phrases
            ):
                break
            content += not token.is_neutral
            if content >= 2 and not token.is_neutral:
                best = end + 1
        return start if best > start and self._is_turned(start, best) else best

    def said_in_order(self, index: int) -> bool:
        """Whether a log entry or event has the word at `index` after the words of the assertion that it had before."""
        word = tokens_of(self.tokens[index].text).casefold()
        place = self.record.folded.find(word, self.place)
        if len(word) < _SHORTEST_WORD or place < 0:
            return False
        before = self.record.folded[:place].split()[-1:]
        if before and before[0] in NEGATIVE:
            return False
        self.place = place
        return True

    def _is_turned(self, start: int, end: int) -> bool:
        """Whether the record or the claim denies the phrase just before it."""
        phrase = tokens_of(" ".join(token.text for token in self.tokens[start:end])).casefold()
        before = self.record.phrases.partition(phrase)[0].split()[-2:]
        claimed = {token.text.casefold() for token in self.tokens[max(0, start - 3) : start]}
        return bool(NEGATIVE & {*before, *claimed})


def with_keys(tokens: Sequence[Token], record: Record) -> tuple[Token, ...]:
    """`tokens`, with words that together are a key of the record as one: `kubelet version`."""
    keys = frozenset(part for each in record.fields for part in each.path)
    found: list[Token] = []
    position = 0
    while position < len(tokens):
        for length in (4, 3, 2):
            run = tokens[position : position + length]
            key = plain_key("".join(token.text for token in run))
            if len(run) == length and key in keys and all(token.shape == "word" for token in run):
                text = " ".join(token.text for token in run)
                last = frozenset({("last", "")}) if any(token.has("last") for token in run) else frozenset()
                found.append(replace(run[0], text=text, tags=last | {("field", key)}))
                position += length
                break
        else:
            found.append(tokens[position])
            position += 1
    return tuple(found)


def concepts_of(token: Token) -> list[str]:
    """The keys that a word for a field stands for."""
    return (token.concept("field") or plain_key(token.text)).split()


def _ways(each: Field) -> set[str]:
    """All words on the way to a field: keys, and the labels of elements as keys."""
    return {plain_key(part) if part.startswith("=") else part for part in each.path}


def values_of(each: Field) -> tuple[Quantity, ...]:
    """The quantities in a field; a number without a unit is one of CPU or memory where its key says so."""
    found = quantities_in(each.value[:2_000])
    if each.key in _LISTS and "more" not in each.value and not is_nothing(each.value):
        found = (*found, count_of(each.value.count(",") + 1))
    if each.key.startswith("port"):
        found = tuple(count_of(int(number)) for number in _PORT.findall(each.value[:200]))
    for key in ("cpu", "memory"):
        if key in _ways(each):
            found = tuple(other.measured(key) for other in found)
    return found


def agrees(quantity: Quantity, each: Field, sign: str, concepts: frozenset[str]) -> bool:
    """Whether a field has the number; of `1/2` the part that the words beside it mean."""
    value = each.value[:2_000].strip()
    found = values_of(each)
    if quantity.dimensions == {"count"} and {"cpu", "memory"} & (_ways(each) - concepts):
        return False
    if quantity.dimensions == {"count"} and {"cpu", "memory"} & concepts:
        found = quantities_in(value)
    if each.key not in FREE_TEXT:
        if (match := _RATIO.fullmatch(value)) and "ratio" not in quantity.dimensions:
            part = match[1] if concepts & _NUMERATORS else match[2] if concepts & {"desired", "container"} else ""
            found = quantities_in(part)
        found = tuple(other for other in found if other.dimensions & quantity.dimensions or other.is_time)
        found = found if each.key.startswith(("port", "target")) or each.key in _LISTS else found[:1]
    if sign == "=":
        return any(quantity.equals(other) for other in found)
    for dimension in quantity.dimensions:
        limit, number = quantity.number(dimension), found[0].number(dimension) if found else None
        if limit is not None and number is not None:
            return {">": number > limit, "<": number < limit, ">=": number >= limit, "<=": number <= limit}[sign]
    return False


def holds_text(value: str, text: str) -> bool:
    """Whether the words of `text` stand in a value."""
    return tokens_of(text).casefold() in tokens_of(value).casefold()


def _is_link(token: Token) -> bool:
    """Whether it only joins a field with its value: `is`, `of the container`."""
    return token.text.casefold() in _LINKS or (token.has("kind") and not token.has("field"))
