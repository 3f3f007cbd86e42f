"""Judges one assertion against the records of a passage. If several readings are possible, the best reading decides."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.evidence.accounts import NAME
from holmes.evidence.fields import keys_of
from holmes.evidence.records import (
    CHECKED,
    CITED,
    EMPTY,
    Judgement,
    Passage,
    all_of,
    best_of,
    not_found,
)
from holmes.evidence.sets import judge_set, said_not_found
from holmes.evidence.sources import canonical_kind
from holmes.evidence.trial import Trial
from holmes.evidence.words import Token, first_thing, names_of, said, states_of, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.evidence.records import Record

_MAX_TRIED: Final = 200
_SAME_NAMES: Final = frozenset({"service", "endpoints"})
_OF_WORKLOAD = expression(r"-(?:\d{1,4}|[a-z0-9]{4,5}|[a-z0-9]{4,10}-[a-z0-9]{4,5})")


class Readings:
    """Judges the possible readings of each assertion.

    A reading may use the subjects and the words of the previous assertion.
    """

    def __init__(self, passage: Passage) -> None:
        self._passage = passage
        self._names = frozenset(name for record in passage.records for name in record.names)
        around = {*passage.source.names, passage.source.namespace or ""}
        around |= {each.value for record in passage.records for each in record.of(("namespace",))}
        self._known = self._names | around | {label for record in passage.records for label in record.labels}
        self._subjects: tuple[Token, ...] = ()
        self._last: tuple[Token, ...] = ()
        self._is_foreign = False
        self._own: dict[str, set[int]] = {}
        self._shared: frozenset[int] | None = None

    def _is_subject(self, token: Token) -> bool:
        return token.is_value and bool(names_of(token) & (self._names | self._passage.source.names))

    def _assertion(self, tokens: tuple[Token, ...]) -> Judgement:
        """Return the judgement of the first reading that is checked, otherwise of the first possible reading."""
        passage, rest = self._of_workload(tokens)
        if others := self._of_others(tokens):
            return others
        judgement, is_final = judge_set(passage, rest, self._subjects)
        if judgement is not None and (is_final or judgement.outcome == "checked"):
            return judgement
        own = self._of_subjects(passage, rest)
        return own if judgement is None or own.outcome == "checked" else judgement

    def _of_others(self, tokens: tuple[Token, ...]) -> Judgement | None:
        """Judge `the other three are Running` against all records except the records of the subjects."""
        if not self._subjects or said(tokens, "other") is None:
            return None
        wanted = names_of(*self._subjects)
        records, cited = (
            tuple(each for each in every if not each.names & wanted)
            for every in (self._passage.records, self._passage.cited)
        )
        head = tuple(token for token in self._last if token.has("field") and not token.has("kind"))
        every = Token(shape="word", text="all", tags=frozenset({("all", "")}))
        rest = tuple(token for token in tokens if not token.has("other"))
        passage = replace(self._passage, records=records, cited=cited)
        return best_of([judge_set(passage, (every, *each), ())[0] or CITED for each in (rest, (*head, *rest))])

    def _of_subjects(self, passage: Passage, tokens: tuple[Token, ...]) -> Judgement:
        own = {id(subject) for subject in self._subjects}
        rest = tuple(token for token in tokens if id(token) not in own and not token.has("both"))
        values = [token.text for token in tokens if token.is_value]
        if "exists" in states_of(tokens) and said_not_found(passage, values):
            return not_found(*values)
        if not self._subjects:
            return self._of_unnamed(passage, rest)
        return all_of([self._of(passage, subject, rest, tokens) for subject in self._subjects])

    def _of_workload(self, tokens: tuple[Token, ...]) -> tuple[Passage, tuple[Token, ...]]:
        """Limit the passage to the pods of a workload if the assertion names them: `the web pods`, `pods of web`."""
        passage = self._passage
        if self._subjects or not any(token.has("kind") for token in tokens):
            return passage, tokens
        content = [token for token in tokens if not token.is_neutral]
        names = [name for record in passage.records for name in record.names]
        for first, second in pairwise(content):
            token = first if second.has("kind") else second
            is_name = (token.is_value or (token.shape == "word" and not token.tags)) and NAME.fullmatch(token.text)
            kinds = {first.concept("kind"), second.concept("kind")}
            if (
                kinds & {"pod", passage.source.kind} - {""}
                and is_name
                and any(_is_of(name, token.text) for name in names)
            ):
                records, cited = (
                    tuple(each for each in every if any(_is_of(name, token.text) for name in each.names))
                    for every in (passage.records, passage.cited)
                )
                return replace(passage, records=records, cited=cited), tuple(t for t in tokens if t is not token)
        return passage, tokens

    def _of(self, passage: Passage, subject: Token, rest: tuple[Token, ...], tokens: tuple[Token, ...]) -> Judgement:
        """Judge an assertion against the records of `subject`."""
        wanted = names_of(subject)
        own = [record for record in passage.cited if record.names & wanted]
        own = [record for record in own if record.first_line in self._own.get(subject.text, {record.first_line})]
        if not own and passage.source.names & wanted and not wanted & self._names:
            own = list(passage.cited)
        if not own:
            return not_found(subject.text)
        problem = self._misplaced(subject, tokens, own[0])
        if problem is not None:
            return problem
        content = [token for token in rest if not token.is_neutral and not token.has("kind")]
        if all(token.concept("state") == "exists" for token in content):
            is_thing = own[0].form in ("row", "object") and bool(own[0].names & wanted)
            return CHECKED if content and is_thing else CITED
        judgement = self._best_trial(own, rest)
        if len(own) > 1 and judgement.outcome == "checked" and own[0].form in ("row", "object"):
            shown = {each.first_line for each in own if self._trial(each, rest).outcome == "checked"}
            self._own[subject.text] = shown  # later assertions are about the same object
        return judgement

    def _misplaced(self, subject: Token, tokens: tuple[Token, ...], record: Record) -> Judgement | None:
        """Return the judgement for a wrong kind or namespace of a subject, or None if both are correct."""
        *around, _ = subject.text.split("/")
        source = self._passage.source
        position = tokens.index(subject) if subject in tokens else -1
        beside = [tokens[position - 1]] if position > 0 else []
        beside += [each for each in tokens[position + 1 : position + 2] if position >= 0 and not each.has("field")]
        is_about_it = record.names <= source.names or record.form in ("row", "entry")
        told = canonical_kind(record.kind)
        kind = (
            (source.kind if is_about_it and record.form == "row" else "")
            or told
            or (source.kind if is_about_it else "")
        )
        kinds = {canonical_kind(part) for part in around} | {each.concept("kind") for each in beside}
        for claimed in kinds - {"", "container", "event", kind}:
            if not kind:
                return CITED
            if {claimed, kind} != _SAME_NAMES:
                return not_found(f"{claimed} {subject.text}")
        places = [part for part in around if part and not canonical_kind(part) and part != source.namespace]
        missing = [part for part in places if not record.says(part)]
        return not_found(*missing) if missing else None

    def _of_unnamed(self, passage: Passage, tokens: tuple[Token, ...]) -> Judgement:
        """Judge an assertion without a subject.

        The assertion must be about the only cited record, or about any log entry or event.
        """
        cited = passage.cited
        judgement = self._best_trial(cited, tokens)
        if judgement.outcome == "checked" and len(cited) > 1 and not self._is_shared(cited, tokens):
            return CITED
        is_open = len(cited) > 1 and not all(record.form in ("entry", "event") for record in cited)
        is_open = is_open or self._is_foreign or self._is_about_another(tokens) or self._is_about_many(tokens)
        return CITED if is_open and judgement.outcome == "checked" else judgement

    def _is_shared(self, cited: Sequence[Record], tokens: tuple[Token, ...]) -> bool:
        """Return whether one record shows this assertion and the previous one: `order 1` and `status 500`."""
        shown = frozenset(r.first_line for r in cited[:_MAX_TRIED] if self._trial(r, tokens).outcome == "checked")
        self._shared = shown if self._shared is None else shown & self._shared
        return bool(self._shared)

    def _is_about_many(self, tokens: tuple[Token, ...]) -> bool:
        """Return whether the assertion uses the plural for a single record: `the pods are Running`."""
        first = next((token for token in tokens if not token.has("neutral")), None)
        is_text = all(record.form in ("entry", "event") for record in self._passage.cited)
        return (
            first is not None
            and not is_text
            and not first.quoted
            and first.text.casefold() in words_of("plural of a kind")
        )

    def _is_about_another(self, tokens: tuple[Token, ...]) -> bool:
        """Return whether the assertion starts with a name that no record contains, such as a node in a pod table."""
        first = first_thing(tokens)
        if first is None or not first.is_value or not NAME.fullmatch(first.text) or first.text in self._known:
            return False
        if tokens[0] is not first and tokens[0].has("relation"):
            return False
        cited = self._passage.cited
        if all(record.form == "entry" for record in cited):
            return False
        if all(record.form == "event" for record in cited):
            before = next(
                (token for token in reversed(tokens[: tokens.index(first)]) if not token.has("neutral")), None
            )
            return before is None or before.concept("kind") == "event"
        is_key = any(first.text in [part.lstrip("=") for part in each.path] for r in cited for each in r.fields)
        return not is_key and any(not (token is first or token.is_neutral or token.has("kind")) for token in tokens)

    def _best_trial(self, records: Sequence[Record], tokens: tuple[Token, ...]) -> Judgement:
        if not records:
            return not_found(*(token.text for token in tokens if token.shape != "word"))
        best = best_of([self._trial(record, tokens) for record in records[:_MAX_TRIED]])
        return best if len(records) <= _MAX_TRIED or best.outcome == "checked" else CITED

    def _trial(self, record: Record, tokens: tuple[Token, ...]) -> Judgement:
        """Judge an assertion against one record, or against the element that the assertion names."""
        elements = [
            token
            for index, token in enumerate(tokens)
            if token.is_value and token.text in record.labels and not _is_bound(tokens[:index], token.text, record)
        ]
        if len(elements) == 1:
            others = tuple(token for token in tokens if token is not elements[0])
            is_denied = any(token.has("not") for token in tokens) and not any(token.has("state") for token in tokens)
            counts = any(token.is_count and after.concept("kind") == "container" for token, after in pairwise(tokens))
            if not (is_denied or counts) and any(not (token.is_neutral or token.has("kind")) for token in others):
                narrowed = record.narrowed(elements[0].text)
                return self._tried(narrowed, others)
        return self._tried(record, tokens)

    def _tried(self, record: Record, tokens: tuple[Token, ...]) -> Judgement:
        trial = Trial(record=record, source=self._passage.source, tokens=tokens).run()
        is_guess = said(tokens, "unjudged") is not None
        if (
            is_guess
            and trial.missing
            and all(any(each.says(item) for each in self._passage.records) for item in trial.missing)
        ):
            return CITED
        if trial.missing:
            return not_found(*trial.missing)
        if trial.doubts or trial.proved:
            return CHECKED if trial.holds else CITED
        return EMPTY if all(_says_nothing(token) for token in tokens) else CITED


def _is_bound(tokens: Sequence[Token], name: str, record: Record) -> bool:
    """Return whether a field word precedes a name: `on node`, `owned by ReplicaSet`, but not `the port grpc`."""
    if not tokens or tokens[-1].text.casefold() in words_of("of") or tokens[-1].concept("kind") == "container":
        return False
    lists = {before for each in record.fields for before, part in pairwise(each.path) if part == f"={name}"}
    if lists & keys_of(tokens[-1]):
        return False
    content = [token for token in tokens if not token.has("neutral")][-2:]
    return any(token.has("field") and token.concept("kind") != "container" for token in content[-1:]) or any(
        token.has("field") and not token.has("kind") for token in content[:-1]
    )


def _says_nothing(token: Token) -> bool:
    is_relation = token.has("relation") and not token.has("neutral")
    return not is_relation and (token.is_neutral or token.has("kind") or token.has("noun") or token.text.isupper())


def _is_of(name: str, workload: str) -> bool:
    """Return whether `name` is the name of a pod of `workload`."""
    return name.startswith(f"{workload}-") and bool(_OF_WORKLOAD.fullmatch(name.removeprefix(workload)))
