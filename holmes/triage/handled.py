"""Reads how many things a program handled as a number of its lines: "how many mails did it send", `sent=12`.

Keys of log lines are past participles in English. The question has another form of the verb, or another language.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.triage.log_answers import asks_logs
from holmes.triage.log_lines import lines_of
from holmes.triage.log_values import series_of
from holmes.triage.participles import participles
from holmes.triage.vocabulary import beginnings

if TYPE_CHECKING:
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject


def with_participles(asked: Asked) -> Asked:
    """Add the participles of the question's verbs that are keys of the lines, if it counts what a program handled."""
    question = asked.question
    if not _counts_handled(question, asked.subject):
        return asked
    keys = {each.key.lower() for each in series_of(lines_of(asked))}
    said = {form for word in question.words for form in participles(word)}
    verbs = {word for word in question.words if not keys.isdisjoint(participles(word))}
    unknown = tuple(word for word in asked.subject.unknown if word not in verbs)
    found = tuple(each for each in question.found if question.words[each.first] not in keys)  # `failed=0` reports none
    words = (*question.words, *sorted(keys & said - {*question.words}))
    return replace(
        asked,
        question=replace(question, words=words, found=found),
        subject=replace(asked.subject, unknown=unknown),
    )


def _counts_handled(question: Question, subject: Subject) -> bool:
    """Return whether a question counts things of named programs, and not lines."""
    lines = beginnings("line words").search(question.spoken) or question.quoted or question.asks("logs")
    return question.asks("count") and bool(subject.named) and not lines and asks_logs(question, subject)
