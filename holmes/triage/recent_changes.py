"""Finds what changed about a workload before its trouble or that of its clients: its template, and what its pods read.

A pod that was only added or replaced changes nothing, and neither does a setting that no running container can see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.logs import quoted
from holmes.diagnosis.facts.stale_settings import visible_edits
from holmes.kubernetes.fields import REVISION_LABEL
from holmes.triage.log_reasons import Reason
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState

_SHORTLY_SECONDS: Final = 600.0
_IDENTIFIER: Final = expression(
    r"(?<![A-Za-z0-9_])([A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)+)(?![A-Za-z0-9_-])"
    r"|\b(?i:from|join|into|update|table|on|schema|relation|index|column)\b [`\"']?([A-Za-z_]\w{3,60})"
)
"""A compound word such as `super_read_only`, or the name of a table."""
_REFRESHED: Final = expression(
    r"(?i)\b(?:loaded|updated|refreshed|synced|imported|fetched|replaced|removed|deleted)\b[^:=]{0,60}?"
    r"\b\d[\d.,]* ?[a-z]"
)
"""The refresh of a program's own data, with an amount."""
_OF_SETTINGS: Final = expression(
    r"(?<![A-Za-z])(?i:config(?:s|urations?)?|settings?|(?:feature )?flags?|deploy(?:s|ed|ments?)?|(?:to|now) version"
    r"|upgrad(?:e[ds]?|ing)|migrat(?:e[ds]?|ing|ions?)|schemas?|(?:api|access|signing|private|public|host) keys?"
    r"|cert(?:s|ificates?)?|rotat(?:e[ds]?|ing|ion)|leader(?:ship)?|primary|replicas?|read[_ -]?only|leases?"
    r"|(?:en|dis)abled|set to|switch(?:ed|ing)? (?:to|over)|(?:switch|fail) ?over|promot(?:ed|ing)|(?:rate )?limits?"
    r"|time-?outs?|pool size|rules?|routing|(?:drop|alter|create|truncate|lock) (?:table|index|column|view|schema))"
    r"(?![A-Za-z])"
)
"""Words about what decides how a program works: its settings, version, schema, credentials, role or bounds.

Goods with such names, for example features of a model, promotions or keys of a cache, are its data.
"""


def changes_of(state: ClusterState, workload: ClusterObject, *, restarts: bool = True) -> Iterator[tuple[str, float]]:
    """Yield what changed about a workload, and when: what its containers read, its template, and all its pods.

    Without `restarts`, new pods of an old template do not count.
    """
    for each, edited in visible_edits(state, workload):
        yield f"got a change of {each}", edited
    pods = [pod for pod in state.pods_of(workload) if pod.created]
    if pods and _is_new(state, workload, pods, restarts=restarts):
        yield "was started", max(pod.created for pod in pods)


def _is_new(state: ClusterState, workload: ClusterObject, pods: Sequence[ClusterObject], *, restarts: bool) -> bool:
    """Return whether the newest pod has a new template, or all pods have about its age."""
    newest = max(pods, key=lambda each: each.created)
    together = newest.created - min(each.created for each in pods) <= _SHORTLY_SECONDS
    made_by = newest.owner if newest.owner is not None and newest.owner.kind in {"ReplicaSet", "Job"} else None
    owner = state.get(made_by.kind, newest.namespace, made_by.name) if made_by is not None else None
    if owner is not None:
        fresh = newest.created - owner.created <= _SHORTLY_SECONDS
        return fresh or (restarts and together)
    if len({each.labels.get(REVISION_LABEL, "") for each in pods}) > 1:
        return True
    return together and (restarts or newest.created - workload.created <= _SHORTLY_SECONDS or not workload.created)


def told_change(state: ClusterState, workload: ClusterObject, at: float, record: str) -> Reason | None:
    """Return the workload as the reason of the lines that began at a time if its log tells of a change just before.

    That it refreshed its own data is routine, unless the lines, of which `record` is one, name this data.
    """
    for key, story in stories_of(state, workload):
        line = story.change_before(at) if at else ""
        routine = _REFRESHED.search(line) and not _OF_SETTINGS.search(line)
        if line and not (routine and not shares_identifier(line, record)):
            words = f"just before, the log of {workload.ref} says: {quoted(line)}"
            shown = f"{key.pod}, log of container {key.container}: {quoted(line)}"
            return Reason(culprit=workload.ref, words=words, evidence=(shown,))
    return None


def shares_identifier(one: str, other: str) -> bool:
    """Return whether two texts contain the same name of a setting, a table or a column."""
    return not _identifiers(one).isdisjoint(_identifiers(other))


def _identifiers(text: str) -> set[str]:
    found = (word for match in _IDENTIFIER.findall(text) for word in match)
    return {word.lower().replace("-", "_") for word in found if word}
