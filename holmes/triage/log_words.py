"""Finds the workload that a question without names describes: its log has trouble, and words of the question.

If several workloads fit equally well, none is named, because any error of any workload would look like the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.log_groups import stories_of
from holmes.triage.connections import connections, identity
from holmes.triage.log_evidence import cause_in_logs
from holmes.triage.past import past_period
from holmes.triage.vocabulary import language_of, vocabulary
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.log_evidence import LogCause
    from holmes.values.findings import ObjectRef

_WORD: Final = expression(r"[a-z]{3,40}")
_STATUS: Final = expression(r"(?<!\d)[45]\d\d(?!\d)")
_LEAST_CHARACTERS: Final = 4
_LEAST_SCORE: Final = 2
_MOST_PATTERNS: Final = 500
_BY_NAME: Final = 3
_BY_TROUBLE: Final = 2
_BY_LOG: Final = 1
_BY_STATUS: Final = 2
_BY_TIME: Final = 2
_BY_SUBJECT: Final = 3
_NEAR_SECONDS: Final = 900.0


def cause_by_words(asked: Asked, workloads: Iterable[ClusterObject]) -> LogCause | None:
    """Return the trouble in the logs that fits the words, statuses, time and subject of the question best."""
    if not asked.question.wants_cause:
        return None
    best: dict[object, tuple[int, int, LogCause]] = {}
    for workload in workloads:
        cause = cause_in_logs(asked.state, asked.question, (workload,), past_period(asked))
        if cause is not None and cause.troubles[0].group.sudden:
            scored = (_score(asked, cause), len(cause.path), cause)
            best[cause.culprit] = max(best.get(cause.culprit, scored), scored, key=lambda each: each[:2])
    ranked = sorted(best.values(), key=lambda each: each[:2], reverse=True)
    least = 1 if len(ranked) == 1 else _LEAST_SCORE
    if not ranked or ranked[0][0] < least:
        return None
    equal = [cause for score, _, cause in ranked if score == ranked[0][0]]
    return equal[0] if all(_same_fault(equal[0], each) for each in equal[1:]) else None


def _same_fault(one: LogCause, other: LogCause) -> bool:
    """Return whether the way to one culprit leads over the other, so that they do not compete."""
    return other.culprit in one.path or one.culprit in other.path


def _score(asked: Asked, cause: LogCause) -> int:
    """Return how well the words, statuses, time and subject of the question fit a cause and the workloads up to it."""
    words = set(words_asked(asked))
    path = [each for ref in cause.path if (each := asked.state.find(ref)) is not None]
    names = {_stem(part) for each in path for part in (each.name, *each.name.split("-"))}
    told = {_stem(word) for each in cause.troubles for word in _WORD.findall(each.group.record.lower())}
    logged = {_stem(word) for each in path for word in _logged(asked, each)}
    statuses = set(_STATUS.findall(asked.question.text))
    answered = {status for each in cause.troubles for status in _STATUS.findall(each.group.record)}
    named = {ref for each in asked.subject.objects for ref in identity(asked.state, each)}
    fits = (
        _BY_NAME * len(words & names)
        + _BY_TROUBLE * len(words & (told - names))
        + _BY_LOG * len(words & (logged - told - names))
        + _BY_STATUS * len(statuses & answered)
        + _BY_SUBJECT * bool(named & _uses(asked, cause))
    )
    # Other trouble can begin at the same time, so that the time alone proves nothing if the words could have fitted.
    unlike = not words or language_of(asked.question.words) != "en"
    return fits + _BY_TIME * _began_then(asked, cause) if fits or unlike else 0


def words_asked(asked: Asked) -> Iterator[str]:
    """Yield the words of the question that say what it is about."""
    known = {index for each in asked.question.found for index in range(each.first, each.last + 1)}
    for index, word in enumerate(asked.question.words):
        plain = index not in known and word not in vocabulary().stop
        if (plain or "-" in word) and len(_stem(word)) >= _LEAST_CHARACTERS:
            yield _stem(word)


def _logged(asked: Asked, workload: ClusterObject) -> Iterator[str]:
    for _, story in stories_of(asked.state, workload):
        for pattern in story.patterns[:_MOST_PATTERNS]:
            yield from _WORD.findall(pattern.text.lower())


def _began_then(asked: Asked, cause: LogCause) -> bool:
    """Return whether the trouble began at the time that the question names, for example "since four"."""
    period, first = asked.question.period, cause.troubles[0].group.first
    if period is None or not first:
        return False
    return abs(first - period.bounds(asked.state.now)[0]) <= _NEAR_SECONDS


def _uses(asked: Asked, cause: LogCause) -> frozenset[ObjectRef]:
    """Return the objects on the way of a cause, and those that its workloads use directly."""
    path = [each for ref in cause.path if (each := asked.state.find(ref)) is not None]
    near = (one.ref for each in path for one in connections(asked.state, (each,)).values() if one.hops <= 2)
    return frozenset((*cause.path, *near))


def _stem(word: str) -> str:
    """Return a word without hyphens and plural: `sign-ups` becomes `signup`."""
    return word.lower().replace("-", "").removesuffix("s")
