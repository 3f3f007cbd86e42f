"""Completes questions that continue a conversation: what "it" refers to, and what "and in shop?" asks.

A question without a verb of its own repeats the question before with another name, namespace or kind. "Which of those"
narrows the objects of the question before. Every other question only takes over the objects of the last answer.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.triage.complaints import misses_something
from holmes.triage.connections import connections, identity
from holmes.triage.custom_subjects import with_known_kinds
from holmes.triage.grammar import asks_number, is_judged, names_things, owns
from holmes.triage.log_errors import ERROR_NOUN
from holmes.triage.names import names_of
from holmes.triage.owners import with_names_of_nouns
from holmes.triage.question import Question, parse_question
from holmes.triage.search import find_subject
from holmes.triage.spelling import spelled, with_nouns_apart, with_whole_names
from holmes.triage.subjects import Named
from holmes.triage.suspicions import asks_for_things
from holmes.triage.vocabulary import folded, symptoms_in, vocabulary, word_list, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.names import Names
    from holmes.triage.subjects import Subject

_APPENDED: Final = expression(
    r"(?i)\W*(?:(?:and|but|und|aber|y|pero|et|mais) )?(?P<part>(?:without|excluding|except|including|not counting"
    r"|leaving out|ohne|au(?:ß|ss)er|inklusive|einschlie(?:ß|ss)lich|sin|excepto|salvo|incluyendo|sans|sauf|hormis"
    r"|y compris)\b.{2,80})"
)
"""A part that only changes what the question before counts: "and without the completed ones"."""
_HOW_OFTEN: Final = expression(
    r"\W*(?:(?:and|but|und|y|et) )?(?:how often|how many (?:times|of them|of those)|wie oft|wie viele davon"
    r"|cuantas veces|combien de fois)\W*"
)
_SEARCH_LOGS: Final = expression(
    r"(?i)^\W*(?:please |bitte )?search (?=(?:(?:through|in|all|the|every|of) ){0,3}logs? for\b)"
)
"""An order, and not a program whose name is `search`."""
_RESTARTED: Final = expression(r"\b(?:re-?start|crash|neu ?(?:ge)?start|absturz|absturze|reinici|redemarr)")
_PLAIN: Final = frozenset({
    "est-ce", "que", "d", "l", "log", "logs", "logging", "logged", "loggt", "throw", "throws", "wirft", "registra",
    "why", "warum", "pourquoi", "por",
})  # fmt: skip
"""Words that do not narrow which errors a question is about."""
_SORTS_OF_LINES: Final = (("err", "error"), ("fehler", "error"), ("warn", "warning"), ("exception", "exception"))
"""The nouns that count lines, by the beginnings of their words in questions."""
_TOKEN: Final = expression(r"[\w./:@-]*[\w@]")
_ON_NODES: Final = expression(
    r"\W*(?:(?:and|und|y|et) )?(?:on|auf|en|sur) (?:which|what|welche[mnr]?|que|quels?) "
    r"(?:nodes?|knoten|nodos?|noeuds?)\W*"
)
"""A question for the nodes of what the answer before was about."""
_CONTINUING: Final = word_list("continuing")
_LISTED: Final = word_list("listed before")
_NARROWING: Final = word_list("narrowing")
_GLUE: Final = frozenset({"polite", "follow_up", "now", "other", "placement"})
_MOST_WORDS: Final = 8


def parsed(text: str, state: ClusterState) -> Question:
    """Parse a question with the custom kinds of the cluster, and correct its misspelled words."""
    spaces = "|".join(map(re.escape, names_of(state).namespaces))
    text = (
        re.sub(rf"(?i)\b(?:belong(?:s|ing)?|gehor(?:en|t)) (?:to|zu) (?=(?:namespace )?(?:{spaces})\b)", "in ", text)
        if spaces
        else text
    )
    text = _SEARCH_LOGS.sub("grep ", text)
    whole = with_whole_names(with_nouns_apart(text, names_of(state)), names_of(state))
    written = with_known_kinds(parse_question(whole), state)
    question = with_known_kinds(spelled(written, names_of(state), whole), state)
    question = with_names_of_nouns(_with_owners(question, names_of(state)), names_of(state))
    asks = names_things(question) or asks_for_things(question) or asks_number(question)
    return replace(question, complains=question.complains and (not asks or misses_something(question.text)))


def _with_owners(question: Question, names: Names) -> Question:
    """Read a word only as a namespace if it has what is asked for, or is judged: `media` in "what pods has media"."""
    here = [index for index, word in enumerate(question.words) if word in names.namespaces]
    spaces = {index for index in here if owns(question, index) or is_judged(question, index)}
    if not spaces:
        return question
    kept = tuple(each for each in question.found if each.first != each.last or each.first not in spaces)
    rest = symptoms_in(word for index, word in enumerate(question.words) if index not in spaces)
    return replace(question, found=kept, symptoms=question.symptoms & rest)


def completed(text: str, earlier: Sequence[str], state: ClusterState, namespace: str) -> str:
    """Return a question with what it takes over from the questions before, the oldest first."""
    whole = ""
    for question in (*earlier, text):
        whole = _joined(whole, question, state, namespace) if whole else question
    return whole


def _joined(before: str, text: str, state: ClusterState, namespace: str) -> str:
    question = parsed(text, state)
    narrows = question.asks("list", "count") or not _NARROWING.isdisjoint(question.words[:1])
    appended = _APPENDED.fullmatch(text.strip())
    own = question.asks("list", "count", "why")
    if appended is not None and not own and parsed(before, state).asks("list", "count"):
        return f"{before.rstrip(' ?!.')} {appended['part']}"
    if not _LISTED.isdisjoint(question.words) and narrows and parsed(before, state).asks("list"):
        return f"{before.rstrip(' ?!.')} {text}"
    if _HOW_OFTEN.fullmatch(_without_period(question)):
        return _counted(before, question, state, namespace) or text
    question, subject = find_subject(question, names_of(state), "")
    if not _continues(question, subject):
        return text
    earlier, old = find_subject(parsed(before, state), names_of(state), namespace)
    names = _replacements(question, subject, earlier, old)
    spaces = subject.namespaces if old.namespaces else ()
    whole = _TOKEN.sub(lambda match: names.get(folded(match[0]), match[0]), before)
    added = [each for each in (*subject.namespaces, *(one.name for one in subject.named)) if each not in names.values()]
    return f"{whole.rstrip(' ?!.')} in {' '.join(added)}?" if added and not spaces else whole


def _without_period(question: Question) -> str:
    return question.text.replace(question.period.text, "") if question.period is not None else question.text


def _counted(before: str, question: Question, state: ClusterState, namespace: str) -> str:
    """Return the whole question of "how often?": it counts the errors or the restarts of the question before."""
    earlier, subject = find_subject(parsed(before, state), names_of(state), namespace)
    noun = ERROR_NOUN.search(subject.without_names(earlier.spoken))
    period = earlier.period if question.period is None else question.period
    when = f" {period.text}" if period is not None else ""
    if len(subject.named) != 1 or earlier.kinds:
        return ""
    name = subject.named[0].objects[0].ref
    where = f"{name.kind} {name.name}{f' in namespace {name.namespace}' if name.namespace else ''}{when}"
    if noun is None:
        ends = "restarting" in earlier.states or _RESTARTED.search(earlier.spoken) is not None
        return f"how often did {where} restart?" if ends else ""
    said = {*words_of(subject.without_names(earlier.spoken))} - {*words_of(when)}
    said = {word for word in said if not word.startswith(noun[0])}
    if not said <= _PLAIN | vocabulary().stop or earlier.quoted or any(map(str.isdigit, said)) or earlier.symptoms:
        return ""  # "connection errors", "errors with status 502"
    sort = next((told for start, told in _SORTS_OF_LINES if noun[0].startswith(start)), "")
    return f"how many {sort} lines are in the log of {where}?" if sort else ""


def _continues(question: Question, subject: Subject) -> bool:
    """Return whether a question only has names, namespaces or kinds: "and in shop?", "what about db?"."""
    content = subject.named or subject.namespaces or subject.kinds
    concepts = {each.name for each in question.found if each.sense == "concept"}
    opens = question.words[:1] and question.words[0] in _CONTINUING
    own = concepts - _GLUE - ({"list"} if question.words[:2] == ("what", "about") else set()) or question.states
    plain = not (own or question.symptoms or subject.missing or subject.unknown)
    return bool(content and opens and plain) and len(question.words) <= _MOST_WORDS


def _replacements(question: Question, subject: Subject, earlier: Question, old: Subject) -> Mapping[str, str]:
    """Return the words of the earlier question that the new one replaces."""
    found = dict(zip(old.namespaces, subject.namespaces, strict=False))
    for named in subject.named:
        same = [each for each in old.named if each.objects[0].kind == named.objects[0].kind] or list(old.named)
        found |= {each.name: named.name for each in same[:1]}
    kinds = [each for each in question.found if each.sense == "kind" and each.name != "Namespace"]
    known = [each for each in earlier.found if each.sense == "kind" and each.name != "Namespace"]
    if kinds and known and not subject.named:
        found[earlier.words[known[0].last]] = question.words[kinds[0].last]
    return found


def of_sentence(question: Question, subject: Subject, earlier: Sequence[ClusterObject]) -> Subject:
    """Return the subject of a later part of a sentence, which is that of the first part unless it has its own."""
    other = {kind for kind in subject.kinds if kind not in ("Pod", "Node", *(each.kind for each in earlier))}
    refers = question.asks("follow_up") or not word_list("pronouns").isdisjoint(question.words)
    if subject.unknown and not refers:
        return subject
    if question.whole_cluster or (other and question.asks("count", "list") and not question.asks("follow_up")):
        return subject
    return replace(subject, named=(Named(name=earlier[0].name, objects=tuple(earlier)),), unknown=())


def with_earlier(
    question: Question, subject: Subject, state: ClusterState, earlier: Sequence[ClusterObject]
) -> Subject:
    """Add the objects of the conversation's last answer, which words such as "it" refer to."""
    if subject.named or subject.missing or not earlier:
        return subject
    other = question.asks("other")
    if other and not (question.asks("follow_up") and subject.kinds):  # not "who else reads that config map"
        every = sorted({ref for each in earlier for ref in identity(state, each)})
        kept = tuple(each for ref in every if (each := state.find(ref)) is not None)
        return replace(subject, excluded=(*subject.excluded, *kept))
    meant = _meant(question, subject, state, earlier)
    if not meant:
        return subject
    spaces = subject.namespaces or tuple(dict.fromkeys(each.namespace for each in meant if each.namespace))
    return replace(subject, named=(Named(name=meant[0].name, objects=meant),), namespaces=spaces)


def _meant(
    question: Question, subject: Subject, state: ClusterState, earlier: Sequence[ClusterObject]
) -> tuple[ClusterObject, ...]:
    """Return the objects that a follow-up question is about: the earlier ones, or for "its node" their neighbours."""
    if question.whole_cluster or subject.unknown or (subject.namespaces and not question.asks("follow_up")):
        return ()
    content = [word for word in question.words if word not in vocabulary().stop]
    glue = ("list", "follow_up", "polite", "now")
    asks = question.symptoms or any(each.sense != "concept" or each.name not in glue for each in question.found)
    if not asks or question.words in (("ok",), ("okay",), ("fine",), ("works",)):
        return ()
    kinds = [kind for kind in subject.kinds if kind not in ("Pod", "Namespace")]
    if question.asks("follow_up") and kinds and not question.asks("count", "list", "uses", "placement"):
        near = (state.find(each.ref) for each in connections(state, earlier).values() if each.hops <= 1)
        return tuple(each for each in near if each is not None and each.kind in kinds)
    if question.asks("follow_up") or (subject.kinds == ("Node",) and _ON_NODES.fullmatch(question.text)):
        return tuple(earlier)
    return tuple(earlier) if len(content) <= 3 and not subject.kinds else ()
