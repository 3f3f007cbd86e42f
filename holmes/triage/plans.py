"""Chooses the kind of answer that a question asks for. The first plan whose test matches decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage import dependencies, details, happenings, inventory
from holmes.triage.all_of import all_of, asks_all
from holmes.triage.causes import look_for_cause
from holmes.triage.columns import asks_columns
from holmes.triage.commands import (
    asks_exec,
    asks_log_command,
    asks_port_forward,
    exec_command,
    log_command,
    port_forward,
)
from holmes.triage.comparisons import asks_comparison, comparison
from holmes.triage.defaults import asks_default, default
from holmes.triage.draining import asks_drain, asks_restart, drain, restart
from holmes.triage.event_counts import asks_event_count, event_count
from holmes.triage.exposure import asks_exposure, asks_route, exposure, route
from holmes.triage.field_answers import asks_condition, asks_field, asks_for_owners, condition, field_answer, settings
from holmes.triage.former import asks_former, former
from holmes.triage.grammar import asks_person, asks_who, unknown_parts
from holmes.triage.key_answers import asks_keys, keys
from holmes.triage.lists_asked import asks_if_has, asks_list, lacks_something
from holmes.triage.log_answers import asks_logs, log_answer, searches_lines
from holmes.triage.log_errors import asks_error_lines
from holmes.triage.log_lines import asks_previous
from holmes.triage.log_values import STATISTICS
from holmes.triage.moments import asks_time, moments
from holmes.triage.narrow_facts import asks_narrow_fact, narrow_fact
from holmes.triage.node_room import asks_room, room
from holmes.triage.orders import asks_how_to_change, how_to_change
from holmes.triage.permissions import permission
from holmes.triage.quantities import resources, usage
from holmes.triage.quota_answers import asks_quota, quota
from holmes.triage.reach import asks_reach, reach
from holmes.triage.rights_asked import asks_of_rights, asks_permission
from holmes.triage.run_sizes import asks_made_size, made_size
from holmes.triage.stated_numbers import asks_stated_number, stated_number
from holmes.triage.suspicions import blames, is_denied
from holmes.triage.tags import asks_to_confirm
from holmes.triage.vocabulary import beginnings, folded, sightings, word_list, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.triage.asked import Asked
    from holmes.triage.ledger import PartSense
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_GENERAL: Final = expression(
    r"^(?:what (?:is|are|does) an? \w+\??$|how does an? |was ist eine? \w+\??$|que es una? \w+\??$|qu'est-ce qu'une? "
    r"|how (?:do|can|would|should) (?:i|you|we) (?:write|create|make|define|learn|install)"
    r"|wie (?:schreibe|erstelle|funktioniert))"
)
"""Questions about Kubernetes in general, which no cluster answers."""
_AT: Final = expression(r"^what (?:is|runs|listens) (?:at|on|behind)?\s?[\w.-]+:\d{2,5}\b")
_BOUNDS: Final = word_list("bounds")
_PASSIVE: Final = frozenset({"ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim", "PersistentVolume",
    "StorageClass"})  # fmt: skip
"""Kinds that run nothing themselves: what "runs with" them uses them."""
_WHOSE: Final = word_list("by whom") | word_list("interrogatives") | word_list("whose")
_JUDGING: Final = frozenset({"why", "trouble", "health", "logs", "count", "changes", "when", "permission"})
_OWNED: Final = word_list("belonging")
_ADVISING: Final = word_list("advising")
_ADVISED: Final = ("resources", "replicas", "settings", "usage", "images", "why", "trouble", "logs", "change_order")
"""Concepts by which an advice is about the objects of a cluster: "which memory limit do you recommend for web"."""
_BEFORE_NOUNS: Final = word_list("quantifiers") | word_list("determiners")
_PAST_VERBS: Final = word_list("past verbs")
_MEASURED: Final = word_list("measured")


OF_OBJECTS: Final = "said of objects"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A kind of answer. `fits` returns whether a question with a subject asks for it.

    `takes` contains the senses of the ledger that the answer itself takes into account. `said` is the list of the
    vocabulary with the words for what it tells, which need not be in the answer.
    """

    fits: Callable[[Question, Subject], bool]
    answer: Callable[[Asked], FirstLook]
    takes: tuple[PartSense, ...] = ()
    said: str = OF_OBJECTS


