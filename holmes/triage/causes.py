"""Answers why a subject fails, and whether it is healthy, from the incidents of a scan.

An incident is the cause only if its culprit, or an object between culprit and symptom, is the subject or serves it.
Otherwise the answer is that the cause was not found. Other incidents are mentioned, but never blamed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.status import status_of
from holmes.kubernetes.fields import duration, written
from holmes.triage.connections import connections, identity
from holmes.triage.log_evidence import cause_in_logs
from holmes.triage.states import is_ready, stop_of
from holmes.triage.subjects import narrowing
from holmes.triage.vocabulary import symptoms_of_text
from holmes.values.findings import SEVERITIES
from holmes.values.first_look import FirstLook
from holmes.values.fixes import fix_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.connections import Connection
    from holmes.triage.log_evidence import LogCause
    from holmes.triage.question import Question
    from holmes.triage.subjects import Named, Subject
    from holmes.values.findings import DiagnosisReport, Incident, ObjectRef
    from holmes.values.verdicts import VerdictKind

_MOST_EVIDENCE: Final = 3
_MOST_OTHERS: Final = 8
_MOST_GAPS: Final = 6
_MOST_NEIGHBOURS: Final = 12
_VALUE_CHARACTERS: Final = 260
_LOGGING: Final = ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job")
_MOST_LOGGING: Final = 20
VISIBLE: Final = frozenset({"crash", "start", "image", "ready", "evicted", "scaling", "rollout", "job"})
"""Symptoms that objects of the cluster always show. If they show none, the subject does not have the symptom."""
_UPSTREAM: Final = frozenset({
    "Service", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod", "Secret", "ConfigMap",
    "PersistentVolumeClaim", "PersistentVolume", "ServiceAccount", "Role", "RoleBinding", "ClusterRole",
    "ClusterRoleBinding", "EndpointSlice", "IngressClass",
})  # fmt: skip
"""Kinds whose faults can harm an object that itself looks healthy. Faults of others show in the object's own state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question about a cluster, with the scan that answers it."""

    question: Question
    subject: Subject
    state: ClusterState
    report: DiagnosisReport


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """An incident that can explain the subject's problem.

    `own` means that the incident involves the subject itself. `hops` is the distance from the subject to the culprit.
    """

    incident: Incident
    own: bool
    hops: int
    symptoms: int
    path: tuple[ObjectRef, ...]

    @property
    def rank(self) -> tuple[bool, int, int, int]:
        """A sort key that puts the best explanation first."""
        severity = SEVERITIES.index(self.incident.severity)
        return (self.incident.severity == "info", not self.own, -self.symptoms, severity * 10 + self.hops)


def look_for_cause(asked: Asked) -> FirstLook:
    """Answer a question about the cause of a problem, or about the health of the subject."""
    if len(asked.subject.named) > 1:
        return _of_several(asked)
    if asked.subject.named:
        return _of_named(asked, asked.subject.named[0])
    return _of_scope(asked)


def _of_named(asked: Asked, named: Named) -> FirstLook:
    found = connections(asked.state, named.objects)
    own = frozenset(ref for each in named.objects for ref in identity(asked.state, each))
    candidates = sorted(_candidates(asked, own, found), key=lambda each: each.rank)
    best = next((each for each in candidates if _explains(asked, each)), None)
    if best is not None:
        return _with_cause(asked, best, named)
    logged = cause_in_logs(asked.state, named.objects)
    if logged is not None:
        return _from_logs(asked, named, logged)
    noted = next((each for each in candidates if _is_deliberate(asked, each, own)), None)
    if noted is not None:
        return _with_cause(asked, noted, named)
    stopped = next((each for each in named.objects if stop_of(each)[0]), None) if asked.question.asks("why") else None
    return _stopped(asked, named, stopped) if stopped is not None else _without_cause(asked, named, own)


def _stopped(asked: Asked, named: Named, each: ClusterObject) -> FirstLook:
    field, effect = stop_of(each)
    return FirstLook(
        verdict="cause_found",
        summary=f"{each.ref} {effect} ({field}).",
        subject=_subject_words(named),
        scope=asked.subject.place,
        severity="info",
        culprit=str(each.ref),
        evidence=(f"{each.ref}, {field}",),
        others=_others(asked, None),
        not_checked=_gaps(asked),
        notes=tuple(_notes(asked, named)),
        taken_at=asked.report.taken_at,
    )


