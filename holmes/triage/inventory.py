"""Answers questions of fact from the objects of a scan: numbers, lists, images, nodes, limits, changes and events.

The table shows at most 15 rows and states how many there are. If a part of the question could not be applied, the
answer gives no number.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import recent_changes
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.status import status_of
from holmes.kubernetes.fields import duration, integer, text, written
from holmes.triage.connections import identity
from holmes.triage.facts import fact, place_of, table_of
from holmes.triage.markdown import counted
from holmes.triage.selection import WORKLOAD_KINDS, select
from holmes.triage.states import restarts
from holmes.triage.users import users_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.causes import Asked
    from holmes.triage.selection import Selection
    from holmes.values.first_look import FirstLook, Table

_GROUPING: Final = re.compile(r"\b(?:per|by|pro|je|por|par|for each|on each|in each) (?:cada |chaque )?([a-z0-9./-]+)")
_SAME: Final = {
    "nodes": "node",
    "knoten": "node",
    "nodo": "node",
    "noeud": "node",
    "namespaces": "namespace",
    "namensraum": "namespace",
}
_HOUR_SECONDS: Final = 3_600.0
_DAY_SECONDS: Final = 86_400.0


def number_or_list(asked: Asked) -> FirstLook:
    """Answer "how many" and "which": the number of matching objects, and a table of them."""
    if asked.question.asks("count") and any(
        each.sense == "word" and each.name == "containers" for each in asked.question.found
    ):
        return _containers(asked)
    selection = select(asked)
    noun = _noun(selection)
    if selection.left_out:
        parts = ", ".join(f"`{part}`" for part in selection.left_out)
        text = f"Not answered: {parts} could not be applied to {noun}s, so any number would be wrong."
        return fact(asked, text, verdict="inconclusive")
    if selection.unread:
        gaps = tuple(f"{each.what}: {each.why}" for each in asked.report.not_checked)
        return fact(
            asked,
            f"{', '.join(selection.unread)} could not be read completely.",
            None,
            "inconclusive",
            not_checked=gaps,
        )
    found = sorted(selection.objects, key=_by_question(asked))
    conditions = f" ({'; '.join(selection.told)})" if selection.told else ""
    summary = f"{counted(len(found), noun)} {asked.subject.place}{conditions}."
    grouping = _GROUPING.search(asked.question.text)
    if grouping and len(found) > 1 and _can_group(grouping[1], found):
        return fact(asked, summary, _grouped(grouping[1], found))
    if not found:
        return fact(
            asked,
            f"No {noun} {asked.subject.place} matches{conditions}."
            if conditions
            else f"No {noun} found {asked.subject.place}.",
        )
    return fact(asked, summary, _listed(asked, found))


def _containers(asked: Asked) -> FirstLook:
    """Answer how many containers are in a state."""
    tests: Mapping[str, Callable[[Container], bool]] = {
        "crashing": lambda one: one.waiting.get("reason") == "CrashLoopBackOff",
        "running": lambda one: one.running,
        "ready": lambda one: one.ready,
        "not_ready": lambda one: not one.ready,
        "restarting": lambda one: one.restarts > 0,
        "never_restarted": lambda one: one.restarts == 0,
        "image_pull": lambda one: "ImagePull" in str(one.waiting.get("reason", "")),
        "oom": lambda one: "OOMKilled" in (one.last_terminated.get("reason"), one.terminated.get("reason")),
    }
    states = asked.question.states
    if any(state not in tests for state in states) or asked.subject.unknown:
        return fact(
            asked, "Not answered: a part of the question could not be applied to containers.", None, "inconclusive"
        )
    named = {ref for each in asked.subject.objects for ref in identity(asked.state, each)}
    found = [
        one
        for pod in asked.state.of("Pod")
        if asked.subject.contains(pod) and (not named or pod.ref in named)
        for one in containers_of(pod)
        if one.kind == "main" and all(tests[state](one) for state in states)
    ]
    told = f" ({'; '.join(states)})".replace("_", " ") if states else ""
    rows = [(str(one.pod.ref), one.name, str(one.restarts)) for one in found]
    return fact(
        asked,
        f"{counted(len(found), 'container')} {asked.subject.place}{told}.",
        table_of(("pod", "container", "restarts"), rows),
    )


def _noun(selection: Selection) -> str:
    return "workload" if selection.kinds == WORKLOAD_KINDS else selection.kinds[0]


def _by_question(asked: Asked) -> Callable[[ClusterObject], tuple[float, str, str]]:
    """Return a sort key: by age or restarts if the question asks for it, otherwise by namespace and name."""
    text = asked.question.text
    newest = any(
        word in text
        for word in ("newest", "youngest", "most recent", "latest", "neueste", "jungste", "mas reciente", "plus recent")
    )

    def key(each: ClusterObject) -> tuple[float, str, str]:
        if asked.question.asks("age"):
            return (-each.created if newest else each.created, each.namespace, each.name)
        if "restarting" in asked.question.states and each.kind == "Pod":
            return (-float(restarts(each)), each.namespace, each.name)
        return (0.0, each.namespace, each.name)

    return key


def _can_group(by: str, found: Sequence[ClusterObject]) -> bool:
    """Return whether a word is a property or the key of a label. In "owned by the Job", it is neither."""
    known = _SAME.get(by, by) in ("namespace", "node", "phase", "status")
    return known or any(by in each.labels for each in found)


def _grouped(by: str, found: Sequence[ClusterObject]) -> Table | None:
    values: Mapping[str, Callable[[ClusterObject], str]] = {
        "namespace": lambda each: each.namespace,
        "node": lambda each: each.text("spec", "nodeName"),
        "phase": lambda each: each.text("status", "phase"),
        "status": status_of,
    }
    value = values.get(_SAME.get(by, by))
    numbers = Counter((value(each) if value is not None else each.labels.get(by, "")) or "-" for each in found)
    return table_of((by, "number"), [(name, str(number)) for name, number in numbers.most_common()])


def _listed(asked: Asked, found: Sequence[ClusterObject]) -> Table | None:
    def age(each: ClusterObject) -> str:
        return duration(asked.state.age_seconds(each))

    columns: dict[str, tuple[tuple[str, Callable[[ClusterObject], str]], ...]] = {
        "Pod": (
            ("status", lambda each: status_of(each).rpartition(",")[0]),
            ("restarts", lambda each: str(restarts(each))),
            ("age", age),
            ("node", lambda each: each.text("spec", "nodeName")),
        ),
        "Node": (
            ("status", status_of),
            ("age", age),
            ("version", lambda each: each.text("status", "nodeInfo", "kubeletVersion")),
        ),
        "Service": (
            ("type", lambda each: each.text("spec", "type") or "ClusterIP"),
            ("address", lambda each: each.text("spec", "clusterIP")),
            ("ports", _ports),
            ("age", age),
        ),
        "Ingress": (
            ("hosts", lambda each: ", ".join(text(rule, "host") for rule in each.children("spec", "rules"))),
            ("age", age),
        ),
    }
    kinds = {each.kind for each in found}
    first = next(iter(kinds))
    chosen = columns.get(first) if len(kinds) == 1 else None
    if chosen is None:
        chosen = (("status", status_of), ("age", age))
    name = "name" if len(kinds) == 1 else "object"
    alike = len(kinds) == 1
    rows = [(each.ref.path if alike else str(each.ref), *(cell(each) for _, cell in chosen)) for each in found]
    return table_of((name, *(title for title, _ in chosen)), rows)


def _ports(each: ClusterObject) -> str:
    return ", ".join(
        f"{integer(one, 'port')}→{one.get('targetPort', integer(one, 'port'))}"
        for one in each.children("spec", "ports")
    )


def changes(asked: Asked) -> FirstLook:
    """List what changed in a time span, newest first. The default is the last hour."""
    span = asked.question.since_seconds or (
        _DAY_SECONDS if asked.question.asks("now") and "today" in asked.question.words else _HOUR_SECONDS
    )
    kinds = (
        *WORKLOAD_KINDS,
        "ConfigMap",
        "Secret",
        "Service",
        "Ingress",
        "NetworkPolicy",
        "HorizontalPodAutoscaler",
        "ResourceQuota",
        "LimitRange",
        "Node",
    )
    about = asked.subject.objects or tuple(
        each for kind in kinds for each in asked.state.of(kind) if asked.subject.contains(each)
    )
    found = {change for each in about for change in recent_changes(asked.state, each.ref, None, window_seconds=span)}
    rows = sorted(((change.at, str(change.object), change.what) for change in found), reverse=True)
    summary = f"{counted(len(rows), 'change')} {place_of(asked)} in the last {duration(span)}"
    newest = f"; the newest: {rows[0][1]} {rows[0][2]} at {rows[0][0]}" if rows else ": nothing changed"
    return fact(asked, f"{summary}{newest}.", table_of(("time", "object", "change"), rows))


def uses(asked: Asked) -> FirstLook:
    """List the objects that use the subject, or that the subject uses if nothing uses it."""
    if not asked.subject.named:
        return number_or_list(asked)
    used = asked.subject.objects[0]
    found = users_of(asked.state, used)
    rows = [(str(user.object.ref), user.how) for user in found]
    if not rows:
        return fact(asked, f"Nothing that was read uses {used.ref}.")
    names = ", ".join(row[0] for row in rows[:4])
    more = ", …" if len(rows) > 4 else ""
    verb = "uses" if len(rows) == 1 else "use"
    summary = f"{counted(len(rows), 'object')} {verb} {used.ref}: {names}{more}."
    return fact(asked, summary, table_of(("user", "reference"), rows))


def events(asked: Asked) -> FirstLook:
    """List the events of the subject and its pods, newest first."""
    if not asked.state.covers("Event", next(iter(asked.subject.namespaces), "")):
        return fact(asked, "Events could not be read.", None, "inconclusive")
    refs = {ref for each in asked.subject.objects for ref in identity(asked.state, each)}
    uids = {known.uid for ref in refs if (known := asked.state.find(ref)) is not None}
    since = asked.state.now - asked.question.since_seconds if asked.question.since_seconds else 0.0
    warnings = any(word.startswith("warn") for word in asked.question.words)
    spaces = asked.subject.namespaces
    found = [
        each
        for each in asked.state.events
        if (each.uid in uids if asked.subject.named else not spaces or each.namespace in spaces)
        and each.last >= since
        and (not warnings or each.type == "Warning")
    ]
    rows = [
        (
            written(each.last),
            f"{each.kind} {each.name}",
            each.type,
            each.reason,
            str(each.count),
            " ".join(each.message.split())[:160],
        )
        for each in sorted(found, key=lambda each: -each.last)
    ]
    noun = "warning" if warnings else "event"
    hint = "" if rows else " By default, Kubernetes keeps events for one hour."
    return fact(
        asked,
        f"{counted(len(rows), noun)} {place_of(asked)}, newest first.{hint}",
        table_of(("time", "object", "type", "reason", "count", "message"), rows),
    )
