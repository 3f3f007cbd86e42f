"""Recognises questions about rights: what an account, a workload or people may do, and who may do something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.vocabulary import beginnings, folded, sightings, symptoms_in, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    import re

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject

_VERBS: Final = (
    "get", "list", "watch", "create", "delete", "update", "patch", "impersonate", "bind", "escalate", "approve", "use",
    "evict",
)  # fmt: skip
VERB_BY_WORD: Final = {word: verb for verb in _VERBS for word in word_list(f"to {verb}")}
WHO_WORDS: Final = word_list("who")
MODALS: Final = word_list("modals")
ANYBODY: Final = expression(
    r"\b(?:does|can|could|may|do) (?:any|some)(?:body|one)\b|\b(?:darf|kann|hat) (?:sonst )?(?:noch )?jemand\b"
    r"|\b(?:puede|tiene) (?:alguien|alguno)\b|\balguien (?:mas )?puede\b|\bquelqu.un (?:d.autre )?(?:peut|a)\b"
    r"|\b(?:who|wer|quien|qui) (?:else|sonst|mas|d.autre)\b"
)
_CAN_PERSON: Final = expression(
    r"(?:can|could|may|kann|konnen|darf|durfen|pueden?|peut|peuvent) "
    r"(?:(?:the|die|der|das|los|las|el|la|le|les) )?(?!(?:i|we|you|it|they|ich|wir|je|on)\b)(?P<who>[\w.@-]+)"
    r"(?: (?:and|und|y|et) [\w.@-]+)? (?:(?:also|only|really|actually|still|auch|nur|tambien|solo|aussi) )?"
    r"(?P<verb>\w+) "
)
_ACTS: Final = {"start", "restart", "scale", "deploy", "exec", "roll", "redeploy", "reboot", *VERB_BY_WORD}
_WHO_MAY: Final = expression(
    r"^\W*who (?:can|may|could|is allowed to)"
    r" (?:re)?(?:start|scale|delete|edit|patch|update|deploy|exec|roll)\b"
)
SELF: Final = expression(r"\b(?:can|may|could|am) (?:i|we)\b|\b(?:darf|kann) ich\b|\bpuedo\b|\b(?:puis-je|je peux)\b")
PERSON: Final = expression(
    r"\b(?:users?|groups?|benutzer|nutzer|gruppe|usuario|grupo|utilisateur|groupe)\s+[`'\"]?([\w.@:-]{2,80})"
    r"|([\w.+-]+@[\w.-]+\w)"
)
INSIDE: Final = ("exec", "port_forward", "logs")
"""Actions inside of pods."""
ROLES: Final = ("Role", "ClusterRole")


def asks_permission(question: Question, subject: Subject) -> bool:
    """Return whether a question asks what an account may do, or who may do something."""
    if _asks_of_people(question, subject):
        return True
    if question.asks("changes", "placement") or _allowed_amount(question) or "ResourceQuota" in question.kinds:
        return False
    said = "can-i" in question.words or "serviceaccount:" in question.text
    said = said or (question.asks("permission") and _names_request(question, subject))
    return bool(
        said or _asks_who_may(question) or _asks_of_role(question, subject) or _asks_of_account(question, subject)
    )


def asks_of_rights(question: Question, subject: Subject) -> bool:
    """Return whether a question is about what people may do, and not about trouble: "who can restart it"."""
    person = _person(question, subject)
    acts = person is not None and person["verb"] in _ACTS and not subject.named
    return acts or _WHO_MAY.match(question.text) is not None


def _asks_of_people(question: Question, subject: Subject) -> bool:
    """Return whether a question asks if people may do something: "can hydrologists delete pods"."""
    person = _person(question, subject)
    resources = set(question.kinds) - {"ServiceAccount", "Namespace"} or question.asks("logs")
    others = any(each.kind == "Node" or each.kind in WORKLOADS for each in subject.objects)
    verb = VERB_BY_WORD.get(person["verb"], "use") if person is not None else "use"
    return bool(verb != "use" and resources and not others)


def _person(question: Question, subject: Subject) -> re.Match[str] | None:
    """Return the words "can X do", if X can be a person: no namespace, object or symptom as in "can oom kill pods"."""
    found = _CAN_PERSON.match(folded(question.text))
    who = found["who"] if found is not None else ""
    place = who in subject.namespaces or any(each.name == who for each in subject.named)
    harm = symptoms_in((who,)) and not sightings((who,))
    return None if place or harm else found


def _names_request(question: Question, subject: Subject) -> bool:
    """Return whether a question names an account, an action or a resource: "to be able to relax" does not."""
    about = set(question.kinds) - {"Namespace"} or subject.named or subject.missing or subject.unknown
    verbs = not VERB_BY_WORD.keys().isdisjoint(question.words)
    everything = beginnings("everything").search(question.spoken) is not None
    return bool(about or verbs or everything or PERSON.search(question.text))


def _asks_who_may(question: Question) -> bool:
    who = not WHO_WORDS.isdisjoint(question.words) and not MODALS.isdisjoint(question.words)
    resources = set(question.kinds) - {"ServiceAccount", "Namespace"}
    anybody = ANYBODY.search(question.text) is not None and not VERB_BY_WORD.keys().isdisjoint(question.words)
    inside = question.asks(*INSIDE)
    return bool((who or anybody) and (resources or inside or beginnings("everything").search(question.spoken)))


def _asks_of_role(question: Question, subject: Subject) -> bool:
    return named_role(question, subject) is not None and not question.asks("uses", "when", "trouble", "count", "age")


def named_role(question: Question, subject: Subject) -> ClusterObject | None:
    """Return the role that a question names with its kind, or in "who is cluster-admin"."""
    who = not WHO_WORDS.isdisjoint(question.words[:1]) and MODALS.isdisjoint(question.words)
    roles = (each for each in subject.objects if each.kind in ROLES)
    return next((each for each in roles if who or each.kind in question.kinds), None)


def _asks_of_account(question: Question, subject: Subject) -> bool:
    """Return whether a question asks if an account, a workload or the person who asks may do something."""
    verbs = not VERB_BY_WORD.keys().isdisjoint(question.words) or question.asks("exec", "port_forward")
    resources = set(question.kinds) - {"ServiceAccount", "Namespace"}
    can, own = not MODALS.isdisjoint(question.words), SELF.search(question.text) is not None
    accounts = "ServiceAccount" in (*question.kinds, *(each.kind for each in subject.objects))
    about = question.kinds or question.asks(*INSIDE)
    if (can or question.asks("permission")) and verbs and about and PERSON.search(question.text):
        return True
    subjects = any(each.kind in ("ServiceAccount", "Pod", *WORKLOADS) for each in subject.objects)
    return (can and accounts) or ((can or own) and verbs and bool(resources) and (subjects or own))


def _allowed_amount(question: Question) -> bool:
    """Return whether "allowed" is about an amount: "how much memory is it allowed", "how many may the HPA start"."""
    amounts = any(beginnings(each).search(question.spoken) for each in ("memory", "cpu", "storage words"))
    amounts = amounts or question.asks("replicas") or "HorizontalPodAutoscaler" in question.kinds
    return amounts and question.asks("count", "resources") and "ServiceAccount" not in question.kinds
