"""The conditions of a question on the ages of objects, and on when they were created or ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.pods import containers_of
from holmes.kubernetes.fields import duration
from holmes.triage.filters import Filter, negated_before
from holmes.triage.point_search import any_weekday
from holmes.triage.states import last_ends, last_restarts
from holmes.triage.vocabulary import word_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked

_AGED: Final = frozenset({"older", "newer", "younger", "alter", "junger", "more", "less"})
_CREATED: Final = word_list("created")
_ENDED: Final[Mapping[tuple[str, ...], frozenset[str]]] = {
    ("Pod",): frozenset({"restarting", "crashing", "oom", "failing"}),
    ("Job",): frozenset({"completed", "failed", "failing"}),
}
"""The states that tell of an end, whose time a period of the question limits."""


def time_filters(asked: Asked, kinds: tuple[str, ...]) -> Iterator[Filter]:
    """Yield the conditions on ages and times. A period that cannot be applied stays in the ledger."""
    question, state = asked.question, asked.state
    for seconds, older in ((question.older_seconds, True), (question.newer_seconds, False)):
        if seconds:
            negated = negated_before(asked, next((i for i, w in enumerate(question.words) if w in _AGED), -1), most=1)
            yield _age_filter(state, seconds, older=older != negated)
    weekday, number = any_weekday(question.text)
    if weekday and (question.asks("age") or _CREATED & set(question.words)):
        asked.ledger.take("value", weekday)
        asked.ledger.take("period")
        asked.ledger.take("word", *_CREATED)
        yield Filter(
            told=f"created on {weekday}, UTC",
            holds=lambda each: datetime.fromtimestamp(each.created, UTC).weekday() == number,
        )
    period = question.period
    if period is None or weekday:
        return
    start, end = period.bounds(state.now)
    ended = _ENDED.get(kinds, frozenset()) & set(question.states)
    if ended and not any(each.how for each in question.comparisons):
        times = last_restarts if ended == {"restarting"} else last_ends
        if any(_is_unknown(each, times, end) for each in state.of(kinds[0]) if asked.subject.contains(each)):
            return
        asked.ledger.take("period")
        told = f"{'last restarted' if times is last_restarts else 'ended'} {period.text}"
        yield Filter(told=told, holds=lambda each: any(start <= at <= end for at in times(each)))
    elif question.asks("age") or _CREATED & set(question.words):
        asked.ledger.take("period")
        asked.ledger.take("word", *_CREATED)
        yield Filter(told=f"created {period.text}", holds=lambda each: start <= each.created <= end)


def _is_unknown(each: ClusterObject, times: Callable[[ClusterObject], tuple[float, ...]], end: float) -> bool:
    """Return whether a pod can have ended in a period, too: only the last of several ends are known, and are later."""
    if each.kind != "Pod" or each.created >= end:
        return False
    known, containers = times(each), containers_of(each)
    happened = sum(one.restarts + (bool(one.terminated) and times is last_ends) for one in containers)
    return happened > len(known) and max(known, default=0.0) > end


def _age_filter(state: ClusterState, seconds: float, *, older: bool) -> Filter:
    def holds(each: ClusterObject) -> bool:
        age = state.age_seconds(each)
        return age > seconds if older else age <= seconds

    return Filter(told=f"{'older' if older else 'younger'} than {duration(seconds)}", holds=holds)
