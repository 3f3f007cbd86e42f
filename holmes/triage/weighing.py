"""Decides what an answer may claim: no number, list or "healthy" holds if a part of the question was not used."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.rule_ids import CRASHES
from holmes.triage.complaints import only_complains
from holmes.triage.grammar import asks_who, order_of
from holmes.triage.image_filters import images_of
from holmes.triage.ledger import STRUCTURAL
from holmes.triage.log_answers import asks_logs
from holmes.triage.log_errors import against_health
from holmes.triage.not_read import not_read
from holmes.triage.past import NOW_SECONDS
from holmes.triage.periods import unread_time
from holmes.triage.tags import asks_to_confirm
from holmes.triage.vocabulary import folded, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Named
    from holmes.triage.vocabulary import Sighting
    from holmes.values.first_look import FirstLook

_UNMEASURED: Final = word_list("unmeasured")
_ASKING_LEAVE: Final = word_list("asking leave")
_OF: Final = word_list("of")
_SETTINGS: Final = ("HorizontalPodAutoscaler", "PodDisruptionBudget", "ResourceQuota", "LimitRange", "NetworkPolicy")
_OF_SETTINGS: Final = frozenset({"scaling", "unreachable"})
_AMOUNTS: Final = {
    "memory": (
        word_list("of memory"),
        expression(r"(?i)memory|heap|rss|oom|leak|\b137\b|\bGC\b|[mg]i?b\b"),
    ),
    "disk": (
        word_list("of disks"),
        expression(r"(?i)disk|volume|storage|space|claim|mount|quota|inode|capacity|enospc|filesystem|[mg]i?b\b"),
    ),
    "certificate": (
        frozenset("certificate certificates cert certs tls ssl x509 zertifikat certificado certificat".split()),  # noqa: SIM905
        expression(r"(?i)certificat|x509|\btls\b|\bssl\b|expired|handshake|issuer"),
    ),
    "dns": (
        frozenset({"dns", "resolve", "resolved", "resolves", "resolution", "coredns"}),
        expression(r"(?i)dns|resolv|\bhosts?\b|lookup|nxdomain|getaddrinfo|enotfound"),
    ),
    "image": (
        frozenset({"image", "images", "imagen", "abbild"}),
        expression(r"(?i)image|pull|registry|manifest"),
    ),
    "evicted": (
        frozenset({"evicted", "eviction", "preempted", "preemption"}),
        expression(r"(?i)evict|preempt|drain|pressure"),
    ),
    "start": (
        frozenset({"scheduled", "scheduling", "unschedulable"}),
        expression(r"(?i)schedul|\bnodes?\b|taint|insufficient|affinity|pending"),
    ),
    "unreachable": (
        frozenset({"network", "netzwerk", "reseau"}),
        expression(
            r"(?i)network|polic|connect|time-?d? ?out|refused|reach|route|dns|\bports?\b|endpoint|selector|service"
        ),
    ),
}
"""The words that ask about an amount or another mechanism, and the texts that show it in a cause."""
_READY_OF: Final = expression(
    r"\b(?P<ready>\d{1,4}) ?(?:of|out of|/|von|de|sur) ?(?P<all>\d{1,4})\b"
    r"(?: \w+){0,3} (?:ready|bereit|list[oa]s?|prets?)\b"
)
"""A statement about the number of ready pods: "1 of 2 replicas is ready"."""
_DATABASES: Final = expression(r"database|\bdb\b|-db\b|sql|postgres|mongo|maria|oracle|cassandra|\bpg\b|-pg\b")
_SERVERS: Final = {
    **dict.fromkeys(("database", "databases", "db", "datenbank"), _DATABASES),
    "cache": expression(r"cache|redis|valkey|memcache|varnish"),
    "queue": expression(r"queue|rabbit|kafka|nats|amqp|sqs|broker"),
    "broker": expression(r"broker|rabbit|kafka|nats|amqp|mqtt|mosquitto"),
}
"""The nouns of servers that a workload uses, and the texts that name one."""
_COMPONENTS: Final = frozenset({"kubernetes", "k8s", "kubelet", "kubelets"})
_KILLED: Final = "137"
"""The exit code of a container that got the signal SIGKILL."""
_UNCHECKED: Final = frozenset({"permission", "usage", "secret_value", "uses", "resources"})
_OF_NAME: Final = expression(
    r"^(?:the |der |die |das |el |la |le |l')?[\w-]+(?: [\w-]+)? (?:of|for|von|de|du|des) "
    r"(?:the |der |dem |la |el |le )?(?:[\w./-]+)(?: [\w-]+)?\s*\??$"
)
"""A question that is only a noun: "qos class of payments", "warn level of the sms alerts"."""
_OF_FACTS: Final = (
    "settings", "replicas", "images", "placement", "resources", "usage", "uses", "address", "permission", "history",
    "count", "age", "describe", "changes",
)  # fmt: skip
_FACT_WORDS: Final = expression(
    r"\b(?:same|both|every|also|exposed|public|https?|paged|pager|owner|team|autoscaled|scale|root|privileged|labels?"
    r"|encrypted|signed|pinned|expires?|\d+(?:[kmgt]i?b?)?)\b"
)
"""Words of questions for yes or no that ask for a property, and not whether something works."""
_ABOUT: Final = expression(
    r"(?:what|how) about\b|was ist mit\b|wie ist es mit\b|que (?:tal|hay de|pasa con)\b|qu'en est-il\b"
)
_REASONS: Final = expression(r"\b(?:because of|due to|wegen|por culpa de|a causa de|a cause d[eu'])")
_WELL: Final = expression(
    r"^(?:what|which|was|que|quoi|qu'est-ce qui)\b.{0,30}\b(?:is|are|ist|sind|esta|estan|est|sont) (?:\w+ )?"
    r"(?:ok|okay|fine|healthy|well|gesund|in ordnung|bien|sain\w*)\b"
    r"|\b(?:without|with no|ohne|sin|sans) (?:any )?"
    r"(?:problems?|issues?|faults?|errors?|probleme?|fehler|problemas|erreurs)\b"
)
"""Questions for what is well: "what is ok in shop", "namespaces without problems"."""
_BY_WHOM: Final = expression(
    r"\b(?:by|von|por|par) (?:(?:some|any)(?:one|body)|jemand\w*|alguien|quelqu.un|whom|wem|quien|qui)\b"
    r"|^(?:who|wer|quien|qui) "
)
_TOPICS: Final = frozenset({"rollout", "scaling", "disk", "certificate", "permission", "job", "image"})
"""Symptoms that are also what a question of fact is about: "did the rollout finish"."""
_WHO: Final = frozenset({"who", "wer", "quien", "qui"})
_FACTUAL: Final = word_list("interrogatives") | word_list("who")
_ASKING: Final = word_list("asking") | word_list("interrogatives") | word_list("requests") | word_list("yes or no")


def weighed(asked: Asked, look: FirstLook) -> FirstLook:
    """Return the look, or an inconclusive look if the question asks for more than the look is about."""
    if look.verdict == "answered":
        return _weighed_fact(asked, look)
    if look.verdict == "healthy":
        return _weighed_health(asked, look)
    return _weighed_cause(asked, look) if look.verdict == "cause_found" else look


def _weighed_cause(asked: Asked, look: FirstLook) -> FirstLook:
    """Return the cause, or an inconclusive look that tells of it if the question is about something else."""
    open_look = replace(look, verdict="inconclusive", culprit="", severity=None, chain=(), fix=())
    if asks_who(asked.question) and _is_of_kill(asked, look):
        text = f"{look.summary} SIGKILL is what happened; no event or log that was read tells who sent it."
        return replace(open_look, summary=text, severity=look.severity)
    other = _asked_instead(asked, look)
    if other:
        return replace(open_look, summary=f"{other} Beside it, a fault was found: {look.summary}")
    possessed = tuple(_possessed(asked))
    if possessed and not asked.question.asks("why", "trouble"):
        text = f"Nothing that was read shows the state of its {' and '.join(possessed)}."
        return replace(open_look, severity=look.severity, summary=text, evidence=(), since="")
    return look


def _asked_instead(asked: Asked, look: FirstLook) -> str:
    """Return what the question asks for instead of the cause that was found, as a sentence, or an empty string."""
    question = asked.question
    if "restarting" in question.states and _BY_WHOM.search(question.text):
        return "Nothing that was read tells who restarted it."
    beside = _beside(asked, look)
    if beside:
        return f"Nothing that was read shows {beside}."
    unread = not_read(question, asked.subject, of_faults=True)
    time = unread_time(question.text) if question.asks("why") and not asked.subject.named else ""
    if unread or time:
        return unread or f"The time `{time}` was not understood."
    if question.words[:1] != () and question.words[0] in _WHO and question.asks("changes"):
        return "Nothing that was read tells who did it."
    scoped = asked.subject.named or question.asks("changes") or _WELL.search(question.text)
    fact = scoped and _asks_fact(question)
    return "Not answered: what was asked is not in what was read." if fact else ""


def _asks_fact(question: Question) -> bool:
    """Return whether a question neither complains nor asks for health: "which host does web serve", "is it exposed"."""
    confirms = asks_to_confirm(folded(question.written))
    past = not word_list("past verbs").isdisjoint(question.words[:1])
    changes = question.asks("changes") or "rollout" in question.symptoms
    if changes and (confirms or past) and not question.asks("why", "trouble"):
        return True  # "nothing changed since yesterday, right?"
    if _WELL.search(question.text) is not None:
        return True
    names = _ABOUT.match(question.text) is None
    asks = confirms or (names and not _FACTUAL.isdisjoint(question.words[:1]))
    asks = asks or _OF_NAME.search(question.text) is not None
    if not word_list("yes or no").isdisjoint(question.words[:1]):  # "did the import finish" asks for the fault
        asks = asks or question.asks(*_OF_FACTS) or _FACT_WORDS.search(question.text) is not None
    troubled = question.wants_reason or question.states or question.symptoms - _TOPICS
    concepts = ("health", "now", "events", "logs")
    return asks and not troubled and not question.asks(*concepts)


def _beside(asked: Asked, look: FirstLook) -> str:
    """Return what the question is about if the cause has nothing to do with it: memory, a disk, a setting, a server."""
    server = _server(asked, look)
    if server:
        return f"the state of its {server}"
    ready = _told_unready(asked)
    if ready:
        return f"that pods of {ready} are not ready"
    question, told = asked.question, " ".join((look.summary, *look.evidence, *look.notes, *look.chain))
    kind = next((each for each in question.kinds if each in _SETTINGS), "")
    if kind and kind not in told and question.asks("health") and question.symptoms <= _OF_SETTINGS:
        return f"trouble with a {kind}"
    symptom = next(iter(question.symptoms), "")
    if len(question.symptoms) != 1 or symptom not in _AMOUNTS or question.asks("negation", "health"):
        return ""
    supposed = question.asks("why") or question.words[0] not in _ASKING or _REASONS.search(question.text)
    if symptom not in ("memory", "disk") and supposed:
        return ""  # a complaint can mention the image of the pod, too
    words, shown = _AMOUNTS[symptom]
    said = next((word for word in question.words if word in words), "")
    return f"trouble with {symptom} (`{said}`)" if said and shown.search(told) is None else ""


def _is_of_kill(asked: Asked, look: FirstLook) -> bool:
    """Return whether the cause is only that a container was killed, which does not tell who sent the signal."""
    named = [each for each in asked.report.incidents if str(each.culprit) == look.culprit and each.since == look.since]
    proofs = (proof for each in named if each.rule_id in CRASHES for proof in each.findings[0].evidence)
    return any(each.path.endswith(".exitCode") and each.value == _KILLED for each in proofs)


def _weighed_fact(asked: Asked, look: FirstLook) -> FirstLook:
    left = (*asked.ledger.left("bound", "period"), *asked.ledger.left_concepts(STRUCTURAL - {"either"}))
    gone = next((each for each in asked.subject.named if each.match == "gone"), None)
    if gone is not None and asks_logs(asked.question, asked.subject):
        return replace(look, verdict="not_found", summary=f"No pod is named `{gone.name}`.", table=None, lines=())
    if not asked.subject.named and not asked.subject.namespaces and _is_of_fields(asked):
        left = (*left, *asked.ledger.left("word", "value"))
    if not left:
        return look
    parts = ", ".join(f"`{part}`" for part in left)
    text = f"Not answered: {parts} could not be applied, so the answer would be about something else."
    return replace(look, verdict="inconclusive", summary=text, table=None, lines=())


def _is_of_fields(asked: Asked) -> bool:
    """Return whether a question is about fields of all objects, whose answers take no condition."""
    question = asked.question
    fields = question.asks("images", "resources", "replicas", "settings") or "restarting" in question.states
    versions = not _COMPONENTS.isdisjoint(question.words)  # "which version of the kubelet" needs no object
    return fields and not asked.subject.kinds and not versions


def _weighed_health(asked: Asked, look: FirstLook) -> FirstLook:
    guessed = next((each for each in asked.subject.named if each.match in ("similar", "gone")), None)
    if guessed is not None:
        kind = "pod" if guessed.match == "gone" else "object"
        # A verdict on the nearest object would read as one on the object that was meant.
        text = f"No {kind} is named `{guessed.name}`. The nearest is {guessed.objects[0].ref}."
        return replace(look, verdict="not_found", summary=text)
    product = next((each for each in asked.subject.named if each.match == "part" and not _has_name(each)), None)
    if product is not None and not asked.question.asks("health"):
        text = f"`{product.name}` was read as {product.objects[0].ref}, which runs it. {look.summary}"
        return replace(look, verdict="inconclusive", summary=text)
    reason = not_read(asked.question, asked.subject)
    if not reason and not look.evidence:  # evidence tells of what the question asks about
        reason = _doubt(asked)
    reason = against_health(asked) or reason
    return replace(look, verdict="inconclusive", summary=f"{look.summary} {reason}") if reason else look


def _has_name(named: Named) -> bool:
    """Return whether a word is in the names of its objects. Otherwise, it is in their images."""
    return any(named.name.removesuffix("s").removesuffix("er") in each.name for each in named.objects)


def _doubt(asked: Asked) -> str:
    """Return why the absence of a fault does not answer the question, or an empty string."""
    question = asked.question
    past = question.period is not None and not question.asks("now")
    if (
        past
        and question.period is not None
        and question.period.bounds(asked.state.now)[1] < asked.state.now - NOW_SECONDS
    ):
        return f"Only the present state is known, not that of `{question.period.text}`."
    left = asked.ledger.left("word", "aside", "value", "bound")
    left = tuple(part for part in left if part != order_of(question, asked.subject))
    if question.asks("health", "trouble"):
        left = tuple(_possessed(asked))
    if left:
        parts = ", ".join(f"`{part}`" for part in left)
        return f"But {parts} was not understood, so this may not answer the question."
    leave = question.asks("change_order") and not _ASKING_LEAVE.isdisjoint(question.words)
    if leave or any(not _is_told(question, each) for each in question.found if each.name in _UNCHECKED):
        return "The permission, amount or use in the question was not checked."
    if question.asks("why") or (only_complains(question.text) and not question.asks("health")):
        return "The reason for what was asked about is not visible in its objects, events and logs."
    return ""


def _is_told(question: Question, place: Sighting) -> bool:
    """Return whether a word only tells what happened, beside a clause that asks for the health of the subject."""
    clause = question.clause(place.first)
    judged = [each.first for each in question.found if each.name in ("health", "trouble")]
    asks = question.words[clause.start] in _ASKING
    return bool(judged) and not asks and not any(at in clause for at in judged)


def _told_unready(asked: Asked) -> str:
    """Return the workload of which the question says that pods are not ready, although all of them are."""
    told = _READY_OF.search(asked.question.text)
    if told is None or int(told["ready"]) >= int(told["all"]):
        return ""
    for each in asked.subject.objects:
        wanted = each.integer("spec", "replicas")
        if wanted and each.kind in ("Deployment", "StatefulSet"):
            return str(each.ref) if each.integer("status", "readyReplicas") >= wanted else ""
    return ""


def _server(asked: Asked, look: FirstLook) -> str:
    """Return the server of the subject that the question is about, if the cause names no such server.

    "Is the payment database down?" is not about Deployment payments. A name such as `payments-db` has both words.
    """
    question = asked.question
    written = {each.name for each in asked.subject.named}
    own = (text for each in asked.subject.objects for text in (each.name, *images_of(each)))
    told = " ".join((look.summary, *look.evidence, *look.chain, look.culprit, *own)).lower()
    for before, word in pairwise(question.words):
        if before in written and word in _SERVERS and not question.asks("why"):
            return "" if _SERVERS[word].search(told) else word
    return ""


def _possessed(asked: Asked) -> Iterator[str]:
    """Yield what of the subject the question is about, for example the `backup` in "the backup of ledger"."""
    words = asked.question.words
    names = {each.name for each in asked.subject.named}
    yield from (word for before, word in pairwise(words) if word in _UNMEASURED and before in names)
    for index, word in enumerate(words[:-2]):
        after = [each for each in words[index + 2 : index + 4] if each not in ("the", "der", "die", "la", "el", "le")]
        if word in _UNMEASURED and words[index + 1] in _OF and after and after[0] in names:
            yield word