def _is_deliberate(asked: Asked, candidate: _Candidate, own: frozenset[ObjectRef]) -> bool:
    """Return whether a note explains what the question asks for, for example a cordoned node or a suspended job."""
    return asked.question.asks("why") and candidate.own and candidate.incident.culprit in own


def _from_logs(asked: Asked, named: Named | None, found: LogCause) -> FirstLook:
    first, last = found.groups[0], found.groups[-1]
    said = f"the log of {last.workload.ref} reports {last.span}: {last.sample.strip()}"
    behind = f" {found.culprit} is what it needs." if found.culprit != last.workload.ref else ""
    return FirstLook(
        verdict="cause_found",
        summary=f"{one_sentence(said[0].upper() + said[1:])}{behind}",
        subject=_subject_words(named),
        scope=asked.subject.place,
        severity="warning",
        culprit=str(found.culprit),
        since=written(first.first) if first.first else "",
        evidence=tuple(
            f"{each.key.pod}, log of container {each.key.container}: {each.sample.strip()}" for each in found.groups
        ),
        chain=tuple(map(str, found.path)) if len(found.path) > 1 else (),
        neighbours=_neighbours(asked, named),
        others=_others(asked, None),
        not_checked=_gaps(asked),
        notes=("Kubernetes itself reports nothing wrong; only the logs do.", *_notes(asked, named)),
        taken_at=asked.report.taken_at,
    )


def _candidates(asked: Asked, own: frozenset[ObjectRef], found: Mapping[ObjectRef, Connection]) -> Iterator[_Candidate]:
    for incident in asked.report.incidents:
        involved = {incident.culprit, *(each.subject for each in incident.findings)}
        involved |= {each.subject for each in incident.symptoms} | set(incident.affected)
        causes = [
            found[ref] for ref in (incident.culprit, *(each.subject for each in incident.findings)) if ref in found
        ]
        mine = bool(involved & own)
        if not mine and not causes:
            continue
        nearest = min(causes, key=lambda each: each.hops, default=None)
        symptoms = symptoms_of_text(f"{incident.title} {incident.cause}") & asked.question.symptoms
        yield _Candidate(
            incident=incident,
            own=mine,
            hops=nearest.hops if nearest is not None else 1,
            symptoms=len(symptoms),
            path=nearest.path if nearest is not None else (),
        )


def _explains(asked: Asked, candidate: _Candidate) -> bool:
    incident = candidate.incident
    if incident.severity == "info":
        return False
    if candidate.own:
        return True
    wants_cause = asked.question.asks("why", "trouble") or bool(asked.question.symptoms)
    return wants_cause and incident.severity == "critical" and incident.culprit.kind in _UPSTREAM


def _with_cause(asked: Asked, best: _Candidate, named: Named | None) -> FirstLook:
    incident = best.incident
    chain = _chain(incident, best.path)
    return FirstLook(
        verdict="cause_found",
        summary=one_sentence(incident.cause or incident.title),
        subject=_subject_words(named),
        scope=asked.subject.place,
        severity=incident.severity,
        culprit=str(incident.culprit),
        since=incident.since,
        evidence=tuple(_evidence(incident)),
        chain=chain if len(chain) > 1 else (),
        fix=fix_lines(incident.fix),
        neighbours=_neighbours(asked, named),
        others=_others(asked, incident),
        not_checked=_gaps(asked),
        notes=tuple(_notes(asked, named)),
        taken_at=asked.report.taken_at,
    )


def _without_cause(asked: Asked, named: Named, own: frozenset[ObjectRef]) -> FirstLook:
    first = named.objects[0]
    words = f"{first.ref} ({status_of(first)})"
    unread = _unread(asked, first)
    symptoms = asked.question.symptoms  # a ready object does not refute a symptom that these rules do not know
    unknown = bool(asked.subject.unknown) and asked.question.asks("why") and not symptoms
    notes = [
        f"{each.severity}: {one_sentence(each.cause or each.title)}"
        for each in asked.report.incidents
        if each.severity == "info" and each.culprit in own
    ]
    verdict: VerdictKind
    if unread:
        verdict, text = "inconclusive", f"Cannot determine the state of {words}: {', '.join(unread)} could not be read."
    elif not all(map(is_ready, named.objects)):
        verdict, text = "inconclusive", _unready(asked, first, words)
    elif (symptoms - VISIBLE or unknown) and not asked.question.asks("health"):
        verdict = "inconclusive"
        text = f"The cause cannot be determined: nothing in the cluster's objects and events is wrong with {words}."
    else:
        verdict, text = "healthy", f"No fault was found in {words}."
    return FirstLook(
        verdict=verdict,
        summary=text,
        subject=_subject_words(named),
        scope=asked.subject.place,
        neighbours=_neighbours(asked, named),
        others=_others(asked, None),
        not_checked=_gaps(asked),
        notes=(*_notes(asked, named), *notes[:2]),
        taken_at=asked.report.taken_at,
    )


