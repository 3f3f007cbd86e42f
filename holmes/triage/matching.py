"""Selects the incidents that match a question.

Names have the highest priority, followed by symptom words and the order of the report.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.triage.words import SYMPTOMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.triage.question import Named, Question
    from holmes.values.findings import Incident, ObjectRef

Relation: TypeAlias = Literal["culprit", "subject", "symptom", "affected", "dependency", "mentioned", "none"]
_WEIGHTS: Final[dict[Relation, float]] = {
    "culprit": 100.0,
    "subject": 95.0,
    "symptom": 80.0,
    "affected": 75.0,
    "dependency": 60.0,
    "mentioned": 40.0,
    "none": 0.0,
}
_PER_SYMPTOM = 12.0
_MOST_FOR_SYMPTOMS = 24.0
_SEVERITY: Final = {"critical": 3.0, "warning": 1.0, "info": -6.0}
_SAME_NAMESPACE = 8.0
_LEAST_CHARACTERS_MENTIONED: Final = 4
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_FOUND: Final = {
    symptom.name: re.compile(rf"(?<![a-z])(?:{'|'.join(map(re.escape, symptom.found))})") for symptom in SYMPTOMS
}
_RELATED_KINDS: Final = frozenset({"Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """An incident, its relation to the names in the question, and the number of matching symptoms."""

    incident: Incident
    relation: Relation
    named: ObjectRef | None
    symptoms: int
    score: float


def is_about(match: Match) -> bool:
    """Return whether the incident answers a question about a named object.

    An incident of severity `info` answers the question only if its culprit or subject is the named object.
    """
    if match.incident.severity == "info":
        return match.relation in ("culprit", "subject")
    return match.relation != "none"


def match_incidents(incidents: Sequence[Incident], question: Question, names: Sequence[Named]) -> tuple[Match, ...]:
    """Return one match for each incident, best match first. Equal matches keep the order of the report."""
    matches = [_match(incident, question, names) for incident in incidents]
    return tuple(sorted(matches, key=lambda match: -match.score))


def _match(incident: Incident, question: Question, names: Sequence[Named]) -> Match:
    relation, named, exact = _relation(incident, names)
    symptoms = sum(name in question.symptoms for name in found_symptoms(incident)) if question.symptoms else 0
    score = _WEIGHTS[relation] + exact + min(_MOST_FOR_SYMPTOMS, symptoms * _PER_SYMPTOM)
    score += _SEVERITY[incident.severity]
    score += _SAME_NAMESPACE if incident.culprit.namespace and incident.culprit.namespace in question.words else 0.0
    return Match(incident=incident, relation=relation, named=named, symptoms=symptoms, score=score)


def _relation(incident: Incident, names: Sequence[Named]) -> tuple[Relation, ObjectRef | None, float]:
    """Return the closest relation of `incident` to one of `names`.

    An exact name has a slightly higher score than a partial name.
    """
    best: tuple[float, Relation, ObjectRef | None, float] = (0.0, "none", None, 0.0)
    for relation, ref in _objects(incident):
        for named in names:
            likeness = name_likeness(named, ref)
            weight = _WEIGHTS[relation] * (1.0 if named.certain else 0.9)
            if likeness and weight + likeness > best[0]:
                best = (weight + likeness, relation, ref, likeness)
    if best[2] is None and any(_is_mentioned(named, incident) for named in names):
        return "mentioned", None, 0.0
    return best[1], best[2], best[3]


def _objects(incident: Incident) -> Iterator[tuple[Relation, ObjectRef]]:
    yield "culprit", incident.culprit
    for finding in incident.findings:
        yield "subject", finding.subject
    for finding in incident.symptoms:
        yield "symptom", finding.subject
        yield "symptom", finding.culprit
    for ref in incident.affected:
        yield "affected", ref
    for finding in (*incident.findings, *incident.symptoms):
        for ref in finding.because:
            yield "dependency", ref


def name_likeness(named: Named, ref: ObjectRef) -> float:
    """Return the similarity of a name to an object, from 0 (another object) to 5 (the same name).

    The value is 3 if one is a workload and the other is one of its pods or ReplicaSets. It is 2 for a shortened name or
    for a different kind.
    """
    if named.namespace and ref.namespace and named.namespace != ref.namespace:
        return 0.0
    alike_kind = not named.kind or named.kind == ref.kind or {named.kind, ref.kind} <= _RELATED_KINDS
    if ref.name == named.name:
        return 5.0 if alike_kind else 2.0
    if ref.kind in _RELATED_KINDS and alike_kind and is_pod_of(ref.name, named.name):
        return 3.0
    if ref.kind in _RELATED_KINDS and (not named.kind or named.kind in _RELATED_KINDS):
        return (
            3.0 if is_pod_of(named.name, ref.name) else 2.0 if named.prefix and ref.name.startswith(named.name) else 0
        )
    return 2.0 if named.prefix and ref.name.startswith(named.name) else 0.0


def is_pod_of(pod: str, workload: str) -> bool:
    """Return whether `pod` is the name of a pod of `workload`.

    A pod name consists of the workload name followed by `-hash-hash`, `-hash` or `-0`.
    """
    if not pod.startswith(f"{workload}-"):
        return False
    rest = pod.removeprefix(f"{workload}-").split("-")
    return len(rest) <= 2 and all(part.isdigit() or _is_hash(part) for part in rest)


def _is_hash(part: str) -> bool:
    """Return whether a part of a name looks like a hash.

    Kubernetes hashes have no vowels, except in shortened pod names.
    """
    return 3 <= len(part) <= 10 and part.isalnum() and not set("aeiou") & set(part)


def _is_mentioned(named: Named, incident: Incident) -> bool:
    """Return whether the incident mentions the name, for example as a host name in a log."""
    elsewhere = named.namespace and named.namespace != incident.culprit.namespace
    if len(named.name) < _LEAST_CHARACTERS_MENTIONED or elsewhere:
        return False
    return any(named.name in _words(text) for text in _texts(incident))


def _words(text: str) -> frozenset[str]:
    return frozenset("".join(sign if sign.isalnum() or sign in "-." else " " for sign in text.lower()).split())


def _texts(incident: Incident) -> Iterable[str]:
    yield incident.title
    yield incident.cause
    for evidence in incident.evidence:
        yield evidence.value[:2_000]


def found_symptoms(incident: Incident) -> tuple[str, ...]:
    """Return the symptoms whose words occur in the incident.

    A symptom word matches only at the start of a word in the incident: "mount" is not in "amount", and "ready" is not
    in "already".
    """
    text = _text_of(incident)
    return tuple(name for name, pattern in _FOUND.items() if pattern.search(text))


def _text_of(incident: Incident) -> str:
    """Return the text to search for symptom words: titles, causes and kinds, in lower case.

    Names in camel case are also added as separate words: "disk pressure" for `DiskPressure`.
    """
    parts = [incident.title, incident.cause]
    for finding in (*incident.findings[:6], *incident.symptoms[:6]):
        parts += [finding.title, finding.cause, finding.subject.kind]
    text = " ".join(parts)
    return f"{text} {_CAMEL.sub(' ', text)}".lower()
