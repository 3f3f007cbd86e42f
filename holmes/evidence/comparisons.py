"""Judges sums, extreme values, comparisons of two values, durations and time differences."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Final

from holmes.evidence.fields import Lookup, has_value, numbers_of, shows
from holmes.evidence.quantities import quantities_in, seconds_between, seconds_of
from holmes.evidence.records import CHECKED, CITED, Judgement, Passage, not_found
from holmes.evidence.trial import Trial
from holmes.evidence.words import names_of, number_in, said, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from holmes.evidence.quantities import Dimension, Quantity
    from holmes.evidence.records import Record
    from holmes.evidence.words import Token

_COMPLETED = expression(r"complet|finish|ended|succeed|abgeschlossen|fertig|terminé|complété|termin")
_GOES_ON = expression(r"running|läuft|tourne|corriendo|ejecut", re.IGNORECASE)
_TOOK = expression(r"took|lasted|need|dauerte|gebraucht|pris|dur[óé]|tardó|necesit", re.IGNORECASE)
_STARTS: Final = ("startedat", "started", "starttime")
_ENDS: Final = ("finishedat", "finished", "completiontime")
_MOST_ENTRIES: Final = 12
_BEGINNING: Final = 80
_ASIDE: Final = ("total", "kind", "times", "relation", "compare", "both", "all")


def duration_of(passage: Passage, tokens: Sequence[Token], subjects: Sequence[Token]) -> Judgement | None:
    """Judge `ran for 12 seconds` by the duration in one record, or by the time between its start and its end."""
    verb = next((token for token in tokens if token.has("duration")), None)
    if verb is not None and _GOES_ON.search(verb.text) and any(token.has("not") for token in tokens):
        verb = None  # example: `running for 3 days without a restart`
    if verb is None and any(token.text.casefold() in ("in", "en") for token in tokens):
        verb = next((token for token in tokens if token.concept("state") == "succeeded"), None)
    number = number_in(tokens)
    if verb is None or number is None or number.quantity is None or "time" not in number.quantity.dimensions:
        return None
    wanted = names_of(*subjects[:1])
    records = [record for record in passage.cited if not subjects or (record.names | record.labels) & wanted]
    elements = [token for token in tokens if token.is_value and any(token.text in each.labels for each in records)]
    records = [record.narrowed(elements[0].text) for record in records] if len(elements) == 1 else records
    rest = [token for token in tokens if token not in (verb, number, *subjects, *elements)]
    rest = [token for token in rest if token.concept("compare") != "=" and not token.has("last")]
    if any(not (token.is_neutral or token.has("kind")) for token in rest) or len(records) != 1:
        return CITED
    if _is_another_time(verb, tokens, records[0]):
        return CITED
    times = _times_of(records[0])
    if times is None:  # a log entry may contain the duration in words
        return None if _GOES_ON.search(verb.text) or records[0].form == "entry" else CITED
    return CHECKED if any(number.quantity.equals(each) for each in times) else not_found(number.text)


def _is_another_time(verb: Token, tokens: Sequence[Token], record: Record) -> bool:
    """Return whether the claim and the record refer to different times.

    For example, the claim refers to the end of a process that is still running, or the record describes the previous
    run.
    """
    ended = any(token.concept("state") in ("succeeded", "finished") for token in tokens) or _COMPLETED.search(verb.text)
    is_before = any("laststate" in each.path for each in record.fields)
    says_last = any(token.has("last") for token in tokens)
    return bool(
        (ended and not shows(record, "succeeded"))
        or (is_before and _GOES_ON.search(verb.text) and not says_last)
        or (_TOOK.search(verb.text) and has_value(record, "Running"))
    )


def _times_of(record: Record) -> tuple[Quantity, ...] | None:
    """Return the duration of a record, stated or computed from its start and end, or None if unknown."""
    told = record.of(("duration", "elapsed"))
    starts, ends = record.of(_STARTS), record.of(_ENDS)
    if len(told) == 1:
        return quantities_in(told[0].value)[:1]
    starts = tuple(each for each in starts if any(each.path[:-1] == end.path[:-1] for end in ends))
    if len(starts) != 1 or len(ends) != 1:
        return None
    first, last = quantities_in(starts[0].value), quantities_in(ends[0].value)
    seconds = seconds_between(first[0], last[0]) if first and last else None
    return None if seconds is None else (seconds_of(seconds),)


def judge_time_between(passage: Passage, tokens: Sequence[Token], _: Sequence[Token]) -> Judgement | None:
    """Judge `B came 31 seconds after A`.

    The times of two cited log entries must differ by this duration, and each half of the claim must match one entry.
    """
    number = next((token for token in tokens if token.quantity and "time" in token.quantity.dimensions), None)
    word = said(tokens, "later")
    entries = [record for record in passage.cited if record.form == "entry"][:_MOST_ENTRIES]
    if number is None or number.quantity is None or word is None or len(entries) < 2:
        return None
    place = tokens.index(word)
    if abs(tokens.index(number) - place) > 2:
        return None
    is_rough = any(
        token.has("approximate") for token in tokens[max(0, tokens.index(number) - 2) : tokens.index(number)]
    )
    apart = [pair for pair in combinations(entries, 2) if _is_apart(pair, number.quantity, is_rough=is_rough)]
    if not apart:
        return not_found(number.text)
    halves = [
        [t for t in half if t is not number and not t.has("approximate")]
        for half in (tokens[:place], tokens[place + 1 :])
    ]
    halves = halves if word.text.casefold().split()[-1] not in words_of("before") else halves[::-1]
    for pair in apart:
        later, earlier = (_says(passage, pair[1], halves[0]), _says(passage, pair[0], halves[1]))
        if later and earlier and (not _is_empty(halves[0]) or len(entries) == 2):
            return CHECKED
        if len(entries) == 2 and _is_empty(halves[1]) and _says(passage, pair[1], halves[0]):
            return CHECKED
    return CITED


def _is_apart(pair: tuple[Record, Record], time: Quantity, *, is_rough: bool) -> bool:
    found = [quantities_in(record.lines[0][1][:_BEGINNING]) if record.lines else () for record in pair]
    moments = [next((each for each in quantities if each.is_time), None) for quantities in found]
    if moments[0] is None or moments[1] is None:
        return False
    seconds, wanted = seconds_between(moments[0], moments[1]), time.number("time")
    if seconds is None or wanted is None:
        return False
    return abs(seconds - wanted) <= (wanted / 10 if is_rough else 0)


def _is_empty(tokens: Sequence[Token]) -> bool:
    return all(token.is_neutral or token.has("times") for token in tokens)


def _says(passage: Passage, record: Record, tokens: Sequence[Token]) -> bool:
    return _is_empty(tokens) or bool(Trial(record=record, source=passage.source, tokens=tokens).run().holds)


def extreme(passage: Passage, tokens: Sequence[Token], subjects: Sequence[Token]) -> Judgement | None:
    """Judge `web is the oldest pod` or `has the most restarts`.

    One row of a complete table must have the extreme value of a column.
    """
    word = said(tokens, "superlative")
    if word is None:
        return None
    key, _, end = word.concept("superlative").partition(" ")
    rest = [token for token in tokens if token is not word and token not in subjects]
    records = list(passage.records)
    wanted = names_of(*subjects)
    if not subjects or not passage.is_uncut or len(passage.cited) != len(records):
        return CITED
    fields = [token for token in rest if token.has("field") and not token.has("kind")]
    keys = frozenset(name for token in fields for name in token.concept("field").split()) if key == "*" else {key}
    values = [(_only_value(record, frozenset(keys)), record) for record in records]
    if any(value is None for value, _ in values) or len(values) < 2:
        return CITED
    best = (max if end == "max" else min)(value for value, _ in values if value is not None)
    holders = [record for value, record in values if value == best]
    if len(holders) != 1 or not holders[0].names & wanted:
        return not_found(word.text)
    if any("/" in subject.text for subject in subjects):
        return CITED  # the namespace is ambiguous
    rest = [token for token in rest if not (token.has("kind") or (key == "*" and token in fields))]
    return CHECKED if holds(passage, holders[0], rest) else CITED


def compared(passage: Passage, tokens: Sequence[Token], subjects: Sequence[Token]) -> Judgement | None:
    """Judge `web is older than db` or `241 days younger than db` by comparing two rows in one column."""
    word = said(tokens, "comparative")
    than = next((index for index, token in enumerate(tokens) if token.text.casefold() in words_of("than")), None)
    if word is None or than is None or len(subjects) != 1:
        return None
    key, _, sign = word.concept("comparative").partition(" ")
    known = {name for record in passage.records for name in record.names}
    others = [token for token in tokens[than + 1 :] if token.is_value and names_of(token) & known]
    number = number_in(tokens)
    fields = [token for token in tokens if token.has("field") and not token.has("kind")]
    used = (word, number, *others, *subjects, *fields, tokens[than])
    if len(others) != 1 or any(not (t in used or t.is_neutral or t.has("kind")) for t in tokens):
        return CITED
    keys = frozenset(name for token in fields for name in token.concept("field").split()) if key == "*" else {key}
    values = [
        next((_only_value(record, frozenset(keys)) for record in passage.cited if record.names & names_of(token)), None)
        for token in (subjects[0], others[0])
    ]
    if values[0] is None or values[1] is None:
        return CITED
    difference = values[0] - values[1]
    is_so = difference > 0 if sign == ">" else difference < 0
    told = (
        [value for _, value in number.quantity.meanings]
        if number is not None and number.quantity
        else [abs(difference)]
    )
    return CHECKED if is_so and abs(difference) in told else not_found(word.text)


def total(passage: Passage, tokens: Sequence[Token], subjects: Sequence[Token]) -> Judgement | None:
    """Judge `12 restarts in total` by the sum over all cited records, or over those of the subjects."""
    plain = [token for token in tokens if token not in subjects and not token.has("state")]
    counted = [token for token, after in pairwise(plain) if token.is_count and _is_kind(after)]
    number = next((token for token in reversed(tokens) if token.shape == "number" and token not in counted), None)
    if said(tokens, "total") is None or number is None:
        return None
    wanted = names_of(*subjects)
    records = [record for record in passage.cited if not subjects or record.names & wanted]
    named = [token for token in tokens if token.has("field") and not token.has("kind")]
    if len(records) == 1 and len(counted) <= 1:
        return _total_of_elements(records[0], tokens, number, counted)
    used = [*named, *counted, number, *subjects]
    rest = [t for t in tokens if t not in used and not any(t.has(each) for each in _ASIDE)]
    content = [token for token in rest if not token.is_neutral]
    among = [each for each in passage.records if not content or holds(passage, each, content) is not False]
    is_whole = bool(subjects) or (len(records) == len(among) and passage.is_uncut)
    is_plain = all(_holds_all(passage, records, token) for token in content)
    if not is_plain or not is_whole or len(records) < 2 or number.quantity is None:
        return CITED
    if any(number_of(each) != len(records) for each in counted):
        return not_found(*(each.text for each in counted))
    sums = _sums(records, named, number.quantity)
    return (
        CITED if not sums else CHECKED if number.quantity.number(sums[0][0]) == sums[0][1] else not_found(number.text)
    )


def _holds_all(passage: Passage, records: Sequence[Record], token: Token) -> bool:
    return all(holds(passage, record, [token]) for record in records)


def _sums(records: Sequence[Record], named: Sequence[Token], quantity: Quantity) -> list[tuple[Dimension, Fraction]]:
    """Sum the named field in each dimension. If no field is named, each record must contain only one number."""
    found: list[tuple[Dimension, Fraction]] = []
    for dimension in sorted(quantity.dimensions):
        rows = [_values(record, named, dimension) for record in records]
        if all(len(set(values)) == 1 for values in rows):
            found.append((dimension, sum((values[0] for values in rows), rows[0][0] * 0)))
    return found


def _values(record: Record, named: Sequence[Token], dimension: Dimension) -> list[Fraction]:
    fields = Lookup(record=record).of(named) if named else record.fields
    numbers = [quantity.number(dimension) for quantity in numbers_of(fields)]
    return [number for number in numbers if number is not None]


def _total_of_elements(record: Record, tokens: Sequence[Token], number: Token, counted: Sequence[Token]) -> Judgement:
    """Judge `the two containers have 6 restarts in total`."""
    keys = frozenset(key for token in tokens if token.has("field") for key in token.concept("field").split())
    rest = [token for token in tokens if not (token.has("field") or token in (number, *counted))]
    fields = [each for each in record.of(keys) if each.labels]
    values = [quantity.number("count") for quantity in numbers_of(fields)]
    is_plain = all(token.is_neutral or any(token.has(each) for each in _ASIDE) for token in rest)
    if (
        not is_plain
        or len(values) < 2
        or len(values) != len(fields)
        or any(number_of(t) != len(values) for t in counted)
    ):
        return CITED
    return CHECKED if sum(value or 0 for value in values) == number_of(number) else not_found(number.text)


def _only_value(record: Record, keys: frozenset[str]) -> Fraction | None:
    """Return the number in the field with one of `keys`, or None if no field or several fields have such a key."""
    fields = [each for each in record.fields if each.path[0] in keys and len(each.path) == 1]
    order: list[Dimension] = ["time", "count", "memory", "cpu", "percent"]
    order.sort(key=lambda dimension: dimension not in keys)
    found = [quantity.number(dimension) for quantity in numbers_of(fields) for dimension in order]
    numbers = [number for number in found if number is not None]
    return numbers[0] if len(fields) == 1 and numbers else None


def holds(passage: Passage, record: Record, tokens: Sequence[Token]) -> bool | None:
    """Return whether `record` matches the rest of an assertion."""
    if all(token.is_neutral or token.concept("compare") == "=" for token in tokens):
        return True
    return Trial(record=record, source=passage.source, tokens=tokens).run().holds


def number_of(token: Token) -> Fraction | None:
    """Return the value of a token that is a plain number, or None for other tokens."""
    return token.quantity.number("count") if token.quantity is not None else None


def _is_kind(token: Token) -> bool:
    return token.has("kind") and not token.quoted
