"""Reads what a number or a list includes on top: "how many pods, counting the completed ones too".

Such a state does not narrow the objects. It says that none of them is left out because of its state.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.triage.vocabulary import sightings, vocabulary, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    r"(?: the| of the| our| my)? (?P<noun>[\w-]+)) (?:but(?! (?:not|for|no|is|are|the ones?)\b)"
    r"(?! [\w-]+ (?:is|are|still|does|has|was|keeps?|won't|can't|crash\w*|fails?|restarts)\b)|bis auf|menos) "
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
_PHASES: Final = ("running", "pending", "completed", "failed", "evicted", "crashing")
_OTHERS: Final = {
    "ready": ("not_ready", "pending", "completed", "failed", "evicted", "crashing"),
    "not_ready": ("ready", "running", "completed"),
    **{name: tuple(each for each in _PHASES if each not in (name, "crashing")) for name in _PHASES},
}
"""The states that objects in a state are not in. Running pods can have restarted, or can be not ready."""
_RUN: Final = frozenset({"run", "runs"})
_COUNTS: Final = expression(r"\b(?:counting|contando)\b")
_DOING: Final = frozenset({"am", "m", "i'm", "is", "are", "was", "were", "been", "be", "keep", "kept", "started",
    "stopped", "of", "by", "just", "estoy", "esta", "estaba"})  # fmt: skip
_BESIDE: Final = frozenset({"ones", "too", "also", "well", "auch", "mit", "tambien", "aussi", "those", "that", "still"})


def without_inclusions(text: str) -> tuple[str, bool]:
    """Return a folded text without the states that it includes, and whether no state is left out.

    "Running pods, including the restarted ones" still run, and "running pods, including the pending ones" are those
    that run or are pending.
    """
    widened = False
    for each in _INCLUDING:
        for match in [*each.finditer(text)]:
            if match[0] not in text or not _is_state(match) or _is_counting(match):
                continue
            rest = text.replace(match[0], " ", 1)
            narrowing = _state_phrase(rest, (*_PHASES, "ready", "not_ready"))
            included = _state_phrase(match["what"], _OTHERS.get(narrowing[0], ())) if narrowing[0] else ("", "")
            if included[0]:
                verb = "are running" if narrowing[1] in _RUN else narrowing[1]
                rest = re.sub(rf"\b{re.escape(narrowing[1])}\b", f"{verb} or {included[1]}", rest, count=1)
            text, widened = rest, widened or not narrowing[0]
    return text, widened


_ITSELF: Final = r"(?:down|broken|failing|dead|out|off|kaputt|caido|en panne)"
_SET_ASIDE: Final = expression(
    r"(?:^|(?<=[.,;!?] ))(?:(?:never mind|forget(?: about)?|ignore|leave|skip"
    r"|(?:we|i) (?:all |already )?know (?:about|of)"
    r"|vergiss|lass|von|olvida|olvidate de|oublie|laisse)\s+(?:the |den |die |das |el |la |le )?(?P<first>[\w-]+)"
    r"(?(first)(?: (?:aside|alone|out|outage|thing|problem|issue|mal|beiseite|aussen vor|de cote|wissen wir))*)"
    rf"|(?P<known>[\w-]+) (?:is|ist|esta|est) (?:{_ITSELF}[, ]+(?:and )?(?:we|i) (?:all |already )?know(?: that| it)?"
    r"|(?:a )?known(?: issue| problem)?|bekannt|conocido|connu))"
    r"(?=[.,;!?]|$)[.,;!]*"
)


def _state_phrase(text: str, names: Sequence[str]) -> tuple[str, str]:
    """Return the first of some states in a text, and its words. "Pods that run in shop" are running."""
    words = words_of(text)
    for each in sightings(words):
        if each.sense == "state" and each.name in names:
            return each.name, " ".join(words[each.first : each.last + 1])
    verb = next((word for word in words if word in _RUN), "")
    return ("running", verb) if verb and "running" in names else ("", "")


def _is_counting(match: re.Match[str]) -> bool:
    """Return whether "counting" is a verb of the user: "I am counting the running pods", "counting pods, how many"."""
    before = words_of(match.string[: match.start()])
    return _COUNTS.search(match[0]) is not None and (not before or before[-1] in _DOING)


def with_exceptions(text: str) -> str:
    """Write "all namespaces but shop" with "except". After a noun, "but" rules something out.

    The same holds for an object that is set aside: "never mind cart", "cart is down, we know".
    """
    aside = _SET_ASIDE.search(text)
    rest = f"{text[: aside.start()]} {text[aside.end() :]}".strip(" .,;!-") if aside is not None else ""
    if aside is not None and len(words_of(rest)) > 1:
        text = f"{rest.rstrip(' ?')} besides {aside['first'] or aside['known']}"
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
