"""Times in a question that are not the period asked about: of a deadline, of a report, or the present day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.vocabulary import symptoms_in, word_list, words_of

if TYPE_CHECKING:
    from holmes.triage.periods import Period
    from holmes.triage.vocabulary import Sighting

_TODAY: Final = word_list("today")
_PRESENT: Final = frozenset({"list", "count", "polite", "now", "placement", "running", "ready", "images", "replicas"})


def is_occasion(period: Period, words: tuple[str, ...], found: tuple[Sighting, ...]) -> bool:
    """Return whether a time only tells when the answer is needed, what it is for, or that the present is meant."""
    return _is_deadline(period, words, found) or _is_of_occasion(period, words) or _is_now(period, words, found)


def _is_deadline(period: Period, words: tuple[str, ...], found: tuple[Sighting, ...]) -> bool:
    """Return whether a time tells when the person needs the answer: "before the 8 o'clock call, is all well"."""
    judged = any(each.name == "health" for each in found) and not any(each.name == "trouble" for each in found)
    return period.reach in ("before", "until") and judged and word_list("past verbs").isdisjoint(words)


def _is_of_occasion(period: Period, words: tuple[str, ...]) -> bool:
    """Return whether a day is that of a report or a meeting: "for Monday's report", "por el informe del lunes".

    A time from one hour to another is none: "the log of report between 4:20 and 4:29".
    """
    said = words_of(period.text)
    at = next((at for at in range(len(words)) if said and words[at : at + len(said)] == said), -1)
    before = [word for word in words[max(0, at - 3) : at] if word not in word_list("of") | word_list("determiners")]
    beside = {*before[-1:], *words[at + len(said) : at + len(said) + 1]}
    spans = None not in (period.first, period.last) and period.first != period.last
    return at >= 0 and period.reach == "during" and not spans and not word_list("occasions").isdisjoint(beside)


def _is_now(period: Period, words: tuple[str, ...], found: tuple[Sighting, ...]) -> bool:
    """Return whether "today" only means the present state: "what pods sit on node-1 today"."""
    told = {each.name for each in found if each.sense in ("concept", "state")}
    dated = not (word_list("past verbs") | word_list("created")).isdisjoint(words) or symptoms_in(words)
    ended = any(word.endswith(("ed", "ieron")) for word in words)
    jobs = any(each.name in ("Job", "CronJob") for each in found)
    return period.text in _TODAY and bool(told) and told <= _PRESENT and not (dated or ended or jobs)
