"""Assertions about several records: how many there are, all of them, none of them, their sum, the time in between.

Pure. Each function returns None for an assertion of another form. Counts and sums are right for the cited lines and for
the whole result, so that no line can be left out; that there is none of something is shown by complete lists only.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.core.evidence.judgements import CHECKED, CITED, Judgement, Passage, names_of, not_found
from holmes.core.evidence.predicates import shows
from holmes.core.evidence.quantities import quantities_in, seconds_between, seconds_of
from holmes.core.evidence.trials import Trial

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from holmes.core.evidence.quantities import Dimension, Quantity
    from holmes.core.evidence.records import Record
    from holmes.core.evidence.words import Token

_STARTS: Final = ("startedat", "started", "starttime")
_ENDS: Final = ("finishedat", "finished", "completiontime")


def judge_set(passage: Passage, tokens: Sequence[Token], subjects: Sequence[Token]) -> Judgement | None:
    """What came of an assertion about several records; None when it is about one."""
    if any(token.has("both") for token in tokens) and len(subjects) == 2:
        return None
    for judge in (_named_missing, _total, _duration, _absence, _every, _count, _repeats):
        judgement = judge(passage, tokens, subjects)
        if judgement is not None:
            return judgement
    return None


def said_not_found(passage: Passage, names: Sequence[str]) -> bool:
    """Whether a cited line says that this very object was not found."""
    return bool(names) and any(
        (record.says("NotFound") or record.says("not found")) and all(record.says(name) for name in names)
        for record in passage.cited
    )


def _named_missing(passage: Passage, tokens: Sequence[Token], _: Sequence[Token]) -> Judgement | None:
    """`the ConfigMap conf was not found`, as a line says of this very object."""
    if not any(token.concept("state") == "notfound" for token in tokens) or any(token.has("not") for token in tokens):
        return None
    names = [token.text for token in tokens if token.is_value]
    rest = [token for token in tokens if not (token.is_neutral or token.is_value or token.has("kind"))]
    rest = [token for token in rest if not token.has("field")]
    if len(rest) != 1 or len(names) != 1:
        return None
    return CHECKED if any(record.says(f"{names[0]} not found") for record in passage.cited) else None


def _repeats(passage: Passage, tokens: Sequence[Token], _: Sequence[Token]) -> Judgement | None:
    """`Heap usage is logged twice`: how many log entries or events have a quote."""
    quotes = [token.text for token in tokens if token.is_value]
    number = next((token for token in tokens if token.is_count), None)
    rest = [token for token in tokens if not (token.is_neutral or token.is_value or token is number)]
    is_text = bool(passage.cited) and all(record.form in ("entry", "event") for record in passage.cited)
    if number is None or len(quotes) != 1 or not is_text or any(not token.has("times") for token in rest):
        return None
    if not rest and number.text.casefold() not in _REPEATED:
        return None
    counts = {sum(record.says(quotes[0]) for record in records) for records in (passage.cited, passage.records)}
    if not passage.is_whole or passage.source.is_cut:
        return CITED
    return CHECKED if counts == {_number(number)} else not_found(number.text)


_REPEATED: Final = frozenset({"once", "twice", "einmal", "zweimal", "dreimal", "viermal"})


def _count(passage: Passage, tokens: Sequence[Token], subjects: Sequence[Token]) -> Judgement | None:
    """`3 pods are Running`, `2 of 5 pods are not ready`, `2 errors`."""
    place = next((index for index, token in enumerate(tokens) if _is_counted(token)), -1)
    numbers = [index for index, token in enumerate(tokens[: max(place, 0)]) if token.shape == "number"]
    if place < 0 or subjects or len(numbers) != 1:
        return None
    number = tokens[numbers[0]]
    cited, everything = passage.objects(tokens[place].concept("kind"))
    if tokens[place].has("line") and not cited:
        cited, everything = passage.cited, passage.records
    between = tokens[numbers[0] + 1 : place]
    if not cited or not (number.is_count or number.parts):
        return None
    if any(not (token.is_neutral or token.has("state")) for token in between):
        return None
    rest = [token for index, token in enumerate(tokens) if index != numbers[0]]
    rest = [token for token in rest if token is not tokens[place] or token.has("state")]
    rest = [token for token in rest if token.concept("state") != "exists"]
    held, all_held = ([_holds(passage, each, rest) for each in records] for records in (cited, everything))
    if None in held or None in all_held or passage.source.is_cut or not passage.is_whole:
        return CITED
    wanted = [part.number("count") for part in number.parts] or [_number(number)]
    found = ([sum(each is True for each in every), len(every)][: len(wanted)] for every in (held, all_held))
    return CHECKED if all(counts == wanted for counts in found) else not_found(number.text)


def _every(passage: Passage, tokens: Sequence[Token], subjects: Sequence[Token]) -> Judgement | None:
    """`all pods are Running`, `both nodes are ready`."""
    if not any((token.has("all") or token.has("both")) and not token.quoted for token in tokens):
        return None
    kind = next((token.concept("kind") for token in tokens if token.has("kind")), "")
    cited, everything = passage.objects(kind)
    if not kind or not cited or subjects:
        return CITED
    counted = [token for token, after in pairwise(tokens) if token.is_count and after.concept("kind") == kind]
    is_two = any(token.has("both") for token in tokens)
    rest = [
        token
        for token in tokens
        if not (token.has("all") or token.has("both") or token in counted or token.concept("kind") == kind)
    ]
    held = [_holds(passage, record, rest) for record in cited]
    if False in held or any(_number(each) != len(cited) for each in counted) or (is_two and len(cited) != 2):
        return not_found(*(token.text for token in rest if not token.is_neutral))
    is_all = len(cited) == len(everything) and passage.is_whole and passage.source.is_complete
    return CHECKED if is_all and None not in held else CITED


def _total(passage: Passage, tokens: Sequence[Token], subjects: Sequence[Token]) -> Judgement | None:
    """`12 restarts in total`: the sum over all records, or over the subjects."""
    counted = [token for token, after in pairwise(tokens) if token.is_count and after.has("kind")]
    number = next((token for token in tokens if token.shape == "number" and token not in counted), None)
    if not any(token.has("total") and not token.quoted for token in tokens) or number is None:
        return None
    wanted = frozenset(name for subject in subjects for name in names_of(subject))
    records = [record for record in passage.cited if not subjects or record.names & wanted]
    named = [token for token in tokens if token.has("field")]
    rest = [token for token in tokens if token not in (*named, *counted, *subjects, number)]
    is_plain = all(token.is_neutral or any(token.has(each) for each in _ASIDE) for token in rest)
    is_whole = bool(subjects) or bool(counted) or (len(records) == len(passage.records) and passage.is_whole)
    if len(records) == 1 and records[0].form == "object" and named:
        return _total_of_elements(records[0], tokens, number, counted)
    if any(_number(token) != len(records) for token in counted) or len(records) < len(subjects):
        return not_found(*(token.text for token in (*counted, *subjects)))
    if not named or not is_plain or not is_whole or len(records) < 2 or number.quantity is None:
        return CITED
    keys = frozenset(key for token in named for key in token.concept("field").split())
    for dimension in sorted(number.quantity.dimensions):
        values = [_only_value(record, keys, dimension) for record in records]
        numbers = [value for value in values if value is not None]
        if len(numbers) == len(values) and sum(numbers) == number.quantity.number(dimension):
            return CHECKED
    return not_found(number.text)


def _total_of_elements(record: Record, tokens: Sequence[Token], number: Token, counted: Sequence[Token]) -> Judgement:
    """`the two containers have 6 restarts in total`."""
    keys = frozenset(key for token in tokens if token.has("field") for key in token.concept("field").split())
    rest = [token for token in tokens if not (token.has("field") or token in (number, *counted))]
    fields = [each for each in record.of(keys) if each.labels]
    values = [quantities_in(each.value)[0].number("count") for each in fields if quantities_in(each.value)]
    is_plain = all(token.is_neutral or any(token.has(each) for each in _ASIDE) for token in rest)
    if not is_plain or len(values) < 2 or len(values) != len(fields) or any(_number(t) != len(values) for t in counted):
        return CITED
    return CHECKED if sum(value or 0 for value in values) == _number(number) else not_found(number.text)


_ASIDE: Final = ("total", "kind", "times", "uses", "compare")


def _duration(passage: Passage, tokens: Sequence[Token], subjects: Sequence[Token]) -> Judgement | None:
    """`ran for 12 seconds`: the duration of one record, or the time between its start and its end."""
    verb = next((token for token in tokens if token.has("duration")), None)
    if verb is None and any(token.text.casefold() in ("in", "en") for token in tokens):
        verb = next((token for token in tokens if token.concept("state") == "succeeded"), None)
    number = next((token for token in tokens if token.shape == "number"), None)
    if verb is None or number is None or number.quantity is None or "time" not in number.quantity.dimensions:
        return None
    wanted = names_of(subjects[0]) if subjects else frozenset()
    records = [record for record in passage.cited if not subjects or (record.names | record.labels) & wanted]
    elements = [token for token in tokens if token.is_value and any(token.text in each.labels for each in records)]
    records = [record.narrowed(elements[0].text) for record in records] if len(elements) == 1 else records
    rest = [token for token in tokens if token not in (verb, number, *subjects, *elements)]
    rest = [token for token in rest if token.concept("compare") != "="]
    if any(not (token.is_neutral or token.has("kind")) for token in rest) or len(records) != 1:
        return CITED
    if verb.has("state") and not shows(records[0], "succeeded"):
        return CITED
    times = _times_of(records[0])
    if times is None:
        return CITED
    return CHECKED if any(number.quantity.equals(each) for each in times) else not_found(number.text)


def _times_of(record: Record) -> tuple[Quantity, ...] | None:
    """How long a record took, as it says or from its start to its end; None when it does not tell."""
    told = record.of(("duration", "elapsed"))
    starts, ends = record.of(_STARTS), record.of(_ENDS)
    if len(told) == 1:
        return quantities_in(told[0].value)[:1]
    if len(starts) != 1 or len(ends) != 1 or starts[0].path[:-1] != ends[0].path[:-1]:
        return None
    first, last = quantities_in(starts[0].value), quantities_in(ends[0].value)
    seconds = seconds_between(first[0], last[0]) if first and last else None
    return None if seconds is None else (seconds_of(seconds),)


def _absence(passage: Passage, tokens: Sequence[Token], subjects: Sequence[Token]) -> Judgement | None:
    """`no Service db`, `there is no pod in Pending`, `db does not exist`."""
    places = [index for index, token in enumerate(tokens) if token.has("not") and not token.quoted]
    if not places:
        return None
    source = passage.source
    following = [token for token in tokens[places[-1] + 1 :] if not token.is_neutral or token.has("kind")][:1]
    kinds = [token.concept("kind") for token in (*following, *tokens) if token.has("kind") and not token.quoted]
    kind = kinds[0] if kinds else source.kind
    if not any(token.concept("state") == "exists" for token in tokens):
        is_of_kind = bool(following) and following[0].has("kind")
        has_subject = any(each not in tokens[places[-1] :] for each in subjects)
        if not is_of_kind or has_subject or (kind != source.kind and following[0].has("field")):
            return None
    return _denied(passage, tokens, kind)


def _denied(passage: Passage, tokens: Sequence[Token], kind: str) -> Judgement:
    """Whether the result shows that there is none of `kind` such as the rest of an assertion says."""
    source = passage.source
    rest = [token for token in tokens if not (token.is_neutral or _is_of_denial(token))]
    elsewhere = _namespaces(tokens) - {source.namespace}
    if said_not_found(passage, [token.text for token in rest]):
        return CHECKED
    if elsewhere and source.namespace != "*":
        return not_found(*sorted(elsewhere))
    rest = [token for token in rest if token.text != source.namespace]
    records = () if passage.is_empty_list else passage.records
    held = [_is_denied(passage, record, rest) for record in records]
    is_other = any(token.has("unjudged") or token.shape == "number" for token in rest) or (
        bool(kind) and kind != source.kind
    )
    if True in held and not is_other:
        return not_found(f"no {' '.join(token.text for token in rest)}")
    is_shown = bool(passage.cited) and (bool(records) or passage.is_empty_list)
    is_complete = source.is_complete and source.kind == kind and passage.is_whole and not source.names
    is_sure = is_shown and is_complete and len(passage.cited) == len(passage.records) and None not in held
    # Of an empty list every narrower absence is true, but a word such as `anywhere` may ask for more than was listed.
    is_wider = not records and source.namespace != "*" and any(not _narrows(token) for token in rest)
    return CHECKED if is_sure and not is_other and not is_wider else CITED


def _narrows(token: Token) -> bool:
    return token.is_value or token.has("state") or token.has("field")


def _is_of_denial(token: Token) -> bool:
    """Whether it only says that there is none."""
    return token.has("not") or token.has("kind") or token.concept("state") == "exists"


def _is_denied(passage: Passage, record: Record, rest: Sequence[Token]) -> bool | None:
    """Whether `record` is what an assertion says there is none of."""
    names = [token for token in rest if token.is_value]
    if names and not any(record.says(token.text, exactly=False) for token in names):
        return False
    return Trial(record=record, source=passage.source, tokens=rest).run().holds if rest else True


def _holds(passage: Passage, record: Record, tokens: Sequence[Token]) -> bool | None:
    """Whether `record` is as the rest of an assertion says."""
    if all(token.is_neutral or token.concept("compare") == "=" for token in tokens):
        return True
    return Trial(record=record, source=passage.source, tokens=tokens).run().holds


def _is_counted(token: Token) -> bool:
    """Whether records can be counted by it: `pods`, `log lines`, `errors`."""
    is_entry = token.has("line") or token.concept("state") in ("error", "warning")
    return (token.has("kind") or is_entry) and not token.quoted


def _namespaces(tokens: Sequence[Token]) -> frozenset[str]:
    """The namespaces that an assertion names as such."""
    found = {token.text for before, token in pairwise(tokens) if before.concept("kind") == "namespace"}
    found |= {before.text for before, token in pairwise(tokens) if token.concept("kind") == "namespace"}
    return frozenset(token.text for token in tokens if token.is_value and token.text in found)


def _number(token: Token) -> Fraction | None:
    return token.quantity.number("count") if token.quantity is not None else None


def _only_value(record: Record, keys: frozenset[str], dimension: Dimension) -> Fraction | None:
    """The number of the only field that has one of `keys`."""
    fields = record.of(keys)
    found = quantities_in(fields[0].value) if len(fields) == 1 else ()
    return found[0].number(dimension) if found else None
