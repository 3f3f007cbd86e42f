"""The numbers of an assertion against one record.

A number stands in the field that the words beside it name. One without such words stands where it is the only one of
its unit; counts and shares are computed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holmes.core.evidence.accounts import Account
from holmes.core.evidence.bindings import FREE_TEXT, REPLICAS, STATES_OF_REPLICAS, agrees, concepts_of, values_of
from holmes.core.evidence.quantities import quantities_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.evidence.quantities import Dimension, Quantity
    from holmes.core.evidence.records import Field
    from holmes.core.evidence.words import Token


@dataclass(slots=True, kw_only=True)
class NumberTrial(Account):
    """Judges the numbers; `Trial` judges the rest."""

    def _number(self, index: int, token: Token, *, negated: bool) -> None:
        """A number stands in the field that is named beside it; without one, it is the only one of its unit."""
        self._reading.used.add(index)
        sign = self._comparison(index)
        is_denied_share = bool(token.parts) and any(each.has("not") for each in self.tokens)
        if token.quantity is None or is_denied_share:
            self.doubts.append(token.text)
        elif negated:
            self._denied_number(index, token, token.quantity)
        elif not self._counted_parts(index, token):
            self._placed_number(index, token, token.quantity, sign)

    def _comparison(self, index: int) -> str:
        """`>` for `more than`, and so on. Its words are accounted for."""
        before = [each for each in (index - 1, index - 2) if each >= 0 and self.tokens[each].has("compare")]
        self._reading.used.update(before)
        return self.tokens[before[0]].concept("compare") if before else "="

    def _counted_parts(self, index: int, token: Token) -> bool:
        """Whether it counts parts of an object, and was judged as such."""
        following = self.tokens[index + 1 : index + 2]
        counts = bool(token.parts) or any(each.concept("field") == "data" for each in following)
        return counts and self.record.form == "object" and self._counted_elements(index, token)

    def _placed_number(self, index: int, token: Token, quantity: Quantity, sign: str) -> None:
        bound = self._reading.bound(index)
        is_ago = self._takes_ago(index)
        if self._reading.binds_denied:
            self.doubts.append(token.text)
            return
        if (not bound and self._counted_elements(index, token)) or self._is_window(index, quantity):
            return
        bound = self._kind_of_replicas(bound) or self._times_of_event(index)
        if bound or (is_ago and (self.record.form == "event" or any(each.has("last") for each in self.tokens))):
            fields = self._reading.fields(bound) if bound else self._ago_fields()
            self._number_in(index, token, sign, bound, self._of_dimension(fields, quantity.dimensions))
        else:
            self._lone_number(token, quantity, sign, is_ago=is_ago)

    def _number_in(
        self, index: int, token: Token, sign: str, bound: tuple[Token, ...], fields: tuple[Field, ...]
    ) -> None:
        """A number in the fields that the assertion names."""
        if token.quantity is None:
            return
        fields = self._of_kind(index, fields)
        concepts = frozenset(key for each in bound for key in concepts_of(each))
        matching = tuple(each for each in fields if agrees(token.quantity, each, sign, concepts))
        if token.parts and fields and not matching and self._is_share(token, fields):
            matching = fields
        measured = {dimension for each in fields for other in values_of(each) for dimension in other.dimensions}
        if sign == "=" or matching or measured & token.quantity.dimensions:
            self._settle(token.text, fields, matching)
        else:
            self.doubts.append(token.text)

    def _lone_number(self, token: Token, quantity: Quantity, sign: str, *, is_ago: bool) -> None:
        """A number beside which no field is named."""
        alike = tuple(each for each in self._plain_fields() if _has_dimension(each, quantity.dimensions))
        matching = tuple(each for each in alike if agrees(quantity, each, sign, frozenset()))
        in_lines = (each for _, line in self.record.lines for each in quantities_in(line))
        is_there = bool(matching) or self.record.says(token.text) or any(quantity.equals(each) for each in in_lines)
        if sign == "=" and not is_there:
            self.missing.append(token.text)
        elif self._is_text and "count" not in quantity.dimensions and sign == "=":
            self._judge(token.text, shown=None if is_ago else True)
        else:
            is_only = len(matching) == len(alike) == 1 and quantity.dimensions != {"count"} and not is_ago
            # How old an object is does not say how long it has been in a state.
            is_age_of_state = is_only and matching[0].key == "age" and any(each.has("state") for each in self.tokens)
            self._judge(token.text, shown=True if is_only and not is_age_of_state else None)

    def _denied_number(self, index: int, token: Token, quantity: Quantity) -> None:
        """`the exit code is not 137`: the field has another."""
        bound = self._reading.bound(index)
        fields = self._reading.fields(bound)
        concepts = frozenset(key for each in bound for key in concepts_of(each))
        is_there = any(agrees(quantity, each, "=", concepts) for each in fields)
        self._judge(f"not {token.text}", shown=not is_there if fields else None)

    def _of_dimension(self, fields: tuple[Field, ...], dimensions: frozenset[Dimension]) -> tuple[Field, ...]:
        """`fields`, or the share beside each: `MEMORY%` for `84% memory`."""
        if dimensions != {"percent"} or any("%" in each.value for each in fields):
            return fields
        return self.record.of(f"{each.key}percent" for each in fields)

    def _of_kind(self, index: int, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        """Those of `fields` that count the kind named after the number: `a capacity of 110 pods`."""
        following = self.tokens[index + 1] if index + 1 < len(self.tokens) else None
        kind = following.concept("kind") if following is not None else ""
        return tuple(each for each in fields if kind and each.key in (kind, f"{kind}s")) or fields

    def _kind_of_replicas(self, bound: tuple[Token, ...]) -> tuple[Token, ...]:
        """`2 of 3 replicas are available` is about the available ones, wherever the word stands."""
        if not bound or any(token.concept("field") != REPLICAS for token in bound):
            return bound
        for index, token in enumerate(self.tokens):
            if set(concepts_of(token)) & STATES_OF_REPLICAS and token.has("field") and index not in self._reading.used:
                if index in self._reading.denied:
                    self.doubts.append(token.text)
                self._reading.used.add(index)
                return (token,)
        return bound

    def _times_of_event(self, index: int) -> tuple[Token, ...]:
        """`25 times`, of an event that counts itself."""
        following = self.tokens[index + 1 : index + 2]
        if self.record.form == "event" and any(each.has("times") for each in following):
            return (replace(following[0], tags=frozenset({("field", "count")})),)
        return ()

    def _is_window(self, index: int, quantity: Quantity) -> bool:
        """`over 26 minutes`, the time in which an event repeated."""
        windows = [each for field in self.record.of(("window",)) for each in quantities_in(field.value)]
        if not any(quantity.equals(each) for each in windows):
            return False
        self._reading.used.update(range(max(0, index - 1), index))
        self.proved += 1
        return True

    def _takes_ago(self, index: int) -> bool:
        """Whether a number says how long ago something was. The word for it is accounted for."""
        beside = [each for each in (index - 1, index + 1) if 0 <= each < len(self.tokens)]
        found = [each for each in beside if self.tokens[each].has("ago")]
        self._reading.used.update(found)
        return bool(found)

    def _ago_fields(self) -> tuple[Field, ...]:
        found = tuple(each for each in self.record.fields if " ago" in each.value or each.key.startswith("last"))
        return found or (self.record.of(("age",)) if self.record.form == "event" else ())

    def _plain_fields(self) -> tuple[Field, ...]:
        return tuple(each for each in self.record.fields if each.key not in FREE_TEXT)

    def _counted_elements(self, index: int, token: Token) -> bool:
        """`has 2 containers`: the elements of an object, or the second part of `1/2`."""
        following = self.tokens[index + 1] if index + 1 < len(self.tokens) else None
        if following is not None and following.concept("field") == "data" and token.is_count:
            entries = [each for each in self.record.fields if each.path[0] == "data"]
            self._reading.used.add(index + 1)
            self._judge(token.text, shown=None if not entries else _count_is(token, len(entries)))
            return True
        if following is None or following.concept("kind") != "container" or token.quantity is None:
            return False
        if token.parts and self.record.form == "object":
            return self._ready_elements(token)
        named = {each.labels for each in self.record.fields if each.path[:-2] and "containers" in each.path[-3:-1]}
        ratios = self.record.of(("ready",))
        if self.record.form == "row" and len(ratios) == 1:
            shown = token.parts == () and agrees(token.quantity, ratios[0], "=", frozenset({"container"}))
            if token.parts:
                return False
        elif named and self.record.form == "object":
            shown = token.quantity.number("count") == len(named)
        else:
            return False
        self._judge(token.text, shown=shown)
        return True

    def _ready_elements(self, token: Token) -> bool:
        """`1 of 2 containers is ready`: elements of an object."""
        ready = next((index for index, each in enumerate(self.tokens) if each.concept("state") == "ready"), None)
        values = [each.value.casefold() for each in self.record.of(("ready",)) if each.labels]
        if ready is None or not set(values) <= {"true", "false"}:
            return False
        self._reading.used.add(ready)
        part, whole = (each.number("count") for each in token.parts)
        self._judge(token.text, shown=part == values.count("true") and whole == len(values))
        return True

    def _is_share(self, token: Token, fields: Sequence[Field]) -> bool:
        """`2 of 3 replicas are available`: one field has the part, another the whole."""
        wholes = self.record.of((*REPLICAS.split(), "ready", "current"))
        part, whole = token.parts
        return all(agrees(part, each, "=", frozenset()) for each in fields) and any(
            agrees(whole, each, "=", frozenset({"desired"})) for each in wholes
        )


def _count_is(token: Token, number: int) -> bool:
    return token.quantity is not None and token.quantity.number("count") == number


def _has_dimension(each: Field, dimensions: frozenset[str]) -> bool:
    """Whether a field is a value of one of `dimensions`."""
    found = quantities_in(each.value[:200])
    dimensions = dimensions | {"moment"} if "clock" in dimensions else dimensions
    return bool(found) and bool(found[0].dimensions & dimensions) and each.value.strip().startswith(found[0].text)
