"""Finds the errors in a subject's own log that name what an alert is about: the job, the task or the address.

Two errors in an hour are noise in most logs. They are evidence if they name the value of a label of the alert, and no
later line names it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.line_kinds import CREDENTIALS
from holmes.diagnosis.facts.log_groups import stories_of
from holmes.triage.blame import from_logs
from holmes.triage.log_evidence import LogCause
from holmes.triage.log_proofs import felt_at
from holmes.triage.log_troubles import troubles_of, workloads_of
from holmes.triage.vocabulary import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.triage.asked import Asked
    from holmes.triage.log_troubles import Trouble
    from holmes.values.first_look import FirstLook

_COMMON: Final = frozenset({
    "alertname", "namespace", "severity", "pod", "container", "instance", "job", "service", "endpoint", "node",
    "cluster", "env", "environment", "stage", "region", "team", "app", "application", "prometheus", "component",
    "kind", "image",
})  # fmt: skip
"""Labels whose values many lines contain, because they name the program or its place."""
_LEAST_CHARACTERS: Final = 4
_LATELY_SECONDS: Final = 7_200.0


def told_in_log(asked: Asked, labels: Mapping[str, str]) -> FirstLook | None:
    """Return the look at the errors that name a value of the labels, or None if the subject's log has none of late."""
    named = asked.subject.named[0]
    names = {part.lower() for each in named.objects for part in (each.name, each.namespace, *each.name.split("-"))}
    values = [value for value in _values(labels) if value.lower() not in names]
    for workload in workloads_of(asked.state, named.objects) if values else ():
        for trouble in troubles_of(asked.state, workload):
            if any(_tells_of(asked, trouble, value) for value in values):
                outside = felt_at(asked.state, trouble) if trouble.group.kind not in CREDENTIALS else ()
                cause = LogCause(troubles=(trouble,), culprit=workload.ref, path=(workload.ref,), outside=outside)
                return from_logs(asked, named, cause)
    return None


def _values(labels: Mapping[str, str]) -> Iterator[str]:
    for label, value in labels.items():
        plain = label.removeprefix("exported_")
        known = value.isdigit() or vocabulary().is_ordinary(value.lower())
        if plain not in _COMMON and len(value) >= _LEAST_CHARACTERS and not known:
            yield value


def _tells_of(asked: Asked, trouble: Trouble, value: str) -> bool:
    """Return whether errors of late name a value, and no line after them does, which could tell of a success."""
    group = trouble.group
    whole = re.compile(rf"(?<![\w.-]){re.escape(value)}(?![\w-]|\.\w)")
    if group.weight not in ("kind", "error") or group.last < asked.state.now - _LATELY_SECONDS:
        return False
    story = dict(stories_of(asked.state, trouble.workload))[trouble.key]
    later = (story.lines[at - 1] for at in story.heads if story.time_of(at) > group.last)
    return whole.search(group.record) is not None and not any(map(whole.search, later))
