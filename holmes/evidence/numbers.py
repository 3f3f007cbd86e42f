"""Judges the numbers of an assertion against one record.

A number must be in the field that the adjacent words name, or follow from other numbers in the record. Without such
words, the number must be the only number with its unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from holmes.evidence.accounts import Account
from holmes.evidence.fields import (
    FREE_TEXT,
    REPLICAS,
    gaps,
    has_number,
    holds_text,
    keys_of,
    measures,
    numbers_of,
    shows,
    ways,
)  # fmt: skip
from holmes.evidence.phrases import stands_beside
from holmes.evidence.quantities import quantities_in, seconds_between
from holmes.evidence.words import states_of, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.evidence.quantities import Quantity
    from holmes.evidence.records import Field
    from holmes.evidence.words import Token

_ALLOWED: Final = frozenset({
    "limits", "requests", "capacity", "allocatable", "hard", "total", "maxpods", "maxreplicas", "minpods",
    "minreplicas",
})  # fmt: skip
"""Keys of maximum or reserved amounts. A number in such a field does not prove usage."""
_LONGEST_LINE: Final = 500
_MOST_NUMBERS: Final = 40


@dataclass(slots=True, kw_only=True)
class Numbers(Account):
    def _number(self, index: int, token: Token) -> None:
        self._open.discard(index)
        sign, rounded = self._comparison(index)
        quantity = token.quantity
        if quantity is None:
            self.doubts.append(token.text)
            return
        runs = tuple(self._all_runs(index, token))
        contradicted: tuple[int, ...] = ()
        for run in runs:
            fields = self._measured(run, token, quantity)
            if index in self._denied or set(run) & self._denied:
                self._open -= set(run)
                by_key = index not in self._denied
                self._denied_number(token, quantity, fields, "=" if rounded else sign, by_key=by_key)
                return
            matching = tuple(each for each in fields if _has(each, token, quantity, sign, rounded=rounded))
            if matching or (token.parts and self._is_share(token, fields)):
                self._found(index, run, matching)
                return
            contradicted = contradicted or (run if fields else ())
        if index in self._denied:
            self.doubts.append(token.text)
        elif self._is_computed(index, token, quantity, sign):
            return
        elif contradicted and self._is_text:
            self.doubts.append(token.text)
        elif contradicted:
            self._open -= set(contradicted)
            self._judge(token.text, shown=None if token.text.isalpha() else False)
        else:
            self._lone_number(index, token, quantity, sign, is_keyed=bool(runs) and not self._is_text)

    def _is_computed(self, index: int, token: Token, quantity: Quantity, sign: str) -> bool:
        if self._times(index, quantity) or self._time(index, quantity, sign):
            return True
        return self._gap(index, quantity) or self._counted_elements(index, token)

    def _measured(self, run: tuple[int, ...], token: Token, quantity: Quantity) -> tuple[Field, ...]:
        """Return the fields that `run` names and that contain a number of this dimension.

        If no such field exists and a named field is a list, return all named fields.
        """
        fields = self._lookup.of([self.tokens[place] for place in run])
        quantities = (quantity, *token.parts)
        found = tuple(
            each for each in fields if each.key in FREE_TEXT or any(measures(each, other) for other in quantities)
        )
        return found or (fields if any("," in each.value and ":" not in each.value for each in fields) else ())

    def _found(self, index: int, run: tuple[int, ...], matching: tuple[Field, ...]) -> None:
        """Accept a number that `matching` contains. If `matching` is empty, the number is a share: `2 of 3`."""
        token = self.tokens[index]
        is_measured = "top" in self.source.words and self._has_word("configured")
        if is_measured or self._is_only_allowed(matching) or (token.is_count and not self._are_running(run, token)):
            self.doubts.append(token.text)  # a limit is not usage
        if self._is_of_run_before(matching):
            self.doubts.append(token.text)
        self._open -= {*run, *self._beside(index, "ago", "later")}
        self._open -= self._of_replicas() if not matching else set()
        self.proved += 1
        self._note_elements(matching)
        self._note_exact(index, matching)

    def _is_of_run_before(self, matching: Sequence[Field]) -> bool:
        """Return whether a "running" claim uses a number from the previous state: `Running with exit code 137`."""
        is_before = bool(matching) and all("laststate" in each.path for each in matching)
        return is_before and not self._lookup.last and "running" in states_of(self.tokens)

    def _is_only_allowed(self, matching: tuple[Field, ...]) -> bool:
        """Return whether the claim presents a limit, request or capacity as usage.

        Also true if the claim does not mention that a number is a limit or request.
        """
        named = frozenset(key for token in self.tokens if token.has("field") for key in keys_of(token))
        is_used = self._has("uses") or self._has("runs")
        allowed = [_ALLOWED & ways(each) for each in matching]
        hidden = [{"limits", "requests"} & ways(each) - named for each in matching]
        return bool(matching) and ((is_used and any(allowed)) or all(hidden))

    def _are_running(self, run: tuple[int, ...], token: Token) -> bool:
        """Return whether the number of ready replicas equals the claimed number: `runs 5 replicas`."""
        counts_replicas = any(keys_of(self.tokens[place]) == REPLICAS for place in run)
        if not counts_replicas or not self._has("runs") or token.quantity is None:
            return True
        ready = self._lookup.ready or self.record.of(("readyreplicas",))
        return any(has_number(each, token.quantity) for each in ready[:1])

    def _all_runs(self, index: int, token: Token) -> Iterator[tuple[int, ...]]:
        far = tuple(self._far_runs(index, token))
        beside = tuple(self._runs(index))
        if token.parts and far:
            beside = tuple(run for run in beside if any(keys_of(self.tokens[place]) != REPLICAS for place in run))
        yield from (*far, *beside) if token.parts else far or beside

    def _far_runs(self, index: int, token: Token) -> Iterator[tuple[int, ...]]:
        """Yield other field words in the assertion, for example `available` in `2 replicas are available`."""
        beside = [place for run in self._runs(index) for place in run]
        is_open = bool(token.parts) or (beside and all(keys_of(self.tokens[place]) == REPLICAS for place in beside))
        for place in sorted(self._open - set(beside)) if is_open else ():
            is_other = keys_of(self.tokens[place]) != REPLICAS and self._lookup.names_field(self.tokens[place])
            if is_other and self._lookup.of((self.tokens[place],)):
                yield (*beside, place) if not token.parts else (place,)

    def _comparison(self, index: int) -> tuple[str, bool]:
        """Account for comparison words. Returns the comparison (`>` for `more than`) and whether it is approximate."""
        before = [each for each in (index - 1, index - 2) if each >= 0]
        signs = [each for each in before if self.tokens[each].has("compare")]
        rough = [each for each in before if self.tokens[each].has("approximate")]
        self._open -= {*signs, *rough}
        return (self.tokens[signs[0]].concept("compare") if signs else "="), bool(rough)

    def _denied_number(
        self, token: Token, quantity: Quantity, fields: tuple[Field, ...], sign: str, *, by_key: bool
    ) -> None:
        """Judge `the exit code is not 137` and `one is not ready`.

        In the first form, the field must have another value. In the second form, the number must be the difference
        between the numbers of a ratio.
        """
        if by_key:
            self._judge(token.text, shown=self._are_left(quantity, fields))
        else:
            is_there = any(has_number(each, quantity, sign) for each in fields)
            self._judge(f"not {token.text}", shown=not is_there if fields else None)

    def _are_left(self, quantity: Quantity, fields: tuple[Field, ...]) -> bool | None:
        parts = {each.path[-2:]: each for each in self.record.fields}
        current, total = parts.get(("ready", "current")), parts.get(("ready", "total"))
        if current is None and len(fields) == 1:
            current, total = fields[0], next(iter(self.record.of(("desired", "replicas"))), None)
        if current is None or total is None or (fields and fields[0].key not in ("ready", "current", "numberready")):
            return None
        some, every = (next(numbers_of([each]), None) for each in (current, total))
        if some is None or every is None:
            return None
        first, last = some.number("count"), every.number("count")
        return None if first is None or last is None else last - first == quantity.number("count")

    def _is_share(self, token: Token, fields: Sequence[Field]) -> bool:
        """Return whether one field contains the part and another one the total: `2 of 3 replicas are available`."""
        part, whole = token.parts
        wholes = self.record.of(("desired", "replicas", "specreplicas", "hard"))
        wholes = wholes or self._lookup.ready_total or self.record.of(("total", "ready", "current"))
        return (
            bool(fields)
            and all(has_number(each, part) for each in fields)
            and any(has_number(each, whole) for each in wholes)
        )

    def _of_replicas(self) -> set[int]:
        """Return the indexes of the words for replicas, which only name the counted objects."""
        return {each for each, token in enumerate(self.tokens) if keys_of(token) == REPLICAS}

    def _lone_number(self, index: int, token: Token, quantity: Quantity, sign: str, *, is_keyed: bool) -> None:
        """Judge a number without a field word."""
        fields = tuple(each for each in self.record.fields if each.key not in FREE_TEXT)
        alike = tuple(each for each in fields if measures(each, quantity))
        matching = tuple(each for each in alike if has_number(each, quantity, sign))
        in_lines = (each for _, line in self.record.lines for each in quantities_in(line))
        is_there = bool(matching) or self.record.says(token.text) or any(quantity.equals(each) for each in in_lines)
        codes = {each.value for each in self.record.of(("status", "code", "statuscode"))}
        if self._is_text and token.text in codes:
            self.proved += 1
        elif token.parts and self._is_share(token, [each for each in fields if has_number(each, token.parts[0])]):
            self.doubts.append(token.text)
        elif sign == "=" and not is_there:
            self._judge(token.text, shown=None if self._may_be_computed(token) else False)
        elif self._is_text:
            self._judge(token.text, shown=(sign == "=" and self._is_said(index, quantity)) or None)
        else:
            is_one = len({each.value for each in alike}) == 1
            self._judge(
                token.text, shown=self._is_only(index, quantity, matching, is_one=is_one, is_keyed=is_keyed) or None
            )

    def _is_ago(self, index: int) -> bool:
        return any(self.tokens[each].has("ago") for each in (index - 1, index + 1) if 0 <= each < len(self.tokens))

    def _is_said(self, index: int, quantity: Quantity) -> bool:
        """Return whether a log entry or event contains the number next to the same word, or as a point in time."""
        is_loose = self._is_only_count() and not self._said
        if is_loose and any(stands_beside(text, self.tokens, index) for text in self._texts()):
            return True
        return quantity.is_time and not self._is_ago(index)

    def _is_only(
        self, index: int, quantity: Quantity, matching: tuple[Field, ...], *, is_one: bool, is_keyed: bool
    ) -> bool:
        """Return whether a number is the only number with its unit and no adjacent word gives it another meaning.

        The age of an object does not prove how long the object has been in a state.
        """
        if any(each.key == "age" for each in matching) and self._is_as_old():
            self._open -= self._beside(index, "since")
            return not self._is_only_allowed(matching) and not self._is_plain_count(quantity)
        if not matching or is_keyed or self._is_ago(index) or self._is_only_allowed(matching) or self._has("duration"):
            return False
        counts = any(each.is_count for each in self.tokens)
        is_age_of_state = matching[0].key in ("age", "duration") and (self._has("state") or counts)
        return (is_one or self._is_alone()) and not is_age_of_state and not self._is_plain_count(quantity)

    def _is_alone(self) -> bool:
        return all(each.is_neutral or each.shape == "number" or each.has("later") for each in self.tokens)

    def _is_plain_count(self, quantity: Quantity) -> bool:
        """Return whether a quantity is a count and the assertion also contains other words."""
        return quantity.dimensions == {"count"} and not self._is_alone()

    def _is_only_count(self) -> bool:
        """Return whether the assertion contains only one plain number, so that the order of numbers does not matter."""
        return sum(token.is_count for token in self.tokens) < 2

    def _may_be_computed(self, token: Token) -> bool:
        """Return whether a number that the record lacks may be a number word, a share, a sum or a difference."""
        if token.text[:1].isalpha() or token.parts:
            return True
        numbers = [number for _, line in self.record.lines for number in quantities_in(line[:_LONGEST_LINE])]
        numbers = numbers[:_MOST_NUMBERS]
        for dimension in token.quantity.dimensions if token.quantity else ():
            wanted = token.quantity.number(dimension) if token.quantity else None
            values = [value for each in numbers if (value := each.number(dimension)) is not None]
            if any(wanted in (abs(a - b), a + b) for a, b in combinations(values, 2)):
                return True
        moments = [each for each in numbers if each.is_time]
        seconds = token.quantity.number("time") if token.quantity and "time" in token.quantity.dimensions else None
        return seconds is not None and any(seconds_between(a, b) == seconds for a, b in combinations(moments, 2))

    def _is_as_old(self) -> bool:
        """Return whether a pod is still in its first state, because it never restarted or is still pending."""
        states = states_of(self.tokens)
        restarts = [each.value for each in self.record.of(("restarts",))]
        runs = states <= {"running", "restarted"} and shows(self.record, "running") is True
        return (runs and restarts == ["0"]) or (states == {"pending"} and shows(self.record, "pending") is True)

    def _times(self, index: int, quantity: Quantity) -> bool:
        """Judge `25 times` by the count of an event. Returns whether the claim refers to this count."""
        fields = self.record.of(("count",)) if self.record.form == "event" else ()
        words = self._beside(index, "times") if fields and "count" in quantity.dimensions else set()
        if not words:
            return False
        self._open -= words
        self._judge(self.tokens[index].text, shown=any(has_number(each, quantity) for each in fields))
        return True

    def _time(self, index: int, quantity: Quantity, sign: str) -> bool:
        """Judge a time without a field word as an age, duration or period. Returns whether one of these applies."""
        if "time" not in quantity.dimensions:
            return False
        beside = {each for each in (index - 2, index - 1, index + 1, index + 2) if 0 <= each < len(self.tokens)}
        agos = {each for each in beside if self.tokens[each].has("ago")}
        if (
            self._counts_restarts()
            and not agos
            and any(has_number(each, quantity) for each in self.record.of(("age",)))
        ):
            self.proved += 1  # `12 restarts in 18 hours`, for an object that is 18 hours old
            return True
        fields = self._ago_fields() if agos else self.record.of(("window",))
        fields = fields if agos or self._has("state") else self.record.of(("window", "duration"))
        if not agos and not any(has_number(each, quantity, sign) for each in fields):
            return False
        if not fields:
            return False
        self._open -= agos
        self._judge(self.tokens[index].text, shown=any(has_number(each, quantity, sign) for each in fields))
        return True

    def _counts_restarts(self) -> bool:
        has_key = any("restarts" in token.concept("field") for token in self.tokens)
        return has_key and any(token.is_count for token in self.tokens)

    def _ago_fields(self) -> tuple[Field, ...]:
        """Return the fields that contain the time of the last occurrence."""
        if self.record.form == "event":
            return self.record.of(("age", "lastseen"))
        restarted = any(
            "restarts" in token.concept("field") or token.concept("state") == "restarted" for token in self.tokens
        )
        is_last = self._has("last") and not self._has("state")
        return self.record.of(("ago",)) if restarted or is_last else ()

    def _gap(self, index: int, quantity: Quantity) -> bool:
        """Judge `2 more` or `40Gi of memory are left` by the two parts of a ratio. Returns whether a ratio applies."""
        words = {each for each, token in enumerate(self.tokens) if token.has("gap") and each in self._open}
        is_lack = any(self.tokens[each].text.casefold().split()[0] in words_of("lack") for each in words)
        named = [place for run in self._runs(index) for place in run]
        named = [place for place in named if keys_of(self.tokens[place]) != REPLICAS]
        keys = frozenset(key for place in named for key in keys_of(self.tokens[place]))
        found = set(gaps(self.record, keys, quantity, is_lack=is_lack))
        if not words or len(found) != 1:
            return False
        self._open -= {*words, *named}
        self._judge(self.tokens[index].text, shown=found == {True})
        return True

    def _counted_elements(self, index: int, token: Token) -> bool:
        """Judge `has 2 containers` or `5 keys` by the elements of an object, or by the total of `1/2`.

        Returns whether the elements can be counted.
        """
        following = self.tokens[index + 1] if index + 1 < len(self.tokens) else None
        if following is None or token.quantity is None or token.parts:
            return self._ready_elements(token) if token.parts else False
        number = token.quantity.number("count")
        if following.concept("field") == "data":
            entries = [each for each in self.record.fields if each.path[0] == "data"]
            count = len(entries)
        elif following.concept("kind") == "container":
            named = {each.labels for each in self.record.fields if each.path[:-2] and "containers" in each.path[-3:-1]}
            totals = self._lookup.ready_total
            if self.record.form == "row" and totals:
                is_of_state = bool(states_of(self.tokens) & {"running", "ready"})
                ready = self._lookup.ready
                is_part = ready and ready[0].value != totals[0].value
                if is_of_state and is_part and "ready" not in states_of(self.tokens):
                    self.doubts.append(token.text)
                    return True  # a running container is not necessarily ready
                meant = ready if is_of_state else totals
                self._judge(token.text, shown=any(has_number(each, token.quantity) for each in meant))
                return True
            count = len(named)
        else:
            return False
        if not count or self.record.form != "object":
            return False
        self._open.discard(index + 1)
        self._judge(token.text, shown=number == count)
        return True

    def _ready_elements(self, token: Token) -> bool:
        """Judge `1 of 2 containers is ready` by the elements of an object.

        Returns whether the elements can be counted.
        """
        ready = next((index for index, each in enumerate(self.tokens) if each.concept("state") == "ready"), None)
        values = [each.value.casefold() for each in self.record.of(("ready",)) if each.labels]
        if self.record.form != "object" or ready is None or not values or not set(values) <= {"true", "false"}:
            return False
        if ready in self._denied:
            self.doubts.append(token.text)
            return True
        self._open.discard(ready)
        part, whole = (each.number("count") for each in token.parts)
        self._judge(token.text, shown=part == values.count("true") and whole == len(values))
        return True


def _has(each: Field, token: Token, quantity: Quantity, sign: str, *, rounded: bool) -> bool:
    """Return whether a field contains the number, or a version or tag that looks like the number."""
    is_version = token.text.count(".") > 1 or token.text.startswith("v")
    return has_number(each, quantity, sign, rounded=rounded) or (is_version and holds_text(each.value, token.text))
