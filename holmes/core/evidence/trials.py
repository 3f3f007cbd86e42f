"""One assertion against one record: what the record lacks, and what in the assertion bytes cannot show.

Pure. Every token of the assertion must be accounted for: it is neutral, it stands in the record in the field that the
assertion names, or a predicate over the record's fields shows it. What is left over is a doubt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.core.evidence.bindings import NEGATIVE, holds_text
from holmes.core.evidence.numbers import NumberTrial
from holmes.core.evidence.predicates import has_value, is_nothing, shows
from holmes.core.evidence.quantities import quantities_in
from holmes.core.evidence.records import plain_key, tokens_of
from holmes.core.evidence.sources import canonical_kind
from holmes.core.evidence.states import STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.evidence.records import Field
    from holmes.core.evidence.words import Token

NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[.-][a-z0-9]+)*")
_OF_WORKLOAD = re.compile(r"-(?:\d{1,4}|[a-z0-9]{4,5}|[a-z0-9]{4,10}-[a-z0-9]{4,5})")
_PAIR = re.compile(r"([\w.-]+)\s*[:=]\s*(\S+)")
_PIECES = re.compile(r"\[?(?:…|\.{3,})\]?|[,;]\s")
_DOUBLED: Final = frozenset(
    {"no", "ningún", "ninguna", "ninguno", "nunca", "jamás", "pas", "aucun", "aucune", "jamais"}
)


@dataclass(slots=True, kw_only=True)
class Trial(NumberTrial):
    """Judges all of an assertion."""

    def run(self) -> Trial:
        """Judge every token, the more certain ones first."""
        negated = self._reading.denied = self._negated()
        if self._is_text:
            self._phrases()
        self._truth_values(negated)
        for waits in (True, False):
            for index in range(len(self.tokens)):
                self._number_or_value(index, negated=index in negated, waits=waits)
        for index, token in enumerate(self.tokens):
            if index in self._reading.used:
                continue
            self._reading.used.add(index)
            if index in negated and self._is_none_of(index):
                self._judge(f"no {token.text}", shown=self._is_absent(token))
            else:
                self._word(token, negated=index in negated)
        if len(self._elements) > 1 and not _fit_together(self._elements):
            self.doubts.append("elements")
        return self

    def _waits_for_value(self, index: int) -> bool:
        """Whether a token is the key of a value that follows."""
        following = self.tokens[index + 1 : index + 4]
        has_value = any(each.shape == "number" or each.is_value or each.quoted for each in following)
        return has_value and bool(self._reading.own_key(self.tokens[index]))

    def _number_or_value(self, index: int, *, negated: bool, waits: bool) -> None:
        """A key or heading before its value waits until the value has taken it."""
        token, used = self.tokens[index], self._reading.used
        if index in used or (waits and token.is_value and self._waits_for_value(index)):
            return
        if self._reading.is_heading(token):
            if token is self.tokens[-1]:
                used.add(index)
        elif token.shape == "number":
            self._number(index, token, negated=negated)
        elif token.is_value:
            self._value(index, token, negated=negated)
        elif token.shape == "word" and not token.tags:
            self._plain_value(index, token, negated=negated)
            if self._is_text and not negated and index not in used and self._reading.said_in_order(index):
                used.add(index)

    @property
    def holds(self) -> bool | None:
        """True when all of it is shown, False when something is missing, None when something cannot be judged."""
        return False if self.missing else None if self.doubts or not self.proved else True

    def _negated(self) -> frozenset[int]:
        """The tokens that a negation denies: the next that can be denied, else the one before."""
        places = [index for index, token in enumerate(self.tokens) if token.has("not") and not token.quoted]
        if not places:
            return frozenset()
        words = {self.tokens[index].text.casefold() for index in places}
        self._reading.used.update(places)
        if len(words) > 1 and not words <= _DOUBLED:
            self.doubts.append("not")
        deniable = [index for index, token in enumerate(self.tokens) if _is_deniable(token)]
        after = [index for index in deniable if index > places[-1]]
        before = [index for index in deniable if index < places[-1]]
        is_open = len(before) > 1 if not after else len(after) > 1 and not self._are_one(after)
        target = after[:1] or before[-1:]
        if target and self._is_run_of_nothing(target[0]):
            return frozenset()
        if is_open or not target:
            self.doubts.append("not")
        if target and self.tokens[target[0]].has("kind") and not self.tokens[target[0]].has("field"):
            self._reading.used.update(index for index in after if self.tokens[index].has("state"))
        return frozenset(target)

    def _is_run_of_nothing(self, start: int) -> bool:
        """`no available replicas`: several words for one field, which must be zero."""
        end = start
        while end < len(self.tokens) and self.tokens[end].has("field") and not self.tokens[end].quoted:
            end += 1
        run = tuple(self.tokens[start:end])
        if len(run) < 2:
            return False
        fields = self._reading.fields(run)
        none = all(is_nothing(each.value) or _first_number(each.value) == 0 for each in fields)
        self._reading.used.update(range(start, end))
        self._judge(f"no {' '.join(token.text for token in run)}", shown=none if fields else None)
        return True

    def _are_one(self, indices: Sequence[int]) -> bool:
        """Whether all of them are one thing that is denied: a kind or field and its name."""
        rest = [self.tokens[index] for index in indices]
        return not any(token.has("state") for token in rest[1:]) and all(token.shape != "number" for token in rest)

    def _phrases(self) -> None:
        """Words that stand in a log entry or an event one after the other, as the claim has them."""
        start = 0
        while start < len(self.tokens) - 1:
            end = self._reading.phrase_from(start)
            if end > start:
                self._reading.used.update(range(start, end))
                self.proved += 1
            start = max(end, start + 1)

    def _truth_values(self, negated: frozenset[int]) -> None:
        """`the condition Ready is False`: a word for a value that is true or false, and what has it."""
        for index, token in enumerate(self.tokens):
            if token.concept("state") not in ("true", "false") or index in self._reading.used:
                continue
            self._reading.used.add(index)
            wanted = (token.concept("state") == "true") is not (index in negated)
            values = set()
            for other, named in enumerate(self.tokens):
                if other == index or other in self._reading.used:
                    continue
                told = None if other in negated else self._truth_of(named)
                if told is not None:
                    values.add(told)
                    self._reading.used.add(other)
            if not values:
                values = {each.value == "True" for each in self.record.fields if each.key == "status" and each.labels}
            self._judge(token.text, shown=values == {wanted} if len(values) == 1 else None)

    def _truth_of(self, token: Token) -> bool | None:
        if token.has("state"):
            self._note_condition(STATES[token.concept("state")].conditions.split())
            return shows(self.record, token.concept("state"))
        own = self._reading.own_key(token) if not token.is_neutral else ()
        fields = own or (self._reading.fields((token,)) if token.has("field") else ())
        values = {each.value.casefold() for each in fields}
        return values == {"true"} if len(values) == 1 and values <= {"true", "false"} else None

    def _value(self, index: int, token: Token, *, negated: bool) -> None:
        """A name or a quote stands there, in the field that is named beside it."""
        self._reading.used.add(index)
        text = token.text
        bound = self._reading.bound(index, to_time=False)
        negated = negated or self._reading.binds_denied
        fields = self._reading.fields(bound)
        matching = tuple(each for each in fields if holds_text(each.value, text)) or self._paired(token)
        if negated:
            self._judge(text, shown=self._denies(token, bound, fields, matching))
        elif matching:
            self._settle(text, fields, matching)
        elif not fields and any("namespace" in each.concept("field") for each in bound):
            self._judge(text, shown=text in (self.source.namespace, *self.record.names))
        elif fields or (text in self.record.labels and has_value(self.record, text) is False):
            self.missing.append(text)
        else:
            stands = self._stands(token) and not self._is_denied(text)
            self._judge(text, shown=stands)
            if stands and (bound or self._is_unplaced(token)):
                self.doubts.append(text)

    def _paired(self, token: Token) -> tuple[Field, ...]:
        """The fields that a quote like `app: checkout` gives with their value."""
        match = _PAIR.fullmatch(token.text) if token.quoted else None
        if match is None:
            return ()
        *around, key = [plain_key(part) for part in match[1].split(".") if part] or [""]
        found = (each for each in self.record.of((key,)) if set(around) <= set(each.path))
        return tuple(each for each in found if each.value.casefold() == match[2].casefold())

    def _is_unplaced(self, token: Token) -> bool:
        """Whether it is the name of something else, or a key whose value is not the one that is said."""
        says_more = any(each.shape == "number" or each.is_value for each in self.tokens if each is not token)
        if says_more and self._reading.own_key(token):
            return True
        around = {*self.record.names, *self.record.labels, *self.source.names, self.source.namespace}
        is_name = bool(NAME.fullmatch(token.text)) and not self._is_text
        is_prefix = any(name.startswith(f"{token.text}-") for name in self.record.names)
        if not is_name or token.text in around or is_prefix:
            return False
        values = [part.strip() for each in self.record.fields for part in each.value.split(",")]
        is_whole = any(token.text in (value, value.partition("/")[0]) for value in values)
        return self.record.form == "row" or (self.record.form == "object" and not is_whole)

    def _plain_value(self, index: int, token: Token, *, negated: bool) -> None:
        """A word without quotes that is the value of the field that is named before it."""
        used = frozenset(self._reading.used)
        bound = () if negated else self._reading.bound(index, to_time=False)
        is_value = any(each.value.casefold() == token.text.casefold() for each in self._reading.fields(bound))
        if bound and is_value and not self._reading.binds_denied:
            self._reading.used.add(index)
            self.proved += 1
        else:
            self._reading.used.intersection_update(used)

    def _denies(
        self,
        token: Token,
        bound: Sequence[Token],
        fields: Sequence[Field],
        matching: Sequence[Field],
    ) -> bool | None:
        """Whether the record shows that a value is not there."""
        told = has_value(self.record, token.text)
        is_condition = token.text in self.record.labels and told is False
        if matching or (not bound and not is_condition and self._stands(token)):
            return False
        return True if fields or (not bound and told is False) else None

    def _is_denied(self, text: str) -> bool:
        """Whether the record says `no` or `not` right before the words of a quote."""
        parts = self.record.folded.split(tokens_of(text).casefold())[:-1]
        return bool(parts) and all(part.split()[-1:] and part.split()[-1] in NEGATIVE for part in parts)

    def _stands(self, token: Token) -> bool:
        """Whether it stands in the record's own lines, or is what the whole result is about."""
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
            pieces[-1] = pieces[-1].rpartition(" ")[0]  # the last word may be cut
        if token.quoted and pieces and pieces != [text]:
            return all(self.record.says(piece) for piece in pieces if piece)
        around = {*self.record.names, *self.record.labels, *self.source.names, self.source.namespace}
        is_of_pods = any(each.concept("kind") == "pod" for each in self.tokens) and bool(NAME.fullmatch(text))
        if is_of_pods and any(is_pod_of(name, text) for name in self.record.names):
            return True
        parts = [part for part in text.split("/") if not canonical_kind(part)] if "/" in text else [text]
        return all(part in around or (len(parts) > 1 and self.record.says(part)) for part in parts)

    def _word(self, token: Token, *, negated: bool) -> None:
        """A state, a kind, a field without a value, or a word that nothing accounts for."""
        if token.is_neutral and not negated and not token.has("field"):
            return
        is_yet = token.has("yet") and any(each.has("not") for each in self.tokens)
        if token.has("unjudged") and not token.quoted and not is_yet:
            self.doubts.append(token.text)
        elif token.has("state") and (not token.has("kind") or negated):
            self._state(token, negated=negated)
        elif negated:
            self._judge(f"no {token.text}", shown=self._is_absent(token))
        elif (token.has("times") and any(each.shape == "number" for each in self.tokens)) or (
            token.has("yet") and any(each.has("not") for each in self.tokens)
        ):
            return
        elif not (token.is_neutral or token.has("kind") or self._is_accounted_for(token)):
            self.doubts.append(token.text)

    def _is_accounted_for(self, token: Token) -> bool:
        """Whether a word without a value of its own only says which part of the record is meant."""
        if token.has("field"):
            return bool(self._reading.fields((token,)))
        if token.has("noun") and self.record.says(token.text, exactly=False):
            return True
        if token.has("last"):
            return any(each.has("ago") for each in self.tokens) or any(
                "laststate" in each.path or each.key.startswith("last") for each in self.record.fields
            )
        if token.has("uses"):
            named = {each.concept("field").partition(" ")[0] for each in self.tokens if each.has("field")}
            return self.record.form == "row" or bool(named & {"image", "port", "ports", "targetport", "storageclass"})
        names = self.record.names | self.record.labels | self.source.names
        names |= {each.value for each in self.record.of(("from", "source", "component", "reportingcomponent"))}
        return bool(self._reading.own_key(token)) or token.text in names

    def _state(self, token: Token, *, negated: bool) -> None:
        state = token.concept("state")
        if token.quoted and not negated and self._is_said_in_field(token):
            return
        if state == "running" and not token.quoted and not negated and self._has_object(token):
            return
        is_said = token.text in self.record.labels or self.record.says(token.text, exactly=False)
        if token.quoted and not is_said and not negated:
            self.missing.append(token.text)
            return
        if state == "exists":
            shown = None
        elif state == "empty":
            named = [each for each in self.tokens if self._reading.names_field(each)]
            fields = [each for other in named for each in self._reading.fields((other,))]
            shown = all(is_nothing(each.value) for each in fields) if fields else None
        else:
            shown = shows(self.record, state, last=any(each.has("last") for each in self.tokens))
            self._note_condition(STATES[state].conditions.split())
        if shown is None and token.quoted and not negated and self._is_text:
            shown = True  # the quote stands in the entry
        word = f"not {token.text}" if negated else token.text
        self._judge(word, shown=None if shown is None else shown is not negated)

    def _is_said_in_field(self, token: Token) -> bool:
        """Whether a status in quotes is the value of the field that is named before it: `the reason is Error`."""
        used = frozenset(self._reading.used)
        fields = self._reading.fields(self._reading.bound(self.tokens.index(token), to_time=False))
        matching = tuple(each for each in fields if each.value.casefold() == token.text.casefold())
        if matching and not self._reading.binds_denied:
            self._settle(token.text, fields, matching)
            return True
        self._reading.used.intersection_update(used)
        return False

    def _has_object(self, token: Token) -> bool:
        """`runs version v1.29`: what it has, not how it is."""
        following = self.tokens[self.tokens.index(token) + 1 :][:1]
        return any(each.has("field") and not each.has("state") for each in following)

    def _is_absent(self, token: Token) -> bool | None:
        """`no endpoints`, `no restarts`: the field is there and says so."""
        fields = self._reading.fields((token,)) if token.has("field") else ()
        if not fields:
            return None
        return all(is_nothing(each.value) or _first_number(each.value) == 0 for each in fields)

    def _is_none_of(self, index: int) -> bool:
        """`no ready replicas`: none at all, which is more than that not all are."""
        before = self.tokens[index - 1] if index else None
        return before is not None and before.has("none") and self.tokens[index].has("field")


def is_pod_of(name: str, workload: str) -> bool:
    """Whether a pod is called as those of `workload` are."""
    return name.startswith(f"{workload}-") and bool(_OF_WORKLOAD.fullmatch(name.removeprefix(workload)))


def _is_deniable(token: Token) -> bool:
    return token.shape == "number" or token.is_value or any(token.has(each) for each in ("state", "field", "kind"))


def _fit_together(elements: Sequence[frozenset[tuple[str, ...]]]) -> bool:
    """Whether one element has all of them, or part of it."""
    return any(
        all(any(path[: len(other)] == other or other[: len(path)] == path for other in others) for others in elements)
        for path in elements[0]
    )


def _first_number(value: str) -> object:
    found = quantities_in(value[:200].partition("/")[0])
    return found[0].number("count") if found and value.strip().startswith(found[0].text) else None
