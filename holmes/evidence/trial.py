"""Judges one assertion against one record.

Every token must be accounted for. A token is neutral, computed, a state of the record, or a value in the field that the
adjacent words name. The remaining tokens are doubts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.evidence.accounts import are_nothing
from holmes.evidence.fields import conditions_of, has_value, numbers_of, shows
from holmes.evidence.numbers import Numbers
from holmes.evidence.phrases import denied_tokens, is_unreal, said_in, stem
from holmes.evidence.records import plain_key
from holmes.evidence.sources import canonical_kind
from holmes.evidence.words import lexicon, states_of, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.evidence.words import Token

_CAMEL = expression(r"(?<=[a-z])(?=[A-Z])")
_SAID: Final = frozenset({"evicted", "oom", "killed", "crashed", "terminated", "failed", "error", "warning", "started"})
_LAST: Final = ("ago", "lastschedule")
_WITH_OBJECT: Final = ("running", "finished", "succeeded")
_SHORT: Final = 3
_OF_OTHERS: Final = frozenset(map(stem, ("create", "get", "kill", "delete", "update", "bind", "binding")))
_WELL: Final = ("running", "ready", "succeeded", "bound", "available", "active")
_PORTS = expression(r"(\d{1,5})(?::(\d{1,5}))?/(\w{3,4})")
_TRUTHS: Final = ("true", "false", "unknown")


@dataclass(slots=True, kw_only=True)
class Trial(Numbers):
    def run(self) -> Trial:
        """Judge every token, starting with the least ambiguous tokens."""
        self._failed_verbs()
        self._denials()
        for text in self._texts():
            said = said_in(text, self.tokens, self._open, self._denied)
            self._open -= said
            self.proved += len(said) > 1
            self._said |= said
            self.doubts += [
                each.text
                for each in self.tokens
                if each.is_neutral and _is_long(each) and is_unreal(text, each.text, self.tokens)
            ]
        self._truth_values()
        for index in self._left("number"):
            self._number(index, self.tokens[index])
        for index in sorted(self._left("value"), key=lambda each: bool(self._lookup.own(self.tokens[each]))):
            if index in self._open:
                self._value(index, self.tokens[index])
        for index in self._left("state"):
            self._state(index, self.tokens[index])
        for index in sorted(self._open):
            self._word(index, self.tokens[index])
        if not self._are_of_one_port():
            self.doubts.append("ports")
        if len(self._elements) > 1 and not _fit_together(self._elements):
            self.doubts.append("elements")
        return self

    def _failed_verbs(self) -> None:
        """Account for `cannot mount the volume` if the event has the reason `FailedMount`, and for similar verbs."""
        reasons = [_CAMEL.sub(" ", each.value).casefold().split() for each in self.record.of(("reason",))]
        verbs = {stem(part) for first, *rest in filter(None, reasons) if first == "failed" for part in rest[:1]}
        verbs -= _OF_OTHERS
        denials = sum(each.has("not") and not each.quoted for each in self.tokens)
        for index, token in enumerate(self.tokens[:-1]):
            if denials > token.has("not"):
                continue  # example: `has not failed to mount`
            following = (each for each in range(index + 1, len(self.tokens)) if not self.tokens[each].is_neutral)
            after = next(following, -1)
            if after not in self._open or token.text.casefold() not in words_of("could not"):
                continue
            words = {stem(word) for word in self.tokens[after].text.split()}
            words |= {"schedul"} if self.tokens[after].concept("state") == "scheduled" else set()
            if words & verbs:
                self._open -= {index, after}
                self.proved += 1

    def _are_of_one_port(self) -> bool:
        """Return whether the port, node port and protocol of a claim are in one entry of `80:31234/TCP,53/UDP`."""
        said = {token.text.casefold() for token in self.tokens}
        for each in self.record.of(("ports",)):
            entries = [frozenset(match) for match in _PORTS.findall(each.value.casefold())]
            ports = said & {match[0] for match in _PORTS.findall(each.value)}
            others = (said & frozenset().union(*entries)) - ports
            wanted = [others | {port} for port in ports] or [others]
            if others and not all(any(each <= entry for entry in entries) for each in wanted):
                return False
        return True

    def _left(self, what: str) -> Iterator[int]:
        """Yield the indexes of tokens of the given type that are not yet accounted for.

        The set of these tokens may change during iteration.
        """
        for index, token in enumerate(self.tokens):
            is_it = {
                "number": token.shape == "number",
                "value": token.is_value,
                "state": token.has("state") and not (token.has("kind") and index not in self._denied),
            }[what]
            if is_it and index in self._open:
                yield index

    def _denials(self) -> None:
        denials = denied_tokens(self.tokens)
        self._open -= denials.words
        self.doubts += ["not"] if denials.is_unclear else []
        self._denied = denials.denied
        kinds = {each for each in self._denied if self.tokens[each].has("kind") and not self.tokens[each].has("field")}
        if self._denied and kinds == self._denied:
            after = [each for each in range(max(kinds), len(self.tokens)) if self.tokens[each].has("state")]
            self._denied = frozenset(after[:1]) or self._denied  # example: `no pod is ready`
        if run := denials.nothing_of:
            fields = self._lookup.of([self.tokens[index] for index in run])
            self._open -= set(run)
            words = " ".join(self.tokens[index].text for index in run)
            self._judge(f"no {words}", shown=are_nothing(fields))

    def _truth_values(self) -> None:
        """Judge words for true, false and unknown with their condition or field: `the condition Ready is False`."""
        for index, token in enumerate(self.tokens):
            wanted = token.concept("state")
            if wanted not in _TRUTHS or index not in self._open:
                continue
            self._open.discard(index)
            values: set[str] = set()
            for other in sorted(self._open - self._denied):
                if found := self._truth_of(self.tokens[other]):
                    values |= found
                    self._open.discard(other)
            if not values and self.record.form == "row":
                shown = has_value(self.record, token.text)
            else:
                conditions = (each for each in self.record.of(("status",)) if each.labels)
                values = values or {each.value.casefold() for each in conditions}
                shown = values == {wanted} if len(values) == 1 else None
            self._judge(token.text, shown=None if shown is None else shown is not (index in self._denied))

    def _truth_of(self, token: Token) -> set[str]:
        """Return the values of the condition or field that a token names, if they are true, false or unknown."""
        if (token.is_neutral and not token.has("field")) or (
            (token.is_value or token.quoted) and token.text not in self.record.labels
        ):
            return set()
        names = lexicon().states[token.concept("state")].conditions.split() if token.has("state") else ()
        fields = conditions_of(self.record, (*names, plain_key(token.text)))
        if not fields and (self._lookup.names_field(token) or names):
            fields = list(self._lookup.of((token,))) or list(self.record.of(names))
        self._note_elements(fields)
        values = {each.value.casefold() for each in fields}
        return values if values <= set(_TRUTHS) else set()

    def _state(self, index: int, token: Token) -> None:
        self._open.discard(index)
        state, denied = token.concept("state"), index in self._denied
        if self._is_settled(index, token, denied=denied):
            return
        is_said = token.text in self.record.labels or self.record.says(token.text, exactly=False)
        if token.quoted and not is_said and not denied:
            self.missing.append(token.text)
            return
        shown = self._shown(token, state)
        if state == "placed" and shown is None:
            return  # the node of a pod is not its state
        if shown is None and not denied and self._is_text and (token.quoted or (is_said and state in _SAID)):
            shown = True  # the entry contains the word
        self._judge(f"not {token.text}" if denied else token.text, shown=None if shown is None else shown is not denied)

    def _is_settled(self, index: int, token: Token, *, denied: bool) -> bool:
        """Return whether a state word has another meaning here. If so, this function judges the word."""
        if denied:
            return self._is_none_of(token.concept("state"))
        if token.quoted and self._is_value_of_key(index):
            return True
        following = self.tokens[index + 1 : index + 2]
        has_object = any(t.is_value or t.shape == "number" or self._lookup.names_field(t) for t in following)
        if token.concept("state") in _WITH_OBJECT and has_object and not token.quoted:
            counts = [number.number("count") for number in numbers_of(self._lookup.ready)]
            claimed = [each.quantity.number("count") for each in following if each.is_count and each.quantity]
            if counts and claimed and counts != claimed:
                self.doubts.append(token.text)  # example: `runs 5 replicas`, but not all are ready
            return True  # `v1.29` in `runs version v1.29` is a version, not a state
        is_alone = all(each.is_neutral or each is token for each in self.tokens) and not self._has_word("copula")
        if is_alone and any(each.value == token.text for each in self.record.fields):
            self.proved += 1  # example: `(Error)` after its description
            return True
        return False

    def _shown(self, token: Token, state: str) -> bool | None:
        """Return whether the record shows a state."""
        counts = [each for each in self.record.of((plain_key(token.text),)) if len(each.path) > 1 or state == "ready"]
        names = [each.text for each in self.tokens if each.is_value]
        if state == "exists":
            return True if self.record.form in ("row", "object") and self.record.names else None
        if counts and all(each.value.isdigit() for each in counts):
            wanted = {int(each.value) for each in self.record.of(("desired", "replicas")) if each.value.isdigit()}
            said = {int(each.text) for each in self.tokens if each.is_count and each.text.isdigit()}
            numbers = {int(each.value) for each in counts}
            return numbers == said if said else numbers == wanted if state == "ready" and wanted else None
        if state == "notfound" and names:
            return True if all(self.record.says(f"{name} not found", exactly=False) for name in names) else None
        if state == "empty":
            named = [other for other in self.tokens if self._lookup.names_field(other)]
            return are_nothing([each for other in named for each in self._lookup.of((other,))])
        self._note_condition(state)
        return shows(
            self.record, state, last=self._has("last"), now=self._has_word("now") and not self._has_word("then")
        )

    def _is_none_of(self, state: str) -> bool:
        """Judge `none is ready` as a count of zero. This is stronger than "not all".

        Returns whether the assertion has this form.
        """
        is_none = any(token.text.casefold() in words_of("nobody") for token in self.tokens)
        is_none = is_none or any(one.has("none") and other.has("kind") for one, other in pairwise(self.tokens))
        fields = self._lookup.of(self._with_field(state)) if is_none else ()
        counts = [number.number("count") for number in numbers_of(self._lookup.ready or fields)]
        if not fields or not counts or None in counts:
            return False
        self._judge("none", shown=not any(counts))
        return True

    def _with_field(self, state: str) -> list[Token]:
        return [token for token in self.tokens if token.concept("state") == state and token.has("field")]

    def _is_value_of_key(self, index: int) -> bool:
        """Return whether a quoted status is the value of the preceding field: `the reason is Error`."""
        run = self._run_from(index, -1)
        fields = self._lookup.of([self.tokens[place] for place in run]) if run and not set(run) & self._denied else ()
        matching = tuple(each for each in fields if each.value.casefold() == self.tokens[index].text.casefold())
        if matching:
            self._open -= set(run)
            self.proved += 1
            self._note_elements(matching)
        return bool(matching)

    def _word(self, index: int, token: Token) -> None:
        """Judge a kind, a field without a value, or another word that is not accounted for."""
        self._open.discard(index)
        if index in self._denied:
            self._judge(f"no {token.text}", shown=are_nothing(self._lookup.of((token,))))
        elif token.has("unjudged") and not token.quoted and not (token.has("yet") and self._has("not")):
            self.doubts.append(token.text)
        elif token.has("kind") and not token.quoted and self._is_of_another(index, token):
            self.doubts.append(token.text)  # example: `its node is ready`
        elif token.has("relation") and not token.has("neutral") and not self._has_item():
            self.doubts.append(token.text)  # example: `references a Secret` without a name
        elif not (token.is_neutral or token.has("kind") or self._is_accounted_for(index, token)):
            self.doubts.append(token.text)

    def _is_of_another(self, index: int, token: Token) -> bool:
        """Return whether a state belongs to another object, for example the node of a pod."""
        own = {canonical_kind(self.record.kind), self.source.kind, "event"}
        if token.concept("kind") == "pod" and self._has("none") and self._lookup.ready:
            return False  # example: `no pod is ready` for a workload that counts its pods
        after = next((each for each in self.tokens[index + 1 :] if not (each.is_neutral or each.has("not"))), None)
        is_of_state = after is not None and after.has("state") and not after.has("field")
        is_of_state = is_of_state or (
            after is not None and after.concept("state") in ("ready", "notready", "available")
        )
        if token.concept("kind") == "container":
            ready, total = self._lookup.ready, self._lookup.ready_total
            is_counted = any(each.shape == "number" for each in self.tokens)
            is_of_all = bool(states_of(self.tokens) & {"running", "ready"}) and not is_counted
            return bool(ready and total) and ready[0].value != total[0].value and is_of_all
        return is_of_state and token.concept("kind") not in own and not self._is_text

    def _has_item(self) -> bool:
        return bool(self._denied) or any(t.shape == "number" or t.is_value or t.quoted for t in self.tokens)

    def _is_accounted_for(self, index: int, token: Token) -> bool:
        """Return whether a word without a value only names a part of the record."""
        near = self.tokens[max(0, index - 2) : index + 3]
        has_number = any(each.shape == "number" for each in self.tokens)
        exact = [is_exact for place, is_exact in self._exact if place > index]
        if token.has("stuck"):
            states = states_of(self.tokens)
            return bool(states) and states.isdisjoint(_WELL)
        if token.text.casefold() in words_of("rollout"):
            is_done = any(each.value == "NewReplicaSetAvailable" for each in self.record.of(("reason",)))
            return not is_done and "progressing" in states_of(self.tokens)
        is_key = bool(self._denied) and token.text.casefold() in ("key", "keys")
        if token.has("only") or is_key or (token.has("line") and self._is_text):
            return not token.has("only") or (bool(exact) and all(exact))
        if token.has("times") or token.has("yet"):
            return has_number or self._has("not")
        if token.has("field"):
            return bool(self._lookup.of((token,)))
        return (
            (token.has("noun") and self.record.says(token.text, exactly=False))
            or (token.has("last") and any("laststate" in each.path or each.key in _LAST for each in self.record.fields))
            or ((token.has("later") or token.has("duration")) and any(each.shape == "number" for each in near))
            or self._is_of_record(token)
        )

    def _is_of_record(self, token: Token) -> bool:
        """Return whether a word is a key, a name or a part of a name in the record, or the reason of an event."""
        names = self.record.names | self.record.labels | self.source.names
        names |= {each.value for each in self.record.of(("from", "source", "component", "reportingcomponent"))}
        reasons = {stem(part) for each in self.record.of(("reason",)) for part in _CAMEL.sub(" ", each.value).split()}
        is_part = self._has("kind") and any(token.text.casefold() in name.split("-") for name in self.record.names)
        first = next((each for each in self.tokens if not each.is_neutral), None)
        is_actor = token is first and token.text.casefold() == "scheduler" and "schedul" in reasons
        is_reason = self._is_text and (stem(token.text) in reasons or is_actor)
        return bool(self._lookup.own(token)) or token.text in names or is_part or is_reason


def _is_long(token: Token) -> bool:
    return token.shape == "word" and len(token.text) > _SHORT


def _fit_together(elements: Sequence[frozenset[tuple[str, ...]]]) -> bool:
    """Return whether one list element contains all values."""
    return any(
        all(any(path[: len(other)] == other or other[: len(path)] == path for other in others) for others in elements)
        for path in elements[0]
    )
