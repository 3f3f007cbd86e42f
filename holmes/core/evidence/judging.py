"""Judges a claim against the lines that it cites: checked, cited, or not found there.

Pure. A claim is as good as its weakest assertion. The subject of an assertion goes on into the next; what it says must
stand in the record of that subject.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.core.evidence.bindings import Reading
from holmes.core.evidence.judgements import CHECKED, CITED, Judgement, Passage, all_of, best_of, names_of, not_found
from holmes.core.evidence.records import plain_key, tokens_of
from holmes.core.evidence.sets import judge_set, said_not_found
from holmes.core.evidence.sources import canonical_kind
from holmes.core.evidence.trials import NAME, Trial, is_pod_of
from holmes.core.evidence.words import assertions_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.core.evidence.records import Record
    from holmes.core.evidence.words import Token

_MAX_TRIED: Final = 200
_FEWEST_WORDS: Final = 5
_SIGNS = re.compile(r"[`\"'()]|[.,:;](?=\s|$)")
_SAME_NAMES: Final = frozenset({"service", "endpoints"})
_PREPOSITIONS: Final = frozenset(["on", "auf", "sur", "en", "in", "im", "dans", "an", "am"])
_RELATIVES: Final = frozenset(
    [
        "which",
        "who",
        "that",
        "whose",
        "qui",
        "que",
        "dont",
        "lequel",
        "laquelle",
        "cual",
        "cuyo",
        "welche",
        "welcher",
        "welches",
    ]
)
_CALLED: Final = frozenset(["called", "named", "namens", "llamado", "llamada", "nommé", "nommée", "appelé", "appelée"])
_COPULAS: Final = frozenset(["are", "is", "sind", "ist", "sont", "est", "están", "son", "está", "es"])
_SAYING: Final = ("field", "state", "kind", "not", "unjudged")


def judge(statement: str, passages: Sequence[Passage]) -> Judgement:
    """What `passages` together show of `statement`."""
    passage = Passage.joined(passages)
    walk = _Walk(passage)
    for tokens in assertions_of(statement):
        walk.take(tokens)
    judgement = walk.finish()
    if judgement.outcome == "not_found" and stands_there(statement, passage):
        return CITED
    return judgement


def stands_there(statement: str, passage: Passage) -> bool:
    """Whether the cited lines have the whole statement word for word: what it says is then said there, not shown."""
    cited = _words(passage.text)
    parts = (_words(statement), _words(statement.partition(": ")[2]))
    return any(part in cited and part.count(" ") > _FEWEST_WORDS for part in parts)


def _words(text: str) -> str:
    return tokens_of(_SIGNS.sub(" ", text)).casefold()


def _counts_on(tokens: tuple[Token, ...]) -> bool:
    """`3 are ready` after `of 5 pods`."""
    is_plain = len(tokens) > 2 and tokens[0].is_count and not any(token.has("kind") for token in tokens)
    return is_plain and tokens[1].text.casefold() in _COPULAS


class _Walk:
    """Goes through the assertions of a claim with the subject that the last one had."""

    def __init__(self, passage: Passage) -> None:
        self._judgements: list[Judgement] = []
        self._passage = passage
        self._names = frozenset(name for record in passage.records for name in record.names)
        around = {*passage.source.names, passage.source.namespace or ""}
        self._known = self._names | around | {label for record in passage.records for label in record.labels}
        self._subjects: tuple[Token, ...] = ()
        self._waiting: list[Token] = []
        self._last: tuple[Token, ...] = ()
        self._fields: tuple[Token, ...] = ()
        self._kind_said = False
        self._is_foreign = False
        self._kind: Token | None = None
        self._held: tuple[Token, ...] = ()

    def take(self, tokens: tuple[Token, ...]) -> None:
        """Judge one assertion; names alone are subjects of what follows, or go on with a list."""
        tokens = (*self._held, *self._with_kind(self._with_names(tokens)))
        self._held = ()
        content = [token for token in tokens if not token.is_neutral]
        named = [token for token in content if self._is_subject(token)]
        if not content:
            return
        if all(token.has("total") for token in content):
            self._held = tokens  # `in total, the pods have 5 restarts`
            return
        if named and all(token in named or token.has("kind") for token in content):
            self._waiting += named
            self._kind_said = self._kind_said or any(token.has("kind") for token in content)
            return
        subjects = self._waiting + [token for token in self._first_names(tokens) if token in named]
        if subjects:
            self._subjects = tuple(dict.fromkeys(subjects))
        elif self._last and tokens[0].text.casefold() in _RELATIVES and self._last[-1] not in self._subjects:
            self._subjects, self._is_foreign = (), True  # `on node-2, which is not ready`
        self._waiting = []
        is_plain = not any(token.has(each) for token in content for each in _SAYING)
        if is_plain and any(token.shape == "number" or token.is_value for token in content):
            tokens = (*self._fields, *tokens)
        has_number = any(token.shape == "number" for token in tokens)
        self._fields = tuple(
            token
            for token in tokens
            if token.has("field") and not token.has("kind") and (has_number or not token.has("state"))
        )
        self._last = tokens
        self._judgements.append(self._assertion(tokens))

    def _with_names(self, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        """`tokens`, with names without signs as names: those that the result has, and what is `called payments`."""
        found: list[Token] = []
        for token in tokens:
            before = found[-1] if found else None
            is_called = before is not None and before.text.casefold() in _CALLED
            is_word = token.shape == "word" and not token.tags
            is_name = is_word and (token.text in self._known or is_called)
            found.append(replace(token, shape="name") if is_name else token)
        return tuple(found)

    def _with_kind(self, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        """`tokens`, with the kind that was counted before in place of `of which`."""
        if self._kind is not None and any(token.has("of which") for token in tokens):
            return tuple(self._kind if token.has("of which") else token for token in tokens)
        if self._kind is not None and not self._subjects and _counts_on(tokens):
            return (tokens[0], self._kind, *tokens[1:])
        self._kind = next((token for token in tokens if token.has("kind")), self._kind)
        return tokens

    def finish(self) -> Judgement:
        """What came of all. Names at the end are further subjects of the last assertion, or further values in it."""
        waiting, self._waiting = self._waiting, []
        if waiting and not self._last:
            return self._listed(waiting)
        for token in waiting:
            content = [each for each in self._last if not each.is_neutral]
            if self._subjects and content[-1:] == [self._subjects[-1]]:
                rest = tuple(each for each in self._last if each not in self._subjects)
                self._subjects = (token,)
                self._judgements.append(self._assertion((*rest, token)))
            else:
                self._judgements.append(self._assertion((*self._fields, token)))
        return all_of(self._judgements) if self._judgements else CITED

    def _listed(self, names: Sequence[Token]) -> Judgement:
        """`the pods are a, b and c`: these are there, and no others."""
        found = frozenset(name for record in self._passage.cited for name in record.names)
        missing = [token.text for token in names if not names_of(token) & found]
        if missing:
            return not_found(*missing)
        is_all = len(names) == len(self._passage.records) and self._passage.is_whole
        return CHECKED if self._kind_said and is_all and len(names) > 1 else CITED

    def _first_names(self, tokens: tuple[Token, ...]) -> list[Token]:
        """The names before anything is said about them; without any, and without a subject so far, the first later."""
        found: list[Token] = []
        for token in tokens:
            if self._is_subject(token):
                found.append(token)
            elif not (token.is_neutral or any(token.has(each) for each in ("kind", "all", "not", "last"))):
                break
        if not found and not self._subjects and not self._waiting:
            found = [token for token in tokens if self._is_subject(token)][:1]
        return found

    def _is_subject(self, token: Token) -> bool:
        return token.is_value and bool(names_of(token) & (self._names | self._passage.source.names))

    def _assertion(self, tokens: tuple[Token, ...]) -> Judgement:
        workload = self._workload(tokens)
        if workload is not None:
            records, cited = (
                tuple(each for each in records if any(is_pod_of(name, workload.text) for name in each.names))
                for records in (self._passage.records, self._passage.cited)
            )
            passage, tokens = (
                replace(self._passage, records=records, cited=cited),
                tuple(token for token in tokens if token is not workload),
            )
        else:
            passage = self._passage
        judgement = judge_set(passage, tokens, self._subjects)
        if judgement is not None:
            return judgement
        rest = tuple(token for token in tokens if token not in self._subjects and not token.has("both"))
        values = [token.text for token in tokens if token.is_value]
        if any(token.concept("state") == "exists" for token in tokens) and said_not_found(self._passage, values):
            return not_found(*values)
        if not self._subjects:
            self._is_foreign = self._is_foreign or self._is_about_another(tokens)
            return self._of_unnamed(rest)
        self._is_foreign = False
        return all_of([self._of(subject, rest, tokens) for subject in self._subjects])

    def _workload(self, tokens: tuple[Token, ...]) -> Token | None:
        """The workload whose pods an assertion is about: `the web pods`, `pods of web`."""
        if self._subjects or not any(token.concept("kind") == "pod" for token in tokens):
            return None
        names = [name for record in self._passage.cited for name in record.names]
        content = [token for token in tokens if not token.is_neutral]
        beside = {
            id(token) for pair in pairwise(content) if any(t.concept("kind") == "pod" for t in pair) for token in pair
        }
        found = (token for token in content if id(token) in beside and token.is_value and NAME.fullmatch(token.text))
        return next((token for token in found if any(is_pod_of(name, token.text) for name in names)), None)

    def _of(self, subject: Token, rest: tuple[Token, ...], tokens: tuple[Token, ...]) -> Judgement:
        """What the records of `subject` show."""
        wanted = names_of(subject)
        own = [record for record in self._passage.cited if record.names & wanted]
        if not own and self._passage.source.names & wanted and not wanted & self._names:
            own = list(self._passage.cited)
        if not own:
            return not_found(subject.text)
        problem = self._misplaced(subject, tokens, own[0])
        if problem is not None:
            return problem
        content = [token for token in rest if not token.is_neutral and not token.has("kind")]
        if all(token.concept("state") == "exists" for token in content):
            is_thing = own[0].form in ("row", "object") and bool(own[0].names & wanted)
            return CHECKED if content and is_thing else CITED
        return self._best_trial(own, rest)

    def _misplaced(self, subject: Token, tokens: tuple[Token, ...], record: Record) -> Judgement | None:
        """What is wrong with the kind or namespace that a subject is said to have; None when nothing is."""
        *around, _ = subject.text.split("/")
        source = self._passage.source
        position = tokens.index(subject) if subject in tokens else -1
        beside = [tokens[position - 1]] if position > 0 else []
        beside += [each for each in tokens[position + 1 : position + 2] if position >= 0 and not each.has("field")]
        is_about_it = record.names <= source.names or record.form in ("row", "entry")
        kind = canonical_kind(record.kind) or (source.kind if is_about_it else "")
        kinds = {canonical_kind(part) for part in around} | {each.concept("kind") for each in beside}
        for claimed in kinds - {"", "container", "event", kind}:
            if not kind:
                return CITED
            if {claimed, kind} != _SAME_NAMES:
                return not_found(f"{claimed} {subject.text}")
        places = [part for part in around if part and not canonical_kind(part) and part != source.namespace]
        missing = [part for part in places if not record.says(part)]
        return not_found(*missing) if missing else None

    def _is_about_another(self, tokens: tuple[Token, ...]) -> bool:
        """Whether it begins with a name that is no record's: a node, in a table of pods."""
        first = next((token for token in tokens if not (token.is_neutral or token.has("kind"))), None)
        if first is None or not first.is_value or not NAME.fullmatch(first.text):
            return False
        if any(name.startswith(f"{first.text}-") for record in self._passage.cited for name in record.names):
            return False  # the pods of a workload
        if any(token.text.casefold().split()[-1] in _PREPOSITIONS for token in tokens[: tokens.index(first)]):
            return False  # `runs on the node worker-2`
        cited = self._passage.cited
        before = tokens[tokens.index(first) - 1] if tokens[0] is not first else first
        if any(each.value == first.text for record in cited for each in record.of((plain_key(before.text),))):
            return False  # its key stands before it: `the job import`
        if any(first.text in record.labels or Reading(record=record, tokens=tokens).own_key(first) for record in cited):
            return False
        return any(token is not first and not token.is_neutral for token in tokens)

    def _of_unnamed(self, tokens: tuple[Token, ...]) -> Judgement:
        """An assertion without a subject: the only cited record is it; of log entries and events any may be."""
        cited = self._passage.cited
        judgement = self._best_trial(cited, tokens)
        is_open = len(cited) > 1 and not all(record.form in ("entry", "event") for record in cited)
        is_open = is_open or self._is_foreign
        return CITED if is_open and judgement.outcome == "checked" else judgement

    def _best_trial(self, records: Sequence[Record], tokens: tuple[Token, ...]) -> Judgement:
        if not records:
            return not_found(*(token.text for token in tokens if token.shape != "word"))
        best = best_of([self._trial(record, tokens) for record in records[:_MAX_TRIED]])
        return best if len(records) <= _MAX_TRIED or best.outcome == "checked" else CITED

    def _trial(self, record: Record, tokens: tuple[Token, ...]) -> Judgement:
        """One record, or the element of it that the assertion names."""
        elements = [token for token in tokens if token.is_value and token.text in record.labels]
        if len(elements) == 1:
            others = tuple(token for token in tokens if token is not elements[0])
            is_denied = any(token.has("not") for token in tokens) and not any(token.has("state") for token in tokens)
            counts = any(token.is_count and after.concept("kind") == "container" for token, after in pairwise(tokens))
            if not (is_denied or counts) and any(not (token.is_neutral or token.has("kind")) for token in others):
                narrowed = record.narrowed(elements[0].text)
                trial = Trial(record=narrowed, source=self._passage.source, tokens=others).run()
                if trial.missing or trial.doubts or trial.proved:
                    return not_found(*trial.missing) if trial.missing else CHECKED if trial.holds else CITED
        trial = Trial(record=record, source=self._passage.source, tokens=tokens).run()
        if trial.missing:
            return not_found(*trial.missing)
        return CHECKED if trial.holds else CITED
