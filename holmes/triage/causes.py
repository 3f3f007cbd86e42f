"""Answers why a subject fails, and whether it is healthy, from the incidents of a scan.

An incident is the cause only if its culprit, or an object between culprit and symptom, is the subject or serves it.
Otherwise the answer is that the cause was not found. Other incidents are mentioned, but never blamed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.host_mentions import mentions
from holmes.diagnosis.rule_ids import FORESEEN_RULES, STUCK_ROLLOUT
from holmes.kubernetes.fields import moment
from holmes.triage.asked import is_acute, line_of, look_about, one_sentence, refs_of, with_workloads
from holmes.triage.blame import from_reason, stopped, with_cause
from holmes.triage.complaints import states_trouble
from holmes.triage.connections import connections, identity
from holmes.triage.deliveries import undelivered
from holmes.triage.gone_pods import told_by_gone_pods
from holmes.triage.harm import harms_only_others, lacks_key, leaves_serving, only_observes
from holmes.triage.intended import (
    concerns,
    is_beside,
    is_chosen,
    is_of_siblings,
    is_on,
    is_outdated,
    is_scaled,
    may_be_stopped,
    misses_work_of,
    replaces_regularly,
    says_outdated,
    stoppable,
)
from holmes.triage.log_blame import as_told, blamed, origin_of, with_origin
from holmes.triage.log_calls import speaks_of_call
from holmes.triage.log_evidence import cause_in_logs
from holmes.triage.log_feeds import stopped_feed
from holmes.triage.log_links import links_in_logs, name_servers, way_to
from holmes.triage.log_reasons import waits_for
from holmes.triage.log_troubles import NO_SUCH_NAME, REACHED, is_of_sibling, late_lines, troubles_of, workloads_of
from holmes.triage.no_cause import of_another_time, without_cause
from holmes.triage.past import happened_then, is_past, last_end, past_period, was_there
from holmes.triage.run_logs import failed_run
from holmes.triage.scopes import logged_in_scope, of_scope
from holmes.triage.states import is_ready, stop_of
from holmes.triage.suspicions import is_denied
from holmes.triage.told_by_clients import told_by_clients
from holmes.triage.unscaled import lacks_load, unscaled
from holmes.triage.vocabulary import symptoms_of_text, word_list
from holmes.values.findings import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.diagnosis.facts.line_groups import LogGroup
    from holmes.triage.asked import Asked
    from holmes.triage.connections import Connection
    from holmes.triage.question import Question
    from holmes.triage.subjects import Named
    from holmes.values.findings import Incident, ObjectRef
    from holmes.values.first_look import FirstLook

_UPSTREAM: Final = frozenset({
    "Service", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod", "Secret", "ConfigMap",
    "PersistentVolumeClaim", "PersistentVolume", "ServiceAccount", "Role", "RoleBinding", "ClusterRole",
    "ClusterRoleBinding", "EndpointSlice", "IngressClass",
})  # fmt: skip
"""Kinds whose faults can harm an object that itself looks healthy. Faults of others show in the object's own state."""
_SERVERS: Final = frozenset({"Service", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod", "EndpointSlice"})
_OF_CLIENTS: Final = frozenset({"unreachable", "ready", "crash", "start"})
"""Symptoms that a client can have because a server is down."""
_LATELY_SECONDS, _SOON_SECONDS = 600.0, 60.0
_LEAST_LINES, _MOST_NAMED = 3, 6
_NO_FAULT: Final = "No fault was found in "


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
    def rank(self) -> tuple[bool, bool, int, int, int]:
        """A sort key that puts the best explanation first, and last the faults that only new pods will have."""
        severity = SEVERITIES.index(self.incident.severity)
        foreseen = all(each.rule_id in FORESEEN_RULES for each in (*self.incident.findings, *self.incident.symptoms))
        return (
            self.incident.severity == "info", foreseen, not self.own, -self.symptoms, severity * 10 + self.hops,
        )  # fmt: skip


def look_for_cause(asked: Asked) -> FirstLook:
    """Answer a question about the cause of a problem, or about the health of the subject."""
    named = tuple(one for each in asked.subject.named for one in _by_namespace(each))
    if asked.subject.namespaces and named and all(each.match == "part" for each in named):
        look = _of_guess(asked, named)
        return look if look.verdict == "cause_found" else _of_namespace(asked) or look
    return _of_guess(asked, named) if named else of_scope(asked)


def _of_namespace(asked: Asked) -> FirstLook | None:
    """Return the cause of trouble in the namespace, if the object that a word may mean has none itself."""
    if not asked.question.wants_cause:
        return None
    look = of_scope(replace(asked, subject=replace(asked.subject, named=())))
    return look if look.verdict == "cause_found" else None


def _of_guess(asked: Asked, named: tuple[Named, ...]) -> FirstLook:
    if len(named) > 1:
        return _of_several(asked, named, namesakes=len(asked.subject.named) == 1)
    return _around(asked, named[0], _of_named(asked, named[0]))


def _around(asked: Asked, named: Named, look: FirstLook) -> FirstLook:
    """Return the cause that logs near the subject tell, if a complaint suspects a subject that has no fault itself."""
    stated = asked.question.complains and states_trouble(asked.question.text)
    if look.verdict not in ("healthy", "inconclusive") or not stated:
        return look
    own = dict.fromkeys(each.namespace for each in named.objects if each.namespace)
    spaces = asked.subject.namespaces or tuple(own)
    if not spaces:  # logs of the whole cluster have little to do with a Node
        return look
    logged = logged_in_scope(replace(asked, subject=replace(asked.subject, namespaces=spaces)), by_words=True)
    told = blamed(asked, logged, None) if logged is not None else look
    own_fault = f"No fault of {named.objects[0].ref} itself was found."
    return replace(told, notes=(*told.notes, own_fault)) if told is not look else look


def _by_namespace(named: Named) -> Iterator[Named]:
    """Yield the objects of each namespace apart, because namesakes have nothing else in common."""
    spaces = dict.fromkeys(each.namespace for each in named.objects if each.kind == named.objects[0].kind)
    if len(spaces) < 2:
        yield named
        return
    for space in spaces:
        yield replace(named, objects=tuple(each for each in named.objects if each.namespace == space))


def _of_named(asked: Asked, named: Named) -> FirstLook:
    named = with_workloads(asked, named)
    found = connections(asked.state, named.objects)
    own = frozenset(ref for each in named.objects for ref in identity(asked.state, each))
    candidates = sorted(_candidates(asked, own, found), key=lambda each: each.rank)
    fitting = [each for each in candidates if _explains(asked, named, each)]
    best = next((each for each in fitting if was_there(asked, each.incident)), None)
    if best is None or best.incident.findings[0].role == "symptom":
        told = _named_in_logs(asked, named, surely=best is None and not asked.question.wants_cause)
        if told is not None:
            look = with_origin(asked, origin_of(asked, told.incident), named, told.path)
            workloads = workloads_of(asked.state, named.objects)
            return as_told(look, told.incident, [each for one in workloads for each in troubles_of(asked.state, one)])
    if best is not None:
        best = _behind(asked, named, best) or best
        return with_origin(asked, origin_of(asked, best.incident), named, best.path)
    ended = last_end(asked, named) or failed_run(asked, named)
    if ended is not None:
        return ended
    gone = told_by_gone_pods(asked, named)
    if gone is not None:
        return gone
    if fitting:
        return of_another_time(asked, named, fitting[0].incident)
    return unscaled(asked, named) or _of_logs_or_notes(asked, named, candidates, own)


def _of_logs_or_notes(asked: Asked, named: Named, candidates: list[_Candidate], own: frozenset[ObjectRef]) -> FirstLook:
    """Answer from what the logs report, or from what stops the subject on purpose."""
    logged = cause_in_logs(asked.state, asked.question, named.objects, past_period(asked))
    if logged is not None and (asked.alerted or not is_of_sibling(asked.state, named.objects[0], logged.troubles[0])):
        return blamed(asked, logged, named)
    old = _of_old_state(asked, named)
    if old is not None:
        return old
    harming = [each for each in candidates if not is_beside(asked, named, each.incident)]
    noted = next((each for each in harming if _is_deliberate(asked, each, own) or _hangs(asked, each)), None)
    if noted is not None:
        return with_cause(asked, noted.incident, named, noted.path)
    halted = next((each for each in stoppable(asked, named) if stop_of(each)[0]), None)
    if halted is not None and may_be_stopped(asked, halted):
        missed = misses_work_of(asked, halted)
        if asked.question.asks("why") or missed:  # "no invoices are sent, what about invoice-run?"
            return stopped(asked, named, halted)
        empty = halted.at("spec", "replicas") == 0 and "zero" not in asked.question.states
        unfulfilled = not word_list("unfulfilled").isdisjoint(asked.question.words)  # "nothing lands there anymore"
        denied = unfulfilled or is_denied(asked.question, asked.subject)  # "price-sync has not run for a week"
        denied = denied or (halted.kind == "CronJob" and asked.question.asks("health"))
        if (empty or denied) and not is_scaled(asked, halted):
            asked.ledger.take("bound")
            causes = (each.incident.cause for each in candidates if each.incident.culprit == halted.ref)
            setting, effect = stop_of(halted)
            text = one_sentence(next(causes, f"{halted.ref} {effect} ({setting})"))
            return look_about(asked, named, "answered", f"{text} No other fault was found.")
    others = [each.incident for each in candidates if not each.own and each.incident.severity == "critical"]
    upstream = [each for each in others if not harms_only_others(asked.state, asked.question, each, named.objects)]
    told = undelivered(asked, named) or told_by_clients(asked, named)
    look = told or without_cause(asked, named, upstream, [each.incident for each in candidates if each.own])
    return replace(look, notes=(*look.notes, *_noted(asked, named, candidates)))


def _of_old_state(asked: Asked, named: Named) -> FirstLook | None:
    """Answer with what leaves the subject with old data or settings, although no line of its log reports trouble."""
    if is_past(asked):
        return None
    said = says_outdated(asked)
    fed = stopped_feed(asked.state, named.objects, said=said) if asked.question.wants_reason else None
    if fed is not None:
        return from_reason(asked, named, *fed)
    reason = waits_for(asked.state, named.objects) if _is_troubled(asked.question) else None
    return from_reason(asked, named, reason) if reason is not None and concerns(asked, reason.culprit) else None


def _is_troubled(question: Question) -> bool:
    """Return whether a question states trouble: "is edge ok? its certificate was renewed" does not."""
    judged = question.asks("health") and not question.asks("why", "trouble")
    return question.wants_cause and (not judged or states_trouble(question.text))


def _named_in_logs(asked: Asked, named: Named, *, surely: bool = False) -> _Candidate | None:
    """Return the incident of an object that the logs of the subject name, for example of a Job that it waits for.

    With `surely`, only a critical one counts: "is web ok" does not ask for everything that could matter.
    """
    severities = ("critical",) if surely else ("critical", "warning")
    lasting, early = (links_in_logs(asked.state, named.objects, starting=each) for each in (False, True))
    found = (
        _Candidate(incident=each, own=False, hops=len(path) - 1, symptoms=0, path=path)
        for each in asked.report.incidents
        if each.findings[0].role == "cause" and each.severity in severities and was_there(asked, each)
        if not leaves_serving(asked.state, each, [each.culprit])
        if not only_observes(asked.state, asked.question, each, named.objects)
        if (path := way_to(asked.state, early if each.severity == "critical" else lasting, each.culprit)) is not None
    )
    return min(found, key=lambda each: each.hops, default=None)


def _behind(asked: Asked, named: Named, best: _Candidate) -> _Candidate | None:
    """Return the fault of a server because of which the subject crashes or is not ready, as its own last words say.

    The reason that the subject's incident quotes must name the Service, and the fault must not be younger.
    """
    incident = best.incident
    deeper = _named_in_logs(asked, named) if best.own and symptoms_of_text(incident.title) & _OF_CLIENTS else None
    if deeper is None or deeper.incident.severity != "critical":
        return None
    services = (ref.name for ref in deeper.path[1:] if ref.kind == "Service")
    quoted = any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", incident.cause) for name in services)
    since, begun = moment(incident.since), moment(deeper.incident.since)
    younger = since is not None and begun is not None and begun > since + _SOON_SECONDS
    return deeper if quoted and not younger else None


def _is_deliberate(asked: Asked, candidate: _Candidate, own: frozenset[ObjectRef]) -> bool:
    """Return whether a note explains what the question asks for, for example a suspended job."""
    culprit = asked.state.find(candidate.incident.culprit)
    fits = culprit is None or not stop_of(culprit)[0] or may_be_stopped(asked, culprit)
    about_own = {candidate.incident.culprit, candidate.incident.findings[0].subject} & own
    if culprit is not None and culprit.group and candidate.hops <= 1 and all(ref.group for ref in own):
        return asked.question.asks("why")  # the suspended source of a custom resource
    regular = culprit is not None and replaces_regularly(asked, candidate.incident, culprit)
    evicted = "evicted" in asked.question.symptoms & symptoms_of_text(candidate.incident.title)
    routes = candidate.incident.culprit in own and candidate.incident.culprit.kind in ("Service", "Ingress")
    why = asked.question.asks("why") and (routes or candidate.symptoms > 0 or is_chosen(asked, candidate.incident))
    wanted = why or is_outdated(asked, candidate.incident) or regular or evicted
    return wanted and candidate.own and bool(about_own) and fits


def _candidates(asked: Asked, own: frozenset[ObjectRef], found: Mapping[ObjectRef, Connection]) -> Iterator[_Candidate]:
    for incident in asked.report.incidents:
        causes = [
            found[ref] for ref in (incident.culprit, *(each.subject for each in incident.findings)) if ref in found
        ]
        mine = bool(refs_of(incident) & own) or is_on(asked, incident, own)
        if not mine and not causes:
            continue
        nearest = min(causes, key=lambda each: each.hops, default=None)
        shown = " ".join(each.title for each in incident.symptoms if each.subject in own)
        symptoms = symptoms_of_text(f"{incident.title} {incident.cause} {shown}") & asked.question.symptoms
        yield _Candidate(
            incident=incident,
            own=mine,
            hops=nearest.hops if nearest is not None else 1,
            symptoms=len(symptoms),
            path=nearest.path if nearest is not None else (),
        )


def _explains(asked: Asked, named: Named, candidate: _Candidate) -> bool:
    incident = candidate.incident
    if incident.severity == "info":  # what is over explains the time when it happened
        return candidate.own and asked.question.wants_cause and happened_then(asked, incident)
    if is_beside(asked, named, incident) or not is_acute(asked, incident) or lacks_load(asked, named, incident):
        return False
    return candidate.own or (incident.severity == "critical" and _harms(asked, named, candidate))


def _harms(asked: Asked, named: Named, candidate: _Candidate) -> bool:
    """Return whether the critical incident of another object explains the trouble of the subject."""
    incident = candidate.incident
    if not asked.question.wants_cause or leaves_serving(asked.state, incident, [incident.culprit]):
        return False
    if incident.culprit.kind not in _UPSTREAM:
        return bool(incident.culprit.group) and all(each.group for each in named.objects) and candidate.hops <= 1
    referred = incident.culprit.kind not in _SERVERS and candidate.hops <= 1
    return (referred and not lacks_key(incident)) or _suffers(asked, named, candidate)


def _hangs(asked: Asked, candidate: _Candidate) -> bool:
    """Return whether the release of a server hangs that the subject uses, if a complaint speaks of a release."""
    spoken = asked.question.complains and not candidate.own and "rollout" in asked.question.symptoms
    findings = (*candidate.incident.findings, *candidate.incident.symptoms)
    hanging = any(each.rule_id == STUCK_ROLLOUT for each in findings)
    there = was_there(asked, candidate.incident)
    return spoken and hanging and there and candidate.path[1:2] != () and candidate.path[1].kind == "Service"


def _suffers(asked: Asked, named: Named, candidate: _Candidate) -> bool:
    """Return whether the subject shows that it suffers from a server on the path: it is not ready, or its log says so.

    Without such evidence, only a complaint that a dead server explains is enough, unless the log shows ordinary work.
    """
    if not all(map(is_ready, named.objects)):
        return True
    workloads = workloads_of(asked.state, named.objects)
    troubles = [each.group for workload in workloads for each in troubles_of(asked.state, workload)]
    services = [ref for ref in candidate.path[1:] if ref.kind == "Service"]
    asks_names = not set(name_servers(asked.state)).isdisjoint(services)
    lookups = [each.record for each in troubles if each.kind == "unknown host"] if asks_names else []
    if lookups and candidate.incident.culprit.kind in _SERVERS and all(map(NO_SUCH_NAME.search, lookups)):
        return False
    named_in = any(ref.name in group.record for ref in services for group in troubles if not group.over)
    if named_in or any(_lost_server(candidate.incident, services, group) for group in troubles):
        return True
    if asked.question.symptoms - _OF_CLIENTS:
        return False
    if not workloads or asked.subject.unknown:  # an Ingress or a volume has no log that could say anything
        return not workloads
    mine = [each for workload in workloads for each in troubles_of(asked.state, workload)]
    late = sum(late_lines(asked.state, each, asked.state.now - _LATELY_SECONDS) for each in workloads)
    return any(map(speaks_of_call, mine)) or late < _LEAST_LINES


def _lost_server(incident: Incident, services: list[ObjectRef], group: LogGroup) -> bool:
    """Return whether a client reports failed connections, without a name, since the incident of its server began."""
    since = moment(incident.since) or 0.0
    begun = group.first > 0.0 and since - _LATELY_SECONDS / 2 <= group.first and not group.over
    nameless = group.kind in {*REACHED, "unknown host"} and not mentions(group.record)
    return nameless and begun and not refs_of(incident).isdisjoint(services)


def _noted(asked: Asked, named: Named, candidates: list[_Candidate]) -> tuple[str, ...]:
    """Return the notes of the rules about the subject, and the fault of another pod of its workload."""
    own = [each.incident for each in candidates if each.own]
    others = (each for each in own if is_of_siblings(asked, named, each))
    beside = [f"Another pod of its workload has a fault: {line_of(each)}" for each in others][:1]
    return (*[line_of(each) for each in own if each.severity == "info"][:2], *beside)


def _of_several(asked: Asked, named: tuple[Named, ...], *, namesakes: bool) -> FirstLook:
    """Answer for each subject with one line, and give the fix of the first one that has a cause."""
    looks = [_of_named(asked, each) for each in named]
    first = min(looks, key=lambda one: (one.verdict != "cause_found", one.severity == "info", one.verdict == "healthy"))
    causes = dict.fromkeys(look.summary for look in looks if look.verdict == "cause_found")
    subject = tuple(name for look in looks for name in look.subject[:1])
    if len(causes) == 1 and all(look.verdict == "cause_found" for look in looks):
        return replace(first, subject=subject)
    if all(look.verdict == "healthy" for look in looks):
        told = ", ".join(look.summary.removeprefix(_NO_FAULT).rstrip(".") for look in looks)
        return replace(first, subject=subject[:_MOST_NAMED], summary=f"{_NO_FAULT}{told}.")
    lines = _lines_of(looks)
    others = tuple(each for each in first.others if not any(look.culprit and look.culprit in each for look in looks))
    found = replace(first, subject=subject, lines=tuple(lines), evidence=(), others=others)
    if not namesakes or len({look.verdict for look in looks}) == 1 or asked.question.wants_reason:
        return found
    text = f"`{named[0].name}` exists in {len(named)} namespaces, in which its state differs. Name one of them."
    return replace(look_about(asked, None, "inconclusive", text), subject=subject, lines=tuple(lines))


def _lines_of(looks: list[FirstLook]) -> list[str]:
    """Return one line for each subject with a finding, and one for all others together if there are many."""
    told = [look for look in looks if look.verdict != "healthy" or len(looks) <= _LEAST_LINES]
    lines = [f"{', '.join(look.subject[:1])}: {_label(look)}{look.summary}" for look in told[:_MOST_NAMED]]
    healthy = [", ".join(look.subject[:1]) for look in looks if look not in told]
    lines += [f"{_NO_FAULT}{', '.join(healthy)}."] if healthy else []
    return lines + ([f"{len(told) - _MOST_NAMED} more"] if len(told) > _MOST_NAMED else [])


def _label(look: FirstLook) -> str:
    return f"root cause ({look.severity}): " if look.verdict == "cause_found" and look.severity != "info" else ""
