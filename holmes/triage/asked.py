"""A question with everything that answers it, and the parts that answers about causes have in common."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.status import status_of
from holmes.diagnosis.facts.templates import workloads_behind
from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.connections import connections, identity
from holmes.triage.ledger import Ledger
from holmes.triage.names import images_of, is_part_of_image
from holmes.values.first_look import FirstLook

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holmes.diagnosis.usage import Usage
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.question import Question
    from holmes.triage.subjects import Named, Subject
    from holmes.values.findings import DiagnosisReport, Incident, ObjectRef
    from holmes.values.verdicts import VerdictKind

_OF_PODS: Final = frozenset({"crash", "memory", "start", "image", "evicted"})
"""Symptoms that a Service has only by its pods."""
_MOST_OTHERS: Final = 8
_MOST_GAPS: Final = 6
_MOST_NEIGHBOURS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question about a cluster, with the scan that answers it, and the ledger of the parts of the question.

    `usage` is None if the usage of pods and nodes was not read. `alerted` means that an alert asks, not a person.
    """

    question: Question
    subject: Subject
    state: ClusterState
    report: DiagnosisReport
    ledger: Ledger = field(default_factory=Ledger)
    usage: Usage | None = None
    alerted: bool = False


def look_about(
    asked: Asked, named: Named | None, verdict: VerdictKind, summary: str, *, told: Incident | None = None
) -> FirstLook:
    """Return a look at a named subject, or at the scope of the question. `told` is the incident that it reports."""
    return FirstLook(
        verdict=verdict,
        summary=summary,
        subject=_subject_words(named),
        scope=asked.subject.place,
        neighbours=_neighbours(asked, named),
        others=_others(asked, told),
        not_checked=tuple(_gaps(asked, named))[:_MOST_GAPS],
        notes=tuple(_notes(asked, named)),
        taken_at=asked.report.taken_at,
    )


def refs_of(incident: Incident) -> set[ObjectRef]:
    """Return the objects that an incident involves."""
    found = {incident.culprit, *incident.affected, *(each.culprit for each in incident.symptoms)}
    return found | {each.subject for each in (*incident.findings, *incident.symptoms)}


def incidents_of_subject(asked: Asked) -> tuple[str, ...]:
    """Return the incidents of the named objects, one line each, for an answer that blames none of them."""
    own = {ref for each in asked.subject.objects for ref in identity(asked.state, each)}
    found = [each for each in asked.report.incidents if each.severity != "info" and own & refs_of(each)]
    return tuple(line_of(each) for each in found[:_MOST_OTHERS])


def is_acute(asked: Asked, incident: Incident) -> bool:
    """Return whether an incident harms something now. A disruption budget only matters for evictions and drains."""
    budget = incident.culprit.kind == "PodDisruptionBudget" and incident.severity != "critical"
    question = asked.question
    about = "PodDisruptionBudget" in question.kinds or "evicted" in question.symptoms or question.asks("why")
    return not budget or about or any(each.objects[0].kind == "PodDisruptionBudget" for each in asked.subject.named)


def line_of(incident: Incident) -> str:
    """Return an incident on one line."""
    told, culprit = one_sentence(incident.cause or incident.title), str(incident.culprit)
    return f"{incident.severity}: {told}" if told.startswith(culprit) else f"{incident.severity}: {culprit}: {told}"


def one_sentence(text: str) -> str:
    """Return `text` on one line with a full stop."""
    line = " ".join(text.split())
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def is_in_scope(asked: Asked, incident: Incident) -> bool:
    """Return whether an incident involves a namespace of the question and is not about what the question leaves out."""
    refs = refs_of(incident)
    if not any(asked.subject.holds(ref.name if ref.kind == "Namespace" else ref.namespace) for ref in refs):
        return not asked.subject.namespaces and all(not ref.namespace for ref in refs)
    excluded = {ref for each in asked.subject.excluded for ref in identity(asked.state, each)}
    harmed = {ref for ref in refs if ref.kind in WORKLOADS}
    only = bool(harmed & excluded) and harmed <= excluded  # it harms nothing else
    return (
        not only
        and incident.culprit not in excluded
        and not any(each.subject in excluded for each in incident.findings)
    )


def _subject_words(named: Named | None) -> tuple[str, ...]:
    names = dict.fromkeys(str(each.ref) for each in named.objects) if named is not None else ()
    return tuple(names)[:4]


def _neighbours(asked: Asked, named: Named | None) -> tuple[str, ...]:
    if named is None:
        return ()
    found = connections(asked.state, named.objects[:1])
    refs = [each.ref for each in found.values() if each.hops <= 1 and each.ref != named.objects[0].ref]
    known = [each for ref in refs if (each := asked.state.find(ref)) is not None]
    return tuple(f"{each.ref}: {status_of(each)}" for each in known[:_MOST_NEIGHBOURS])


def _gaps(asked: Asked, named: Named | None) -> Iterator[str]:
    """Yield what could not be read, without the logs of pods that do not serve the named objects."""
    serving = connections(asked.state, named.objects) if named is not None else {}
    for each in asked.report.not_checked:
        pods = [ref for ref in serving if str(ref) in each.what]
        if pods or named is None or not each.what.startswith("log of "):
            yield f"{each.what}: {each.why}"


def _others(asked: Asked, told: Incident | None) -> tuple[str, ...]:
    rest = (
        each
        for each in asked.report.incidents
        if each is not told and each.severity != "info" and is_in_scope(asked, each)
    )
    return tuple(map(line_of, rest))[:_MOST_OTHERS]


def guesses(named: Iterable[Named]) -> Iterator[str]:
    """Yield a sentence for each name that no object has."""
    for each in named:
        if each.match != "exact":
            kind, meant = "pod" if each.match == "gone" else "object", each.objects[0]
            image = next((f", which runs `{one}`" for one in images_of(meant) if is_part_of_image(each.name, one)), "")
            yield f"No {kind} is named `{each.name}`; this answer is about {meant.ref}{image}."


def _notes(asked: Asked, named: Named | None) -> Iterator[str]:
    yield from guesses((named,) if named is not None else ())
    if asked.subject.unknown:
        words = ", ".join(f"`{word}`" for word in asked.subject.unknown)
        yield f"Not understood, and not taken into account: {words}."


def with_workloads(asked: Asked, named: Named) -> Named:
    """Return the named objects with the workloads behind them, if a question says of Services what only pods do.

    "The points service restarts" is about its pods.
    """
    of_pods = bool(asked.question.symptoms & _OF_PODS) or "restarting" in asked.question.states
    if not of_pods or any(each.kind != "Service" for each in named.objects):
        return named
    behind = (each for service in named.objects for each in workloads_behind(asked.state, service))
    return replace(named, objects=(*named.objects, *behind))
