"""Answers when something happened that only logs tell: a quoted text, or a word of theirs that names nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import written
from holmes.triage.facts import fact, place_of, table_of
from holmes.triage.grammar import unknown_parts
from holmes.triage.log_lines import lines_of
from holmes.triage.log_order import successes, wants_first, wants_success
from holmes.triage.markdown import code, counted
from holmes.triage.vocabulary import beginnings, folded
from holmes.values.errors import masked
from holmes.values.expressions import expression
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.triage.asked import Asked
    from holmes.triage.log_lines import LogLine
    from holmes.values.first_look import FirstLook

_LEAST_CHARACTERS: Final = 4
_NUMBER: Final = expression(r"(?<![\w.:/-])(?P<number>[45]\d\d|\d{4,})(?:s|er|ern)?(?![\w.:/-])")
"""A status, or the number of a thing. No time of an object is one of it."""
_SHOWN_CHARACTERS: Final = 200


def told_by_logs(asked: Asked, topics: Sequence[str]) -> FirstLook | None:
    """Return the times of the lines with what a question quotes, or with words in it that only logs have.

    `topics` are the names of the words for what objects themselves have a time of. Without such lines, only a quoted
    text is an answer: no line has it.
    """
    if asked.question.complains:
        return None
    names = {each.name for each in asked.subject.named}
    quoted = [text for text in map(folded, asked.question.quoted) if text not in names]
    numbers = [] if quoted else list(_numbers(asked))
    wanted = [*quoted, *numbers] or list(_unknown(asked, topics))
    lines = lines_of(asked) if wanted else ()
    said = [text for text in wanted if any(text in folded(line.text) for line in lines)]
    lacking = [text for text in (*quoted, *numbers) if text not in said]
    if lacking:
        told = " and ".join(map(code, lacking))
        return fact(asked, f"Not answered: no log line {place_of(asked)} contains {told}.", None, "inconclusive")
    held = [line for line in lines if said and all(text in folded(line.text) for text in said)]
    if not held or not held[0].at:
        return None
    if wants_success(asked.question):
        return _of_success(asked, successes(asked.question, held), said)
    span = f"{written(held[0].at)} to {written(held[-1].at)}" if len(held) > 1 else written(held[0].at)
    rows = [(line.pod, written(line.at), shortened(masked(line.text), _SHOWN_CHARACTERS)) for line in held]
    summary = f"{counted(len(held), 'log line')} with text {' and '.join(map(code, said))} {place_of(asked)}, {span}."
    return fact(asked, summary, table_of(("pod", "time", "line"), rows))


def _of_success(asked: Asked, held: Sequence[LogLine], said: Sequence[str]) -> FirstLook:
    """Return the first or the last line that tells of a success, or that none does."""
    words = " and ".join(map(code, said))
    if not held:
        told = f"Not answered: no log line {place_of(asked)} with {words} tells of a success."
        return fact(asked, told, None, "inconclusive")
    order, one = ("first", held[0]) if wants_first(asked.question) else ("last", held[-1])
    line = shortened(masked(one.text), _SHOWN_CHARACTERS)
    lines = f"{counted(len(held), 'log line')} with text {words} {place_of(asked)} that tell of a success"
    return fact(asked, f"The {order} of {lines}, {one.pod} at {written(one.at)}: {line}")


def _numbers(asked: Asked) -> Iterator[str]:
    """Yield the numbers of things in the question, without times, versions and bounds."""
    period = asked.question.period.text if asked.question.period is not None else ""
    names = {each.name for each in asked.subject.named}
    for match in _NUMBER.finditer(asked.question.spoken):
        year = match["number"][:2] == "20" and len(match["number"]) == len("2026")
        if match["number"] not in period and match[0] not in names and not year:
            yield match["number"]


def _unknown(asked: Asked, topics: Sequence[str]) -> Iterator[str]:
    """Yield unknown words besides topics, for example `maxmemory`. A question of trouble asks for more than a time."""
    if asked.question.asks("trouble", "why"):
        return
    for word in unknown_parts(asked.question, asked.subject):
        if len(word) >= _LEAST_CHARACTERS and not any(beginnings(each).search(word) for each in topics):
            yield word
