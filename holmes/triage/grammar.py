"""Judges by its place in a sentence whether a word without a known meaning changes what a question asks for.

"Idle pods", "pods with sidecars" and "pods are idle" name a condition. "Gimme all pods, I am on call" and "is all well
before the release" do not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.vocabulary import folded, sightings, symptoms_in, vocabulary, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject

NAME: Final = expression(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
"""A word that can be the name of an object."""
_WHO_DID: Final = expression(
    r"(?:who|wer|quien|qui) (?:has |hat |ha |a )?(?:switched|turned|shut|scaled|stopped|disabled|removed|deleted"
    r"|changed|edited|touched|restarted|broke|abgeschaltet|ausgeschaltet|geandert|geloscht|gestoppt|apago|cambio|borro|paro"
    r"|arrete|modifie|supprime)\b"
)
_WHO_ACTS: Final = expression(
    r"(?:(?:so|and|but|und|aber|y|pero|et|mais) )?(?:who|wer|quien|qui) (?:keeps |always |is )?"
    r"(?:evict|kill|restart|scal|delet|chang|edit|stopp?|remov|reset"
    r"|revert|overwrit|start|creat)(?:s|es|ing)\b"
    r"|.*[.!?;,] (?:who does (?:that|this|it)|wer macht das|quien hace eso|qui fait (?:ca|cela))\b"
)
"""A question for the actor of what happens again and again: "who evicts its pods", "it is 2 again. Who does that?"."""
_WHICH_USER: Final = expression(
    r"\b(?:which|what|as which|as what|welche[rn]?|que|quel) (?:\w+ )?(?:user|username|account|password|role|benutzer"
    r"|usuario|utilisateur|compte)\b"
)
_LINKING: Final = word_list("linking")
_TEMPORAL: Final = word_list("temporal")
_PLURAL_VERBS: Final = word_list("plural verbs")
_INFINITIVES: Final = frozenset({"to", "zu"})
_PARTICIPLES: Final = ("ed", "ado", "ada", "ados", "ido", "ida", "idos")
_DETERMINERS: Final = word_list("determiners")
_QUANTIFIERS: Final = word_list("quantifiers")
_FILLERS: Final = word_list("fillers")
_RELATIVE: Final = word_list("relative")
_CLAUSE_STARTS: Final = word_list("clause starts")
_BY_WHOM: Final = word_list("by whom")
_PERSONS: Final = word_list("persons")
_OWN_WISHES: Final = word_list("own wish verbs")
_WISHES: Final = word_list("wish verbs") | _OWN_WISHES
_NUMBERS: Final = word_list("indefinite") | {"two", "three", "zwei", "drei", "dos", "tres", "deux", "trois"}
SOMEBODY: Final = (
    r"(?:(?:some|any)(?:one|body)|jemand|irgendwer|irgendjemand|alguien|quelqu.un|(?<=hat )wer|(?<=habt )wer)"
)
"""A pattern of the words for an unnamed person."""
RESTART: Final = r"(?:restart|reboot|redeploy|roll|neu ?gestart|neustart|reinici|redemarr)"
"""A pattern of the beginnings of words for a restart on purpose."""
_PLACING: Final = frozenset({"in", "im", "en", "dans"})
_NARROWING: Final = word_list("narrowing")
_LISTED: Final = word_list("listed before")
_ONES: Final = frozenset({"ones", "one"})
_DENIALS: Final = word_list("denials")
_WITHOUT: Final = frozenset({"without", "ohne", "sin", "sans"})
_CONJUNCTIONS: Final = word_list("conjunctions")
_DOING: Final = word_list("doing")
_POSSESSING: Final = word_list("possessing")
_OF: Final = word_list("of") | word_list("locating")
_TO: Final = frozenset({"to", "zu", "zum", "a", "al", "au"})
_BELONGING: Final = word_list("belonging")
_SAYING_OF_OBJECTS: Final = frozenset(
    {"list", "count", "health", "trouble", "negation", "other", "age", "now", "polite", "follow_up", "uses", "why"}
)
"""Concepts that a word before a noun says of the objects, or asks about them: "healthy pods", "list pods"."""
_BEFORE_SUBJECT: Final = word_list("verbs before subjects") | word_list("before judged") | {"namespaces", "namespace"}
_JUDGING: Final = frozenset({"health", "trouble", "ready", "not_ready", "running", "failing", "crashing"})
_MANNERS: Final = frozenset({"polite", "now", "follow_up"})
DOMAINS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("zone", "zones", "zonen", "zona", "zonas", "verfugbarkeitszone", "verfugbarkeitszonen"), "zone"),
    **dict.fromkeys(("region", "regions", "regionen", "regiones"), "region"),
}
_OF_TIME: Final = frozenset({"time", "dns", "horaria", "hosted"})
_PLACED: Final = frozenset({"Node", "Pod", *WORKLOADS})


def asks_who(question: Question) -> bool:
    """Return whether a question asks for a person or a program: "who killed web"."""
    return bool(question.words) and question.words[0] in _BY_WHOM


def asks_person(question: Question) -> bool:
    """Return whether a question asks for the person who did something: "who switched off web"."""
    return _WHO_DID.match(question.text) is not None


def asks_actor(question: Question) -> bool:
    """Return whether a question asks for the person or program that does something."""
    return asks_person(question) or _WHO_ACTS.match(question.text) is not None


def asks_user(question: Question) -> bool:
    """Return whether a question asks for the user of a server: "as which database user does web connect"."""
    return _WHICH_USER.search(question.text) is not None


def unknown_parts(question: Question, subject: Subject) -> tuple[str, ...]:
    """Return the unknown words of a question that change what it asks for."""
    words = question.words
    return tuple(word for word in subject.unknown if word not in words or qualifies(question, words.index(word)))


def qualifies(question: Question, index: int) -> bool:
    """Return whether an unknown word can be a condition. A clause of its own asks for nothing."""
    words, clause = question.words, question.clause(index)
    before = [word for word in words[clause.start : index] if word not in _DETERMINERS]
    if is_restricting(words[clause.start : clause.stop]):
        return True
    if _is_purpose(words, index, clause) or before[-1:] == ["j"]:  # "j'ai besoin"
        return False
    if _is_manner(question, index, clause) or (before and before[-1] in _TEMPORAL):
        return False
    if before and before[-1] in _LINKING:
        return True
    leads = all(word in _FILLERS for word in words[clause.start : index])
    if leads and index + 1 in clause and words[index + 1] in _QUANTIFIERS | _DETERMINERS:
        return False  # "gimme every pod"
    personal = not _PERSONS.isdisjoint(words[clause.start : clause.stop])  # "we are not allowed any downtime"
    manners = _MANNERS | {"negation"} if personal else _MANNERS
    asks = any(each.first in clause and each.name not in manners for each in question.found)
    return asks or bool(symptoms_in(words[clause.start : clause.stop]))


def _is_manner(question: Question, index: int, clause: range) -> bool:
    """Return whether a word tells how short the answer should be: "the whole cluster in one breath"."""
    counted = question.words[index - 2 : index - 1] in (("in",), ("en",)) and question.words[index - 1] in _NUMBERS
    return counted and not any(each.sense == "kind" and each.first in clause for each in question.found)


def is_restricting(words: Sequence[str]) -> bool:
    """Return whether a clause narrows what is asked for: "only the billable ones", "nur verwaiste"."""
    first = [word for word in words if word not in _FILLERS][:1]
    return bool(first) and (first[0] in _NARROWING | _LISTED or words[-1] in _ONES)


def _is_purpose(words: Sequence[str], index: int, clause: range) -> bool:
    """Return whether a word is before the wish of a person: "for the quarterly report I need the number of pods"."""
    wishes = (at for at in clause if at > index and words[at] in _WISHES)
    return any(words[at] in _OWN_WISHES or _PERSONS.intersection(words[index + 1 : at]) for at in wishes)


def owns(question: Question, index: int) -> bool:
    """Return whether the word at a position has what is asked for: "which services does media have", "media's pods"."""
    words, clause = question.words, question.clause(index)
    things = (each.first for each in question.found if each.sense in ("kind", "word"))
    if not any(first in clause and first != index for first in things):
        return False
    before = words[index - 1] if index - 1 in clause else ""
    after = words[index + 1] if index + 1 in clause else ""
    ends = not after or after in _CONJUNCTIONS
    nouns = (each for each in question.found if each.sense == "kind" and each.first == index + 1)
    beside = any(vocabulary().is_plural(words[each.last]) for each in nouns)  # "the media pods"
    written = expression(rf"(?<![\w-]){re.escape(words[index])}'s? ").search(question.text) is not None
    return bool(
        written
        or before in _DOING
        or after in _POSSESSING
        or (ends and before in _POSSESSING | _OF)
        or (ends and before in _TO and not _BELONGING.isdisjoint(words[clause.start : index]))
        or (beside and not {each.name for each in question.found if each.first == index} & _SAYING_OF_OBJECTS)
    )


def is_judged(question: Question, index: int) -> bool:
    """Return whether the word at a position is what a question of health is about: "is media ok", "how are a and b"."""
    words, clause = question.words, question.clause(index)
    here = [each for each in question.found if each.first <= index <= each.last]
    if any(each.sense != "concept" or each.first != each.last for each in here) or index - 1 not in clause:
        return False
    after = words[index + 1] if index + 1 in clause else ""
    judges = any(each.first == index + 1 and each.name in _JUDGING for each in question.found)
    asks = any(each.first != index and each.name in _JUDGING for each in question.found) or question.asks("why")
    ends = not after or after in _CONJUNCTIONS or (after in vocabulary().stop and after not in _OF)
    return asks and words[index - 1] in _BEFORE_SUBJECT and (ends or judges)


def order_of(question: Question, subject: Subject) -> str:
    """Return the unknown verb that only orders to look at a subject with its kind: "quiz namespace shop"."""
    names = {*subject.namespaces, *(each.name for each in subject.named)}
    content = [(at, word) for at, word in enumerate(question.words) if word not in vocabulary().stop | _BEFORE_NOUNS]
    kinds = {at for each in question.found if each.sense == "kind" for at in range(each.first, each.last + 1)}
    known = [word for at, word in content[1:] if at not in kinds and word not in names]
    orders = bool(content) and content[0][1] in subject.unknown and bool(kinds) and not known
    return content[0][1] if orders else ""


def names_things(question: Question) -> bool:
    """Return whether a question is a noun with its conditions: "pods that run on node-1", "claims without a volume"."""
    for place in question.found:
        if place.sense not in ("kind", "word"):
            continue
        clause = question.clause(place.first)
        known = {
            index for each in question.found if each.sense == "state" for index in range(each.first, each.last + 1)
        }
        leading = range(clause.start, place.first)
        alone = all(index in known or question.words[index] in _BEFORE_NOUNS for index in leading)
        following = question.words[place.last + 1 : place.last + 2]
        plural = vocabulary().is_plural(question.words[place.last])
        return alone and plural and bool(following) and following[0] in _RELATIVE | _LEADING_CONDITIONS
    return False


_BEFORE_NOUNS: Final = _FILLERS | _QUANTIFIERS | _DETERMINERS
_LEADING_CONDITIONS: Final = word_list("leading conditions")


def counts_told(question: Question, at: int) -> bool:
    """Return whether the word at a position ends a count with its number: "restart count 2"."""
    counts = (each.last for each in question.found if each.sense == "concept" and each.name == "count")
    return at in counts and question.words[at + 1 : at + 2] != () and question.words[at + 1].isdigit()


def asks_number(question: Question) -> bool:
    """Return whether a question asks for a count or a sum, and does not only tell one."""
    counts = [each.last for each in question.found if each.sense == "concept" and each.name == "count"]
    return question.asks("sum") or any(not counts_told(question, each) for each in counts)


def says(words: Sequence[str], index: int) -> bool:
    """Return whether a word only tells who says something: "the ingest people say it is flaky"."""
    after = words[index + 1 : index + 3]
    return not word_list("people").isdisjoint(after[:1]) and not word_list("saying").isdisjoint(after[1:])


def ruled_out(question: Question) -> tuple[int, int]:
    """Return the positions of the word that rules something out, and of the end of what it rules out.

    "Except loyalty", "not the loyalty thing". Both are the number of words if nothing is ruled out.
    """
    words = question.words
    excluding = [each.last for each in question.found if each.sense == "concept" and each.name == "excluding"]
    if asks_number(question) and "restarting" in question.states:  # "restarts in total without web"
        excluding += [at for at, word in enumerate(words) if word in _WITHOUT]
    denied = [at for at in sorted(question.breaks) if at < len(words) and words[at] in _DENIALS]
    first = min(excluding or denied, default=len(words))
    end = len(words) if excluding or not denied else question.clause(first).stop
    return first, next((at for at in range(first + 1, end) if words[at] in _CLAUSE_STARTS), end)


def is_apart(question: Question, index: int, spaces: Sequence[str]) -> bool:
    """Return whether a name is in another clause than the namespaces, or lacks rights there: no place of its own."""
    said = [each for each, word in enumerate(question.words) if word in spaces]
    forbidden = "permission" in question.symptoms
    return bool(said) and (forbidden or not set(said) & set(question.clause(index)))


def is_bare(question: Question, index: int) -> bool:
    """Return whether a noun in the place of a name is one: "uploads fail in media", "restarts of label", "image ok?".

    After "of" and before "ok", only a name in the singular has no article.
    """
    words, clause = question.words, question.clause(index)
    after = words[index - 1] if index > 0 and index + 1 not in clause else ""
    judged = index == clause.start and any(each.first == index + 1 and each.name == "health" for each in question.found)
    singular = not vocabulary().is_plural(words[index])
    return after in _PLACING or (singular and (judged or (after == "of" and index > 1)))


def must_be_name(word: str, *, quoted: bool, sure: bool) -> bool:
    """Return whether an unknown word can only be a name. `sure` means that it is in the place of one."""
    if NAME.fullmatch(word) is None:
        return False
    ordinary = vocabulary().is_ordinary(word) or (not quoted and symptoms_in((word,)))
    ordinary = ordinary or word in vocabulary().lists["qualifiers"]
    compound = word[1:2] == "-" and not word[-1].isdigit()  # "x-rays", "e-mails"
    parts = word.split("-")
    known = all(sightings((one,)) or symptoms_in((one,)) for one in parts)  # "TLS-Secret"
    compound = compound or (len(parts) > 1 and known)
    made = quoted or (not ordinary and not compound and ("-" in word or any(sign.isdigit() for sign in word)))
    return bool(made or (sure and not ordinary))


_UNCOUNTED: Final = word_list("everyday things") | {
    "users", "customers", "people", "clients", "guests", "visitors", "kunden", "nutzer", "usuarios", "clientes",
    "utilisateurs",
}  # fmt: skip


_GERMAN_NOUN: Final = expression(r"\b[Ww]ie ?viele (?P<noun>[A-ZÄÖÜ][a-zäöüß]+)\b")


def german_noun(question: Question) -> str:
    """Return the noun after "wie viele", which a capital letter tells, if it has no meaning in a cluster: "Pässe"."""
    match = _GERMAN_NOUN.search(question.written)
    noun = folded(match["noun"]) if match is not None else ""
    known = noun not in question.words or sightings((noun,))
    return match["noun"] if match is not None and not known else ""


def counted_noun(question: Question) -> str:
    """Return the noun after "how many" if it has no meaning in a cluster: `users` in "how many users were affected"."""
    for each in question.found:
        word = question.words[each.last + 1] if each.name == "count" and each.last + 1 < len(question.words) else ""
        plain = word.isalpha() and word not in vocabulary().stop and not sightings((word,))
        if plain or word in _UNCOUNTED:
            return word
    return ""


def is_verb_or_adjective(question: Question, index: int) -> bool:
    """Return whether a word after a kind says something of it: "the pod refuses to start", "pod creado"."""
    words = question.words
    follower = words[index + 1] if index + 1 in question.clause(index) else ""
    several = words[index].endswith("s") and follower in _PLURAL_VERBS  # "half of the claim uploads fail"
    acts = words[index].endswith("ing") and follower.isdigit()  # "the ingress returning 502"
    return several or acts or words[index].endswith(_PARTICIPLES) or follower in _DETERMINERS | _INFINITIVES


def describes(question: Question, index: int) -> bool:
    """Return whether a word tells when something began, or of what kind it is: "the customer-facing ones"."""
    before = [each for each in question.words[:index] if each not in _DETERMINERS][-1:]
    return not _TEMPORAL.isdisjoint(before) or question.words[index + 1 : index + 2] == ("ones",)


def begins_clause(question: Question, index: int, known: Container[int]) -> bool:
    """Return whether a word begins a clause, and an unknown word follows: "history pages take a minute"."""
    words, clause = question.words, question.clause(index)
    leads = index == clause.start or (index - 1 == clause.start and words[clause.start] in _DETERMINERS)
    follower = index + 1
    return leads and not (follower in known or follower not in clause or words[follower] in vocabulary().stop)


def domain_words(question: Question) -> Iterator[tuple[int, str]]:
    """Yield the position of each word for a zone or a region of nodes, and `zone` or `region`."""
    words = question.words
    for at, word in enumerate(words) if _PLACED.intersection(question.kinds) else ():
        if word in DOMAINS and _OF_TIME.isdisjoint((*words[max(0, at - 1) : at], *words[at + 1 : at + 2])):
            yield at, DOMAINS[word]
