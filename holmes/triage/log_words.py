"""Finds the workload that a question without names describes: its log has trouble, and words of the question.

If several workloads fit equally well, none is named, because any error of any workload would look like the answer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.log_groups import stories_of
from holmes.triage.log_evidence import cause_in_logs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.log_evidence import LogCause

_WORD: Final = re.compile(r"[a-z]{3,40}")
_STATUS: Final = re.compile(r"(?<!\d)[45]\d\d(?!\d)")
_LEAST_CHARACTERS: Final = 4
_MOST_PATTERNS: Final = 500
_BY_NAME: Final = 3
_BY_LOG: Final = 1
_BY_STATUS: Final = 2


def cause_by_words(asked: Asked, workloads: Iterable[ClusterObject]) -> LogCause | None:
    """Return the trouble in the logs of the workload that fits the words of the question best."""
    if not (asked.question.wants_cause):
        return None
    best: dict[object, tuple[int, int, LogCause]] = {}
    for workload in workloads:
        cause = cause_in_logs(asked.state, asked.question, (workload,))
        if cause is not None and cause.troubles[0].group.sudden:
            scored = (_score(asked, workload, cause), len(cause.path), cause)
            best[cause.culprit] = max(best.get(cause.culprit, scored), scored, key=lambda each: each[:2])
    ranked = sorted(best.values(), key=lambda each: each[:2], reverse=True)
    if not ranked or not ranked[0][0] or (len(ranked) > 1 and ranked[0][0] == ranked[1][0]):
        return None
    return ranked[0][2]


def _score(asked: Asked, workload: ClusterObject, cause: LogCause) -> int:
    """Return how well the words and statuses of the question fit a workload and its log."""
    words = {_stem(word) for word in (*asked.subject.unknown, *(each for each in asked.question.words if "-" in each))}
    words = {word for word in words if len(word) >= _LEAST_CHARACTERS}
    names = {_stem(workload.name), *map(_stem, workload.name.split("-"))}
    patterns = [each.text for _, story in stories_of(asked.state, workload) for each in story.patterns[:_MOST_PATTERNS]]
    logged = {_stem(word) for text in patterns for word in _WORD.findall(text.lower())}
    statuses = set(_STATUS.findall(asked.question.text))
    answered = {status for each in cause.troubles for status in _STATUS.findall(each.group.record)}
    return _BY_NAME * len(words & names) + _BY_LOG * len(words & logged) + _BY_STATUS * len(statuses & answered)


def _stem(word: str) -> str:
    """Return a word without hyphens and plural: `sign-ups` becomes `signup`."""
    return word.lower().replace("-", "").removesuffix("s")
