"""Answers about all that a namespace, the cluster, a kind or a label contains, instead of named objects."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.producers import controllers_of
from holmes.triage.asked import is_acute, is_in_scope, look_about, one_sentence, refs_of
from holmes.triage.at_once import starting_in_scope
from holmes.triage.connections import identity
from holmes.triage.ledger import unread
from holmes.triage.log_blame import blamed, origin_of, with_origin
from holmes.triage.log_evidence import cause_in_logs
from holmes.triage.log_words import cause_by_words, words_asked
from holmes.triage.names import is_form_of, is_of, is_product, names_of
from holmes.triage.past import past_period, was_there
from holmes.triage.states import state_test
from holmes.triage.subjects import narrowing
from holmes.triage.vocabulary import symptoms_in, symptoms_of_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.triage.asked import Asked
    from holmes.triage.log_evidence import LogCause
    from holmes.values.findings import Incident, ObjectRef
    from holmes.values.first_look import FirstLook

LOGGING: Final = ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job")
_MOST_LOGGING: Final = 40
_LEAST_SPACES: Final = 2
_MOST_ZERO: Final = 4
VISIBLE: Final = frozenset({"crash", "start", "image", "ready", "evicted", "scaling", "rollout", "job"})
"""Symptoms that objects of the cluster always show. If they show none, the subject does not have the symptom."""
_DOWN: Final = frozenset({"unreachable", "ready", "start"})
"""Symptoms of every workload whose pods do not work, for whatever reason."""
_SOURCES: Final = frozenset({"from", "of", "aus", "von", "de", "del", "du"})
_WHATS: Final = (("what",), ("whats",), ("what's",), ("was",), ("que",), ("qu'est-ce",))
_NEEDED: Final = ("Pod", "Deployment", "StatefulSet", "DaemonSet", "Job")
"""Kinds without which nothing can be said about the health of a namespace."""


def of_scope(asked: Asked) -> FirstLook:
    """Answer a question about namespaces, the whole cluster, or all objects of a kind or with a label."""
    look = _of_scope(asked)
    spaces = asked.subject.namespaces
    if len(spaces) < _LEAST_SPACES or look.verdict == "healthy":
        return look
    subjects = [replace(asked.subject, namespaces=(space,)) for space in spaces]
    looks = [_of_scope(replace(asked, subject=each, ledger=asked.ledger.copy())) for each in subjects]
    told = (f"Namespace {space}: {each.summary}" for space, each in zip(spaces, looks, strict=True))
    return replace(look, notes=(*(note for note in told if look.summary not in note), *look.notes))


def _of_scope(asked: Asked) -> FirstLook:
    members = _members(asked)
    incidents = [each for each in asked.report.incidents if _belongs(asked, each, members)]
    there = [each for each in incidents if was_there(asked, each) and is_acute(asked, each)]
    symptoms = _symptoms(asked)
    custom = any("." in kind for kind in asked.subject.kinds)  # operators use their own words for symptoms
    matching = [each for each in there if not symptoms or custom or _matches(asked, each)]
    particular = _is_particular(asked)
    if particular:
        matching = [each for each in matching if _serves_words(asked, each)]
    general = bool(symptoms - VISIBLE) and asked.question.asks("health")  # "is the network ok"
    unknown = asked.ledger.left("word")
    vague = (bool(unknown) or general) and not asked.subject.namespaces and not members
    product = any(map(is_product, asked.subject.kinds))
    any_of_several = _may_be_any(asked, matching, there)
    if matching and (product or not vague) and not any_of_several:
        look = with_origin(asked, origin_of(asked, matching[0]), None)
        return look if symptoms or custom or product else _with_logged(asked, look, there, members)
    logged = logged_in_scope(asked, members, by_words=any_of_several)
    if logged is not None:
        return blamed(asked, logged, None)
    gaps = unread(asked.state, _needed(asked), asked.subject.namespaces)
    if gaps:
        text = f"Cannot determine the state {asked.subject.place}: {', '.join(gaps)} could not be read."
        return look_about(asked, None, "inconclusive", text)
    strange = unknown or tuple(sorted(symptoms)) or tuple(words_asked(asked))
    if matching or (there and particular):
        return _of_unknown_words(asked, strange, _worst(asked, there))
    logged = logged_in_scope(asked, members, any_words=True) if strange and not there else None
    if logged is not None and asked.subject.namespaces:
        return _of_unknown_words(asked, strange, blamed(asked, logged, None))
    return _without_fault(asked, incidents, there)


def _with_logged(asked: Asked, look: FirstLook, there: Sequence[Incident], members: frozenset[ObjectRef]) -> FirstLook:
    """Return a look with the trouble that only logs report, which no incident of the scope is about."""
    logged = logged_in_scope(asked, members)
    other = blamed(asked, logged, None) if logged is not None else None
    if other is None or not other.culprit or other.culprit in {str(ref) for each in there for ref in refs_of(each)}:
        return look
    return replace(look, notes=(*look.notes, f"Also, as logs tell: {one_sentence(other.summary)}"))


def _without_fault(asked: Asked, incidents: Sequence[Incident], there: Sequence[Incident]) -> FirstLook:
    """Answer a question that no incident and no log explains."""
    symptoms, unknown = _symptoms(asked), asked.ledger.left("word")
    where = f"{asked.subject.place}{narrowing(asked.subject, asked.question)}"
    if len(there) < len(incidents) and asked.question.period is not None:
        text = f"No fault {where} is known to be from `{asked.question.period.text}`."
    elif symptoms and incidents:
        text = f"No incident {where} matches {', '.join(sorted(symptoms))}."
    elif asked.question.wants_reason and (symptoms - VISIBLE or (unknown and not asked.question.asks("health"))):
        text = f"The cause cannot be determined: no fault was found {where}."
    else:
        read = " in what could be read" if any(each.category != "absent" for each in asked.state.reading.gaps) else ""
        text = f"No fault was found {where}{read}."
        starting = "" if _has_objects(asked) else f"Nothing was there to check {where}."
        starting = starting or starting_in_scope(asked)
        if not starting:
            return look_about(asked, None, "healthy", " ".join((text, *_without_pods(asked))))
        text = f"{text} {starting}"
    return look_about(asked, None, "inconclusive", text)


def _has_objects(asked: Asked) -> bool:
    """Return whether the cluster has an object that can have a fault. A recording can lack all of them."""
    state = asked.state
    return bool(state.custom_resources) or any(state.of(kind) for kind in ("Node", "Pod", "Service", *LOGGING))


def _without_pods(asked: Asked) -> Iterator[str]:
    """Yield why a namespace of the question has no pods: its workloads are scaled to zero, or there is none."""
    for space in asked.subject.namespaces:
        if any(each.namespace == space for each in asked.state.of("Pod")) or unread(asked.state, _NEEDED, (space,)):
            continue
        found = [each for kind in LOGGING for each in asked.state.of(kind) if each.namespace == space]
        zero = [str(each.ref) for each in found if (test := state_test(each.kind, "zero")) is not None and test(each)]
        if zero:
            told = ", ".join(zero[:_MOST_ZERO])
            yield f"Namespace {space} has no pods: {told} {'is' if len(zero) == 1 else 'are'} scaled to zero."
        elif not found:
            yield f"Namespace {space} has no pods and no workloads."


def _worst(asked: Asked, there: Sequence[Incident]) -> FirstLook:
    """Return a look that tells the first critical incident of the namespaces of a question, if there is one."""
    broken = next((each for each in there if each.severity == "critical" and asked.subject.namespaces), None)
    text = one_sentence(broken.cause or broken.title) if broken is not None else ""
    return look_about(asked, None, "inconclusive", text, told=broken)


def _of_unknown_words(asked: Asked, words: tuple[str, ...], told: FirstLook) -> FirstLook:
    """Answer a question in words that name nothing of the cluster: what is broken in the namespace may not be it."""
    spaces = {spelling for each in asked.subject.namespaces for spelling in (each, each.replace("-", ""))}
    strange = ", ".join(f"`{word}`" for word in words if word not in spaces)
    unknown = f"no object of this cluster is named by {strange or 'the words of the question'}."
    text = f"{told.summary} Nothing shows that this is the reason: {unknown}"
    if not told.summary:
        text = f"The cause cannot be determined: {unknown}"
    return replace(told, verdict="inconclusive", summary=text, culprit="", severity=None, chain=(), fix=())


def _symptoms(asked: Asked) -> frozenset[str]:
    """Return the symptoms of the question. "Are all pods ready" asks for every trouble, not for one of readiness."""
    positive = {"ready", "running", "completed"} & set(asked.question.states)
    return asked.question.symptoms - ({"ready", "start"} if positive and not asked.question.asks("why") else set())


def _matches(asked: Asked, incident: Incident) -> bool:
    """Return whether an incident has a symptom of the question, or affects the namespace itself."""
    itself = any(ref.kind == "Namespace" and ref.name in asked.subject.namespaces for ref in refs_of(incident))
    down = incident.severity == "critical" and incident.affected_pods > 0 and not _symptoms(asked) - _DOWN
    return itself or down or bool(_symptoms(asked) & symptoms_of_text(f"{incident.title} {incident.cause}"))


def _is_particular(asked: Asked) -> bool:
    """Return whether a question asks why something particular is not done, in words of its own: "cancel an order".

    It states neither a symptom nor that something is broken, so not every trouble is what it asks about.
    A question about what comes from a namespace or belongs to it is one about all that the namespace does.
    """
    question = asked.question
    if any(one in _SOURCES and other in asked.subject.namespaces for one, other in pairwise(question.words)):
        return False
    general = question.symptoms or question.states or question.kinds or question.asks("health")
    general = general or (question.asks("trouble") and not _fails_itself(asked))
    return question.asks("why") and not general and (question.asks("login") or any(words_asked(asked)))


def _fails_itself(asked: Asked) -> bool:
    """Return whether a question of the whole cluster names one thing that fails: "why does auth fail"."""
    question, asking = asked.question, set(words_asked(asked))
    before = [question.words[each.first - 1] for each in question.found if each.name == "trouble" and each.first]
    return not asked.subject.namespaces and any(word in asking for word in before)


def _may_be_any(asked: Asked, matching: Sequence[Incident], there: Sequence[Incident]) -> bool:
    """Return whether several incidents compete for a question that is about a thing that none of them names.

    `matching` are those that have a symptom of the question. Then the word for the symptom does not count as a thing.
    """
    question, competing = asked.question, matching or there
    causes = {each.culprit for each in competing if each.severity == competing[0].severity}
    things = not question.whole_cluster and not question.asks("health") and question.words[:1] not in _WHATS
    words = {word for word in words_asked(asked) if not (matching and symptoms_in((word,)))}
    words -= set(asked.subject.namespaces)
    return len(causes) > 1 and things and bool(words) and not any(_serves_words(asked, each) for each in competing)


def _serves_words(asked: Asked, incident: Incident) -> bool:
    """Return whether the name of an object of an incident begins a part with a word of the question."""
    parts = [part for ref in refs_of(incident) for part in re.split("[-.]", ref.name)]
    words = set(words_asked(asked)) - set(asked.subject.namespaces)
    return any(is_form_of(part, word) for word in words for part in parts)


def _needed(asked: Asked) -> tuple[str, ...]:
    kinds = tuple(kind for kind in asked.subject.kinds if kind != "Namespace")
    nodes = () if asked.subject.namespaces else ("Node",)
    return (*kinds, *(("Pod",) if set(kinds) <= set(LOGGING) else ())) if kinds else (*_NEEDED, *nodes)


def _members(asked: Asked) -> frozenset[ObjectRef]:
    """Return the objects with the label values of the question, with their pods."""
    names = names_of(asked.state)
    found: set[ObjectRef] = set()
    for value in asked.subject.values:
        workloads = names.valued(value, asked.subject.namespaces)
        asked.ledger.take("value", *((value,) if workloads else ("",)))
        found |= {ref for each in workloads for ref in identity(asked.state, each)}
    return frozenset(found)


def _belongs(asked: Asked, incident: Incident, members: frozenset[ObjectRef]) -> bool:
    if incident.severity == "info" or not is_in_scope(asked, incident):
        return False
    if asked.subject.values and not members & refs_of(incident):
        return False
    kinds = {kind for kind in asked.subject.kinds if kind != "Namespace"}
    terms = asked.question.labels
    refs = refs_of(incident)
    objects = [each for ref in refs if (each := asked.state.find(ref)) is not None] if terms else []
    if terms and not any(all(term.holds(each.labels) for term in terms) for each in objects):
        return False
    return (
        not kinds or any(_covers(kind, ref) for ref in refs for kind in kinds) or bool(refs & _operators(asked, kinds))
    )


def _covers(kind: str, ref: ObjectRef) -> bool:
    """Return whether a kind of the question means an object. `kafka` means all kinds of `kafka.strimzi.io`."""
    return is_of(ref, kind) or (is_product(kind) and ref.group == kind.partition(".")[2])


def _operators(asked: Asked, kinds: Iterable[str]) -> set[ObjectRef]:
    """Return the operators of a product that the question is about as a whole."""
    products = {kind.removeprefix("*") for kind in kinds if kind.startswith("*.")}
    own = [kind.partition(".") for kind in asked.state.kinds if kind[kind.find(".") :] in products]
    return {ref for name, _, group in own for ref in controllers_of(asked.state, name, group)}


def logged_in_scope(
    asked: Asked, members: frozenset[ObjectRef] = frozenset(), *, by_words: bool = False, any_words: bool = False
) -> LogCause | None:
    """Return the trouble that the logs of at most 40 workloads report, if the question is about all of them.

    If it describes only a symptom, a workload must fit its words, as always `by_words` and never with `any_words`.
    """
    subject, question = asked.subject, asked.question
    if set(subject.kinds) - {"Namespace", "Pod", "Service", *LOGGING} or question.labels:
        return None
    left_out = set(subject.excluded)
    workloads = [
        each
        for kind in LOGGING
        for each in asked.state.of(kind)
        if subject.contains(each)
        and (not members or each.ref in members)
        and not left_out.intersection((each, *asked.state.pods_of(each)))
    ]
    if len(workloads) > _MOST_LOGGING:
        return None
    vague = not subject.namespaces and (asked.ledger.left("word") or question.symptoms)
    if not any_words and (
        vague or by_words or _is_particular(asked)
    ):  # any error of any workload would look like the answer
        return cause_by_words(asked, workloads)
    return cause_in_logs(asked.state, question, workloads, past_period(asked))
