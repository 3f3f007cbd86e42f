"""Tells complaints from questions of fact: "orders answers 503 since four, nothing was deployed" asks for a cause.

A complaint states trouble in a clause of its own. Beside it, a vague question such as "what is it" asks for nothing
else, but "how many pods does it have" does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.triage.periods import period_of
from holmes.triage.vocabulary import sightings, symptoms_in, vocabulary, word_list, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_CLAUSE: Final = expression(r"[.,;!?()\n]+(?:\s|$)|:\s|\s(?:[-\u2013\u2014]|&)\s")
_STATUS: Final = expression(r"(?<![\w.:/-])[45](?:\d\d|xx)s?(?![\w.:/%-])")
_NO_MORE: Final = expression(
    r"\bkein\w{0,2}\b.{0,40}\bmehr\b|\bnicht mehr\b|\bya no\b|\b(?:no longer|no more|any ?more)\b"
    r"|\bn(?:e |').{1,40}\bplus\b"
    r"|\bnot (?:a|one) single\b|\bkein einzig\w+|\bni un[oa]? sol[oa]\b|\bpas un(?:e)? seule?\b"
)
"""Words for what is gone: "no pod is left any more", "not a single mail arrives"."""
_ONLY_ASKS: Final = expression(
    r"(?:\b(?:only|just|solo|solamente|nur|juste|seulement) (?:\w+ ){0,2}"
    r"(?:ask|wonder|curious|pregunt|curiosidad|frag|demand)\w*"
    r"|\bfrage (?:\w+ )?nur\b|\bdemande (?:\w+ )?(?:juste|seulement)\b)"
    r"(?!.*\b(?:because|since|weil|denn|porque|ya que|parce que|car|puisque)\b)"
)
"""A remark that the question has no special reason: "solo pregunto por si acaso". A reason in it can be a complaint."""
_REASON: Final = expression(r"[a-z]+(?:backoff|error|killed)|err[a-z]+")
"""A reason of the kubelet, which is a complaint of its own: "web: CreateContainerConfigError"."""
_ACT: Final = expression(
    r"\W*(?:i|we|ich|wir|yo|nosotros|nous|j'ai) (?:(?:have|had|just|already|manually|habe|haben|he|hemos|avons) ){0,3}"
    r"(?:restarted|rebooted|redeployed|deleted|recreated|scaled|killed|rolled|upgraded|\w*neu gestartet|geloscht"
    r"|reinici\w+|borr\w+|redemarr\w+|supprim\w+)\b"
)
_LEAST_WORDS: Final = 2
_LEADING: Final = 3
_NOW: Final = word_list("yes or no") - word_list("past verbs")
_TROUBLED: Final = frozenset({"trouble", "negation"})
TROUBLED_STATES: Final = frozenset({"failing", "failed", "crashing", "not_ready", "evicted", "oom", "image_pull"})
TROUBLED_SYMPTOMS: Final = frozenset({"crash", "unreachable", "slow", "evicted"})
"""Symptoms whose words tell of trouble. The words of others, for example `memory`, also name things."""
_CHANGES: Final = frozenset({"changes", "change_order", "cordoned"})
_FACTS: Final = frozenset({
    "count", "permission", "port_forward", "exec", "placement", "average", "sum", "percentile", "maximum", "minimum",
    "uses", "resources", "usage", "secret_value", "images", "when",
})  # fmt: skip
_BESIDE: Final = _FACTS | {"logs", "events", "changes", "history", "describe", "settings", "address", "replicas"}
_JUDGED: Final = frozenset({"running", "ready"})


@dataclass(frozen=True, slots=True)
class _Clause:
    """A part of a folded question. `asked` means that a question mark ends it."""

    text: str
    words: tuple[str, ...]
    asked: bool


def _clauses(text: str) -> tuple[_Clause, ...]:
    return tuple(each for each in _cut(text) if each.words)


def _cut(text: str) -> Iterator[_Clause]:
    start = 0
    for end in (*_CLAUSE.finditer(text), None):
        part, mark = text[start : end.start() if end else None], end[0] if end else ""
        yield _Clause(part, tuple(words_of(part)), "?" in mark)
        start = end.end() if end else 0


def complains(text: str) -> bool:
    """Return whether a folded question states trouble, and asks for no fact beside it."""
    clauses = _clauses(text)
    stated = any(map(_states_trouble, clauses)) or (len(clauses) > 1 and any(map(_asks_health, clauses)))
    return stated and not _is_list(clauses[0].words) and not any(map(_asks_fact, clauses))


def only_complains(text: str) -> bool:
    """Return whether a folded question states trouble, and does not ask if there is any: "is it ok? it failed once"."""
    clauses = _clauses(text)
    stated = any(_states_trouble(each) for each in clauses if not each.asked)
    return stated and all(each.words[0] in word_list("interrogatives") for each in clauses if each.asked)


def asks_beside(text: str) -> bool:
    """Return whether a clause of a complaint asks for something else than its cause: "show me its errors"."""
    clauses = _clauses(text)
    if len(clauses) == 1 and clauses[0].asked:
        return True
    judged = any(map(_asks_health, clauses))  # "restart count 2" beside it only tells why
    others = [each for each in clauses if not _asks_health(each)]
    return any(_wants_fact(each) or (_is_phrase(each.words) and (each.asked or not judged)) for each in others)


def demands(text: str, fact: str) -> bool:
    """Return whether a clause asks for a fact, whatever the others say: "web is down. show me its password"."""
    asked = [each for each in _clauses(text) if _asks_fact(each) and each.words[0] not in word_list("yes or no")]
    return any(each.name == fact for clause in asked for each in sightings(clause.words))


def about_trouble(text: str) -> str:
    """Return a folded complaint without the clauses that only tell of a change, whose time is not that of the trouble.

    "Exports fail. The last deploy was three weeks ago" is about the present, and so is "is it ok? it failed yesterday".
    """
    clauses = _clauses(text)
    troubled = [each for each in clauses if _states_trouble(each)]
    told = [each.text for each in clauses if each not in troubled and _tells_change(each.words)] if troubled else []
    told += changes_told(text)
    if any(each.asked and each.words[0] in _NOW and period_of(each.text) is None for each in clauses):
        told += [each.text for each in clauses if not each.asked and _tells_past(each)]
    for each in (*told, *asides(text)):
        text = text.replace(each, " ")
    return text


def changes_told(text: str, *, checked: bool = False) -> tuple[str, ...]:
    """Return the clauses of a folded question that tell of a change, if another one asks if all is well since then.

    "We rotated its password an hour ago, does it still log in" does not ask for the change. `checked` means that any
    question with yes or no is enough: "did it pick it up".
    """
    clauses = _clauses(text)
    yes_or_no = checked and any(each.asked and each.words[0] in word_list("yes or no") for each in clauses)
    if not yes_or_no and not any(map(_asks_present, clauses)):
        return ()
    return tuple(each.text for each in clauses if not each.asked and _tells_change(each.words))


def _asks_present(clause: _Clause) -> bool:
    """Return whether a clause asks for the present state, with a word for it: "does it still log in", "any errors"."""
    concepts = {each.name for each in sightings(clause.words) if each.sense == "concept"}
    now = clause.words[0] in _NOW and bool(concepts & {"login", "now"})
    present = now or (_asks_health(clause) and clause.words[0] not in word_list("past verbs"))
    return clause.asked and present and not concepts & _CHANGES and period_of(clause.text) is None


def _tells_past(clause: _Clause) -> bool:
    """Return whether a clause tells of something at a time that is over."""
    period = period_of(clause.text)
    over = period is not None and period.reach == "during"
    return over and any(word in word_list("past verbs") or word.endswith("ed") for word in clause.words)


def asides(text: str) -> tuple[str, ...]:
    """Return the clauses of a folded complaint that only ask if something else belongs to the trouble.

    "It is down. It restarted yesterday, related?" asks for the cause of the first sentence.
    """
    clauses = _clauses(text)
    at = next((index for index, each in enumerate(clauses) if _asks_relation(each)), 0)
    alone = at and word_list("relation").issuperset(word for word in clauses[at].words if word not in vocabulary().stop)
    first = at - 1 if alone else at
    if not at or not any(map(_states_trouble, clauses[:first])):
        return ()
    return tuple(each.text for each in clauses[first : at + 1])


def acts_told(text: str) -> tuple[str, ...]:
    """Return the clauses in which the asker tells what they did, before a clause that counts or lists.

    "I restarted all pods but db: how many pods does it have" does not ask for restarted pods.
    """
    clauses = _clauses(text)
    told = [each for each in clauses[:-1] if _ACT.match(each.text) and not each.asked and not _fails_after_act(each)]
    after = sightings(clauses[-1].words) if told else ()
    asks = any(each.name in ("count", "list") for each in after) and any(each.sense == "kind" for each in after)
    return tuple(each.text for each in told) if asks else ()


def _fails_after_act(clause: _Clause) -> bool:
    """Return whether a clause states trouble beside an act: "we restarted web but it still fails"."""
    rest = _ACT.sub("", clause.text)
    return _states_trouble(_Clause(rest, tuple(words_of(rest)), asked=False))


def _asks_relation(clause: _Clause) -> bool:
    return clause.asked and not word_list("relation").isdisjoint(clause.words)


def _tells_change(words: Sequence[str]) -> bool:
    concepts = {each.name for each in sightings(words) if each.sense == "concept"}
    asks = word_list("interrogatives") | word_list("yes or no") | {"who", "wer", "quien", "qui"}
    concepts |= {each.name for each in sightings(words) if each.name == "cordoned"}
    ordered = any(each.name == "change_order" for word in words for each in sightings(_stems(word)))
    return asks.isdisjoint(words[:1]) and (ordered or bool(concepts & _CHANGES))


def _stems(word: str) -> tuple[str, ...]:
    """Return the verbs whose past form a word can be: "uncordoned", "scaled"."""
    return (word[:-2], word[:-1]) if word.endswith("ed") else ()


def states_trouble(clause: str) -> bool:
    """Return whether a folded clause states trouble: "label printing is dead"."""
    return any(map(_states_trouble, _clauses(clause)))


def _states_trouble(clause: _Clause) -> bool:
    words = clause.words
    if len(words) == 1 and _REASON.fullmatch(words[0]) is not None and not clause.asked:
        return True
    if len(words) < _LEAST_WORDS or _is_question(words) or _is_phrase(words) or _ONLY_ASKS.search(clause.text):
        return False
    found = sightings(words)
    told = {each.name for each in found if each.sense == "concept"} & _TROUBLED
    told |= {each.name for each in found if each.sense == "state"} & (TROUBLED_STATES | {"pending"})
    told |= (symptoms_in(words) & TROUBLED_SYMPTOMS) | word_list("signs of trouble").intersection(words)
    return bool(told) or _STATUS.search(clause.text) is not None or misses_something(clause.text)


def misses_something(text: str) -> bool:
    """Return whether a folded text says that something is gone, and does not ask about it."""
    return "?" not in text and _NO_MORE.search(text) is not None


def _is_question(words: Sequence[str]) -> bool:
    """Return whether words begin like a question or a request."""
    plain = [word for word in words if word not in word_list("fillers")] or words
    asks = word_list("interrogatives") | {"wann", "quand", "cuando", "when"}
    first = word_list("asking") | word_list("requests") | word_list("yes or no")
    return plain[0] in first or not asks.isdisjoint(plain[:_LEADING])


def _is_phrase(words: Sequence[str]) -> bool:
    """Return whether words only name objects or a measure: "pods without limits", "p95 latency of web"."""
    if not (word_list("verbs of state") | word_list("never")).isdisjoint(words):
        return False
    lead = next((index for index, word in enumerate(words) if word not in vocabulary().stop), 0)
    first = [each for each in sightings(words) if each.first == lead]
    if any(each.name == "negation" for each in sightings(words) if each.first == 0):
        return False
    return any(each.sense in ("kind", "word", "state") or each.name in _FACTS for each in first)


def _asks_health(clause: _Clause) -> bool:
    """Return whether a clause asks if something is well. The other clauses tell why."""
    found = sightings(clause.words)
    concepts = {each.name for each in found if each.sense == "concept"}
    works = clause.asked and any(each.sense == "state" and each.name in _JUDGED and each.first == 0 for each in found)
    asks = (_is_question(clause.words) or clause.asked) and bool(concepts & {"health", "trouble"})
    return (asks or works) and not concepts & _FACTS


def _wants_fact(clause: _Clause) -> bool:
    concepts = {each.name for each in sightings(clause.words) if each.sense == "concept"}
    judges = "trouble" in concepts  # "does it leak memory"
    asks = _is_question(clause.words) and bool(concepts & _BESIDE) and not judges
    return asks or clause.words[0] in word_list("requests")


def _is_list(words: Sequence[str]) -> bool:
    """Return whether a clause asks for a list or a measure without a verb of a question."""
    concepts = {each.name for each in sightings(words) if each.sense == "concept"}
    return words[0] in word_list("requests") or (_is_phrase(words) and bool(concepts & _FACTS))


def _asks_fact(clause: _Clause) -> bool:
    """Return whether a clause asks for a fact: a number, a time or a command."""
    concepts = {each.name for each in sightings(clause.words) if each.sense == "concept"}
    return _is_question(clause.words) and bool(concepts & _FACTS) and not concepts & {"why", "trouble"}
