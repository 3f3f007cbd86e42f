"""Takes the first look: chooses the kind of answer that a question asks for, and builds it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.triage.absent import grammatical_subject, is_only_cited, missing_text, not_found, unclear
from holmes.triage.alerts import asked_by, look_at_alerts
from holmes.triage.asides import asked_clause
from holmes.triage.asked import Asked, guesses
from holmes.triage.at_once import judged_at_once
from holmes.triage.causes import look_for_cause
from holmes.triage.columns import asks_columns
from holmes.triage.complaints import asks_beside
from holmes.triage.conjectures import without_conjecture
from holmes.triage.custom_subjects import about_custom_objects, about_parts
from holmes.triage.defaults import asks_default
from holmes.triage.facts import not_answered
from holmes.triage.follow_ups import completed, of_sentence, parsed, with_earlier
from holmes.triage.grammar import names_things
from holmes.triage.handled import with_participles
from holmes.triage.ledger import Ledger
from holmes.triage.log_blame import blamed
from holmes.triage.log_choice import MOST_LOGS, logs_for
from holmes.triage.log_errors import asks_error_lines
from holmes.triage.log_values import STATISTICS
from holmes.triage.names import names_of
from holmes.triage.orders import declined
from holmes.triage.other_readings import read_otherwise
from holmes.triage.pasted_alerts import pasted_alert, without_mark
from holmes.triage.plans import OF_OBJECTS, plans_of
from holmes.triage.quantities import usage
from holmes.triage.scopes import logged_in_scope
from holmes.triage.search import find_subject
from holmes.triage.second_look import objections, second_look
from holmes.triage.sentences import can_join, joined, parts_of
from holmes.triage.suspicions import asks_for_things
from holmes.triage.vocabulary import folded, sightings, vocabulary, word_list, words_of
from holmes.triage.weighing import weighed
from holmes.triage.written_notes import written_notes
from holmes.values.errors import ToolError
from holmes.values.expressions import expression
from holmes.values.tool_arguments import text_argument

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holmes.diagnosis.scan import ScanResult
    from holmes.kubernetes.cluster_state import LogKey
    from holmes.triage.plans import Plan
    from holmes.values.first_look import FirstLook
    from holmes.values.json_types import JsonObject

_QUANTITIES: Final = frozenset({"memory", "disk"})
"""Symptoms that a question about an amount mentions, too: "is it close to its memory limit"."""
_MOST_NAMESPACES: Final = 4
_PRONOUNS: Final = word_list("pronouns")
_EACH: Final = expression(
    r"\b(?:each|jeweils|chacune?s?|cada un[oa])\b"
    r"|^(?:and |und |y |et )?(?:on|at|in|auf|an|en|sur) (?:what|which|welche[mnr]?|que|quel\w*)"
    r" (?:hosts?|ports?|address\w*|puertos?)\b"
    r"|^(?:and |und |y |et )?(?:size|name|age|host|port|groesse|grosse|tamano|taille)s?\b"
)
"""A part that asks for more about each thing that the part before lists."""
_OF_SUBJECT: Final = expression(
    r"^(?:and |und |y |et )?(?:which|what|welche[mnrs]?|cual(?:es)?|quel\w*) (?:does|do|has|hat|tiene|a) "
    r"(?:the|its|der|die|das|el|la|le|su|son) "
)
"""A part without the noun that it asks for: "which port does the ingress use, and which does the service have"."""
_MOST_EARLIER: Final = 4
_MOST_ALERTS: Final = 50
_NAME: Final = expression(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NAMESPACE: Final = expression(
    r"(?:(?<!\S)-n|\bnamespaces?|\bnamensraum|\bespacio de nombres|\bespace de noms)[ =`\"']{1,3}([a-z0-9-]{1,63})\b"
    r"|\b([a-z0-9-]{1,63})[`\"']? namespace\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookRequest:
    """A question or alerts. `namespace` is the user's choice, empty for the whole cluster.

    `about` contains objects that words such as "it" refer to, for example `Deployment shop/checkout`. `earlier`
    contains the questions before, the oldest first. `continues` means that the question is a later part of the sentence
    that names the objects. `claim` is the sentence of an answer whose cause is checked.
    """

    question: str
    namespace: str = ""
    about: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    alerts: tuple[Mapping[str, str], ...] = ()
    claim: str = ""
    continues: bool = False

    @property
    def named_namespaces(self) -> tuple[str, ...]:
        """Words of the question, and labels of the alerts, that may be namespaces. Not checked against the cluster."""
        words = (each for match in _NAMESPACE.findall(self.question.lower()) for each in match)
        said = [each for each in words if each and each not in vocabulary().stop]
        labels = [each["namespace"] for each in self.alerts if _NAME.fullmatch(each.get("namespace", ""))]
        return tuple(dict.fromkeys((*said, *labels)))[:_MOST_NAMESPACES]

    @classmethod
    def of(cls, arguments: JsonObject, namespace: str) -> LookRequest:
        """Read the arguments of the tool. Raises `ToolError` if `alerts` is not a list of labels."""
        return cls(
            question=text_argument(arguments, "question").strip(),
            namespace=namespace,
            about=tuple(filter(None, (each.strip() for each in text_argument(arguments, "about").split(",")))),
            earlier=tuple(filter(None, map(str.strip, text_argument(arguments, "earlier").splitlines())))[
                -_MOST_EARLIER:
            ],
            alerts=_alerts(text_argument(arguments, "alerts")),
            claim=text_argument(arguments, "claim"),
        )


def _alerts(text: str) -> tuple[Mapping[str, str], ...]:
    try:
        found = json.loads(text) if text else []
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ToolError("alerts is not valid; expected a JSON list of objects with the labels of the alerts")
    return tuple({str(key): str(value) for key, value in each.items()} for each in found[:_MOST_ALERTS])


def wanted_logs(request: LookRequest, scan: ScanResult) -> tuple[LogKey, ...]:
    """Return the logs that the answer needs, the most useful first."""
    if request.claim:
        return ()
    request = _read(request, scan)
    if not request.alerts:
        keys = (key for part in _parts(request, scan) for key in logs_for(_asked(part, scan)))
        return tuple(dict.fromkeys(keys))[:MOST_LOGS]
    found = (asked_by(labels, scan, request.namespace) for labels in request.alerts)
    return tuple(key for asked in found if asked is not None for key in logs_for(asked))[:MOST_LOGS]


def wants_usage(request: LookRequest, scan: ScanResult) -> bool:
    """Return whether the answer needs the current usage of pods and nodes."""
    request = _read(request, scan)
    every = [_asked(part, scan) for part in _parts(request, scan)] if not request.alerts else []
    plans = (plan for asked in every for plan in plans_of(asked.question, asked.subject))
    return any(plan.answer is usage for plan in plans)


def take_first_look(request: LookRequest, scan: ScanResult) -> FirstLook:
    """Answer the question, take the first look at the alerts, or check the cause of an answer."""
    suspected = without_conjecture(request.question, names_of(scan.state).knows)
    request = _read(request, scan)
    if request.claim:
        found = [asked_by(labels, scan, request.namespace) for labels in request.alerts]
        asked = next((each for each in found if each is not None), None) or _asked(request, scan)
        return second_look(asked, request.claim)
    if request.alerts:
        return look_at_alerts(request.alerts, scan, request.namespace)
    look = _of_parts(request, scan)
    told = (scan.state.written(name) for name in dict.fromkeys((*look.subject, *look.chain, look.culprit)))
    note = suspected.note(look, [each for each in told if each is not None])
    return replace(look, notes=(*look.notes, note)) if note else look


def _of_parts(request: LookRequest, scan: ScanResult) -> FirstLook:
    looks = [_look(part, scan) for part in _parts(request, scan)]
    if len(looks) == 1:
        return looks[0]
    return joined(looks) if can_join(looks) else _look(_completed(request, scan), scan)


def _read(request: LookRequest, scan: ScanResult) -> LookRequest:
    """Return the request with the alert that the question consists of, or without what its person only suspects."""
    alert = pasted_alert(request.question) if not request.alerts else None
    if alert:
        return replace(request, alerts=(alert,))
    knows = names_of(scan.state).knows
    return replace(request, question=without_conjecture(without_mark(request.question, knows), knows).question)


def _look(request: LookRequest, scan: ScanResult) -> FirstLook:
    asked = judged_at_once(_asked(request, scan))
    unclear = request.continues and not asked.subject.named and _EACH.search(folded(request.question))
    look = not_answered(asked, (request.question,), what="answer") if unclear else _first_look(asked)
    return replace(look, notes=tuple(dict.fromkeys((*look.notes, *_readings(asked, look)))))


def _readings(asked: Asked, look: FirstLook) -> Iterator[str]:
    """Yield what was read as something else: misspelled words and names."""
    yield from (f"Read `{written}` as `{meant}`." for written, meant in asked.question.corrections)
    yield from guesses(asked.subject.named if look.subject else ())


def _completed(request: LookRequest, scan: ScanResult) -> LookRequest:
    """Return the request with the question that a short one such as "and in shop?" continues."""
    whole = completed(request.question, request.earlier, scan.state, request.namespace)
    return replace(request, question=whole, earlier=())


def _parts(request: LookRequest, scan: ScanResult) -> tuple[LookRequest, ...]:
    """Return the questions in a sentence. Those without a subject are about that of the others."""
    request = _completed(request, scan)
    request = replace(request, question=asked_clause(request.question, names_of(scan.state).knows))
    texts = parts_of(request.question)
    if len(texts) == 1:
        return (replace(request, question=texts[0]),)
    parts = [replace(request, question=text) for text in texts]
    subjects = [_asked(part, scan).subject.objects for part in parts]
    objects = next(filter(None, subjects), ())
    if not objects and any(_needs_noun(text) for text in texts[1:]):  # "what nodes are there, are they ok"
        return (request,)
    of_each = any(_EACH.search(folded(text)) for text in texts[1:])
    if any(_OF_SUBJECT.search(folded(text)) for text in texts[1:]) or (of_each and _wants_columns(request, scan)):
        return (request,)
    about = tuple(str(each.ref) for each in objects) or request.about
    return tuple(
        part if own else replace(part, about=about, continues=True) for part, own in zip(parts, subjects, strict=True)
    )


def _wants_columns(request: LookRequest, scan: ScanResult) -> bool:
    asked = _asked(request, scan)
    return asks_columns(asked.question, asked.subject)


def _needs_noun(text: str) -> bool:
    """Return whether a part only has a pronoun for what an earlier one names: "are they ok", "how many pods each"."""
    words = words_of(folded(text))
    if _EACH.search(folded(text)):
        return True
    return not _PRONOUNS.isdisjoint(words) and not any(each.sense == "kind" for each in sightings(words))


def _asked(request: LookRequest, scan: ScanResult) -> Asked:
    earlier = tuple(each for name in request.about if (each := scan.state.written(name)) is not None)
    question, subject = find_subject(parsed(request.question, scan.state), names_of(scan.state), request.namespace)
    subject = read_otherwise(question, subject, names_of(scan.state))
    subject = with_earlier(question, subject, scan.state, earlier)
    subject = about_parts(question, about_custom_objects(question, subject, scan), scan.state)
    if request.continues and earlier and not (subject.named or subject.missing or subject.namespaces):
        subject = of_sentence(question, subject, earlier)
    ledger = Ledger.of(question, subject)
    return with_participles(
        Asked(question=question, subject=subject, state=scan.state, report=scan.report, ledger=ledger, usage=scan.usage)
    )


def _first_look(asked: Asked) -> FirstLook:
    question, subject = asked.question, asked.subject
    refused = declined(asked)
    if refused is not None:
        return refused
    if not subject.named and is_only_cited(asked):
        return unclear(asked)
    nowhere = next((each for each in subject.missing if each.kind in ("place", "Namespace")), None)
    missing = subject.missing and not subject.named and not asks_default(question)
    if nowhere is not None or missing:
        return not_found(asked, nowhere or subject.missing[0])
    named = subject.named or subject.values or question.whole_cluster
    if not named and grammatical_subject(asked):
        return unclear(asked)
    plans = plans_of(question, subject)
    if not plans:
        logged = None if subject.missing else logged_in_scope(asked, by_words=True)
        return unclear(asked) if logged is None else blamed(asked, logged, None)
    look = _answer(asked, plans)
    against = objections(asked, look) if look.verdict == "cause_found" else ()
    unfound = () if asks_default(question) else subject.missing  # "default ingress class" names no class
    told = f"{' '.join(look.fix)} {look.summary if '`' in look.summary else ''}"  # they can contain a word of no object
    notes = (
        *look.notes,
        *(missing_text(each, subject) for each in unfound if each.name not in f"{told} localhost"),
        *(each for each in written_notes(asked, look) if each not in look.notes),
    )
    return replace(look, against=against, notes=notes)


def _answer(asked: Asked, plans: Sequence[Plan]) -> FirstLook:
    """Return the answer of the first plan, or of the next one if that finds no cause and the next one is certain."""
    looks = []
    for plan in plans:
        own = replace(asked, ledger=asked.ledger.copy())
        for sense in plan.takes:
            own.ledger.take(sense)
        own.ledger.take_words("said of anything", plan.said)
        looks.append(weighed(own, plan.answer(own)))
        wanted = len(looks) > 1 and (not asked.question.complains or asks_beside(asked.question.text))
        if looks[-1].verdict == "cause_found" or (wanted and looks[-1].verdict == "answered"):
            return looks[-1]
    look = looks[0] if asked.question.complains else looks[-1]
    asks = asked.question.asks("count") or asks_for_things(asked.question) or names_things(asked.question)
    asks = asks or asks_error_lines(asked.question, asked.subject) or asked.question.asks(*STATISTICS)
    tells = asked.question.wants_reason or asked.question.symptoms - _QUANTITIES
    asks = asks or plans[0].said != OF_OBJECTS  # "can I scale web to 9" has a word of a symptom
    if look.verdict != "inconclusive" or asks or not tells or len(looks) > 1:
        return look
    cause = weighed(asked, look_for_cause(replace(asked, ledger=asked.ledger.copy())))
    return cause if cause.verdict == "cause_found" else look
