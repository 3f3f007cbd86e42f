"""Reads what a number or a list includes on top: "how many pods, counting the completed ones too".

Such a state does not narrow the objects. It says that none of them is left out because of its state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.vocabulary import sightings, vocabulary, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    import re

    from holmes.triage.vocabulary import Sighting

_INCLUDING: Final = (
    expression(
        r"[,;(]?\s*(?:\b(?:and|und|y|et)\s+)?\b(?:counting|including|incl|inclusive of|inklusive|einschliesslich"
        r"|incluyendo|incluidos|incluidas|contando|y compris|en comptant)\b(?P<what>[^.?!;,)]*)\)?"
    ),
    expression(
        r"[,;(]\s*(?P<what>[^.?!;,()]*)\s(?:mitgezahlt|mitgerechnet|inbegriffen|eingeschlossen|incluidos|incluidas"
        r"|inclus|incluses|compris|comprises|included)\b\)?"
    ),
)
_ALL_BUT: Final = expression(
    r"(?P<all>\b(?:all|every|each|any|alle|allen|jede[mnrs]?|todos los|todas las|tous les|toutes les)"
    r"(?: the| of the| our| my)? (?P<noun>[\w-]+)) (?:but(?! (?:not|for|no|is|are|the ones?)\b)|bis auf|menos) "
)
"""A part that is ruled out: "all namespaces but shop"."""
_UNCOUNTED: Final = expression(r"\b(?:sin contar|sans compter|(?:not|without) counting|nicht mitgezahlt) ")
_EXCEPT: Final = expression(
    r"[,;(]?\s*\b(?:(?:excluding|except(?: for)?|leaving out|ausser|abgesehen von|excepto|salvo|sauf|hormis)\s"
    r"|(?:without|ohne|sin|sans) (?=(?:the|die|der|den|los|las|les) ))(?P<what>[^.?!;,)]*)\)?"
)
"""The things that a number leaves out. Only states are denied: "without the completed ones"."""
_IN_TOTAL: Final = expression(
    r"\b(restarts|neustarts|reinicios|redemarrages) (?:insgesamt|in total|en total|au total|overall|altogether)\b"
)
_BESIDE: Final = frozenset({"ones", "too", "also", "well", "auch", "mit", "tambien", "aussi", "those", "that", "still"})


def without_inclusions(text: str) -> tuple[str, bool]:
    """Return a folded text without the states that it includes, and whether it includes any."""
    found = text
    for each in _INCLUDING:
        found = each.sub(lambda match: " " if _is_state(match) else match[0], found)
    return found, found != text


def with_exceptions(text: str) -> str:
    """Write "all namespaces but shop" with "except". After a noun, "but" rules something out."""
    text = _IN_TOTAL.sub(r"total \1", _UNCOUNTED.sub("except ", text))
    text = _EXCEPT.sub(lambda match: _denied(match) if _is_state(match) else match[0], text)
    return _ALL_BUT.sub(lambda match: f"{match['all']} except " if _is_kind(match["noun"]) else match[0], text)


def _denied(match: re.Match[str]) -> str:
    """Write "not completed" for "except the completed ones"."""
    words = words_of(match["what"])
    states = (each for each in sightings(words) if each.sense == "state")
    return "".join(f" not {' '.join(words[each.first : each.last + 1])}" for each in states)


def _is_kind(word: str) -> bool:
    return any(sense == "kind" for sense, _ in vocabulary().phrases.get((word,), ()))


def unnarrowed(found: tuple[Sighting, ...]) -> tuple[Sighting, ...]:
    """Drop "running", which counts nothing apart if other states are included."""
    return tuple(each for each in found if (each.sense, each.name) != ("state", "running"))


def _is_state(match: re.Match[str]) -> bool:
    """Return whether the words after "including" are states, and nothing else that could narrow a question."""
    words = words_of(match["what"])
    known = sightings(words)
    covered = {index for each in known for index in range(each.first, each.last + 1)}
    rest = [(index, word) for index, word in enumerate(words) if index not in covered]
    plain = all(
        word in vocabulary().stop or word in _BESIDE or words[index + 1 : index + 2] == ("ones",)
        for index, word in rest
    )
    only = all(each.sense in ("state", "kind") or each.name == "polite" for each in known)
    return plain and only and any(each.sense == "state" for each in known)