def _plan_of(question: Question, subject: Subject) -> Plan | None:
    """Return the plan for a question, or None if the question is not about a cluster, but for example for advice."""
    if _GENERAL.search(question.text) and not (subject.named or subject.namespaces or subject.values):
        return None
    if not _ADVISING.isdisjoint(question.words) and not (
        question.asks(*_ADVISED) or question.symptoms or question.states or subject.kinds
    ):
        return None
    return next((plan for plan in _PLANS if plan.fits(question, subject)), None)


_FACTS: Final = (how_to_change, port_forward, exec_command, log_command, moments, permission)


def plans_of(question: Question, subject: Subject) -> tuple[Plan, ...]:
    """Return the plans for a question, the best first. A complaint asks for its cause before any fact."""
    plan = _plan_of(question, subject)
    complains = question.complains or blames(question, subject)
    exact = plan is not None and (
        (plan.answer == log_answer and (searches_lines(question) or asks_error_lines(question, subject)))
        or (plan.answer == log_answer and question.asks(*STATISTICS) and not question.complains)
        or (plan.answer == log_answer and asks_previous(question))
        or (plan.answer == happenings.changes and happenings.changed_before(question))
        or (plan.answer == happenings.changes and (happenings.acts(question, subject) or _asks_if_changed(question)))
        or plan.answer in (inventory.restarts_of, details.ages, field_answer, condition, exposure, restart, event_count)
        or plan.answer in (drain, narrow_fact, reach, happenings.what_happened)
        or dependencies.asks_impact(question, subject)
        or (asks_if_has(question, subject) and asks_to_confirm(folded(question.written)))
        or _asks_whose(question, subject)
        or (plan.answer == dependencies.uses and not question.complains and not is_denied(question, subject))
    )
    if plan is None or not complains or exact or plan.answer in (look_for_cause, *_FACTS):
        return (plan,) if plan is not None else ()
    return (_CAUSE, plan)


def _asks_if_changed(question: Question) -> bool:
    """Return whether a question begins with "was" and the like, and ends with a change: "was the probe changed"."""
    first = question.words[:1] != () and question.words[0] in _PAST_VERBS
    changed = any(beginnings("any change").search(word) for word in question.words[1:])
    return first and changed and not question.asks("why", "trouble")


def _is_specific(question: Question, subject: Subject) -> bool:
    """Return whether a question is about something that can be judged. "Explain services" is not."""
    named = subject.named or subject.namespaces or subject.values or question.labels or question.states
    about = question.symptoms or question.asks("trouble", "health", "changes")
    return bool(named or question.whole_cluster or (about and (subject.kinds or question.found_word)))


def _asks_why(question: Question, subject: Subject) -> bool:
    vague = not unknown_parts(question, subject) and not subject.kinds
    return question.asks("why") and (_is_specific(question, subject) or vague)


def _asks_usage(question: Question, subject: Subject) -> bool:
    words = set(question.words)
    if subject.named and not any(each.kind in (*WORKLOADS, "Pod", "Node") for each in subject.objects):
        return False  # "who consumes this ConfigMap"
    requested = beginnings("request words").search(question.spoken) or beginnings("limit words").search(question.spoken)
    near = beginnings("near a limit").search(question.spoken)
    measured = beginnings("consuming").search(question.spoken) and subject.named and _MEASURED & words
    if measured and any(question.lacks(what) for what in ("requests", "limits")):
        return True  # "how much memory is web using, not its request"
    if requested and near:
        return True
    if requested and not beginnings("consuming").search(question.spoken):
        return False
    if words & {"who", "wer", "quien", "quienes", "qui"} and not _MEASURED & words:
        return False
    uses = question.asks("uses") and _MEASURED & words and not _BOUNDS & words
    stored = {"ResourceQuota", "PersistentVolumeClaim", "PersistentVolume"} & set(question.kinds)
    allowed = question.asks("permission") and question.asks("count") and _MEASURED & words  # "how much may it use"
    calm = not question.asks("trouble") and not allowed
    return bool(question.asks("usage") or uses) and calm and not stored


