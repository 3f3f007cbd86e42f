"""The numbers of an assertion that no field has: times, gaps, elements that are counted. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.evidence.accounts import Account
from holmes.evidence.fields import (
    REPLICAS,
    has_number,
    keys_of,
    numbers_of,
    ways,
)
from holmes.evidence.lexicon import words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.evidence.quantities import Dimension, Quantity
    from holmes.evidence.records import Field
    from holmes.evidence.words import Token


@dataclass(slots=True, kw_only=True)
class Computed(Account):
    """What can be computed from one record. Each method says whether it judged the number."""

    def _times(self, index: int, quantity: Quantity) -> bool:
        """`25 times`, of an event that counts itself."""
        fields = self.record.of(("count",)) if self.record.form == "event" else ()
        words = self._beside(index, "times") if fields and "count" in quantity.dimensions else set()
        if not words:
            return False
        self._open -= words
        self._judge(self.tokens[index].text, shown=any(has_number(each, quantity) for each in fields))
        return True

    def _time(self, index: int, quantity: Quantity, sign: str) -> bool:
        """A time beside which no field is named: how long ago, how long, in which time."""
        if "time" not in quantity.dimensions:
            return False
        beside = {each for each in (index - 2, index - 1, index + 1, index + 2) if 0 <= each < len(self.tokens)}
        agos = {each for each in beside if self.tokens[each].has("ago")}
        if (
            self._counts_restarts()
            and not agos
            and any(has_number(each, quantity) for each in self.record.of(("age",)))
        ):
            self.proved += 1  # `12 restarts in 18 hours`, of what is that old
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
        """The fields that say when something was last."""
        if self.record.form == "event":
            return self.record.of(("age", "lastseen"))
        restarted = any(
            "restarts" in token.concept("field") or token.concept("state") == "restarted" for token in self.tokens
        )
        is_last = self._has("last") and not self._has("state")
        return self.record.of(("ago",)) if restarted or is_last else ()

    def _gap(self, index: int, quantity: Quantity) -> bool:
        """`2 more`, `40Gi of memory are left`: the difference between the parts of a ratio."""
        words = {each for each, token in enumerate(self.tokens) if token.has("gap") and each in self._open}
        is_lack = any(self.tokens[each].text.casefold().split()[0] in words_of("lack") for each in words)
        named = [place for run in self._runs(index) for place in run]
        named = [place for place in named if keys_of(self.tokens[place]) != REPLICAS]
        gaps = set(
            self._gaps(
                frozenset(key for place in named for key in keys_of(self.tokens[place])), quantity, is_lack=is_lack
            )
        )
        if not words or len(gaps) != 1:
            return False
        self._open -= {*words, *named}
        self._judge(self.tokens[index].text, shown=gaps == {True})
        return True

    def _gaps(self, keys: frozenset[str], quantity: Quantity, *, is_lack: bool) -> Iterator[bool]:
        """For each ratio of these keys whether its parts are as far apart as `quantity` says."""
        totals = {each.path[:-1]: each for each in self.record.fields if each.key == "total" and len(each.path) > 1}
        for each in self.record.fields:
            if ("ready" in each.path) is not is_lack:
                continue  # replicas are missing, room is left
            if each.key == "current" and each.path[:-1] in totals and (not keys or keys & ways(each)):
                pair = tuple(numbers_of([each, totals[each.path[:-1]]]))
                measure: Dimension = "cpu" if "cpu" in ways(each) else "memory" if "memory" in ways(each) else "count"
                claimed = quantity.measured(measure)
                for dimension in claimed.dimensions if len(pair) == 2 else ():
                    some, every, told = pair[0].number(dimension), pair[1].number(dimension), claimed.number(dimension)
                    if some is not None and every is not None:
                        yield every - some == told

    def _counted_elements(self, index: int, token: Token) -> bool:
        """`has 2 containers`, `5 keys`: the elements of an object, or the second part of `1/2`."""
        following = self.tokens[index + 1] if index + 1 < len(self.tokens) else None
        if following is None or token.quantity is None or token.parts:
            return self._ready_elements(token) if token.parts else False
        number = token.quantity.number("count")
        if following.concept("field") == "data":
            entries = [each for each in self.record.fields if each.path[0] == "data"]
            count = len(entries)
        elif following.concept("kind") == "container":
            named = {each.labels for each in self.record.fields if each.path[:-2] and "containers" in each.path[-3:-1]}
            totals = [each for each in self.record.fields if each.path == ("ready", "total")]
            if self.record.form == "row" and totals:
                is_of_state = any(each.concept("state") in ("running", "ready") for each in self.tokens)
                ready = self._lookup.of_path("ready", "current")
                is_part = ready and ready[0].value != totals[0].value
                if is_of_state and is_part and not any(each.concept("state") == "ready" for each in self.tokens):
                    self.doubts.append(token.text)
                    return True  # one may run and not be ready
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
        """`1 of 2 containers is ready`: elements of an object."""
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
