"""Answers how long a container ran before it ended, from its last termination."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.pods import containers_of
from holmes.kubernetes.fields import exact_duration, integer, moment, text, written
from holmes.triage.facts import fact, not_answered
from holmes.triage.pods_asked import pods_named
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.values.first_look import FirstLook

_BEFORE: Final = expression(
    r"\bhow long (?:does|did|do|was|were|has|had|have) .{1,60}? (?:live|last|run|running|survive|up|alive|work|working)"
    r"(?: \w+)? (?P<before>(?:before|until|till)\b.{1,60})"
)
_DONE: Final = expression(r"\b(?:finish|done|complet|succeed|expire|next run|renew)")
"""An end that the times of an object tell."""
_END: Final = expression(r"\b(?:kill|crash|die[sd]?\b|dying|oom|restart|terminat|evict)")


def before_end(asked: Asked) -> FirstLook | None:
    """Return how long the last instances ran before they ended. No time is known before anything else."""
    match = _BEFORE.search(asked.question.text)
    if match is None or _DONE.search(match["before"]):
        return None
    if not _END.search(match["before"]) or asked.question.period is not None:
        return not_answered(asked, (match["before"],), what="time")
    told = [one for pod in pods_named(asked) for one in _lived(pod)]
    if not told:
        return fact(asked, "Not known: no container with a last end was read.", None, "inconclusive")
    return fact(asked, f"{'; '.join(told[:4])}.")


def _lived(pod: ClusterObject) -> Iterator[str]:
    for one in containers_of(pod):
        ended = one.terminated if integer(one.terminated, "exitCode") else one.last_terminated
        start, end = (moment(text(ended, name)) for name in ("startedAt", "finishedAt"))
        if start and end:
            reason = text(ended, "reason")
            span = f"from {written(start)} to {written(end)}{f', {reason}' if reason else ''}"
            yield f"{pod.ref}, container {one.name}: the last instance ran for {exact_duration(end - start)}, {span}"