def _asks_amount(question: Question, subject: Subject) -> bool:
    extreme = any(beginnings(each).search(question.spoken) for each in ("the most", "the least"))
    stored = {"PersistentVolumeClaim", "PersistentVolume"}
    sized = extreme and stored & set(question.kinds)
    sized = sized or ("disk" in question.symptoms and stored & {each.kind for each in subject.objects})
    disks = "disk" in question.symptoms and any(each.kind in (*WORKLOADS, "Pod") for each in subject.objects)
    disks = disks and question.asks("count") and not question.asks("logs", "why")  # "how much disk does db have"
    bounds = any(beginnings(each).search(question.spoken) for each in ("request words", "limit words"))
    measured = any(beginnings(each).search(question.spoken) for each in ("memory", "cpu"))
    return bool(
        question.asks("resources") or sized or disks or (extreme and bounds and measured)
    ) and not lacks_something(question)


def _asks_amount_calmly(question: Question, subject: Subject) -> bool:
    return _asks_amount(question, subject) and not question.asks("trouble", "health", "when")


def _calm(*concepts: str) -> Callable[[Question, Subject], bool]:
    """Return the test of a concept in a question that does not speak of trouble."""
    return lambda question, _subject: question.asks(*concepts) and not question.asks("trouble")


def _counts(question: Question, _subject: Subject) -> bool:
    return question.asks("count") or (question.asks("sum") and "restarting" in question.states)


def _counts_amount(question: Question, subject: Subject) -> bool:
    return question.asks("count") and _asks_amount(question, subject)


def _counts_replicas(question: Question, subject: Subject) -> bool:
    """Return whether a question counts the replicas of named workloads. Without names, it counts workloads or pods."""
    runs = any(each.kind in (*WORKLOADS, "Service", "Ingress") for each in subject.objects)
    return question.asks("count") and question.asks("replicas") and runs and not question.comparisons


def _asks_version(question: Question, subject: Subject) -> bool:
    """Return whether a question asks for the version of Kubernetes."""
    words = set(question.words)
    of_cluster = words & {"kubernetes", "k8s", "kubelet", "cluster"} or "Node" in question.kinds
    return bool(words & {"version", "versions", "versionen", "versiones"} and of_cluster) and not subject.named


def _counts_images(question: Question, subject: Subject) -> bool:
    return question.asks("count") and question.asks("images") and not subject.kinds and not question.found_word


def _asks_events(question: Question, _subject: Subject) -> bool:
    return question.asks("events") and not question.asks("trouble") and not question.states


def _events(asked: Asked) -> FirstLook:
    """List the events, or the warnings of logs if a question asks for warnings and does not say of what."""
    look = happenings.events(asked)
    told = any(beginnings("event words").search(word) for word in asked.question.words)
    return look if look.table is not None or told or not asked.subject.named else log_answer(asked)


def _asks_placement(question: Question, subject: Subject) -> bool:
    return bool(subject.named) and question.asks("placement") and not question.asks("trouble")


_STATED: Final = frozenset({"running", "ready", "pending"})


def _asks_images(question: Question, subject: Subject) -> bool:
    stated = bool(question.states) and "Pod" in question.kinds and _STATED.issuperset(question.states)
    felt = question.symptoms - {"image"} - ({"ready", "start"} if stated else set())
    pulls = felt or any(word.startswith(("pull", "registr")) for word in question.words)
    lists = question.asks("list", "uses") or subject.images or (not question.asks("health") and not pulls)
    about = question.asks("images") and lists and "Node" not in question.kinds
    return bool(about) and (stated or question.states in ((), ("running",))) and not question.asks("trouble")


def _asks_of_image(question: Question, subject: Subject) -> bool:
    """Return whether a question asks what has an image: "who still uses shop/web:1.2"."""
    other = question.asks("trouble", "why", "health", "images", "logs", "changes", "when") or question.symptoms
    return bool(subject.images) and not (subject.named or other)


def _asks_what_runs(question: Question, subject: Subject) -> bool:
    """Return whether a question asks for the pods of a node: "what runs on worker-1"."""
    nodes = subject.named and all(each.kind == "Node" for each in subject.objects)
    asks = question.asks("list") and beginnings("what runs").search(question.spoken)
    return bool(nodes and asks) and not question.asks("trouble", "health", "why", "version")


def _asks_what_runs_with(question: Question, subject: Subject) -> bool:
    """Return whether a question asks which workloads have an object: "which workloads run as account ci"."""
    passive = subject.named and all(each.kind in _PASSIVE for each in subject.objects)
    runs = question.found_word or "running" in question.states or beginnings("what runs").search(question.spoken)
    return bool(passive and runs and question.asks("list")) and not question.asks("why", "trouble", "count", "changes")


