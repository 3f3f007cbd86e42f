"""Takes the first look at the subject of an alert.

The labels of an alert name its subject. An alert without a subject in the cluster, for example about a certificate of
another system, never gets the cause of another problem.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.triage.alert_subjects import HEARTBEAT, is_heartbeat, namespace_of, subject_of
from holmes.triage.asked import Asked
from holmes.triage.at_once import judged_at_once
from holmes.triage.causes import look_for_cause
from holmes.triage.names import names_of
from holmes.triage.question import parse_question
from holmes.triage.scopes import VISIBLE
from holmes.triage.subjects import Named, Subject
from holmes.triage.vocabulary import symptoms_of_text
from holmes.values.first_look import FirstLook

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holmes.diagnosis.scan import ScanResult
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.alert_subjects import Subject as AlertSubject
    from holmes.triage.names import Names

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SPECIFIC: Final = re.compile(
    r"(?i)certificate|cert\b|certs\b|tls|x509|expir|replication|replica(?:tion)?.?lag|\blag|backup|clock|skew|ntp|raid|smart|bandwidth"
    r"|conntrack|temperature|license|rotation|scrape|rule.?failure|config.?reload|remote.?write|wal\b|heartbeat"
    r"|slow.?quer|deadlock|too.?many.?connections|cache.?hit|throttl|queue|consumer"
    r"|filesystem|diskio|iops|swap|entropy|bond|network.?interface|edac|systemd|prometheus|alertmanager|thanos|loki"
)
"""Alerts about one mechanism. A fault of another kind does not explain them."""
_WORKLOAD_LABELS: Final = (
    "workload",
    "app",
    "app_kubernetes_io_name",
    "application",
    "service_name",
    "component",
    "container",
)


def look_at_alerts(alerts: Sequence[Mapping[str, str]], scan: ScanResult, namespace: str = "") -> FirstLook:
    """Return the first look at the first alert with a cause, or else at the first alert."""
    looks = [_look(labels, scan, namespace) for labels in alerts]
    return next((look for look in looks if look.verdict == "cause_found"), looks[0])


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
    return Asked(question=question, subject=subject, state=scan.state, report=scan.report)


def _said(labels: Mapping[str, str]) -> str:
    """Return the words of an alert: those of its name, and its annotations."""
    notes = (labels.get(name, "") for name in ("summary", "description", "message"))
    return " ".join((*_WORDS.findall(labels.get("alertname", "")), *notes))


def _look(labels: Mapping[str, str], scan: ScanResult, namespace: str) -> FirstLook:
    name = labels.get("alertname", "the alert")
    if is_heartbeat(labels):
        return FirstLook(verdict="not_investigated", summary=HEARTBEAT, taken_at=scan.report.taken_at)
    asked = asked_by(labels, scan, namespace)
    if asked is None:
        return _outside(labels, scan, name)
    return _fitting(look_for_cause(judged_at_once(asked)), name, _said(labels))


def _fitting(look: FirstLook, name: str, text: str) -> FirstLook:
    """Return the look, or an inconclusive look if the alert is about one mechanism and the cause about another one."""
    about = " ".join(_WORDS.findall(name))
    visible = name.startswith("Kube") or bool(parse_question(about).symptoms & VISIBLE)
    if look.verdict == "healthy" and (_SPECIFIC.search(f"{name} {about}") or not visible):
        summary = f"The cause of `{name}` cannot be determined: nothing in the cluster is wrong with {look.subject[0]}."
        return replace(look, verdict="inconclusive", summary=summary)
    if look.verdict != "cause_found" or not _SPECIFIC.search(f"{name} {about}"):
        return look
    if symptoms_of_text(look.summary) & symptoms_of_text(f"{about} {text}".lower()) - {"unreachable"}:
        return look
    summary = (
        f"The cause of `{name}` cannot be determined from the cluster's objects, events and logs. "
        f"{look.subject[0] if look.subject else 'Its subject'} has another incident, which does not explain this alert."
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
    )


def _outside(labels: Mapping[str, str], scan: ScanResult, name: str) -> FirstLook:
    subject = None if _is_probe(labels) else subject_of(labels)
    wanted = f"{subject.kind} {subject.namespace + '/' if subject.namespace else ''}{subject.name}" if subject else ""
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
    found = _of_subject(subject, names, spaces) if subject is not None else ()
    kind, name = labels.get("kind", ""), labels.get("name") or labels.get("object", "")
    if not found and name:
        found = names.named(name, kind[:1].upper() + kind[1:], spaces) or names.named(name, "", spaces)
    if subject is not None:
        return found
    workloads = (names.named(labels.get(label, ""), "", spaces) for label in _WORKLOAD_LABELS if space)
    return found or next(filter(None, workloads), ()) or names.at_address(instance) or names.named(instance, "Node")


def _of_subject(subject: AlertSubject, names: Names, spaces: tuple[str, ...]) -> tuple[ClusterObject, ...]:
    """Return the object of the labels, the object at its address, or the owner of a pod that no longer exists."""
    if subject.kind == "Node":
        return names.named(subject.name, "Node") or names.at_address(subject.name)
    exact = names.named(subject.name, subject.kind, (subject.namespace,) if subject.namespace else spaces)
    gone = subject.kind in ("Pod", "ReplicaSet", "Job")
    return exact or (names.named(subject.workload, "", spaces) if gone else ())


def _is_probe(labels: Mapping[str, str]) -> bool:
    """Return whether the labels are those of a black-box probe, whose own pod and Service are not the subject."""
    return any("blackbox" in labels.get(name, "") for name in ("job", "pod", "service"))


def _host(target: str) -> str:
    """Return the host of a URL or an address with a port."""
    return (
        target.partition("://")[2].partition("/")[0].partition(":")[0] if "://" in target else target.partition(":")[0]
    )
