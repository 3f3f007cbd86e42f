"""Tells what a question asks for instead of the cause that was found: a fact, another mechanism, an actor, a time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.comparisons import chosen_by
from holmes.triage.complaints import complains
from holmes.triage.connections import connections
from holmes.triage.grammar import asks_person, asks_user
from holmes.triage.image_filters import images_of
from holmes.triage.not_read import not_read
from holmes.triage.periods import unread_time
from holmes.triage.point_search import any_weekday
from holmes.triage.states import is_ready
from holmes.triage.tags import asks_to_confirm
from holmes.triage.vocabulary import folded, sightings, symptoms_in, vocabulary, word_list, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.values.first_look import FirstLook

_SETTINGS: Final = ("HorizontalPodAutoscaler", "PodDisruptionBudget", "ResourceQuota", "LimitRange", "NetworkPolicy")
_OF_SETTINGS: Final = frozenset({"scaling", "unreachable"})
_SHOWN: Final = {
    "memory": expression(r"(?i)memory|heap|rss|oom|leak|\b137\b|\bGC\b|[mg]i?b\b"),
    "disk": expression(r"(?i)disk|volume|storage|space|claim|mount|quota|inode|capacity|enospc|filesystem|[mg]i?b\b"),
    "certificate": expression(r"(?i)certificat|x509|\btls\b|\bssl\b|expired|handshake|issuer"),
    "dns": expression(r"(?i)dns|resolv|\bhosts?\b|lookup|nxdomain|getaddrinfo|enotfound"),
    "image": expression(r"(?i)image|pull|registry|manifest"),
    "evicted": expression(r"(?i)evict|preempt|drain|pressure"),
    "start": expression(r"(?i)schedul|\bnodes?\b|taint|insufficient|affinity|pending"),
    "unreachable": expression(
        r"(?i)network|polic|connect|time-?d? ?out|refused|reach|route|dns|\bports?\b|endpoint|selector|service"
    ),
}
"""For symptoms, the texts that show them in a cause. The vocabulary has the words that ask about each."""
_COMPLAINED: Final = frozenset({"memory", "disk"})
"""Symptoms that a complaint is always about. Others can be mentioned in it, for example the image of a pod."""
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
_REFUSED: Final = expression(r"(?i)password|authenticat|credential|access denied|invalid user")
"""A server that rejects a client with a wrong password works."""
_ROUTERS: Final = expression(r"(?i)\b(?:ingress|traefik|haproxy|contour|kong|envoy)")
_LEADING: Final = frozenset({"as", "in", "on", "at", "with", "from", "to", "als", "mit", "con", "avec", "sous"})
_GOOD: Final = (
    r"(?: (?:success\w*|good|working|complete\w*|clean|erfolgreich\w*|gut\w*|exitos\w+|buen\w*|correct\w*|reussi\w*"
    r"|bon(?:ne)?))?"
)
_MOST: Final = expression(
    r"(?:(?:what|which|who|was|welche[rs]?|wer|que|cual|quel(?:le)?)(?:'s| is| was| were| are| ist| war| es| fue| era"
    r"| est| etait) )?(?:(?:the|der|die|das|el|la|le) |l')?"
    r"(?:(?:bigg|larg|high|long|slow|fast|low|small|old|new|lat|earli|short|busi|heavi|cheap|quick)est|most recent|last"
    r"|first|average|mean|median|max(?:imum)?|min(?:imum)?|(?:letz|ers|al|langsam|schnell|gross?|klein|hoch|lang|kurz"
    r"|neue|niedrig|haufig)s?te[nrs]?|ultim[oa]s?|primer[oa]?|derni(?:er|ere)s?|premi(?:er|ere)s?)\b" + _GOOD
)
"""A question for one of several, or for a number, that begins with its order: "biggest upload of web", "last batch"."""
_TIMED: Final = expression(
    r"(?:when|(?:at )?what time|how (?:long(?! (?:has|have|is|are|was) )|often|many times)|wann|um wie ?viel uhr"
    r"|wie (?:lange(?!.* schon\b)|oft|haufig)|cuando|a que hora|cuant[oa]s? (?:tiempo(?! lleva)|veces)|quand"
    r"|a quelle heure|combien de (?:temps|fois))\b"
)
"""A question for a time or a number of times."""
_TIMED_LAST: Final = expression(r".{1,80}\b(?<!since )(?<!seit )(?<!desde )(?<!depuis )(?P<at>when|wann|cuando|quand)$")
_OPENING: Final = expression(
    r"^[\W]*(?:(?:hey|hi|hello|hallo|hola|salut|so|and|also|btw|ok|und|y|et|please|pls|bitte|quick question)[,:]? )*"
    r"(?:(?:(?:can|could) you (?:please )?)?(?:tell|show|give) (?:me|us) |do (?:you|we) know |any idea |weisst du,? "
    r"|sabes |tu sais )?"
)
_WHO: Final = expression(r"(?:who|whom|whose|wer|wem|wessen|quien(?:es)?|qui)\b(?! (?:est-ce|ne)\b)")
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
"""A question for the actor of a change or a restart."""
_TOPICS: Final = frozenset({"rollout", "scaling", "disk", "certificate", "permission", "job", "image"})
"""Symptoms that are also what a question of fact is about: "did the rollout finish"."""
_THINGS_WHOSE: Final = expression(
    r"(?:(?:list|show|all|every|which|what|count|how many|wie viele|alle|welche|cuant[oa]s|que|combien de|quels) )*"
    r"(?P<whose>[a-z-]+ (?:whose|deren|cuy[oa]s?|dont) .+)"
)
"""A list of things by what they have: "pods whose image tag starts with 1"."""
_POSSIBLE: Final = expression(
    r"(?:which|what|where|who|welche[rsnm]?|wo|wer|cual(?:es)?|donde|quien|quel(?:le)?s?)\b[^,;.?!]{0,40}?\b"
    r"(?P<may>(?:could|would|might|konnten?|wurden?|podrian?|pourrai(?:t|ent)) (?!you|i|we|it be|the (?:cause|reason)"
    r"|have|cause|explain|make|prevent|help|be (?!\w+(?:ed|t)\b))\w+)"
)
"""A question for what may be, not for what is: "which node would be drained first"."""
_IDENTITY: Final = expression(
    r"(?:is|was|are|were|ist|war|es|era|fue|est|etait) (?:it|that|this|he|she|they|das|er|sie|eso|ese|ce|il|elle) "
    r"(?P<who>[\w.-]+(?: [\w.-]+){0,2})"
)
"""A question for yes or no that names something else: "was it oncall ines"."""
_FACTUAL: Final = word_list("interrogatives") | word_list("who")
ASKING: Final = word_list("asking") | word_list("interrogatives") | word_list("requests") | word_list("yes or no")


def asked_instead(asked: Asked, look: FirstLook) -> str:
    """Return what the question asks for instead of the cause that was found, as a sentence, or an empty string."""
    question = asked.question
    acted = "restarting" in question.states or question.asks("changes")
    if asks_person(question) or (_BY_WHOM.search(question.text) and acted):
        return "Nothing that was read tells who did it."
    beside = _beside(asked, look)
    if beside:
        return f"Nothing that was read shows {beside}."
    unknown = unread_fact(asked)
    if unknown:
        return unknown
    unread = not_read(question, asked.subject, of_faults=True)
    past = not word_list("past verbs").isdisjoint(question.words[:1])
    timed = past or (question.asks("why") and not asked.subject.named)
    time = any_weekday(question.text)[0] or (unread_time(question.text) if timed else "")
    if unread or time:
        return unread or f"The time `{time}` was not understood."
    scoped = asked.subject.named or question.asks("changes") or _WELL.search(question.text)
    fact = scoped and _asks_fact(question)
    return "Not answered: what was asked is not in what was read." if fact else ""


def unread_fact(asked: Asked) -> str:
    """Return that a fact was not read with which a question begins, or an empty string if it asks for the state, too.

    This is a time, a person, or one of several: "slowest batch of web", "who can restart it", "when did it last work".
    """
    question = asked.question
    text = _OPENING.sub("", question.text).strip(" ?!.")
    choice = _unread_choice(asked, text)
    if choice:
        return f"Not answered: `{choice}` cannot be determined from what was read."
    found = next(filter(None, (each.match(text) for each in (_MOST, _TIMED, _WHO, _TIMED_LAST))), None)
    if found is None or question.asks("why") or (question.states and found.re is not _TIMED_LAST):
        return ""
    rest = text[: found.start("at")] if found.re is _TIMED_LAST else text[found.end() :].strip()
    said = {each.name for each in sightings(words_of(rest)) if each.sense == "concept"}
    dated = question.period is not None and question.period.text.startswith(found[0])  # "last 10 minutes of web"
    timed = found.re in (_TIMED, _TIMED_LAST)
    if dated or "trouble" in said or (said & {"health", "now", "events"} and not timed) or complains(rest):
        return ""
    words = dict.fromkeys((found["at"] if found.re is _TIMED_LAST else found[0], *asked.subject.unknown))
    told = ", ".join(f"`{each}`" for each in words)
    return f"Not answered: {told} cannot be determined from what was read." if rest else ""


def _unread_choice(asked: Asked, text: str) -> str:
    """Return the words that ask for one of several, a list, or what may be. A fault answers none of these."""
    question = asked.question
    possible = _POSSIBLE.match(text) if not question.asks("why", "trouble") else None
    listed, guessed = _THINGS_WHOSE.match(text), _IDENTITY.fullmatch(text)
    if guessed is not None and not _has_no_meaning(asked, guessed["who"]):
        guessed = None
    return chosen_by(question) or next((each[each.lastgroup or 0] for each in (listed, possible, guessed) if each), "")


def _has_no_meaning(asked: Asked, text: str) -> bool:
    """Return whether words neither judge something nor name an object of the question: a person, a cause from afar."""
    words = words_of(text)
    names = {each.name for each in asked.subject.named}
    plain = [word for word in words if word not in vocabulary().stop]
    return bool(plain) and names.isdisjoint(words) and not sightings(words) and not symptoms_in(words)


def _asks_fact(question: Question) -> bool:
    """Return whether a question neither complains nor asks for health: "which host does web serve", "is it exposed"."""
    confirms = asks_to_confirm(folded(question.written))
    past = not word_list("past verbs").isdisjoint(question.words[:1])
    changes = question.asks("changes") or "rollout" in question.symptoms
    if changes and (confirms or past) and not question.asks("why", "trouble"):
        return True  # "nothing changed since yesterday, right?"
    if (asks_user(question) and not question.asks("trouble", "why")) or _WELL.search(question.text) is not None:
        return True
    names = _ABOUT.match(question.text) is None
    opening = question.words[1:2] if question.words[0] in _LEADING else question.words[:1]
    asks = confirms or (names and not _FACTUAL.isdisjoint(opening)) or _MOST.match(question.text) is not None
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
    judged = question.asks("health") or not word_list("yes or no").isdisjoint(question.words[:1])
    judged = judged and not _REASONS.search(question.text)
    if kind and kind not in told and judged and question.symptoms <= _OF_SETTINGS:
        return f"trouble with a {kind}"
    symptom = next(iter(question.symptoms), "")
    if len(question.symptoms) != 1 or symptom not in _SHOWN or question.asks("negation", "health"):
        return ""
    supposed = question.asks("why") or question.words[0] not in ASKING or _REASONS.search(question.text)
    if symptom not in _COMPLAINED and supposed:
        return ""
    words = word_list(f"of {symptom}")
    said = next((word for word in question.words if word in words), "")
    return f"trouble with {symptom} (`{said}`)" if said and _SHOWN[symptom].search(told) is None else ""


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


def is_of_other(asked: Asked, look: FirstLook) -> bool:
    """Return whether a question for the health of a server gets the fault of its client, or of what a proxy routes to.

    Their faults are in its log, but it works.
    """
    question, path = asked.question, [asked.state.written(name) for name in look.chain]
    if not question.asks("health") or question.asks("why", "trouble", "logs") or question.symptoms or len(path) <= 1:
        return False
    own, culprit = path[0], path[-1]
    if own is None or culprit is None or own.kind not in WORKLOADS or not is_ready(own):
        return False
    if not asked.subject.named and asked.subject.contains(culprit):
        return False
    if any(_ROUTERS.search(image) for image in images_of(own)):
        return culprit.kind in ("Service", *WORKLOADS)
    uses = own.ref in connections(asked.state, (culprit,)) and culprit.ref not in connections(asked.state, (own,))
    return uses and _REFUSED.search(" ".join(look.evidence)) is not None


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