def _asks_who(question: Question, subject: Subject) -> bool:
    """Return whether a question asks who does something to an object, with an unknown verb: "who pulls from web"."""
    calm = not question.asks("changes", "permission", "why", "trouble", "logs", "when", "count", "health")
    who = bool(asks_who(question) and not asks_person(question) and subject.unknown) or asks_for_owners(question)
    return bool(who and subject.named) and calm and not question.symptoms


def _wants_images(question: Question, subject: Subject) -> bool:
    """Return whether a question begins with images: "which images do the pods use"."""
    listed = [each.last for each in question.found if each.sense == "concept" and each.name == "list"]
    words = question.words
    first = any(
        each.name == "images" and at < each.first and _BEFORE_NOUNS.issuperset(words[at + 1 : each.first])
        for each in question.found
        for at in listed
    )  # "show all images"
    return first and _asks_images(question, subject)


def _asks_whose(question: Question, subject: Subject) -> bool:
    """Return whether the first sentence asks who has an address: "who is 10.1.2.3? it is in the flow logs"."""
    first, mark, _ = question.text.partition("?")
    words = words_of(first)
    concepts = {each.name for each in sightings(words)}
    asks = bool(mark) and words[:1] != () and words[0] in _WHOSE
    addressed = subject.named and any(each in first for each in question.addresses)
    used = "uses" in concepts and _OWNED.isdisjoint(words)
    return bool(asks and addressed and not used) and concepts.isdisjoint(_JUDGING)


def _asks_what_is_at(question: Question, subject: Subject) -> bool:
    """Return whether a question only asks which object has an address."""
    at = bool(subject.named) and bool(question.addresses or question.hosts or _AT.search(question.text))
    return at and not question.symptoms and not question.asks("why", "trouble", "health", "logs", "count")


def _asks_description(question: Question, subject: Subject) -> bool:
    about = subject.named or subject.kinds or subject.namespaces
    return bool(about) and question.asks("describe") and not question.asks("trouble")


def _asks_settings(question: Question, subject: Subject) -> bool:
    about = question.asks("settings") and not question.asks("trouble", "health")
    other = question.states or lacks_something(question) or asks_for_owners(question)
    return about and bool(subject.named) and not other


def _asks_default(question: Question, subject: Subject) -> bool:
    return asks_default(question) and all(each.kind == "ServiceAccount" for each in subject.objects)


def _asks_about_health(question: Question, subject: Subject) -> bool:
    asks = question.asks("trouble", "health", "changes") or bool(question.symptoms) or question.words[-1:] == ("up",)
    aged = (question.newer_seconds or question.older_seconds) and not question.asks("why", "trouble", "health")
    if (aged and not question.symptoms) or asks_of_rights(question, subject):  # "anything younger than an hour?"
        return False
    return _is_specific(question, subject) or (asks and not unknown_parts(question, subject))


