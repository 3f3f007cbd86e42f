"""Finds the errors in a subject's own log that name what an alert is about: the job, the task or the address.

Two errors in an hour are noise in most logs. They are evidence if they name the value of a label of the alert, and no
later line names it. They must also contain a word of the alert's name, unless the alert is about errors.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.line_kinds import CREDENTIALS
from holmes.diagnosis.facts.log_groups import stories_of
from holmes.triage.alert_measures import is_of_failures, words_of_alert
from holmes.triage.blame import from_logs
from holmes.triage.log_evidence import LogCause
from holmes.triage.log_proofs import felt_at
from holmes.triage.log_troubles import troubles_of, workloads_of
from holmes.triage.vocabulary import vocabulary, word_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from holmes.triage.asked import Asked
    from holmes.triage.log_troubles import Trouble
    from holmes.values.first_look import FirstLook

_COMMON: Final = frozenset({
    "alertname", "namespace", "severity", "pod", "container", "instance", "job", "service", "endpoint", "node",
    "cluster", "env", "environment", "stage", "region", "team", "app", "application", "prometheus", "component",
    "kind", "image",
})  # fmt: skip
"""Labels whose values many lines contain, because they name the program or its place."""
_NO_TOPIC: Final = word_list("alerts of amounts") | frozenset({
    "kube", "kubernetes", "deployment", "stateful", "daemon", "replica", "crash", "looping", "restarts", "latency",
    "slow", "quota", "total", "time", "long", "very", "critical", "warning", "more", "less",
}) | _COMMON  # fmt: skip
"""Words that tell how much of a thing there is or how it works, and kinds. Lines about other things contain them."""
_LEAST_CHARACTERS: Final = 4
_LATELY_SECONDS: Final = 7_200.0


def told_in_log(asked: Asked, labels: Mapping[str, str]) -> FirstLook | None:
    """Return the look at the errors that name a value of the labels, or None if the subject's log has none of late."""
    named = asked.subject.named[0]
    names = {part.lower() for each in named.objects for part in (each.name, each.namespace, *each.name.split("-"))}
    values = [value for value in _values(labels) if value.lower() not in names]
    name = labels.get("alertname", "")
    stems = None if is_of_failures(name) else _stems(name, names.union(*map(_parts, labels)))
    for workload in workloads_of(asked.state, named.objects) if values else ():
        for trouble in troubles_of(asked.state, workload):
            named_there = stems is None or any(each.search(trouble.group.record) for each in stems)
            if named_there and any(_tells_of(asked, trouble, value) for value in values):
                outside = felt_at(asked.state, trouble) if trouble.group.kind not in CREDENTIALS else ()
                cause = LogCause(troubles=(trouble,), culprit=workload.ref, path=(workload.ref,), outside=outside)
                return from_logs(asked, named, cause)
    return None


def _parts(label: str) -> list[str]:
    return label.lower().split("_")


def _stems(name: str, known: AbstractSet[str]) -> list[re.Pattern[str]]:
    """Return expressions for the words of an alert's name that tell its topic: no label, object, kind or amount."""
    topics = (word.lower() for word in words_of_alert(name) if len(word) >= _LEAST_CHARACTERS)
    topics = (word for word in topics if word not in known and word not in _NO_TOPIC)
    return [re.compile(rf"(?i)(?<![a-z]){re.escape(word[: max(_LEAST_CHARACTERS, len(word) - 3)])}") for word in topics]


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
