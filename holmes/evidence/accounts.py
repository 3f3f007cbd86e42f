"""Tracks which words of an assertion one record accounts for, and judges names and quotes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from holmes.evidence.fields import (
    FREE_TEXT,
    RESOURCES,
    Lookup,
    conditions_of,
    has_value,
    holds_text,
    is_nothing,
    keys_of,
    numbers_of,
)
from holmes.evidence.phrases import is_turned, is_unreal, with_keys
from holmes.evidence.records import plain_key, tokens_of
from holmes.evidence.sources import canonical_kind
from holmes.evidence.words import lexicon, said, states_of, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.evidence.records import Field, Record
    from holmes.evidence.sources import Source
    from holmes.evidence.words import Token

NAME: Final = expression(r"[a-z][a-z0-9]*(?:[.-][a-z0-9]+)*")
_PAIR = expression(r"([\w./-]+)\s*[:=]\s*\"?([^\"\s]+)\"?")
_PIECES = expression(r"\[?(?:…|\.{3,})\]?|[,;]\s")
_TIMES: Final = frozenset({"age", "lastseen", "duration", "startedat", "finishedat", "ago"})
_GENERIC: Final = frozenset({"reason", "status", "phase", "state", "message", "note", "type"})
_SENTENCE = expression(r"\.(?=\s)")
_SKIPPED: Final = ("not", "compare", "approximate", "times", "last", "kind", "ago", "later")


@dataclass(slots=True, kw_only=True)
class Account:
    """Tracks the judgement of one assertion against one record.

    `missing` contains the parts of the assertion that the record lacks or contradicts. `doubts` contains the parts that
    cannot be judged. `proved` is the number of parts that the record shows.
    """

    record: Record
    source: Source
    tokens: Sequence[Token]
    missing: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    proved: int = 0
    _lookup: Lookup = field(init=False)
    _open: set[int] = field(init=False)
    _denied: frozenset[int] = frozenset()
    _elements: list[frozenset[tuple[str, ...]]] = field(default_factory=list)
    _said: set[int] = field(default_factory=set)
    _exact: list[tuple[int, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens = with_keys(self.tokens, self.record)
        words = frozenset(plain_key(token.text) for token in self.tokens if not token.quoted)
        self._lookup = Lookup(record=self.record, last=self._has("last"), words=words)
        self._open = set(range(len(self.tokens)))

    @property
    def holds(self) -> bool | None:
        """True if the record shows every part, False if it lacks a part, None if a part cannot be judged."""
        return False if self.missing else None if self.doubts or not self.proved else True

    @property
    def _is_text(self) -> bool:
        return self.record.form in ("entry", "event")

    def _has(self, category: str) -> bool:
        return said(self.tokens, category) is not None

    def _has_word(self, category: str) -> bool:
        """Return whether the assertion contains a word of the lexicon category `category`."""
        return any(word in words_of(category) for token in self.tokens for word in token.text.casefold().split())

    def _texts(self) -> Iterator[str]:
        """Yield the free text of the record: a whole log entry or event, or the messages of an object."""
        is_json = bool(self.record.lines) and self.record.lines[0][1].lstrip().startswith("{")
        if self._is_text and not is_json:
            yield _by_sentences(" ".join(line for _, line in self.record.lines))
        else:
            yield from (tokens_of(each.value).casefold() for each in self.record.of(FREE_TEXT) if " " in each.value)

    def _judge(self, text: str, *, shown: bool | None) -> None:
        """Note the verdict on `text`.

        `shown` is True if the record shows `text`, False if the record lacks or contradicts it, and None if this cannot
        be judged.
        """
        if shown is None:
            self.doubts.append(text)
        elif shown:
            self.proved += 1
        else:
            self.missing.append(text)

    def _runs(self, index: int) -> Iterator[tuple[int, ...]]:
        """Yield the token indexes of the field words on each side of a value.

        The words on the right come first if they directly follow the value. Otherwise the words on the left come first.
        """
        left, right = self._run_from(index, -1), self._run_from(index, 1)
        is_beside = bool(right) and (
            right[0] == index + 1 or self.tokens[index + 1].text.casefold() in words_of("joining")
        )
        sides = [frozenset(key for place in side for key in keys_of(self.tokens[place])) for side in (left, right)]
        if is_beside and all(RESOURCES & keys for keys in sides):
            yield (*left, *right)  # example: `requests 512Mi of memory`
            return
        ordered = (right, left) if right and right[0] == index + 1 else (left, right)
        for side in filter(None, ordered):
            is_named = bool(self._lookup.of([self.tokens[place] for place in side]))
            is_identifier = (
                self.record.form == "row" and len(side) > 1 and side[-1] == index - 1 and side[-1] - side[-2] > 1
            )
            yield side[-1:] if is_identifier and not is_named else side  # example: `the change cause of revision 3`

    def _run_from(self, index: int, step: int) -> tuple[int, ...]:
        place = index + step
        number = self.tokens[index].quantity
        is_measure = (
            step > 0 and number is not None and not self.tokens[index].is_count and not self.tokens[index].parts
        )
        while 0 <= place < len(self.tokens) and self._may_pass(place):
            if is_measure and (
                self.tokens[place].has("not") or self.tokens[place].text.casefold() in words_of("copula")
            ):
                return ()  # examples: `500Gi is available`, `3 days without a restart`
            place += step
        found: list[int] = []
        while 0 <= place < len(self.tokens):
            token = self.tokens[place]
            if place in self._open and self._lookup.names_field(token):
                found.append(place)
            elif not (found and token.text.casefold() in words_of("joining")):
                break
            place += step
        return tuple(sorted(found))

    def _may_pass(self, place: int) -> bool:
        """Return whether the search for a field word continues beyond the token at `place`."""
        token = self.tokens[place]
        if token.quoted or (self._lookup.names_field(token) and place in self._open):
            return False
        return token.is_neutral or any(token.has(each) for each in _SKIPPED)

    def _beside(self, index: int, *categories: str) -> set[int]:
        """Return the indexes of the tokens that are in any of `categories` and at most two tokens away from `index`."""
        near = range(max(0, index - 2), min(len(self.tokens), index + 3))
        return {each for each in near if any(self.tokens[each].has(category) for category in categories)}

    def _note_exact(self, index: int, fields: Sequence[Field]) -> None:
        """Note whether a number or name is the whole value of its field, and whether the key is unique."""
        keys = {each.key for each in fields}
        is_whole = any(each.value.strip() == self.tokens[index].text for each in fields)
        self._exact.append((index, is_whole and len(self.record.of(keys)) == len(keys)))

    def _note_elements(self, fields: Sequence[Field]) -> None:
        """Note the list elements that contain a value, so that values from different elements are not combined."""
        found = frozenset(tuple(part for part in each.path if part.startswith("=")) for each in fields)
        if found and () not in found and not all(each.key in ("name", "type") for each in fields):
            self._elements.append(found)

    def _note_condition(self, state: str) -> None:
        """Note the list elements of the conditions that express `state`."""
        self._note_elements(conditions_of(self.record, lexicon().states[state].conditions.split()))

    def _value(self, index: int, token: Token) -> None:
        """Judge a name or a quote, which must be in the field that the adjacent words name."""
        self._open.discard(index)
        text, denied = token.text, index in self._denied
        if not denied and self._is_place(index):
            self.proved += 1
            return
        if (own := self._lookup.own(token)) and "empty" in states_of(self.tokens):
            self._judge(text, shown=are_nothing(own))
            return
        run = next((run for run in self._runs(index) if run[-1] < index or self._is_right_beside(index, run)), ())
        run = tuple(place for place in run if not self.tokens[place].has("relation"))
        bound = [self.tokens[place] for place in run]
        self._open -= {place for place in run if not self.tokens[place].has("state")}
        denied = denied or bool(set(run) & self._denied)
        fields = tuple(each for each in self._lookup.of(bound) if each.key not in _TIMES) if bound else ()
        matching = tuple(each for each in fields if holds_text(each.value, text)) or self._paired(token, fields)
        if denied:
            self._judge(text, shown=self._denies(token, bound, fields, matching))
        elif self._is_of_another_kind(index):
            self.missing.append(f"{self.tokens[index - 1].text} {text}")
        elif matching:
            self.proved += 1
            self._note_elements(matching)
            self._note_exact(index, matching)
        elif any("namespace" in each.concept("field") for each in bound):
            self._judge(text, shown=text == self.source.namespace or None)
        elif fields or (text in self.record.labels and has_value(self.record, text) is False):
            self.missing.append(text)
        else:
            self._unbound_value(index, token, bound)

    def _unbound_value(self, index: int, token: Token, bound: Sequence[Token]) -> None:
        """Judge a name or a quote that has no field word. The record may contain it in any field."""
        text = token.text
        stands = self._stands(token) and not self._is_denied(text)
        if stands and self._is_text and self._is_said_otherwise(index):
            self.doubts.append(text)
            return
        self._judge(text, shown=stands)
        if self.record.form == "object":
            self._note_elements([each for each in self.record.fields if each.value == text])
        claimed = self._kind_before(index)
        own = ("", self.source.kind, canonical_kind(self.record.kind))
        is_open = any(not _GENERIC & set(each.concept("field").split()) for each in bound) and not self._is_text
        is_namesake = text in self.record.names and claimed not in own  # for example, two objects have the same name
        if stands and (is_open or is_namesake or self._is_unplaced(token)):
            self.doubts.append(text)

    def _is_said_otherwise(self, index: int) -> bool:
        """Return whether a log entry or event uses a name in another role.

        For example, the text denies the name, reverses the direction of the action, or contains the name only as part
        of a path.
        """
        text = self.record.folded
        is_field = any(
            each.value == self.tokens[index].text for each in self.record.fields if each.key not in FREE_TEXT
        )
        if self._said and not is_field:
            return True  # the other words occur in a different order
        words = tokens_of(self.tokens[index].text).casefold()
        if self._is_of_another_noun(index, text.split(), words.split()):
            return True
        is_part = words in text and f"{words}/ " in text and words not in text.replace(f"{words}/ ", "")
        return is_part or is_turned(text, self.tokens, index) or is_unreal(text, words.strip(), self.tokens)

    def _kind_before(self, index: int) -> str:
        return self.tokens[index - 1].concept("kind") if index else ""

    def _is_of_another_noun(self, index: int, text: Sequence[str], words: Sequence[str]) -> bool:
        """Return whether a text uses the name for a different kind of object than the claim does.

        For example, the text contains `volume "certs"`, and the claim means a Secret.
        """
        claimed = self._kind_before(index)
        places = [at for at in range(1, len(text)) if text[at : at + len(words)] == words]
        told = {_noun(text[at - 1]) for at in places}
        return bool(claimed and told) and "" not in told and claimed not in told

    def _is_of_another_kind(self, index: int) -> bool:
        """Return whether the record uses this name for a different kind of object than the claim does."""
        claimed = self._kind_before(index)
        named = {each.path[:-1] for each in self.record.fields if each.value == self.tokens[index].text}
        kinds = {canonical_kind(each.value) for each in self.record.of(("kind",)) if each.path[:-1] in named and named}
        return bool(claimed and kinds - {""}) and claimed not in kinds

    def _is_place(self, index: int) -> bool:
        """Return whether the token is the record's namespace and follows a word such as `in`."""
        beside = [*self.tokens[max(0, index - 1) : index], *self.tokens[index + 1 : index + 2]]
        before = self.tokens[index - 1].text.casefold() if index else ""
        is_named = before in words_of("in") or any(each.concept("kind") == "namespace" for each in beside)
        spaces = {each.value for each in self.record.fields if each.key == "namespace"} | {self.source.namespace}
        return is_named and self.tokens[index].text in spaces

    def _is_right_beside(self, index: int, run: Sequence[int]) -> bool:
        """Return whether a key follows a name, directly or after a verb in a log entry: `a1 is the leader`."""
        between = {token.text.casefold() for token in self.tokens[index + 1 : run[0]]}
        return run[0] == index + 1 or (self._is_text and bool(between & words_of("copula")))

    def _paired(self, token: Token, bound: Sequence[Field] = ()) -> tuple[Field, ...]:
        """Return the fields that match a quote such as `app: checkout`, limited to the fields in `bound` if given."""
        match = _PAIR.fullmatch(token.text) if token.quoted else None
        if match is None:
            return ()
        *around, key = [plain_key(part) for part in match[1].split(".") if part] or [""]
        found = (each for each in self.record.of((key,)) if set(around) <= set(each.path))
        return tuple(
            each for each in found if each.value.casefold() == match[2].casefold() and (not bound or each in bound)
        )

    @property
    def _around(self) -> frozenset[str | None]:
        """The names of the record, of its elements and of the whole result."""
        return self.record.names | self.record.labels | self.source.names | {self.source.namespace}

    def _is_unplaced(self, token: Token) -> bool:
        """Return whether the token is the name of another object, or a key whose value is not the claimed value."""
        says_more = any(each.shape == "number" or each.is_value for each in self.tokens if each is not token)
        if says_more and self._lookup.own(token):
            return True
        is_name = bool(NAME.fullmatch(token.text)) and not self._is_text
        is_prefix = any(name.startswith(f"{token.text}-") for name in self.record.names)
        if not is_name or token.text in self._around or is_prefix:
            return False
        values = [part.strip() for each in self.record.fields for part in each.value.split(",")]
        is_whole = any(token.text in (value, value.partition("/")[0], value.rpartition("/")[2]) for value in values)
        return not is_whole

    def _denies(
        self, token: Token, bound: Sequence[Token], fields: Sequence[Field], matching: Sequence[Field]
    ) -> bool | None:
        """Return whether the record proves the absence of a value, or None if this cannot be judged."""
        told = has_value(self.record, token.text)
        if self._is_absent_key(token):
            return True
        is_condition = token.text in self.record.labels and told is False
        if matching or (not bound and not is_condition and self._stands(token)):
            return False
        return True if fields or (not bound and told is False) else None

    def _is_absent_key(self, token: Token) -> bool:
        """Return whether a complete object lacks this key: `no key DB_USER`."""
        keys = {part for each in self.record.fields for part in each.path}
        is_whole = self.record.form == "object" and not self.record.is_part and self.source.is_complete
        return (
            is_whole
            and any(t.text.casefold() in ("key", "keys") for t in self.tokens)
            and plain_key(token.text) not in keys
        )

    def _is_denied(self, text: str) -> bool:
        """Return whether the record contains `no` or `not` directly before the words of a quote."""
        parts = self.record.folded.split(tokens_of(text).casefold())[:-1]
        negative = words_of("not") | {"non"}
        return bool(parts) and all(part.split()[-1:] and part.split()[-1] in negative for part in parts)

    def _stands(self, token: Token) -> bool:
        """Return whether the record's lines contain the token, or the token names the object of the whole result."""
        text = token.text
        if self.record.says(text, exactly=token.quoted):
            is_word = self.record.form == "object" and " " not in text and not any(sign in text for sign in ":=")
            return not is_word or any(
                holds_text(each.value, text) or plain_key(text) in each.path for each in self.record.fields
            )
        if token.quoted and _PAIR.fullmatch(text):
            return bool(self._paired(token))
        pieces = [piece.strip() for piece in _PIECES.split(text) if piece.strip(" .")]
        if token.quoted and text.endswith(("…", "...")) and pieces:
            pieces[-1] = pieces[-1].rpartition(" ")[0]  # the last word may be incomplete
        if token.quoted and pieces and pieces != [text]:
            return all(self.record.says(piece) for piece in pieces if piece)
        parts = [part for part in text.split("/") if not canonical_kind(part)] if "/" in text else [text]
        return all(part in self._around or (len(parts) > 1 and self.record.says(part)) for part in parts)


def _by_sentences(text: str) -> str:
    return tokens_of(_SENTENCE.sub(" ; ", text)).casefold()


def are_nothing(fields: Sequence[Field]) -> bool | None:
    """Return whether all fields are empty, or None if no fields are given."""
    if not fields:
        return None
    numbers = [next(numbers_of([each]), None) for each in fields]
    return all(
        is_nothing(each.value) or (number is not None and number.number("count") == 0)
        for each, number in zip(fields, numbers, strict=True)
    )


def _noun(word: str) -> str:
    """Return the kind of object that a word names, or an empty string if the word is not a kind."""
    return canonical_kind(word) or (word if word in ("volume", "image", "container") else "")
