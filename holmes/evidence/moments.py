"""Assertions about time: how long something took, and how long after one log entry the next one came. Pure."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING, Final

from holmes.evidence.judgements import CHECKED, CITED, Judgement, Passage, names_of, not_found
from holmes.evidence.lexicon import words_of
from holmes.evidence.predicates import has_value, shows
from holmes.evidence.quantities import quantities_in, seconds_between, seconds_of
from holmes.evidence.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.evidence.quantities import Quantity
    from holmes.evidence.records import Record
    from holmes.evidence.words import Token

_COMPLETED = re.compile(r"complet|finish|ended|succeed|abgeschlossen|fertig|terminé|complété|termin")
_GOES_ON = re.compile(r"running|läuft|tourne|corriendo|ejecut", re.IGNORECASE)
_TOOK = re.compile(r"took|lasted|need|dauerte|gebraucht|pris|dur[óé]|tardó|necesit", re.IGNORECASE)
_STARTS: Final = ("startedat", "started", "starttime")
_ENDS: Final = ("finishedat", "finished", "completiontime")
_MOST_ENTRIES: Final = 12
_BEGINNING: Final = 80


def duration_of(passage: Passage, tokens: Sequence[Token], subjects: Sequence[Token]) -> Judgement | None:
    """`ran for 12 seconds`: the duration of one record, or the time between its start and its end."""
    verb = next((token for token in tokens if token.has("duration")), None)
    if verb is not None and _GOES_ON.search(verb.text) and any(token.has("not") for token in tokens):
        verb = None  # `running for 3 days without a restart`, of one record
    if verb is None and any(token.text.casefold() in ("in", "en") for token in tokens):
        verb = next((token for token in tokens if token.concept("state") == "succeeded"), None)
    number = next((token for token in tokens if token.shape == "number"), None)
    if verb is None or number is None or number.quantity is None or "time" not in number.quantity.dimensions:
        return None
    wanted = frozenset(name for subject in subjects[:1] for name in names_of(subject))
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
    if times is None:  # a log entry may say so in its own words
        return None if _GOES_ON.search(verb.text) or records[0].form == "entry" else CITED
    return CHECKED if any(number.quantity.equals(each) for each in times) else not_found(number.text)


def _is_another_time(verb: Token, tokens: Sequence[Token], record: Record) -> bool:
    """Whether a record's times are not those of which a claim speaks: of what has not ended, or of the run before."""
    ended = any(token.concept("state") in ("succeeded", "finished") for token in tokens) or _COMPLETED.search(verb.text)
    is_before = any("laststate" in each.path for each in record.fields)
    says_last = any(token.has("last") for token in tokens)
    return bool(
        (ended and not shows(record, "succeeded"))
        or (is_before and _GOES_ON.search(verb.text) and not says_last)
        or (_TOOK.search(verb.text) and has_value(record, "Running"))
    )


def _times_of(record: Record) -> tuple[Quantity, ...] | None:
    """How long a record took, as it says or from its start to its end; None when it does not tell."""
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
    """`B came 31 seconds after A`: two cited log entries that are so far apart, one with each half of the words."""
    number = next((token for token in tokens if token.quantity and "time" in token.quantity.dimensions), None)
    word = next((token for token in tokens if token.has("later") and not token.quoted), None)
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
