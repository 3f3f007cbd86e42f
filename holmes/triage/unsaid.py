"""Finds the words of a question that an answer does not take into account."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.triage.facts import fact, place_of
from holmes.triage.log_values import STATISTICS
from holmes.triage.participles import PARTICIPLES
from holmes.triage.vocabulary import beginnings, folded, vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.triage.asked import Asked
    from holmes.triage.log_lines import LogLine
    from holmes.values.first_look import FirstLook

_LEAST_STEM: Final = 4
_LONGEST_ENDING: Final = 3
_COMPOUND_TIMES: Final = ("zeit", "zeiten", "dauer")
OF_LINES: Final = (
    "counted lines", "plain work", "share words", "line words", "writing", "size measures", "in total", "how often",
)  # fmt: skip
"""Words for lines and their numbers, which are not texts to search for."""
_NEVER_FILTERS: Final = ("said of lines", "said of anything")
_USED: Final = frozenset({*STATISTICS, "logs", "list", "count", "when", "now",
    "polite", "follow_up", "negation", "excluding"})  # fmt: skip
"""Concepts that an answer from log lines takes into account."""


def unsaid(said: str, words: Iterable[str]) -> Iterator[str]:
    """Yield the words that no word of the text of an answer begins like."""
    text = folded(said)
    for word in words:
        stem = word[: max(_LEAST_STEM, len(word) - _LONGEST_ENDING)]
        if re.search(rf"(?<![a-z0-9]){re.escape(stem)}", text) is None:
            yield word


def of_these_lines(
    asked: Asked, look: FirstLook, lines: Sequence[LogLine], *, measured: bool = False, timed: bool = False
) -> FirstLook:
    """Return the answer from log lines, if it says or stands for each word of the question.

    The lines that it shows can have a word by chance, so only what describes them counts, or a word that all have. If
    it is `measured`, it is a statistic, and if it is `timed`, it stands for the words for a duration.
    """
    header = look.table.header if look.table is not None else ""
    words = [*asked.ledger.left("word", "value"), *(_things(asked) if measured else ())]
    timed = timed or bool(asked.question.comparisons)  # "faster than 100 ms" is a bound
    words = [word for word in words if not _is_of_lines(word, timed=timed)]
    place = place_of(asked) if measured else ""  # `hold` is not the workload `holds`
    said = f"{look.summary.replace(place, '') if place else look.summary} {header}"
    left = dict.fromkeys(word for word in words if not _is_said(word, said, lines))
    for sense in ("word", "value"):
        asked.ledger.take(sense)
    if not left:
        return look
    parts = ", ".join(f"`{part}`" for part in left)
    text = f"Not answered: {parts} could not be applied to log lines, so the answer would be about other lines."
    return fact(asked, text, None, "inconclusive")


def _things(asked: Asked) -> Iterator[str]:
    """Yield the words that can say which lines a statistic is of, also those with a meaning: "slowest renewal"."""
    question = asked.question
    used = {*(each.name for each in asked.subject.named), *asked.subject.namespaces, *vocabulary().stop}
    used |= {*(question.period.text.split() if question.period is not None else ())}
    for each in question.found:
        if (each.sense == "concept" and each.name in _USED) or each.sense == "kind":
            used |= {*question.words[each.first : each.last + 1]}
    used |= {part for each in asked.subject.objects for part in each.name.split("-")}
    own = [each.first for each in question.found if each.sense == "concept" and each.name in STATISTICS]
    words = [question.words[index] for index in question.clause(own[0])] if own else []
    yield from (word for word in words if word.isalpha() and word not in used)


def _is_of_lines(word: str, *, timed: bool) -> bool:
    lists = (*_NEVER_FILTERS, *OF_LINES, *(("time measures",) if timed else ()))
    return any(beginnings(each).match(word) for each in lists) or (timed and word.endswith(_COMPOUND_TIMES))


def _is_said(word: str, said: str, lines: Sequence[LogLine]) -> bool:
    """Return whether the answer or all of its lines have a word, or its participle in the language of logs."""
    forms = (word, PARTICIPLES.get(word, word))
    texts = {line.text for line in lines}
    return any(
        not [*unsaid(said, (form,))] or (bool(texts) and not any([*unsaid(text, (form,))] for text in texts))
        for form in forms
    )
