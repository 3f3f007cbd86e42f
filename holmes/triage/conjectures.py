"""Leaves out what a person only suspects: "no mails arrive. importer is broken, is it related?".

The complaint decides what is searched. A suspect is named only if it is on the way to the cause.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.triage.markdown import code
from holmes.triage.vocabulary import folded, vocabulary, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.values.first_look import FirstLook

_SENTENCE: Final = expression(r"(?<=[.!?;\n])\s+")
_SUSPECTS: Final = expression(
    r"(?:\b(?:is|are|was|could|can|might|may|would) (?:that|it|this|they|those|these)(?: all)?(?: be)? "
    r"(?:it|related|connected|why|linked|to blame|because of (?:that|it|this)"
    r"|(?:the|a) (?:root )?(?:cause|reason|problem|culprit|issue))"
    r"|\b(?:has|have|does|do|could|can) (?:that|it|this|they) (?:have )?(?:some|any)thing to do with (?:it|that|this)"
    r"|\b(?:ist|sind|kann|konnte) (?:das|es|dies|er|sie) (?:vielleicht )?(?:der grund|die ursache|schuld|daran schuld)"
    r"|\bhangt (?:das|es) (?:damit )?zusammen|\bliegt (?:das|es) daran|\bhat (?:das|es) (?:etwas )?damit zu tun"
    r"|\b(?:es|sera|puede ser) (?:eso|por eso|la causa|el motivo)|\besta relacionado|\btiene (?:algo )?que ver"
    r"|\best-ce (?:ca|cela|lie|la cause|pour (?:ca|cela))|\bc'est (?:lie|ca)|\b(?:cela|ca) a un rapport"
    r"|\by a-t-il un (?:lien|rapport))\s*(?:,? (?:or|oder|o|ou) (?:not|something else|nicht|no|non|pas))?\s*$"
)
_LINK: Final = expression(r"[,\u2013\u2014-]\s*$")
_LEAST_WORDS: Final = 2


@dataclass(frozen=True, slots=True)
class Conjecture:
    """A question without what its person suspects. `suspects` are the names in the suspicion."""

    question: str
    suspects: tuple[str, ...]

    def note(self, look: FirstLook) -> str:
        """Return what the answer says about the suspects, or an empty string if they are on the way to the cause."""
        told = " ".join((look.summary, look.culprit, *look.chain, *look.evidence, *look.subject))
        strange = [name for name in self.suspects if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", told)]
        return f"No evidence connects {', '.join(map(code, strange))} with this." if strange else ""


def without_conjecture(text: str, is_name: Callable[[str], bool]) -> Conjecture:
    """Return the sentences of a question that complain. One that asks if something is related only suspects it.

    If nothing but the suspicion remains, it is the question.
    """
    sentences = _SENTENCE.split(text.strip())
    at = next((index for index, each in enumerate(sentences) if _SUSPECTS.search(_plain(each))), -1)
    if at < 1:
        return Conjecture(text, ())
    bare = _LINK.sub("", _SUSPECTS.sub("", _plain(sentences[at]))).strip()
    first = at if len(bare.split()) >= _LEAST_WORDS else at - 1
    told = sentences[:first]
    if not any(len(words_of(folded(each))) > _LEAST_WORDS and "?" not in each for each in told):
        return Conjecture(text, ())
    words = words_of(folded(" ".join(sentences[first : at + 1])))
    names = [word for word in dict.fromkeys(words) if not vocabulary().is_ordinary(word) and is_name(word)]
    return Conjecture(" ".join((*told, *sentences[at + 1 :])), tuple(names))


def _plain(sentence: str) -> str:
    return folded(sentence).strip(" ?!.;")
