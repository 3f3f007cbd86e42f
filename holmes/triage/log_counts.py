"""Finds the number that a verb of the question is about: of "412 files, 2 skipped", the 2 if files are skipped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.previews.severity import ERROR, severity_of
from holmes.triage.log_lines import LineFilter
from holmes.triage.vocabulary import vocabulary, word_list, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.triage.asked import Asked
    from holmes.triage.log_lines import LogLine
    from holmes.triage.log_values import Series

_LEAST_STEM: Final = 4
_MOST_ENDING: Final = 3
_METHOD: Final = expression(r"\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\b")
_REQUEST: Final = expression(
    r"\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\b|\b(?:method|http_method|path|uri|status)\"?[=:]|\" [1-5]\d\d "
)
"""The parts that only a line about a request has."""
_REQUESTS: Final = word_list("requests in logs")


def number_of_verb(asked: Asked, every: Sequence[Series], noun: Series, shown: Sequence[LogLine]) -> tuple[float, str]:
    """Return the sum of the numbers beside the verb of the question, or of those beside its noun, and their key."""
    for stem in _verbs(asked, noun):
        beside = next((each for each in every if each.key.lower().startswith(stem)), None)
        if beside is not None:
            return sum(beside.values), beside.key
        part = expression(rf"(\d+) (?:out )?(?:of|/|von|de|sur) \d+ {re.escape(noun.key.split()[0])}\b")
        found = [part.search(line.text) for line in shown if stem in line.text.lower()]
        parts = [match for match in found if match is not None]
        if parts and len(parts) == len(shown):
            return sum(float(match[1]) for match in parts), parts[-1][0]
    return sum(noun.values), noun.key


def _verbs(asked: Asked, noun: Series) -> Iterator[str]:
    """Yield the beginnings of the words that tell what happened to the things that are counted."""
    question, key = asked.question, noun.key.lower()
    states = {question.words[each.first] for each in question.found if each.sense == "state"}
    forms = {*question.words} - {*words_of(question.text)}  # `skipped` of "skip", as the lines write it
    for word in question.words:
        stem = word[: max(_LEAST_STEM, len(word) - _MOST_ENDING)]
        if word in states | forms | set(asked.subject.unknown) and not key.startswith(stem):
            yield stem


def verb_left(asked: Asked, every: Sequence[Series], shown: Sequence[LogLine]) -> str:
    """Return the verb at the end of a question that no line has, if the lines have numbers of several things."""
    words = asked.question.words
    names = {each.name for each in asked.subject.named}
    ends = bool(words) and words[-1] not in vocabulary().stop and words[-2:-1] != () and words[-2] in names
    if not ends or len({each.key for each in every}) == 1:
        return ""
    stem = words[-1][: max(_LEAST_STEM, len(words[-1]) - _MOST_ENDING)]
    return "" if any(stem in line.text.lower() for line in shown) else words[-1]


def methods_of_lines(asked: Asked) -> Iterator[LineFilter]:
    """Yield the filter for the HTTP method that a question writes as such: "the slowest GET"."""
    match = _METHOD.search(asked.question.written)
    if match is not None and match.start() > 0 and match[0] not in asked.question.quoted:
        found = expression(rf"\b{match[0]}\b")
        yield LineFilter(told=f"with text `{match[0]}`", holds=lambda line: found.search(line.text) is not None)


def requests_of_lines(asked: Asked, found: Sequence[LogLine]) -> Iterator[LineFilter]:
    """Yield the filter for lines that can be requests, if a question counts requests and the log has lines of them."""
    counts = asked.question.asks("count") and not _REQUESTS.isdisjoint(asked.question.words)
    if counts and any(_REQUEST.search(line.text) for line in found):
        yield LineFilter(told="that can be requests", holds=_can_be_request)


def _can_be_request(line: LogLine) -> bool:
    return severity_of(line.text, line.level) < ERROR or _REQUEST.search(line.text) is not None
