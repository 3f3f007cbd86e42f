"""Finds who no longer delivers the data that logs call old: a suspended CronJob, or an importer whose last Job failed.

The log that tells of old data names the producer, or its data are as old as the last success of the only stopped
CronJob that uses the same server. A producer that works proves nothing, and neither does one that is only suspended.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import workload_hosts
from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.logs import quoted
from holmes.diagnosis.facts.stops import stop_of_producer
from holmes.kubernetes.fields import duration, moment
from holmes.triage.log_links import behind_service, own_services
from holmes.triage.log_reasons import Reason
from holmes.triage.log_troubles import workloads_of
from holmes.values.durations import UNIT_SECONDS
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef

_OLD: Final = expression(
    r"(?i)(?<![\w:-])(?<!primary marked )stale(?:ness)?\b"
    r"(?! (?:nfs|endpoint|file|lock|pid|group\w*|\w+ (?:removed|deleted|closed|purged|evicted))\b)"
    r"|\bout ?-?(?:dated|of date)\b"
    r"|\b(?:is|are|was|were|be|gets?|too|already) old\b(?! resource)"
    r"|\d\s?[a-z]{1,7} old\b|\bolder than\b|\bnot (?:been )?(?:updated|refreshed|imported|synced) (?:for|since)\b"
    r"|\blast (?:import|update|sync|refresh|success|run|load)\b.{0,40}\bago\b"
    r"|\bno (?:new|fresh|recent) (?:\w+ ){1,3}(?:since|for)\b"
)
"""A line that calls data old."""
_AGE: Final = expression(
    r"(?i)(?<![\w.])(\d{1,6}(?:\.\d+)?)\s?(d|days?|h|hrs?|hours?|m|min|minutes?|s|sec|seconds)(?=\s(?:old|ago|stale|behind)\b)"
    r"|\b(?:age|lag|staleness|behind|since|for)[ =:]{1,2}(\d{1,6}(?:\.\d+)?)\s?(d|h|m|s|days|hours|minutes|seconds)\b"
)
_SAME_AGE: Final = 0.15
_LEAST_LINES: Final = 3
_RECENT_SECONDS: Final = 1_200.0
_MOST_HOPS: Final = 3


def stopped_feed(
    state: ClusterState, subjects: Sequence[ClusterObject], *, said: bool
) -> tuple[Reason, tuple[ObjectRef, ...]] | None:
    """Return the stopped producer of old data, and the way to it. `said` means that the question calls the data old.

    Otherwise the subject's own log has to.
    """
    own = workloads_of(state, subjects)
    if not said and not any(_old_lines(state, each) for each in own):
        return None
    for workload, path in _servers(state, own):
        for place, line in _old_lines(state, workload):
            found = [
                (each, stop) for each in _producers(state, workload, line) if (stop := stop_of_producer(state, each))
            ]
            if len(found) == 1:
                producer, stop = found[0]
                words = f"The log of {workload.ref} says: {quoted(line)}; {producer.ref} {stop.words}"
                last = moment(producer.text("status", "lastSuccessfulTime"))
                words += f" and last succeeded {duration(state.now - last)} ago" if last else ""
                shown = (f"{stop.proof.object}, {stop.proof.path}: {stop.proof.value}", f"{place}: {quoted(line)}")
                return Reason(culprit=producer.ref, words=words, evidence=shown), (*path, producer.ref)
    return None


def _servers(
    state: ClusterState, own: Sequence[ClusterObject]
) -> Iterator[tuple[ClusterObject, tuple[ObjectRef, ...]]]:
    """Yield the workloads, and those that serve them, the nearest first, each with the objects up to it."""
    waiting: list[tuple[ClusterObject, tuple[ObjectRef, ...]]] = [(each, (each.ref,)) for each in own]
    seen = {each.ref for each in own}
    while waiting:
        workload, path = waiting.pop(0)
        yield workload, path
        uses = dict.fromkeys(use.service for use, _ in workload_hosts(state, workload))
        for service in uses if len(path) < 2 * _MOST_HOPS else ():
            for behind in behind_service(state, service):
                if behind.ref not in seen:
                    seen.add(behind.ref)
                    waiting.append((behind, (*path, service, behind.ref)))


def _old_lines(state: ClusterState, workload: ClusterObject) -> list[tuple[str, str]]:
    """Return the lines of a workload's log that again and again call data old, up to now, each with its place."""
    return [
        (f"{key.pod}, log of container {key.container}", each.last_line)
        for key, story in stories_of(state, workload)
        for each in story.patterns
        if each.count >= _LEAST_LINES
        and _OLD.search(each.last_line)
        and state.now - (story.time_of(each.last_number) or state.now) <= _RECENT_SECONDS
    ]


def _producers(state: ClusterState, workload: ClusterObject, line: str) -> Iterator[ClusterObject]:
    """Yield the CronJobs and Jobs that a line names, or else the CronJobs that ended when its data were written."""
    makers = [*state.of("CronJob", workload.namespace)]
    makers += [each for each in state.of("Job", workload.namespace) if each.owner is None]
    named = [each for each in makers if re.search(rf"(?<![\w./-]){re.escape(each.name)}(?![\w-])", line)]
    if named:
        yield from named
        return
    age = _age_in(line)
    used = {use.service for use, _ in workload_hosts(state, workload)}
    used.update(own_services(state, workload))
    for each in makers if age else ():
        last = moment(each.text("status", "lastSuccessfulTime"))
        same = last is not None and abs(state.now - last - age) <= _SAME_AGE * age
        if same and used & {use.service for use, _ in workload_hosts(state, each)}:
            yield each


def _age_in(line: str) -> float:
    """Return the age of the data that a line tells, in seconds, or 0."""
    found = _AGE.search(line)
    if found is None:
        return 0.0
    number, unit = (found[1], found[2]) if found[1] else (found[3], found[4])
    return float(number) * UNIT_SECONDS[unit.lower()]
