"""Finds the number that a verb of the question is about: of "412 files, 2 skipped", the 2 if files are skipped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.previews.severity import ERROR, severity_of
from holmes.triage.log_amounts import COUNTS, METHOD, REQUESTS, is_count_of
from holmes.triage.log_lines import REQUEST, LineFilter
from holmes.triage.log_values import names_key, series_of
from holmes.triage.vocabulary import vocabulary, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.triage.asked import Asked
    from holmes.triage.log_lines import LogLine
    from holmes.triage.log_values import Series

_LEAST_STEM: Final = 4
_MOST_ENDING: Final = 3
_TIMED: Final = expression(r"(?i)\b\d+(?:\.\d+)? ?ms\b|\bms\"?[=:]|\b(?:duration|latency|elapsed|took)\b")
"""The time that something took, which a line without its method can tell of a request, too."""
_INNER: Final = expression(r"(?i)\b(?:query|queries|statement|sql|select|gc|pause|backup|checkpoint|startup|started)\b")
"""Things that take time within a program or a server, for example a query."""


def number_of_verb(asked: Asked, shown: Sequence[LogLine]) -> tuple[float, str] | None:
    """Return the sum of the numbers beside the verb of the question, or of those beside its noun, and their key."""
    every = _counts_of(shown)
    noun = _noun(asked, every)
    if noun is None:
        return None
    for word, stem in _verbs(asked, noun):
        beside = _beside(asked, every, word, stem)
        if beside is not None:
            return sum(beside.values), beside.key
        part = expression(rf"(\d+) (?:out )?(?:of|/|von|de|sur) \d+ {re.escape(noun.key.split()[0])}\b")
        found = [part.search(line.text) for line in shown if stem in line.text.lower()]
        parts = [match for match in found if match is not None]
        if parts and len(parts) == len(shown):
            return sum(float(match[1]) for match in parts), parts[-1][0]
    return sum(noun.values), noun.key


def _beside(asked: Asked, every: Sequence[Series], word: str, stem: str) -> Series | None:
    alike = (each for each in every if each.key.lower().startswith(stem))
    return next((each for each in alike if is_count_of(each.key, word, asked.question)), None)


def _counts_of(shown: Sequence[LogLine]) -> list[Series]:
    """Return the numbers of things that each line reports."""
    every = (each for each in series_of(shown) if len(each.values) == len(shown))
    return [each for each in every if not (each.is_time or each.is_numbering)]


def _noun(asked: Asked, every: Sequence[Series]) -> Series | None:
    """Return the numbers with the noun of the question, or those that are called a count."""
    counts = (each for each in every if each.key in COUNTS)
    return next(counts, None) or next((each for each in every if names_key(asked.question, each)), None)


def unclear_key(asked: Asked, shown: Sequence[LogLine]) -> str:
    """Return a key that only begins like the verb of a question, such as `import_id`, if no other one counts."""
    every = _counts_of(shown)
    noun = _noun(asked, every)
    for word, stem in _verbs(asked, noun) if noun is not None else ():
        alike = [each.key for each in every if each.key.lower().startswith(stem)]
        if alike and _beside(asked, every, word, stem) is None:
            return alike[0]
    return ""


def _verbs(asked: Asked, noun: Series) -> Iterator[tuple[str, str]]:
    """Yield the words that tell what happened to the things that are counted, with their beginnings."""
    question, key = asked.question, noun.key.lower()
    states = {question.words[each.first] for each in question.found if each.sense == "state"}
    forms = {*question.words} - {*words_of(question.text)}  # `skipped` of "skip", as the lines write it
    for word in question.words:
        stem = word[: max(_LEAST_STEM, len(word) - _MOST_ENDING)]
        if word in states | forms | set(asked.subject.unknown) and not key.startswith(stem):
            yield word, stem


def verb_left(asked: Asked, shown: Sequence[LogLine]) -> str:
    """Return the verb at the end of a question that no line has, if the lines have numbers of several things."""
    words = asked.question.words
    names = {each.name for each in asked.subject.named}
    ends = bool(words) and words[-1] not in vocabulary().stop and words[-2:-1] != () and words[-2] in names
    if not ends or len({each.key for each in _counts_of(shown)}) == 1:
        return ""
    stem = words[-1][: max(_LEAST_STEM, len(words[-1]) - _MOST_ENDING)]
    return "" if any(stem in line.text.lower() for line in shown) else words[-1]


def methods_of_lines(asked: Asked) -> Iterator[LineFilter]:
    """Yield the filter for the HTTP method that a question writes as such: "the slowest GET"."""
    match = METHOD.search(asked.question.written)
    if match is not None and match.start() > 0 and match[0] not in asked.question.quoted:
        found = expression(rf"\b{match[0]}\b")
        yield LineFilter(told=f"with text `{match[0]}`", holds=lambda line: found.search(line.text) is not None)


def requests_of_lines(asked: Asked, found: Sequence[LogLine]) -> Iterator[LineFilter]:
    """Yield the filter for lines that can be requests, if a question counts requests and the log has lines of them."""
    counts = asked.question.asks("count") and not REQUESTS.isdisjoint(asked.question.words)
    if counts and any(REQUEST.search(line.text) for line in found):
        yield LineFilter(told="that can be requests", holds=_can_be_request)


def _can_be_request(line: LogLine) -> bool:
    timed = _TIMED.search(line.text) is not None and _INNER.search(line.text) is None
    timed = timed and severity_of(line.text, line.level) < ERROR
    return timed or REQUEST.search(line.text) is not None