_ALL: Final[tuple[PartSense, ...]] = ("aside", "symptom", "concept", "state", "kind", "bound", "period")
"""All but unknown words and values: an answer that neither says nor stands for them is about something else."""
_OF_LINES: Final[tuple[PartSense, ...]] = ("symptom", "state", "kind", "bound", "period")
_CAUSE: Final = Plan(fits=_asks_about_health, answer=look_for_cause, takes=("period", "concept"))
_PLANS: Final = (
    Plan(fits=asks_how_to_change, answer=how_to_change, takes=_ALL, said="said of commands"),
    Plan(fits=asks_drain, answer=drain, takes=_ALL, said="said of commands"),
    Plan(fits=asks_restart, answer=restart, takes=_ALL, said="said of commands"),
    Plan(fits=asks_narrow_fact, answer=narrow_fact, takes=_ALL, said="said of narrow facts"),
    Plan(fits=dependencies.asks_impact, answer=dependencies.uses, takes=_ALL, said="said of uses"),
    Plan(fits=asks_error_lines, answer=log_answer, takes=_OF_LINES, said="said of lines"),
    Plan(fits=happenings.asks_what_happened, answer=happenings.what_happened, takes=("period", "concept")),
    Plan(fits=_asks_why, answer=look_for_cause, takes=("period", "concept")),
    Plan(fits=asks_event_count, answer=event_count, takes=_ALL),
    Plan(fits=inventory.asks_restarts, answer=inventory.restarts_of, takes=_ALL),
    Plan(fits=_asks_whose, answer=details.addresses, takes=_ALL, said="said of addresses"),
    Plan(fits=asks_all, answer=all_of, takes=("state", "kind", "concept", "symptom")),
    Plan(fits=asks_columns, answer=inventory.number_or_list),
    Plan(fits=asks_comparison, answer=comparison, takes=_ALL),
    Plan(fits=asks_reach, answer=reach, takes=_ALL, said="said of reach"),
    Plan(fits=asks_permission, answer=permission, takes=_ALL, said="said of rights"),
    Plan(fits=asks_former, answer=former, takes=_ALL, said="said of changes"),
    Plan(fits=asks_made_size, answer=made_size, takes=_ALL, said="said of lines"),
    Plan(fits=asks_time, answer=moments, takes=_ALL, said="said of times"),
    Plan(fits=asks_keys, answer=keys, takes=_ALL, said="said of fields"),
    Plan(fits=asks_port_forward, answer=port_forward, takes=_ALL, said="said of commands"),
    Plan(fits=asks_log_command, answer=log_command, takes=_ALL, said="said of commands"),
    Plan(fits=asks_exec, answer=exec_command, takes=_ALL, said="said of commands"),
    Plan(fits=asks_route, answer=route, takes=_ALL, said="said of addresses"),
    Plan(fits=asks_exposure, answer=exposure, takes=_ALL, said="said of addresses"),
    Plan(fits=details.asks_scaling_bounds, answer=details.scaling_bounds, takes=_ALL, said="said of amounts"),
    Plan(fits=_asks_default, answer=default, takes=_ALL),
    Plan(fits=asks_field, answer=field_answer, takes=_ALL, said="said of fields"),
    Plan(fits=asks_condition, answer=condition, takes=_ALL, said="said of fields"),
    Plan(fits=details.asks_spread, answer=details.placement, takes=_ALL, said="said of fields"),
    Plan(fits=asks_stated_number, answer=stated_number, takes=_ALL),
    Plan(fits=details.asks_which_is_older, answer=details.ages, takes=_ALL),
    Plan(fits=asks_logs, answer=log_answer, takes=_OF_LINES, said="said of lines"),
    Plan(fits=happenings.asks_changes, answer=happenings.changes, takes=("period", "concept"), said="said of changes"),
    Plan(fits=_asks_events, answer=_events, takes=("period", "concept")),
    Plan(fits=asks_quota, answer=quota, takes=_ALL, said="said of amounts"),
    Plan(fits=_asks_usage, answer=usage, takes=_ALL, said="said of amounts"),
    Plan(fits=asks_room, answer=room, takes=_ALL, said="said of amounts"),
    Plan(fits=_counts_amount, answer=resources, said="said of amounts"),
    Plan(fits=_asks_version, answer=details.versions, said="said of fields"),
    Plan(fits=_counts_images, answer=details.images, said="said of fields"),
    Plan(fits=_counts_replicas, answer=details.replicas),
    Plan(fits=_calm("history"), answer=details.history),
    Plan(fits=_counts, answer=inventory.number_or_list),
    Plan(fits=_asks_what_runs, answer=inventory.number_or_list),
    Plan(fits=_asks_what_is_at, answer=details.addresses, said="said of addresses"),
    Plan(fits=_asks_what_runs_with, answer=dependencies.uses, said="said of uses"),
    Plan(fits=_wants_images, answer=details.images, said="said of fields"),
    Plan(fits=dependencies.asks_uses, answer=dependencies.uses, said="said of uses"),
    Plan(fits=_asks_of_image, answer=inventory.number_or_list),
    Plan(fits=_asks_images, answer=details.images, said="said of fields"),
    Plan(fits=_asks_placement, answer=details.placement, said="said of fields"),
    Plan(fits=_calm("address"), answer=details.addresses, said="said of addresses"),
    Plan(fits=_asks_amount_calmly, answer=resources, said="said of amounts"),
    Plan(fits=_calm("replicas"), answer=details.replicas),
    Plan(fits=_asks_description, answer=details.described),
    Plan(fits=_asks_settings, answer=settings, said="said of fields"),
    Plan(fits=_asks_who, answer=dependencies.uses, said="said of uses"),
    Plan(fits=asks_if_has, answer=inventory.number_or_list, takes=("concept",)),
    Plan(fits=asks_list, answer=inventory.number_or_list),
    _CAUSE,
)
