"""Finds the consumer that no longer empties a queue, so that the queue's server blocks those who fill it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import edges, workload_hosts
from holmes.diagnosis.facts.host_mentions import settings_of
from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.logs import quoted
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.templates import pod_templates
from holmes.triage.log_actors import CONTENDED
from holmes.triage.log_links import own_services
from holmes.triage.log_reasons import Reason
from holmes.triage.log_troubles import troubles_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.diagnosis.facts.log_groups import LogStory
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.log_troubles import Trouble
    from holmes.values.findings import ObjectRef

_FULL: Final = expression(r"(?i)\bqueue\b.{0,80}(?<![\w-])(?:full|length limit|max-length(?! \d))(?![\w-])")
_UNCONSUMED: Final = expression(
    r"(?i)\b(?:queue|stream|group|subscription|topic)s? [`'\"]?([\w][\w.:-]{1,80}?)[`'\"]?(?:,| in | on |:? ).{0,60}?"
    r"\b(?:no|0|without) (?:active )?(?:consumers?|subscribers?|members?|readers?|workers?)\b"
)
"""A line about a queue without readers."""
_RARE: Final = 2
_OFTEN: Final = 5
_SHORTLY_SECONDS: Final = 600.0


def stopped_client(state: ClusterState, trouble: Trouble, path: Sequence[ObjectRef]) -> Reason | None:
    """Return the only client of a queue that is full whose usual lines ended with an error before, so that it waits."""
    found: dict[ObjectRef, str] = {}
    full = trouble.group.kind == "queue full" or _FULL.search(trouble.group.record)
    for service in own_services(state, trouble.workload) if full else ():
        for edge in edges(state).get(service, ()):
            for each in troubles_of(state, edge.consumer) if edge.consumer.ref not in path else ():
                story = dict(stories_of(state, edge.consumer))[each.key]
                before = each.group.last < trouble.group.first or not trouble.group.first
                if before and each.group.weight in ("kind", "error") and _ended_with(story, each):
                    found.setdefault(edge.consumer.ref, f"{each.quote}; its usual lines end there")
    if len(found) != 1:
        return None
    ((ref, said),) = found.items()
    return Reason(culprit=ref, words=f"the log of {ref} says before: {said}", evidence=(f"{ref}, log: {said}",))


def idle_consumer(state: ClusterState, trouble: Trouble, path: Sequence[ObjectRef]) -> Reason | None:
    """Return the only consumer without a ready pod of a queue that has no consumers according to the server's log.

    It uses the server and its settings contain the name of the queue. It can be scaled to zero.
    """
    if trouble.group.kind not in CONTENDED:
        return None
    stories = stories_of(state, trouble.workload)
    lines = [pattern.last_line for _, story in stories for pattern in story.patterns]
    queues = {match[1]: line for line in lines if (match := _UNCONSUMED.search(line)) is not None}
    services = set(own_services(state, trouble.workload))
    found: dict[ObjectRef, str] = {}
    for template in pod_templates(state) if queues else ():
        consumer = template.workload
        texts = "\n".join(each.text for each in settings_of(state, consumer))
        told = next((name for name in queues if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", texts)), "")
        idle = told and consumer.ref not in path and not any(map(pod_ready, state.pods_of(consumer)))
        if idle and not services.isdisjoint(use.service for use, _ in workload_hosts(state, consumer)):
            found[consumer.ref] = told
    if len(found) != 1:
        return None
    ((ref, queue),) = found.items()
    line = quoted(queues[queue])
    words = f"its log says: {line}; {ref}, which consumes `{queue}`, has no ready pod"
    return Reason(culprit=ref, words=words, evidence=(f"{trouble.key.pod}, log: {line}", f"{ref}, settings: {queue}"))


def _ended_with(story: LogStory, trouble: Trouble) -> bool:
    """Return whether a usual line of a log ended when a rare error began."""
    first, number = trouble.group.first or trouble.group.last, story.last_number
    return trouble.group.count <= _RARE and any(
        pattern.count >= _OFTEN
        and abs(story.time_of(pattern.numbers[-1]) - first) <= _SHORTLY_SECONDS
        and story.time_of(number) - first > 2 * _SHORTLY_SECONDS
        for pattern in story.patterns
        if pattern.numbers and not pattern.is_cause
    )
