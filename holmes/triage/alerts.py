"""Takes the first look at the subject of an alert.

The labels of an alert name its subject. An alert without a subject in the cluster, for example about a certificate of
another system, never gets the cause of another problem.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import children
from holmes.kubernetes.kinds import KINDS
from holmes.triage.alert_branches import narrowed
from holmes.triage.alert_logs import told_in_log
from holmes.triage.alert_measures import explains, is_of_one_mechanism, words_of_alert
from holmes.triage.alert_objects import may_be_foreign, of_objectives, of_parts, of_routers, of_scrape_job
from holmes.triage.alert_subjects import HEARTBEAT, is_heartbeat, namespace_of, subject_of
from holmes.triage.asked import Asked
from holmes.triage.at_once import judged_at_once
from holmes.triage.causes import look_for_cause
from holmes.triage.ledger import unread
from holmes.triage.names import names_of
from holmes.triage.periods import Period
from holmes.triage.question import parse_question
from holmes.triage.subjects import Named, Subject
from holmes.values.expressions import expression
from holmes.values.first_look import FirstLook

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holmes.diagnosis.scan import ScanResult
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.alert_subjects import Subject as AlertSubject
    from holmes.triage.names import Names

_OVER: Final = expression(
    r"(?i)(?:pod|deployment|statefulset|daemonset|replica|container|job|node|workload|app|service).{0,20}(?:not.?ready|unready"
    r"|mismatch|rollout.?stuck|not.?rolled.?out|waiting|failed|not.?completed|not.?scheduled|misscheduled|unavailable"
    r"|pending|image.?pull|down)$"
)
"""Names of alerts whose condition is the state of an object. If the object is well, the alert is over."""
_OF_NODES: Final = expression(r"^(?:Kube)?(?:Node|Host|Kubelet|Machine)")
_KINDS: Final = {kind.name.lower(): kind.name for kind in KINDS}
_OWNERS: Final = {
    "Pod": ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "ReplicaSet"),
    "ReplicaSet": ("Deployment",),
    "Job": ("CronJob",),
}
_PLACE_LABELS: Final = ("cluster", "env", "environment", "stage", "region")
_OF_OTHERS: Final = frozenset({"22", "161", "443", "6443", "9100", "10250", "10257", "10259", "2379"})
"""Ports of machines and control planes. A pod with the same address does not answer there."""
_ADDRESS_PORTS: Final = frozenset({"", "9100", "10250", "10249", "10255"})
"""The ports at which a node itself, not one of its pods, is measured."""
_WORKLOAD_LABELS: Final = (
    "workload",
    "app",
    "app_kubernetes_io_name",
    "application",
    "service_name",
    "component",
    "container",
)


_MOST_BESIDE: Final = 2
_LATELY: Final = Period.lately(3_600.0, "the last hour")
"""An alert fires because of something that happened lately."""


def look_at_alerts(alerts: Sequence[Mapping[str, str]], scan: ScanResult, namespace: str = "") -> FirstLook:
    """Return the first look at the alerts of a group.

    They have a common cause only if it explains each of them. Otherwise, the first alert decides the verdict, and each
    subject has one line.
    """
    looks = [_look(labels, scan, namespace) for labels in alerts]
    told = [look for look in looks if look.verdict != "not_investigated"] or looks[:1]
    if len({(look.verdict, look.culprit) for look in told}) == 1:
        return told[0]
    lines = dict.fromkeys(f"{', '.join(look.subject[:1]) or 'no object'}: {look.summary}" for look in told)
    return replace(told[0], lines=(*told[0].lines, *lines))


def asked_by(labels: Mapping[str, str], scan: ScanResult, namespace: str) -> Asked | None:
    """Return the question that an alert asks about its subject, or None if its labels name no object of the cluster."""
    names = names_of(scan.state)
    objects = _objects(labels, names, namespace_of(labels) or ("" if namespace == "*" else namespace))
    if not objects or is_heartbeat(labels):
        return None
    subject = Subject(
        named=(Named(name=objects[0].name, objects=objects),),
        namespaces=(objects[0].namespace,) if objects[0].namespace else (),
    )
    question = parse_question(f"why {_said(labels)}")
    question = replace(question, period=_LATELY, labels=(), comparisons=(), complains=False)
    return Asked(question=question, subject=subject, state=scan.state, report=scan.report, alerted=True)


def _said(labels: Mapping[str, str]) -> str:
    """Return the words of an alert: those of its name, and its annotations."""
    notes = (labels.get(name, "") for name in ("summary", "description", "message"))
    return " ".join((*words_of_alert(labels.get("alertname", "")), *notes))


def _look(labels: Mapping[str, str], scan: ScanResult, namespace: str) -> FirstLook:
    name = labels.get("alertname", "the alert")
    if is_heartbeat(labels):
        return FirstLook(verdict="not_investigated", summary=HEARTBEAT, taken_at=scan.report.taken_at)
    asked = asked_by(labels, scan, namespace)
    if asked is None or _is_elsewhere(labels, asked):
        return _outside(labels, scan, name)
    asked, beside = narrowed(judged_at_once(asked), labels, words_of_alert(name))
    look = look_for_cause(asked)
    silent = look.verdict in ("healthy", "inconclusive") and not look.evidence
    told = told_in_log(asked, labels) if silent else None
    look = told or look
    notes = (f"Elsewhere than the labels name, {each}" for each in beside[:_MOST_BESIDE])
    look = replace(look, others=(*look.others, *beside), notes=(*look.notes, *notes))
    if look.verdict == "cause_found" and any(each.group for each in asked.subject.objects):
        return look  # the labels name the custom object, and its operator the cause
    return _fitting(look, name, asked, literal=told is not None)


def _is_elsewhere(labels: Mapping[str, str], asked: Asked) -> bool:
    """Return whether a label such as `env` contradicts the same label of the subject or its namespace."""
    first = asked.subject.objects[0]
    space = asked.state.get("Namespace", "", first.namespace)
    known = {**(space.labels if space is not None else {}), **first.labels}
    return any(name in known and labels.get(name, known[name]) != known[name] for name in _PLACE_LABELS)


def _fitting(look: FirstLook, name: str, asked: Asked, *, literal: bool) -> FirstLook:
    """Return the look, or an inconclusive look if its verdict does not fit the mechanism of the alert's name.

    `literal` means that the cause quotes a value of the alert's labels.
    """
    subject = look.subject[0] if look.subject else "its subject"
    if look.verdict == "healthy" and not _is_over(name, asked):
        summary = f"The cause of `{name}` cannot be determined: nothing in the cluster is wrong with {subject}."
        return replace(look, verdict="inconclusive", summary=summary)
    if look.verdict == "answered":
        return replace(look, verdict="inconclusive")
    if look.verdict != "cause_found" or explains(name, look, asked, literal=literal):
        return look
    summary = (
        f"The cause of `{name}` cannot be determined from the cluster's objects, events and logs. "
        f"{subject} has another incident, and nothing shows that it explains this alert: {look.summary}"
    )
    return replace(
        look,
        verdict="inconclusive",
        summary=summary,
        severity=None,
        culprit="",
        since="",
        evidence=(),
        chain=(),
        fix=(),
        others=(f"{look.culprit}: {look.summary}", *look.others),
    )


def _is_over(name: str, asked: Asked) -> bool:
    """Return whether a healthy subject shows that an alert is over: it is about the state of such an object."""
    condition = _OVER.search(name)
    of_job = condition is not None and condition[0].lower().startswith("job")  # a pod knows jobs of its own
    return (
        condition is not None
        and not is_of_one_mechanism(name)
        and (not of_job or asked.subject.objects[0].kind in ("Job", "CronJob"))
    )


def _outside(labels: Mapping[str, str], scan: ScanResult, name: str) -> FirstLook:
    subject = None if _is_probe(labels) else subject_of(labels)
    wanted = f"{subject.kind} {subject.namespace + '/' if subject.namespace else ''}{subject.name}" if subject else ""
    if subject is not None and unread(scan.state, (subject.kind,), (subject.namespace,) if subject.namespace else ()):
        text = f"Cannot determine whether {wanted}, the subject of `{name}`, exists: {subject.kind} could not be read."
        return FirstLook(verdict="inconclusive", summary=text, taken_at=scan.report.taken_at)
    if subject is not None and may_be_foreign(subject, labels, of_node=bool(_OF_NODES.search(name))):
        text = (
            f"The cause of `{name}` cannot be determined: this cluster has no {wanted}. The labels of the alert may "
            "name something else."
        )
        return FirstLook(verdict="inconclusive", summary=text, taken_at=scan.report.taken_at)
    if wanted:
        text = f"{wanted}, the subject of `{name}`, does not exist in this cluster. It may have been deleted."
        return FirstLook(verdict="not_found", summary=text, taken_at=scan.report.taken_at)
    text = (
        f"The labels of `{name}` name no object of this cluster, so its cause cannot be determined from the cluster's "
        "objects, events and logs."
    )
    others = sum(each.severity != "info" for each in scan.report.incidents)
    note = f"Other incidents in the cluster: {others}. Nothing connects them to this alert."
    return FirstLook(
        verdict="inconclusive", summary=text, notes=(note,) if others else (), taken_at=scan.report.taken_at
    )


def _objects(labels: Mapping[str, str], names: Names, space: str) -> tuple[ClusterObject, ...]:
    """Return the objects that the labels name, the most specific label first."""
    subject = subject_of(labels)
    instance = _host(labels.get("instance") or labels.get("target", ""))
    if _is_probe(labels) and instance:
        return names.at_address(instance)
    spaces = (space,) if space else ()
    custom = _of_custom_labels(labels, names, spaces) or of_routers(labels, names)
    if custom:
        return custom
    node = names.named(labels.get("node", ""), "Node") if _OF_NODES.search(labels.get("alertname", "")) else ()
    found = node or (_of_subject(subject, names, spaces) if subject is not None else ())
    if not found:
        found = _of_generic_labels(labels, names, spaces)
    if found or (subject is not None and not may_be_foreign(subject, labels, of_node=bool(node))):
        return found
    workloads = (names.named(labels.get(label, ""), "", spaces) for label in _WORKLOAD_LABELS if space)
    other = of_objectives(labels, names, spaces) or of_parts(labels, names, spaces) or next(filter(None, workloads), ())
    if other or subject is not None:
        return other
    port = labels.get("instance", "").rpartition(":")[2] if ":" in labels.get("instance", "") else ""
    there = tuple(each for each in names.at_address(instance) if _listens(each, port))
    return there or names.named(instance, "Node") or of_scrape_job(labels, names, spaces)


def _of_generic_labels(labels: Mapping[str, str], names: Names, spaces: tuple[str, ...]) -> tuple[ClusterObject, ...]:
    """Return the object of `kind` and `name`. A kind that Kubernetes does not have is something else."""
    kind, name = labels.get("kind", "").lower(), labels.get("name") or labels.get("object", "")
    known = {**names.kinds, **_KINDS}
    if not name or (kind and kind not in known):
        return _of_custom_labels(labels, names, spaces, by_title=True)
    found = names.named(name, known.get(kind, ""), spaces)
    return found if spaces or len({each.namespace for each in found}) == 1 else ()


def _of_custom_labels(
    labels: Mapping[str, str], names: Names, spaces: tuple[str, ...], *, by_title: bool = False
) -> tuple[ClusterObject, ...]:
    """Return the custom object that a label with the name of its kind names: `schedule` for a Schedule of Velero.

    Labels with other names count if the name of the alert contains the kind (`by_title`).
    """
    title = labels.get("alertname", "").lower() if by_title else ""
    for label, value in labels.items():
        of_kind = label.replace("_", "").lower() if label not in _PLACE_LABELS else ""
        for each in names.named(value, "", spaces):
            if each.group and (each.kind.lower() == of_kind or each.kind.lower() in title):
                return (each,)
    return ()


def _listens(each: ClusterObject, port: str) -> bool:
    """Return whether the port of an address belongs to the object."""
    if each.kind == "Node":
        return port in _ADDRESS_PORTS
    ports = [one for container in each.children("spec", "containers") for one in children(container, "ports")]
    known = {
        str(one.get(key)) for one in (*ports, *each.children("spec", "ports")) for key in ("containerPort", "port")
    }
    return port in known or port not in _OF_OTHERS


def _of_subject(subject: AlertSubject, names: Names, spaces: tuple[str, ...]) -> tuple[ClusterObject, ...]:
    """Return the object of the labels, the object at its address, or the owner of a pod that no longer exists."""
    if subject.kind == "Node":
        return names.named(subject.name, "Node") or names.at_address(subject.name)
    places = (subject.namespace,) if subject.namespace else spaces
    exact = names.named(subject.name, subject.kind, places)
    if exact or subject.kind not in _OWNERS:
        return exact
    gone = names.named(subject.workload, "", spaces)
    return tuple(each for each in gone if each.kind in _OWNERS[subject.kind])


def _is_probe(labels: Mapping[str, str]) -> bool:
    """Return whether the labels are those of a black-box probe, whose own pod and Service are not the subject."""
    return any("blackbox" in labels.get(name, "") for name in ("job", "pod", "service"))


def _host(target: str) -> str:
    """Return the host of a URL or an address with a port."""
    return (
        target.partition("://")[2].partition("/")[0].partition(":")[0] if "://" in target else target.partition(":")[0]
    )
