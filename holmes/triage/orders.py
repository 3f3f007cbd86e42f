"""Declines what Holmes never does, because it only reads: changes of the cluster, and values of Secrets.

A question with a word such as "restart" or "password" is answered: "why does the restart take so long". The answer
names the object, and the command that a person can run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.triage.change_commands import change_command
from holmes.triage.complaints import changes_told, demands, states_trouble
from holmes.triage.facts import fact
from holmes.triage.periods import period_of
from holmes.triage.users import keys_used
from holmes.triage.vocabulary import beginnings, sightings, vocabulary, word_list, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_READS_ONLY: Final = "Holmes only reads: it changes nothing and shows no secret values."
_CLAUSES: Final = expression(r"[,;:!?.](?=\s|$)|\s[-\u2013\u2014]\s|\s(?:and then|then|und dann|y luego|et puis)\s")
_TOOL: Final = expression(
    r"\b(?:kubectl|oc|helm) (?:-\S+ (?:\S+ )?)?(?:delete|apply|create|scale|patch|edit|replace|drain|cordon|uncordon"
    r"|taint|label|annotate|set|expose|autoscale|evict|rollout (?:restart|undo|pause|resume)|upgrade|install|uninstall"
    r"|rollback)\b"
)
_UNDERWAY: Final = expression(
    r"\b(?:i'?m|i am|we'?re|we are|he is|she is|they are) (?:\w+ )?"
    r"(?:drain|delet|scal|restart|cordon|evict|patch|apply|upgrad|install|roll|replac|edit|updat|mov)\w*ing\b"
    r"|\bgerade (?:dabei|am)\b|\bestoy \w+ndo\b"
    r"|\bkubectl \w+ .{0,40}\b(?:keeps?|hangs?|stuck|retr(?:y|ies|ying)|fails?|failed|refuses?|won't|times? out|waits?"
    r"|waiting|hangt|scheitert|wartet)\b"
)
"""A change that a person makes at this time: "I'm draining worker-3, and it hangs"."""
_LEADING: Final = expression(
    r"^(?:.*\b(?:i need you to|i want you to|i'd like you to|(?:i|we|you) (?:should|must|need to|have to|want to)|let's"
    r"|lets|let us|go and|please|pls|plz|bitte|por favor|s'il te plait|s'il vous plait|stp|svp"
    r"|(?:can|could|would|will) (?:you|some(?:one|body))|(?:kannst|konntest|koenntest|wurdest) du"
    r"|(?:konnen|konnten) (?:wir|sie))\s+)"
)
_WISHES: Final = expression(
    r"\b(?:quiero|quisiera|necesito|hay que|tienes que|puedes|podrias|podemos|habria que|deberiamos|il faut|faudrait"
    r"|veuillez|on (?:doit|devrait)|je veux|je voudrais|peux-tu|pouvez-vous|tu peux|vous pouvez|on peut|merci de"
    r"|ich will|ich mochte|wir (?:sollten|mussen)|man sollte|kannst du|konntest du|kannst)\b"
)
_PASSIVE: Final = expression(
    r"\b(?:needs? to be|should be|must be|has to be|have to be|(?:i |we )?(?:need|want)s? .{0,60})"
    r" (?:\w+ed|shut down|undone)$"
    r"|\b(?:muss|soll|sollte|mussen) .{0,80}(?:werden)$"
)
_ASKS_ADVICE: Final = expression(
    r"^(?:so |also |alors |entonces )?(?:(?:do|should|must|shall|need) (?:i|we)\b"
    r"|(?:muss|soll|sollte|mussen|sollen|sollten) (?:ich|wir|man)\b|¿?(?:tengo|tenemos|hay) que\b"
    r"|¿?deb(?:o|emos)\b|(?:dois-je|devons-nous|faut-il|doit-on|est-ce qu(?:e je|'il) (?:dois|faut))\b)"
)
"""A person asks if a change would help: "web does not start, do I have to create the secret"."""
_MOST_SUGGESTED: Final = 4
"""The number of words of a change that a question suggests: "kill the collector?"."""
_PHRASES: Final = ("get rid of", "shut down", "tear down", "take down", "spin up", "spin down", "make it", "make sure")
_HURRY: Final = frozenset({"asap", "now", "again", "jetzt", "sofort", "ahora", "maintenant", "vite"})
_NO_ORDER: Final = word_list("of") | word_list("locating") | word_list("interrogatives") | {"when", "wann", "quand"}
"""Words of a question about a change: "restart of booking when?"."""
_PLEASE: Final = expression(r"\b(?:please|pls|plz|bitte|por favor|svp|stp|s'il (?:te|vous) plait)\b")
_ASKING: Final = word_list("asking")
_NOUNS: Final = word_list("after nouns")
_ORDERS: Final = word_list("orders")
_INFINITIVES: Final = word_list("order infinitives")
_BEFORE_NOUNS: Final = word_list("before nouns")
_ARTICLES: Final = word_list("articles")
_STATES: Final = word_list("verbs of state") | word_list("past verbs")
_DENIED: Final = frozenset({"nicht", "kein", "keine", "keinen", "nie", "nichts", "no", "ne", "pas"})
_ALIKE: Final = frozenset({"put", "set", "shut"})
_YES_OR_NO: Final = word_list("asking for values")


def declined(asked: Asked) -> FirstLook | None:
    """Return the answer to a request that Holmes declines, or None for a question."""
    question = asked.question
    local = "expose" in question.words and beginnings("own computer").search(question.spoken) is not None
    named = _is_name_of_order(asked)
    asks = local or named or (bool(question.words) and (question.words[0] in _ASKING or _asks_leave(question.words)))
    ending = question.asks("why") and any(each.deleted is not None for each in asked.subject.objects)
    ending = ending or _UNDERWAY.search(question.text) is not None
    pasted = _TOOL.search(question.text) is not None and not ending  # "kubectl delete cm plan hangs, why?"
    if pasted or (not asks and (any(_orders(question)) or _orders_name(asked))):
        return _without_change(asked)
    return _without_values(asked) if _reveals(asked) else None


def _is_name_of_order(asked: Asked) -> bool:
    """Return whether a question begins with the name of an object that is also an order: "drain ok?"."""
    first = asked.question.words[:1]
    order = any(each.name == "change_order" for each in sightings(first))
    return order and any(each.name in first for each in asked.subject.named)


def _orders_name(asked: Asked) -> bool:
    """Return whether a question only has an order and names of objects: "restart booking and pricing please"."""
    if asked.question.asks("why", "when", "count", "logs"):
        return False
    first = next(filter(None, map(str.strip, _CLAUSES.split(asked.question.text))), "")
    names = {each.name for each in asked.subject.named}
    words = words_of(_LEADING.sub("", first))
    words = tuple(each for each in words if each not in word_list("fillers"))
    if words[-1:] != () and words[-1] in _ORDERS and _PLEASE.search(asked.question.text):
        words = (words[-1], *words[:-1])  # "booking restart please"
    order = words[:1] != () and words[0] in _ORDERS and _NO_ORDER.isdisjoint(words)
    others = [each for each in words[1:] if each in names or not (vocabulary().is_ordinary(each) or each in _HURRY)]
    return order and others != [] and names.issuperset(others)


def _asks_leave(words: tuple[str, ...]) -> bool:
    """Return whether a question asks what an account may do: "can web delete pods", but not "can you delete it"."""
    return words[0] in ("can", "could") and words[1:2] not in (("you",), ("we",), ("someone",), ())


def asks_how_to_change(question: Question, subject: Subject) -> bool:
    """Return whether a question asks how a person changes something: "how do I restart web"."""
    asks = beginnings("how to").search(question.spoken) and not question.asks("trouble", "logs")
    return bool(asks and subject.named and change_command(question, subject, subject.objects))


def how_to_change(asked: Asked) -> FirstLook:
    """Return the command for a change that a person wants to make."""
    command = change_command(asked.question, asked.subject, asked.subject.objects)
    text = f"Run this command to change {asked.subject.objects[0].ref}. Holmes does not run it."
    return replace(fact(asked, text), fix=(command,))


def _without_change(asked: Asked) -> FirstLook:
    names = _names(asked)
    command = change_command(asked.question, asked.subject, _targets(asked))
    what = f"The change to {names} was not made." if names else "The change was not made."
    instead = "" if command else " Holmes can show the state, the events and the configuration of an object."
    look = fact(asked, f"{_READS_ONLY} {what}{instead}", None, "declined", notes=_missing(asked))
    return replace(look, fix=(command,) if command else ())


def _targets(asked: Asked) -> tuple[ClusterObject, ...]:
    """Return what the change is about. "Kill the web pod" means the pod of the workload, if it is the only one."""
    objects = asked.subject.objects
    if "Pod" not in asked.question.kinds or any(each.kind in ("Pod", "Node") for each in objects):
        return objects
    pods = [pod for each in objects for pod in asked.state.pods_of(each)]
    scaled = beginnings("scaling order").search(asked.question.spoken) and any(
        word.isdigit() for word in asked.question.words
    )
    return objects if scaled else tuple(pods) if len(pods) == 1 else ()


def _without_values(asked: Asked) -> FirstLook:
    """Return the answer to a request for secret values: the keys, as far as workloads refer to them."""
    secrets = [each for each in asked.subject.objects if each.kind == "Secret"]
    used = [(each, keys_used(asked.state, each)) for each in secrets]
    told = "; ".join(f"workloads use the keys {', '.join(keys)} of {each.ref}" for each, keys in used if keys)
    names = f" The values of {_names(asked)} are not shown." if asked.subject.named else ""
    instead = f" Known: {told}." if told else " Names and keys of Secrets can be listed."
    return fact(asked, f"{_READS_ONLY}{names}{instead}", None, "declined", notes=_missing(asked))


def _names(asked: Asked) -> str:
    if not asked.subject.named and "Namespace" in asked.question.kinds:
        return ", ".join(f"Namespace {name}" for name in asked.subject.namespaces)
    return ", ".join(dict.fromkeys(str(_main(named.objects, asked).ref) for named in asked.subject.named))


def _main(objects: tuple[ClusterObject, ...], asked: Asked) -> ClusterObject:
    return next((each for each in objects if each.kind in asked.question.kinds), objects[0])


def _missing(asked: Asked) -> tuple[str, ...]:
    missing = () if asked.subject.named else asked.subject.missing
    return tuple(f"`{each.name}` was not found." for each in missing if each.kind != "address")


def _reveals(asked: Asked) -> bool:
    """Return whether a question asks for the value of a Secret or of one of its keys."""
    question = asked.question
    secrets = [each for each in asked.subject.objects if each.kind == "Secret"]
    values = _asks_value(question) or (question.asks("value_of") and ("Secret" in question.kinds or secrets))
    kinds = {at for each in question.found if each.sense == "kind" for at in range(each.first, each.last + 1)}
    words = {word for at, word in enumerate(question.words) if at not in kinds}  # "who may read the secret s3"
    keyed = any(key.lower() in words for each in secrets for key in keys_used(asked.state, each))
    shown = (
        bool(secrets)
        and (keyed or beginnings("decoding").search(question.spoken))
        and not question.asks("uses", "when", "age")
    )
    if demands(question.text, "secret_value"):
        return True
    other = question.complains or question.asks("why", "trouble", "logs")
    if other or not question.words or question.words[0] in _YES_OR_NO:
        return False
    return bool(values or (shown and not beginnings("key names").search(question.spoken)))


def _asks_value(question: Question) -> bool:
    """Return whether a secret value is meant outside of the clauses that only tell of a change of it."""
    text = question.text
    for told in changes_told(text, checked=True):
        text = text.replace(told, " ")
    return question.asks("secret_value") and any(each.name == "secret_value" for each in sightings(words_of(text)))


def _orders(question: Question) -> Iterator[bool]:
    """Yield for each clause whether it is an order."""
    if question.asks("why", "count"):
        return
    for plain, suggested in _clauses(question):
        if suggested:
            continue
        if question.complains and _ASKS_ADVICE.search(plain):
            continue
        words, rest = words_of(plain), words_of(_LEADING.sub("", plain))
        if (_names_activity(words) and states_trouble(plain)) or _tells_past(words, plain):
            continue
        yield plain.startswith(_PHRASES) or _LEADING.sub("", plain).startswith(_PHRASES)
        yield "would you mind" in plain or _begins_with_order(words) or _begins_with_order(rest)
        last = words[-1:] if words[-2:] != ("neu", "starten") else ("neustarten",)
        noun = words[-2:-1] and words[-2] in _BEFORE_NOUNS  # "hängt im Löschen" is not an order
        denied = not _DENIED.isdisjoint(words)  # "kunden können keine Tickets anlegen" is a complaint
        german = bool(last) and last[0] in _INFINITIVES and not noun and not denied
        yield german or (_WISHES.search(plain) is not None and not _INFINITIVES.isdisjoint(words))
        yield words[:1] != () and words[0] not in _ASKING and _PASSIVE.search(plain) is not None


def _clauses(question: Question) -> Iterator[tuple[str, bool]]:
    """Yield each clause, and whether it only suggests a change: "the pods crash. rollback?"."""
    start = 0
    for end in (*_CLAUSES.finditer(question.text), None):
        plain = question.text[start : end.start() if end else None].strip()
        most = _MOST_SUGGESTED if question.complains else 1
        bare = _LEADING.sub("", plain) == plain and len(words_of(plain)) <= most
        yield plain, bool(end and end[0] == "?" and start and bare)
        start = end.end() if end else 0


def _begins_with_order(words: tuple[str, ...]) -> bool:
    """Return whether words begin with the verb of an order. "Scale of checkout" is a question."""
    while words and words[0] in word_list("fillers"):
        words = words[1:]
    if not words or words[0] not in _ORDERS or _states(words):
        return False
    following = [word for word in words[1:3] if word not in ("a", "an", "the", "out", "back")]
    return not following or following[0] not in _NOUNS


def _names_activity(words: tuple[str, ...]) -> bool:
    """Return whether a clause begins with an activity: "label printing is dead", but not "delete failing pods"."""
    known = any(each.first == 1 for each in sightings(words))
    return words[1:2] != () and words[1].endswith("ing") and not known


def _tells_past(words: tuple[str, ...], plain: str) -> bool:
    """Return whether a clause tells what was done, by a verb whose past is spelled alike: "set it to 3 yesterday"."""
    return not _ALIKE.isdisjoint(words[:1]) and period_of(plain) is not None


def _states(words: tuple[str, ...]) -> bool:
    """Return whether words that look like an order state something: "deploy web is green", "andere Pods gehen"."""
    other = words[0] == "andere" and words[1:2] != () and words[1] not in _ARTICLES
    told = words[1:3] in (("to", "that"), ("to", "this"))  # "add to that: the pods crash"
    return other or told or not _STATES.isdisjoint(words[1:3])
