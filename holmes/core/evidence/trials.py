"""One assertion against one record: what the record lacks, and what in the assertion bytes cannot show.

Pure. Every token of the assertion must be accounted for: it is neutral, it stands in the record in the field that the
assertion names, or a predicate over the record's fields shows it. What is left over is a doubt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from holmes.core.evidence.bindings import (
    Reading,
    agrees,
    concepts_of,
    holds_text,
    values_of,
    with_keys,
)
from holmes.core.evidence.claimed_fields import (
    ago_fields,
    counts_containers,
    first_number,
    fit_together,
    has_dimension,
    is_denied,
    is_share,
    of_dimension,
    of_kind,
    plain_fields,
    stands,
)
from holmes.core.evidence.lexicon_states import STATES
from holmes.core.evidence.predicates import has_value, is_nothing, shows
from holmes.core.evidence.quantities import quantities_in
from holmes.core.evidence.records import plain_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.evidence.records import Field, Record
    from holmes.core.evidence.sources import Source
    from holmes.core.evidence.words import Token

NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[.-][a-z0-9]+)*")
_PAIR = re.compile(r"([\w.-]+)\s*[:=]\s*(\S+)")
_PIECES = re.compile(r"\[?(?:…|\.{3,})\]?|[,;]\s")
_DOUBLED: Final = frozenset("no ningún ninguna ninguno nunca jamás pas aucun aucune jamais".split())  # noqa: SIM905  read as words


@dataclass(slots=True, kw_only=True)
class Trial:
    """`missing` is what the record lacks or contradicts, `doubts` what cannot be judged, `proved` how much holds."""

    record: Record
    source: Source
    tokens: Sequence[Token]
    missing: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    proved: int = 0
    _elements: list[frozenset[tuple[str, ...]]] = field(default_factory=list)
    _reading: Reading = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = with_keys(self.tokens, self.record)
        self._reading = Reading(record=self.record, tokens=self.tokens)

    def run(self) -> Trial:
        """Judge every token, the more certain ones first."""
        negated = self._reading.denied = self._negated()
        if self._is_text:
            self._phrases()
        self._truth_values(negated)
        for index in (*range(len(self.tokens)), *range(len(self.tokens))):
            self._number_or_value(index, negated=index in negated)
        for index, token in enumerate(self.tokens):
            if index in self._reading.used:
                continue
            self._reading.used.add(index)
            if index in negated and self._is_none_of(index):
                self._judge(f"no {token.text}", shown=self._is_absent(token))
            else:
                self._word(token, negated=index in negated)
        if len(self._elements) > 1 and not fit_together(self._elements):
            self.doubts.append("elements")
        return self

    def _number_or_value(self, index: int, *, negated: bool) -> None:
        """A key or heading before its value waits until the value has taken it."""
        token, used = self.tokens[index], self._reading.used
        if index in used or (index == 0 and not used and token.is_value and self._reading.own_key(token)):
            return
        if self._reading.is_heading(token):
            if token is self.tokens[-1]:
                used.add(index)
        elif token.shape == "number":
            self._number(index, token, negated=negated)
        elif token.is_value:
            self._value(index, token, negated=negated)

    @property
    def holds(self) -> bool | None:
        """True when all of it is shown, False when something is missing, None when something cannot be judged."""
        return False if self.missing else None if self.doubts or not self.proved else True

    @property
    def _is_text(self) -> bool:
        return self.record.form in ("entry", "event")

    def _note_condition(self, names: Sequence[str]) -> None:
        """Remember to which condition a state belongs."""
        statuses = self.record.of(("status",))
        self._note_elements([each for each in statuses if any(plain_key(label) in names for label in each.labels)])

    def _judge(self, text: str, *, shown: bool | None) -> None:
        """Note that `text` is shown, contradicted, or neither."""
        if shown is None:
            self.doubts.append(text)
        elif shown:
            self.proved += 1
        else:
            self.missing.append(text)

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
        if len(run) < 2 or not any("replicas" in concepts_of(token) for token in run):
            return False
        fields = self._reading.fields(run)
        none = all(is_nothing(each.value) or first_number(each.value) == 0 for each in fields)
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

    def _number(self, index: int, token: Token, *, negated: bool) -> None:
        """A number stands in the field that is named beside it; without one, it is the only one of its unit."""
        self._reading.used.add(index)
        quantity = token.quantity
        before = self.tokens[max(0, index - 2) : index]
        sign = next((each.concept("compare") for each in before if each.has("compare")), "=")
        self._reading.used.update(
            index - 1 - place for place, each in enumerate(reversed(before)) if each.has("compare")
        )
        is_denied_share = bool(token.parts) and any(each.has("not") for each in self.tokens)
        if quantity is None or negated or is_denied_share:
            self.doubts.append(token.text)
            return
        bound = self._reading.bound(index)
        is_ago = self._takes_ago(index)
        if self._reading.binds_denied:
            self.doubts.append(token.text)
            return
        if not bound and self._counted_elements(index, token):
            return
        if bound or (is_ago and any(each.has("last") for each in self.tokens)):
            fields = self._reading.fields(bound) if bound else ago_fields(self.record)
            fields = of_kind(self._following(index), of_dimension(self.record, fields, quantity.dimensions))
            concepts = frozenset(key for each in bound for key in concepts_of(each))
            matching = tuple(each for each in fields if agrees(quantity, each, sign, concepts))
            if token.parts and fields and not matching and is_share(self.record, token, fields):
                matching = fields
            if (
                sign == "="
                or matching
                or any(other.dimensions & quantity.dimensions for each in fields for other in values_of(each))
            ):
                self._settle(token.text, fields, matching)
            else:
                self.doubts.append(token.text)
            return
        alike = tuple(each for each in plain_fields(self.record) if has_dimension(each, quantity.dimensions))
        matching = tuple(each for each in alike if agrees(quantity, each, sign, frozenset()))
        if is_ago:
            self.doubts.append(token.text)
        anywhere = self.record.says(token.text) or any(
            quantity.equals(each) for _, line in self.record.lines for each in quantities_in(line)
        )
        if sign == "=" and not anywhere and not matching:
            self.missing.append(token.text)
        elif self._is_text and "count" not in quantity.dimensions and sign == "=":
            self._judge(token.text, shown=True)
        else:
            is_only = len(matching) == len(alike) == 1 and quantity.dimensions != {"count"}
            self._judge(token.text, shown=True if is_only else None)

    def _takes_ago(self, index: int) -> bool:
        """Whether a number says how long ago something was. The word for it is accounted for."""
        beside = [each for each in (index - 1, index + 1) if 0 <= each < len(self.tokens)]
        found = [each for each in beside if self.tokens[each].has("ago")]
        self._reading.used.update(found)
        return bool(found)

    def _following(self, index: int) -> Token | None:
        return self.tokens[index + 1] if index + 1 < len(self.tokens) else None

    def _counted_elements(self, index: int, token: Token) -> bool:
        """Judge `has 2 containers`. False when the number is none of containers."""
        following = self._following(index)
        if following is None or following.concept("kind") != "container":
            return False
        shown = counts_containers(self.record, token)
        if shown is not None:
            self._judge(token.text, shown=shown)
        return shown is not None

    def _settle(self, text: str, fields: Sequence[Field], matching: Sequence[Field]) -> None:
        """What came of a value in the fields that the assertion names."""
        if matching:
            self.proved += 1
            self._note_elements(matching)
        elif fields or not self.record.says(text, exactly=False):
            self.missing.append(text)
        else:
            self.doubts.append(text)

    def _value(self, index: int, token: Token, *, negated: bool) -> None:
        """A name or a quote stands there, in the field that is named beside it."""
        self._reading.used.add(index)
        text = token.text
        bound = self._reading.bound(index)
        negated = negated or self._reading.binds_denied
        fields = self._reading.fields(bound)
        matching = tuple(each for each in fields if holds_text(each.value, text))
        if negated:
            self._judge(text, shown=self._denies(token, bound, fields, matching))
        elif matching:
            self._settle(text, fields, matching)
        elif not fields and any("namespace" in each.concept("field") for each in bound):
            self._judge(text, shown=text in (self.source.namespace, *self.record.names))
        elif fields or (text in self.record.labels and has_value(self.record, text) is False):
            self.missing.append(text)
        else:
            shown = stands(token, self._reading, self.source) and not is_denied(self.record, text)
            self._judge(text, shown=shown)
            if shown and (bound or self._is_unplaced(token)):
                self.doubts.append(text)

    def _is_unplaced(self, token: Token) -> bool:
        """Whether it is the name of something else, or a key whose value is not the one that is said."""
        says_more = any(each.shape == "number" or each.is_value for each in self.tokens if each is not token)
        if says_more and self._reading.own_key(token):
            return True
        around = {*self.record.names, *self.record.labels, *self.source.names, self.source.namespace}
        is_name = bool(NAME.fullmatch(token.text)) and not self._is_text
        return is_name and self.record.form == "row" and token.text not in around

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
        if matching or (not bound and not is_condition and stands(token, self._reading, self.source)):
            return False
        return True if fields or (not bound and told is False) else None

    def _word(self, token: Token, *, negated: bool) -> None:
        """A state, a kind, a field without a value, or a word that nothing accounts for."""
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
        if token.has("last"):
            return any(each.has("ago") for each in self.tokens) or any(
                "laststate" in each.path or each.key.startswith("last") for each in self.record.fields
            )
        if token.has("uses"):
            return self.record.form == "row" or any(each.concept("field") == "image" for each in self.tokens)
        names = self.record.names | self.record.labels | self.source.names
        names |= {each.value for each in self.record.of(("from", "source", "component", "reportingcomponent"))}
        return bool(self._reading.own_key(token)) or token.text in names

    def _state(self, token: Token, *, negated: bool) -> None:
        state = token.concept("state")
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

    def _is_absent(self, token: Token) -> bool | None:
        """`no endpoints`, `no restarts`: the field is there and says so."""
        fields = self._reading.fields((token,)) if token.has("field") else ()
        if not fields:
            return None
        return all(is_nothing(each.value) or first_number(each.value) == 0 for each in fields)

    def _is_none_of(self, index: int) -> bool:
        """`no ready replicas`: none at all, which is more than that not all are."""
        return index > 0 and self.tokens[index - 1].has("none") and self.tokens[index].has("field")

    def _note_elements(self, fields: Sequence[Field]) -> None:
        """Remember to which elements of lists a value belongs, so that two of them are not mixed."""
        found = frozenset(tuple(part for part in each.path if part.startswith("=")) for each in fields)
        if found and () not in found and not all(each.key in ("name", "type") for each in fields):
            self._elements.append(found)


def _is_deniable(token: Token) -> bool:
    return token.shape == "number" or token.is_value or any(token.has(each) for each in ("state", "field", "kind"))