def _unready(asked: Asked, first: ClusterObject, words: str) -> str:
    """Return the answer for a subject that is not ready without a known cause: it may be starting."""
    pods = [pod for each in (first,) for pod in (asked.state.pods_of(each) if each.kind != "Pod" else (each,))]
    youngest = min((asked.state.age_seconds(pod) for pod in pods), default=asked.state.grace_seconds)
    if youngest < asked.state.grace_seconds:
        return f"{words} may still be starting: its newest pod is {duration(youngest)} old, and nothing failed so far."
    return f"{words} is not ready, and nothing in the cluster's objects, events and logs shows the cause."


def _of_several(asked: Asked) -> FirstLook:
    """Answer for each of the named subjects with one line, and give the fix of the first one that has a cause."""
    looks = [_of_named(asked, named) for named in asked.subject.named[:4]]
    first = min(looks, key=lambda look: (look.verdict != "cause_found", look.verdict != "inconclusive"))
    causes = dict.fromkeys(look.summary for look in looks if look.verdict == "cause_found")
    if len(causes) == 1 and all(look.verdict == "cause_found" for look in looks):
        return replace(first, subject=tuple(name for look in looks for name in look.subject[:1]))
    lines = tuple(f"{', '.join(look.subject[:1])}: {_label(look)}{look.summary}" for look in looks)
    return replace(
        first,
        subject=tuple(name for look in looks for name in look.subject[:1]),
        lines=lines,
        evidence=(),
        others=tuple(each for each in first.others if not any(look.culprit and look.culprit in each for look in looks)),
    )


def _label(look: FirstLook) -> str:
    return f"root cause ({look.severity}): " if look.verdict == "cause_found" else ""


def _of_scope(asked: Asked) -> FirstLook:
    """Answer a question about a namespace, the whole cluster, or all objects of a kind."""
    incidents = [
        each
        for each in asked.report.incidents
        if each.severity != "info" and _of_kinds(asked, each) and _is_in(each, asked.subject.namespaces)
    ]
    symptoms = asked.question.symptoms
    matching = [each for each in incidents if not symptoms or symptoms & symptoms_of_text(f"{each.title} {each.cause}")]
    place, where = asked.subject.place, asked.subject.place + narrowing(asked.subject, asked.question)
    if matching:
        best = _Candidate(incident=matching[0], own=True, hops=0, symptoms=0, path=())
        return _with_cause(asked, best, None)
    logged = _logged_in_scope(asked)
    if logged is not None:
        return _from_logs(asked, None, logged)
    unread = [kind for kind in ("Pod", "Deployment") if not asked.state.covers(kind)]
    verdict: VerdictKind
    if unread:
        verdict, text = "inconclusive", f"Cannot determine the state {place}: {', '.join(unread)} could not be read."
    elif symptoms and incidents:
        verdict, text = "inconclusive", f"No incident {place} matches {', '.join(sorted(symptoms))}."
    elif asked.question.asks("why", "trouble") and (symptoms - VISIBLE or asked.subject.unknown):
        verdict, text = "inconclusive", f"The cause cannot be determined: no fault was found {where}."
    else:
        verdict, text = "healthy", f"No fault was found {where}."
    return FirstLook(
        verdict=verdict,
        summary=text,
        scope=place,
        others=_others(asked, None),
        not_checked=_gaps(asked),
        notes=tuple(_notes(asked, None)),
        taken_at=asked.report.taken_at,
    )


