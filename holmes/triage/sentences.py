"""Splits two questions in one sentence, and joins their answers.

Only parts that are questions of their own are split: "is web healthy, and who talks to it". A statement that introduces
a question stays with it, and so does a bare "and why".
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.triage.vocabulary import beginnings, folded, sightings, vocabulary, word_list, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holmes.values.first_look import FirstLook
    from holmes.values.verdicts import VerdictKind

_OPENERS: Final = (
    r"(?:on|in|at|to|from|with|by|since|for|until) (?:which|what|whom|when|where|how)|who|whom|whose|what|which"
    r"|where|when|why|how|is|are|was|were|does|do|did|has|have|can"
    r"|(?:auf|in|an|mit|von|seit|ab|bis|zu) (?:welche[rmns]?|wem|wann|wie)|wer|wen|wem|was|welche[rmns]?|wo|wann"
    r"|warum|wieso|weshalb|wie|wovon|womit|ist|sind|war|hat|haben|lauft|kann|gibt es"
    r"|(?:en|de|desde|a|con|por|para|hasta) (?:que|quien|cual|cuando|cuanto|donde)|quien(?:es)?|que|cual(?:es)?|donde"
    r"|cuando|por que|como|cuant[oa]s?|esta|estan|es|son|hay|tiene|puede"
    r"|(?:sur|dans|a|de|avec|depuis|par|pour) (?:quel(?:le)?s?|qui|quoi|quand|combien)|qui|quels?|quelles?|ou|quand"
    r"|pourquoi|comment|combien|est-ce|est|sont|y a-t-il"
)
_OPENER: Final = expression(rf"(?:{_OPENERS})\b")
_JOINT: Final = expression(
    r"(?:\s*[?!.;]\s+|\s*,?\s+(?:and|und|y|e|et|plus|also|sowie|ainsi que|as well as)\s+|\s*&\s*|\s*,\s+)"
    r"(?:(?:and|und|y|e|et|also|then|dann|luego|ensuite)\s+)?",
    re.IGNORECASE,
)
_NUMBERED: Final = expression(r"(?:^|(?<=[\s:;,.?!]))\(?(?:\d|[a-c])\)\s+(?=\w)")
_NOUNS: Final = expression(
    r"(?<=\s)(?P<joint>(?:and|und|y|et)\s+(?:also\s+)?)(?:the |le |la |l'|el |die |das |den )?"
    r"(?:number|count|nombre|numero|anzahl|age|alter|edad|image|imagen|state|status|zustand|estado|etat|health"
    r"|memory|cpu|logs?|limits?|requests?|replicas?)\b.{0,40} (?:of|de|d'|du|von|for|fur)\s"
)
_OF_NAME: Final = expression(r"\b(?:of|de|du|von|for|fur)\s+(\S+)\s*$")
_PLACE: Final = expression(
    r"\s(?:in|im|inside|within|en|dans|on|auf|sur)\s+(?:(?:the|der|el|le|namespace|nodes?|knoten|nodo)\s+)*"
    r"[\w.-]{2,60}(?:\s+namespace)?\s*[?!.]*\s*$",
    re.IGNORECASE,
)
_ELLIPTIC: Final = frozenset({"count", "list", "uses", "usage"})
_FACTS: Final = frozenset({"replicas", "resources", "images", "address", "health", "when"})
"""Concepts that can be asked for together: "replicas and memory limit of web"."""
_SHORT: Final = _FACTS | {"changes", "uses", "usage", "placement", "logs", "events"}
"""Concepts that make a question of two words: "what changed"."""
_SINCE: Final = expression(r"since when|seit wann|desde cuando|depuis quand")
_DATED: Final = frozenset({"when", "why", "trouble", "changes"})
"""Concepts whose answers say since when, so that a bare "since when" adds nothing."""
_BETWEEN: Final = word_list("between subjects")
_FORMERLY: Final = expression(
    r"(?:what|which|was|welche[rs]?) (?:was|were|war|waren) .{0,12}(?:before|vorher|zuvor)\W*"
)
_VERBS: Final = word_list("modals")
_LEAST_WORDS: Final = 2
_MOST_PARTS: Final = 3
_MOST_CHARACTERS: Final = 600
BESIDE: Final = " Beside it, a fault was found: "
_ORDER: Final[tuple[VerdictKind, ...]] = ("cause_found", "declined", "inconclusive", "not_found", "healthy", "answered")
"""The verdict of two answers, the strongest first. If one of them leaves something open, so does the sentence."""


def parts_of(text: str) -> tuple[str, ...]:
    """Return the questions in a text, or the whole text if it is one question."""
    if len(text) > _MOST_CHARACTERS or "\n" in text.strip():
        return (text,)
    marks = [*_NUMBERED.finditer(text)]
    if 1 < len(marks) <= _MOST_PARTS:  # "two things: 1) is web fine? 2) how many replicas may it have"
        ends = [*(match.start() for match in marks[1:]), len(text)]
        return tuple(text[match.end() : end].strip() for match, end in zip(marks, ends, strict=True))
    plain = "".join(folded(each)[:1] or " " for each in text)  # keeps the positions
    cuts = [match for match in _JOINT.finditer(plain) if opens_question(plain[match.end() :])]
    starts = [0, *(match.end() for match in cuts)]
    ends = [*(match.start() for match in cuts), len(text)]
    parts = [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    if not 1 < len(parts) <= _MOST_PARTS or not all(_is_question(part, parts[0]) for part in parts):
        return _by_nouns(text, plain) or _by_facts(text)
    return _with_place([_with_kinds(part, parts[0]) if index else part for index, part in enumerate(parts)])


def _with_place(parts: Sequence[str]) -> tuple[str, ...]:
    """Add the place at the end of the last part to the parts before it that only count or list things of a kind.

    In "how many pods and how many services in shop", the pods are in shop, too.
    """
    place = _PLACE.search(parts[-1])
    if place is None or not all(map(_counts_kind, parts)):
        return tuple(parts)
    return (*(part if _PLACE.search(part) else f"{part} {place[0].strip()}" for part in parts[:-1]), parts[-1])


def _counts_kind(part: str) -> bool:
    """Return whether a part counts or lists things, and names none."""
    words = words_of(folded(_PLACE.sub("", part)))
    found = sightings(words)
    known = {index for each in found for index in range(each.first, each.last + 1)}
    rest = [word for index, word in enumerate(words) if index not in known and not vocabulary().is_ordinary(word)]
    return any(each.sense == "kind" for each in found) and not rest


def opens_question(text: str) -> bool:
    """Return whether a text begins with a word that opens a question."""
    text = folded(text)
    return _OPENER.match(text.lstrip("¿ ")) is not None


def _is_question(part: str, first: str) -> bool:
    """Return whether a part is a question of its own, and not only "and why"."""
    words = words_of(folded(part))
    if part is not first and _names_columns(words):
        return False
    if part is not first and _SINCE.fullmatch(folded(part).strip(" ?.!")):
        earlier = sightings(words_of(folded(first)))
        return _DATED.isdisjoint(each.name for each in earlier) and all(each.sense != "state" for each in earlier)
    fact = any(each.sense == "concept" and each.name in _SHORT for each in sightings(words))
    judges = (
        part is first and len(words) == _LEAST_WORDS and "health" in {each.name for each in sightings(words[1:])}
    )  # "web healthy, and on which node"
    return judges or (len(words) + int(fact) > _LEAST_WORDS and opens_question(part))


def _names_columns(words: tuple[str, ...]) -> bool:
    """Return whether words only name columns of a list: "until when are they valid", "their hosts"."""
    known, plain, at = vocabulary().columns, set[str](), 0
    while at < len(words):
        length = next((size for size in range(len(words) - at, 0, -1) if words[at : at + size] in known), 0)
        plain |= set() if length else {words[at]}
        at += length or 1
    return len(plain) < len(words) and plain <= word_list("pronouns") | word_list("being") | word_list("possessives")


def _by_nouns(text: str, plain: str) -> tuple[str, ...]:
    """Split "the age of web and the number of restarts of db": two facts, each of its own object."""
    match = _NOUNS.search(plain)
    first = _OF_NAME.search(plain, 0, match.start()) if match is not None else None
    if match is None or first is None:
        return ()
    parts = (text[: match.start()].strip(), text[match.end("joint") :].strip())
    return _with_place(parts) if sightings((first[1],)) else parts


def _by_facts(text: str) -> tuple[str, ...]:
    """Split a question that asks for two facts of one object: "replicas and memory limit of web"."""
    words = words_of(folded(text))
    every = sightings(words)
    found = [each for each in every if each.sense == "concept" and each.name in _FACTS | {"settings"}]
    if len(found) > 1 and not found[0].first and words[0] in word_list("openings"):  # "ok and its limit?"
        return _by_facts(text.split(maxsplit=1)[-1])
    nouns = [each.last for each in every if each.sense == "kind" and vocabulary().is_plural(words[each.last])]
    if nouns and all(words[each.first : each.last + 1] in vocabulary().columns for each in found):
        return (text,)  # "Deployments with replicas and images": columns of one list
    for one, other in pairwise(found):
        between = words[one.last + 1 : other.first]
        if one.name != other.name and between and _BETWEEN.issuperset(between) and not set("\"'`=").intersection(text):
            rest = {index: each.name for each in found for index in range(each.first, each.last + 1)}
            return tuple(
                " ".join(word for index, word in enumerate(words) if rest.get(index, kept) == kept)
                for kept in (one.name, other.name)
            )
    return (text,)


def _with_kinds(part: str, first: str) -> str:
    """Add the nouns that a question such as "and how many in shop" takes from the first one."""
    words, earlier = words_of(folded(part)), words_of(folded(first))
    found = sightings(words)
    elliptic = any(each.sense == "concept" and each.name in _ELLIPTIC for each in found)
    if not elliptic:
        return part
    nouns: list[str] = []
    counted = next((each.last + 1 for each in found if each.name == "count"), 0)
    noun = next((earlier[each.last] for each in sightings(earlier) if each.sense == "kind"), "")
    if counted and noun and not _VERBS.isdisjoint(words[counted : counted + 1]):  # "and how many can take pods"
        return " ".join((*words[:counted], noun, *words[counted:]))
    image = next((earlier[each.first] for each in sightings(earlier) if each.name == "images"), "")
    if image and _FORMERLY.fullmatch(folded(part)):  # "and what was it before"
        return " ".join((words[0], image, *words[1:]))
    if not any(each.sense in ("kind", "word") or each.name in _FACTS for each in found):
        kinds = (each for each in sightings(earlier) if each.sense in ("kind", "word"))
        nouns += (word for each in kinds for word in earlier[each.first : each.last + 1])
        nouns += [earlier[each.first] for each in sightings(earlier) if each.name == "replicas"]
    if not any(_is_measure(word) for word in words):
        nouns += filter(_is_measure, earlier)
    return " ".join((part, *dict.fromkeys(nouns)))


def _is_measure(word: str) -> bool:
    return any(beginnings(each).match(word) for each in ("memory", "cpu"))


def joined(looks: Sequence[FirstLook]) -> FirstLook:
    """Return one look with the answers to all parts. Its cause, if any, is that of the part that found one."""
    base = min(looks, key=lambda look: _ORDER.index(look.verdict))
    summary = " ".join(dict.fromkeys(map(_about, _ordered(base, looks))))
    return replace(
        base,
        summary=summary,
        subject=tuple(dict.fromkeys(name for look in looks for name in look.subject))[:4],
        table=next((look.table for look in looks if look.table is not None), None),
        lines=_every(look.lines for look in looks),
        fix=_every(look.fix for look in looks),
        notes=_every(look.notes for look in looks),
        others=base.others if base.culprit else next((look.others for look in looks if look.others), ()),
        not_checked=_every(look.not_checked for look in looks),
    )


def _ordered(base: FirstLook, looks: Sequence[FirstLook]) -> Sequence[FirstLook]:
    """Return the looks with a cause first if a part is open, and without the cause that an open part tells again."""
    if base.verdict != "cause_found" or looks[0].verdict != "inconclusive":
        return looks
    told = [replace(each, summary=each.summary.partition(BESIDE)[0]) for each in looks if base.summary in each.summary]
    return [base, *(each for each in (*told, *looks) if base.summary not in each.summary)]


def _about(look: FirstLook) -> str:
    """Return the answer to a part, with its subject if it names another object, for example a cause."""
    name = look.subject[0].rpartition("/")[2] if look.subject else ""
    return look.summary if name in look.summary else f"{look.subject[0]}: {look.summary}"


def can_join(looks: Sequence[FirstLook]) -> bool:
    """Return whether each part got an answer. Otherwise the text was not a list of questions."""
    return len(looks) > 1 and all(look.verdict in _ORDER for look in looks)


def _every(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for group in groups for each in group))
