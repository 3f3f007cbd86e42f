"""Answers questions of fact from the objects of a scan: numbers, lists, images, nodes, limits, changes and events.

The table shows at most 15 rows and states how many there are. If a part of the question could not be applied, the
answer gives no number.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import recent_changes, replica_sets_newest_first, revision
from holmes.diagnosis.facts.evidence import shown
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.status import status_of
from holmes.kubernetes.fields import child, children, duration, integer, text, written
from holmes.triage.connections import identity
from holmes.triage.markdown import counted, namespace_option, resource_path
from holmes.triage.selection import WORKLOAD_KINDS, images_of, pod_spec, restarts, select
from holmes.triage.users import users_of
from holmes.values.first_look import FirstLook, FixStep, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.causes import Asked
    from holmes.triage.selection import Selection
    from holmes.values.json_types import JsonValue
    from holmes.values.verdicts import VerdictKind

MOST_ROWS: Final = 15
_KEY_PARTS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
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


def table_of(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table | None:
    """Return a table with the first 15 rows, or None if there are no rows."""
    if not rows:
        return None
    lines = tuple(" | ".join(cell.replace("|", "/") or "-" for cell in row) for row in rows[:MOST_ROWS])
    return Table(header=" | ".join(header), rows=lines, total=len(rows))


def fact(
    asked: Asked, summary: str, table: Table | None = None, verdict: VerdictKind = "answered", **more: tuple[str, ...]
) -> FirstLook:
    """Return the answer to a question of fact."""
    return FirstLook(
        verdict=verdict,
        summary=summary,
        subject=tuple(str(each.ref) for each in asked.subject.objects[:4]),
        scope=asked.subject.place,
        table=table,
        not_checked=more.get("not_checked", ()),
        lines=more.get("lines", ()),
        notes=more.get("notes", ()),
        taken_at=asked.report.taken_at,
    )


def number_or_list(asked: Asked) -> FirstLook:
    """Answer "how many" and "which": the number of matching objects, and a table of them."""
    if asked.question.asks("count") and any(each.sense == "word" and each.name == "containers" for each in asked.question.found):
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
    if grouping and len(found) > 1:
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
        return fact(asked, "Not answered: a part of the question could not be applied to containers.", None, "inconclusive")
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
    return fact(asked, f"{counted(len(found), 'container')} {asked.subject.place}{told}.", table_of(("pod", "container", "restarts"), rows))


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


def _grouped(by: str, found: Sequence[ClusterObject]) -> Table | None:
    values: Mapping[str, Callable[[ClusterObject], str]] = {
        "namespace": lambda each: each.namespace,
        "node": lambda each: each.text("spec", "nodeName"),
        "phase": lambda each: each.text("status", "phase"),
        "status": status_of,
    }
    value = values.get(_SAME.get(by, by), lambda each: each.labels.get(by, ""))
    numbers = Counter(value(each) or "-" for each in found)
    return table_of((by, "number"), [(name, str(number)) for name, number in numbers.most_common()])


def _path(each: ClusterObject) -> str:
    return each.ref.path


def _listed(asked: Asked, found: Sequence[ClusterObject]) -> Table | None:
    def age(each: ClusterObject) -> str:
        return duration(asked.state.age_seconds(each))

    columns: dict[str, tuple[tuple[str, Callable[[ClusterObject], str]], ...]] = {
        "Pod": (("status", lambda each: status_of(each).rpartition(",")[0]), ("restarts", lambda each: str(restarts(each))), ("age", age), ("node", lambda each: each.text("spec", "nodeName"))),
        "Node": (("status", status_of), ("age", age), ("version", lambda each: each.text("status", "nodeInfo", "kubeletVersion"))),
        "Service": (("type", lambda each: each.text("spec", "type") or "ClusterIP"), ("address", lambda each: each.text("spec", "clusterIP")), ("ports", _ports), ("age", age)),
        "Ingress": (("hosts", lambda each: ", ".join(text(rule, "host") for rule in each.children("spec", "rules"))), ("age", age)),
    }  # fmt: skip
    kinds = {each.kind for each in found}
    first = next(iter(kinds))
    chosen = columns.get(first) if len(kinds) == 1 else None
    if chosen is None:
        chosen = (("status", status_of), ("age", age))
    name = "name" if len(kinds) == 1 else "object"
    rows = [(_path(each) if len(kinds) == 1 else str(each.ref), *(cell(each) for _, cell in chosen)) for each in found]
    return table_of((name, *(title for title, _ in chosen)), rows)


def _ports(each: ClusterObject) -> str:
    return ", ".join(
        f"{integer(one, 'port')}→{one.get('targetPort', integer(one, 'port'))}"
        for one in each.children("spec", "ports")
    )


def _pods_or_workloads(asked: Asked) -> tuple[ClusterObject, ...]:
    """Return the named objects with pods, or all workloads in the scope of the question."""
    if asked.subject.named:
        return tuple(each for each in asked.subject.objects if each.kind in (*WORKLOAD_KINDS, "Pod"))
    kinds = [kind for kind in asked.question.kinds if kind in (*WORKLOAD_KINDS, "Pod")] or list(WORKLOAD_KINDS)
    return tuple(each for kind in kinds for each in asked.state.of(kind) if asked.subject.contains(each))


def images(asked: Asked) -> FirstLook:
    """List the images of the running pods, which can differ from the template of their workload."""
    part = next((word for word in (*asked.question.words, *asked.question.quoted) if ":" in word or "/" in word), "")
    if part and "Pod" in asked.question.kinds:
        return _with_image(asked, part)
    pods = [pod for each in _pods_or_workloads(asked) for pod in asked.state.pods_of(each) or (each,)]
    used: dict[tuple[str, str], int] = Counter(
        (str(asked.state.workload_of(pod).ref), image) for pod in dict.fromkeys(pods) for image in images_of(pod)
    )
    rows = [(owner, image, str(number)) for (owner, image), number in sorted(used.items())]
    names = sorted({image for _, image in used})
    summary = f"{counted(len(names), 'image')} {_of(asked)}{': ' + ', '.join(names[:4]) if len(names) <= 4 else ''}."
    return fact(asked, summary, table_of(("workload", "image", "pods"), rows))


def _with_image(asked: Asked, part: str) -> FirstLook:
    """List the pods with an image that contains `part`."""
    pods = [pod for pod in asked.state.of("Pod") if asked.subject.contains(pod) and any(part in image.lower() for image in images_of(pod))]
    rows = [(_path(pod), ", ".join(images_of(pod)), status_of(pod)) for pod in pods]
    return fact(asked, f"{counted(len(rows), 'pod')} {asked.subject.place} with image {part}.", table_of(("pod", "images", "status"), rows))


def _of(asked: Asked) -> str:
    return f"of {asked.subject.objects[0].ref}" if asked.subject.named else asked.subject.place


def placement(asked: Asked) -> FirstLook:
    """List the nodes on which the pods of the subject run."""
    found = _pods_or_workloads(asked)
    pods = dict.fromkeys(pod for each in found for pod in asked.state.pods_of(each))
    if not pods and asked.subject.named:
        return _addresses(asked)
    rows = [(_path(pod), pod.text("spec", "nodeName") or "no node", status_of(pod)) for pod in pods]
    nodes = sorted({row[1] for row in rows})
    return fact(
        asked,
        f"{counted(len(rows), 'pod')} {_of(asked)} on {', '.join(nodes) or 'no node'}.",
        table_of(("pod", "node", "status"), rows),
    )


def _addresses(asked: Asked) -> FirstLook:
    rows = [
        (
            str(each.ref),
            each.text("status", "podIP")
            or each.text("spec", "clusterIP")
            or ", ".join(text(one, "address") for one in each.children("status", "addresses")),
            status_of(each),
        )
        for each in asked.subject.objects
    ]
    summary = "; ".join(f"{row[0]}: {row[1] or 'no address'}" for row in rows[:4])
    return fact(asked, f"{summary}.", table_of(("object", "address", "status"), rows))


def addresses(asked: Asked) -> FirstLook:
    """Return the addresses of the named objects, or the objects at a named address."""
    return _addresses(asked) if asked.subject.named else number_or_list(asked)


def replicas(asked: Asked) -> FirstLook:
    """Return the wanted and the ready replicas of workloads."""
    found = [each for each in _pods_or_workloads(asked) if each.kind != "Pod"]
    rows = [(str(each.ref), status_of(each)) for each in found]
    summary = f"{rows[0][0]}: {rows[0][1]}." if len(rows) == 1 else f"{counted(len(rows), 'workload')} {_of(asked)}."
    return fact(asked, summary, table_of(("workload", "replicas"), rows) if len(rows) > 1 else None)


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
    summary = f"{counted(len(rows), 'change')} {_of(asked)} in the last {duration(span)}"
    newest = f"; the newest: {rows[0][1]} {rows[0][2]} at {rows[0][0]}" if rows else ""
    return fact(asked, f"{summary}{newest}.", table_of(("time", "object", "change"), rows))


def history(asked: Asked) -> FirstLook:
    """List the revisions of a Deployment."""
    deployment = next((each for each in asked.subject.objects if each.kind == "Deployment"), None)
    if deployment is None:
        return number_or_list(asked)
    sets = replica_sets_newest_first(asked.state, deployment)
    rows = [(str(revision(each)), written(each.created), ", ".join(images_of(each)), status_of(each)) for each in sets]
    return fact(
        asked,
        f"{counted(len(rows), 'revision')} of {deployment.ref}.",
        table_of(("revision", "created", "images", "replicas"), rows),
    )


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
    return fact(
        asked,
        f"{counted(len(rows), 'object')} use{'s' if len(rows) == 1 else ''} {used.ref}: {names}{', …' if len(rows) > 4 else ''}.",
        table_of(("user", "reference"), rows),
    )


def events(asked: Asked) -> FirstLook:
    """List the events of the subject and its pods, newest first."""
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
        f"{counted(len(rows), noun)} {_of(asked)}, newest first.{hint}",
        table_of(("time", "object", "type", "reason", "count", "message"), rows),
    )


def settings(asked: Asked) -> FirstLook:
    """Return the fields of the named objects whose names match words of the question, for example `readinessProbe`."""
    words = set(asked.question.words) | {word.removesuffix("s") for word in asked.question.words}
    rows = [
        (str(each.ref), path, shown(value))
        for each in asked.subject.objects
        if each.kind != "Secret"
        for path, value in _fields(each.body.get("spec", {}), "spec")
        if _is_named(path, words)
    ]
    if not rows:
        about = asked.subject.objects[0].ref
        return fact(asked, f"The spec of {about} has no such field.")
    summary = (
        f"{rows[0][0]}: {rows[0][1]} is {rows[0][2]}."
        if len(rows) == 1
        else f"{counted(len(rows), 'field')} {_of(asked)}."
    )
    return fact(asked, summary, table_of(("object", "field", "value"), rows) if len(rows) > 1 else None)


def _fields(value: JsonValue, path: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield each field below `value` with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{path}.{key}", item
            yield from _fields(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _fields(item, f"{path}[{index}]")


def _is_named(path: str, words: set[str]) -> bool:
    """Return whether the last key of the path consists of words of the question."""
    parts = {part.lower().removesuffix("s") for part in _KEY_PARTS.findall(path.rpartition(".")[2])}
    return bool(parts) and parts <= words


def described(asked: Asked) -> FirstLook:
    """Return the state of the named objects and their conditions."""
    if not asked.subject.named:
        return number_or_list(asked)
    rows = [
        (
            str(each.ref),
            text(one, "type"),
            text(one, "status"),
            text(one, "reason"),
            " ".join(text(one, "message").split())[:160],
        )
        for each in asked.subject.objects
        for one in each.children("status", "conditions")
    ]
    first = asked.subject.objects[0]
    age = duration(asked.state.age_seconds(first))
    look = fact(
        asked,
        f"{first.ref}: {status_of(first)}, age {age}.",
        table_of(("object", "condition", "status", "reason", "message"), rows),
    )
    if first.kind == "Secret":
        return look
    command = f"kubectl get {shlex.quote(resource_path(first.ref))}{namespace_option(first.ref)} -o yaml"
    return replace(look, fix=(FixStep(command=command, note="prints the whole object"),))