def _logged_in_scope(asked: Asked) -> LogCause | None:
    """Return the trouble that the logs of at most 20 workloads report, if the question is about all of them."""
    subject = asked.subject
    narrowed = subject.kinds or asked.question.labels
    vague = not subject.namespaces and (subject.unknown or asked.question.symptoms)
    if narrowed or vague:  # any error of any workload would look like the answer
        return None
    workloads = [each for kind in _LOGGING for each in asked.state.of(kind) if asked.subject.contains(each)]
    return cause_in_logs(asked.state, workloads) if len(workloads) <= _MOST_LOGGING else None


def _of_kinds(asked: Asked, incident: Incident) -> bool:
    kinds = {kind for kind in asked.subject.kinds if kind != "Namespace"}
    terms = asked.question.labels
    if not (kinds or terms):
        return True
    refs = (incident.culprit, *incident.affected, *(each.subject for each in (*incident.findings, *incident.symptoms)))
    objects = [each for ref in refs if (each := asked.state.find(ref)) is not None] if terms else []
    if terms and not any(all(term.holds(each.labels) for term in terms) for each in objects):
        return False
    return not kinds or any(ref.kind in kinds for ref in refs)


def one_sentence(text: str) -> str:
    """Return `text` on one line with a full stop."""
    line = " ".join(text.split())
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def _subject_words(named: Named | None) -> tuple[str, ...]:
    if named is None:
        return ()
    names = list(dict.fromkeys(str(each.ref) for each in named.objects))
    return tuple(names[:4])


def _evidence(incident: Incident) -> Iterator[str]:
    for each in incident.evidence[:_MOST_EVIDENCE]:
        value = " ".join(each.value.split())
        shown = value if len(value) <= _VALUE_CHARACTERS else f"{value[:_VALUE_CHARACTERS]}…"
        yield f"{each.object}, {each.path}: {shown or '(empty)'}"


def _chain(incident: Incident, path: tuple[ObjectRef, ...]) -> tuple[str, ...]:
    """Return the objects from the subject to the culprit, each once."""
    links = [*path, incident.culprit]
    return tuple(dict.fromkeys(map(str, links)))


def _neighbours(asked: Asked, named: Named | None) -> tuple[str, ...]:
    if named is None:
        return ()
    found = connections(asked.state, named.objects[:1])
    refs = [each.ref for each in found.values() if each.hops <= 1 and each.ref != named.objects[0].ref]
    known = [each for ref in refs if (each := asked.state.find(ref)) is not None]
    return tuple(f"{each.ref}: {status_of(each)}" for each in known[:_MOST_NEIGHBOURS])


def _others(asked: Asked, told: Incident | None) -> tuple[str, ...]:
    spaces = asked.subject.namespaces
    rest = [
        each for each in asked.report.incidents if each is not told and each.severity != "info" and _is_in(each, spaces)
    ]
    lines = [f"{each.severity}: {each.culprit}: {one_sentence(each.cause or each.title)}" for each in rest]
    return tuple(lines[:_MOST_OTHERS])


def _is_in(incident: Incident, spaces: Sequence[str]) -> bool:
    refs = (incident.culprit, *incident.affected, *(each.subject for each in (*incident.findings, *incident.symptoms)))
    return not spaces or any(ref.namespace in spaces for ref in refs)


def _gaps(asked: Asked) -> tuple[str, ...]:
    return tuple(f"{each.what}: {each.why}" for each in asked.report.not_checked[:_MOST_GAPS])


def _unread(asked: Asked, each: ClusterObject) -> list[str]:
    """Return the kinds without which the state of the object is unknown."""
    needed = ["Pod"] if each.kind in (*_LOGGING, "Service") else []
    return [kind for kind in dict.fromkeys((each.kind, *needed)) if not asked.state.covers(kind, each.namespace)]


def _notes(asked: Asked, named: Named | None) -> Iterator[str]:
    if named is not None and named.similar:
        first = named.objects[0].ref
        yield f"No object is named `{named.name}`; this answer is about {first}."
    if named is not None:
        spaces = dict.fromkeys(each.namespace for each in named.objects if each.kind == named.objects[0].kind)
        if len(spaces) > 1:
            yield f"`{named.name}` exists in {len(spaces)} namespaces: {', '.join(spaces)}."
    if asked.subject.unknown:
        words = ", ".join(f"`{word}`" for word in asked.subject.unknown)
        yield f"Not understood, and not taken into account: {words}."
