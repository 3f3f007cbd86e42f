"""Leaves out what a person only suspects: "no mails arrive. importer is broken, is it related?".

The complaint decides what is searched. A suspect is named only if it is on the way to the cause.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.templates import template_of
from holmes.triage.markdown import code
from holmes.triage.periods import period_of
from holmes.triage.vocabulary import folded, vocabulary, word_list, words_of
from holmes.values.expressions import expression
from holmes.values.pod_names import owners_of_pod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.values.first_look import FirstLook

_SENTENCE: Final = expression(r"(?<=[.!?;\n])\s+")
_CLAUSE: Final = expression(r"(?<=,)\s+(?=[^,]*$)")
"""The last comma of a sentence."""
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
_NAMED_SUSPECT: Final = expression(
    r"\b(?:is|are|was|could|can|might|may|would) (?:[\w./-]+ ){1,5}(?:be )?"
    r"(?:to blame|at fault|responsible|guilty|(?:the|a) (?:root )?(?:cause|reason|culprit|problem))\s*$"
    r"|\b(?:ist|sind) (?:[\w./-]+ ){1,4}(?:daran )?(?:schuld|der grund|die ursache)\s*$"
    r"|\btiene[n]? la culpa\b|\b(?:est-ce|c'est) la faute\b"
)
_GUESS: Final = expression(
    r"\b(?:looks?|seems?|sounds?) (?:(?:a bit|very|kind of|quite|so|pretty|really) )?"
    r"(?:bad|odd|strange|weird|suspicious|off|funny|fishy|unhealthy)\b"
    r"|\b(?:sieht|sehen|wirkt|wirken) (?:\w+ )?(?:komisch|schlecht|seltsam|verdachtig|merkwurdig)\b"
    r"|\bse ven? (?:muy )?(?:mal|rar[oa]s?)\b|\b(?:semblent?|ont? l'air) (?:bizarres?|mauvais\w*|louches?)\b"
)
"""A guess if it is asked, or told beside the complaint."""
_BESIDE: Final = expression(
    r"\balso\b|\bunrelated\b|\b(?:different|another|separate|other) (?:story|issue|topic|problem|thing)\b|\bauch\b"
    r"|\bander\w+ (?:thema|geschichte)\b|\btambien\b|\botr[oa] (?:tema|historia)\b|\baussi\b"
    r"|\bautre (?:sujet|histoire)\b"
)
_ABOUT_IT: Final = expression(r"(?:its?|their|they|sein\w*|ihr\w*|es|su|sus|son|sa|ses|il|elle)\b")
"""The beginning of a sentence about the suspect of the sentence before."""
_NARROWS: Final = expression(
    r"\d|=|\b(?:namespaces?|namensraum|espacio de nombres|espace de noms|labels?|etiquetas?|etiquettes?"
    r"|since|seit|desde|depuis|only|nur|solo|seulement|today|yesterday|heute|gestern|hoy|ayer|aujourd'hui|hier"
    r"|mon|tues|wednes|thurs|fri|satur|sun)(?:day)?\b"
)
"""Signs of a place, a time, a label or a number, which narrow what is asked for."""
_POD: Final = expression(r"\bPod [\w.-]+/([\w.-]+)")
_SUPPOSED: Final = expression(
    r"\s(?:because of|due to|wegen|aufgrund von|por culpa de|a causa de|debido a|a cause (?:de|du|d'))\s?"
    r"(?:(?:the|der|des|dem|el|la|le|les)\s)?(?P<name>[\w./-]*\w)(?=\s|\?|$)"
)
"""The supposed reason in a question for yes or no: "is bread down because of cellar"."""
_REASON_ASKED: Final = expression(r"\b(?:why|warum|wieso|weshalb|por que|pourquoi)\b")
_LINK: Final = expression(r"[,\u2013\u2014-]\s*$")
_LEAST_WORDS: Final = 2


@dataclass(frozen=True, slots=True)
class Conjecture:
    """A question without what its person suspects. `suspects` are the names in the suspicion."""

    question: str
    suspects: tuple[str, ...]

    def note(self, look: FirstLook, objects: Iterable[ClusterObject]) -> str:
        """Return what the answer says about the suspects, or an empty string if they are on the way to the cause.

        `objects` are those of the answer. A server in their settings, for example a database, is connected with them.
        """
        told = " ".join((look.summary, look.culprit, *look.chain, *look.evidence, *look.subject))
        told = " ".join((told, *(str(template_of(each).spec) for each in objects)))
        strange = [name for name in self.suspects if not _is_told(name, told)]
        return f"No evidence connects {', '.join(map(code, strange))} with this." if strange else ""


def _is_told(name: str, told: str) -> bool:
    """Return whether a text names an object, its workload, or a pod of it: `web-5d9` in "Pod shop/web-5d9-x"."""
    names = (name, *(owner for owner, _ in owners_of_pod(name)))
    pods = (pod for pod in _POD.findall(told) if pod.startswith(f"{name}-"))
    return any(re.search(rf"(?<![\w-]){re.escape(each)}(?![\w-])", told) for each in names) or any(
        "-" not in pod[len(name) + 1 :] for pod in pods
    )


def without_conjecture(text: str, is_name: Callable[[str], bool]) -> Conjecture:
    """Return the sentences of a question that complain. One that asks if something is related only suspects it.

    If nothing but the suspicion remains, it is the question.
    """
    supposed = _SUPPOSED.search(folded(text))
    if supposed is not None and is_name(supposed["name"]) and _asks_if(text, supposed.span(), is_name):
        return Conjecture(text[: supposed.start()] + text[supposed.end() :], (supposed["name"],))
    sentences = _parts(text)
    at = next((index for index, each in enumerate(sentences) if _suspects(each)), -1)
    if at < 1:
        return Conjecture(text, ())
    bare = _LINK.sub("", _SUSPECTS.sub("", _plain(sentences[at]))).strip()
    first = at if len(bare.split()) >= _LEAST_WORDS else at - 1
    told = sentences[:first]
    if not any(map(_complains, told)):
        return Conjecture(text, ())
    rest = sentences[at + 1 :]
    about_it = 1 if rest and _is_about_suspect(rest[0], is_name) else 0
    words = words_of(folded(" ".join(sentences[first : at + 1])))
    names = [word for word in dict.fromkeys(words) if not vocabulary().is_ordinary(word) and is_name(word)]
    return Conjecture(" ".join((*told, *rest[about_it:])), tuple(names))


def _asks_if(text: str, span: tuple[int, int], is_name: Callable[[str], bool]) -> bool:
    """Return whether a text asks for yes or no, and names something else than its part in `span`."""
    rest = words_of(folded(text[: span[0]] + text[span[1] :]))
    folds = len(folded(text)) == len(text)  # so that the positions are those of the text
    named = any(is_name(word) for word in rest if not vocabulary().is_ordinary(word))
    return folds and named and rest[:1] != () and rest[0] in word_list("yes or no")


def _is_about_suspect(sentence: str, is_name: Callable[[str], bool]) -> bool:
    """Return whether the sentence after a suspicion only tells of the suspect, and no place, time, label or number."""
    plain = _plain(sentence)
    if _ABOUT_IT.match(plain) is None or "?" in sentence or _NARROWS.search(plain) or period_of(plain) is not None:
        return False
    return not any(is_name(word) for word in words_of(plain) if not vocabulary().is_ordinary(word))


def _parts(text: str) -> list[str]:
    """Return the sentences. The last clause is apart if it names a suspect: "orders hang, is web to blame?"."""
    sentences = _SENTENCE.split(text.strip())
    clauses = _CLAUSE.split(sentences[-1])
    if len(clauses) > 1 and sentences[-1].endswith("?") and _NAMED_SUSPECT.search(_plain(clauses[-1])):
        return [*sentences[:-1], *clauses]
    return sentences


def _suspects(sentence: str) -> bool:
    """Return whether a sentence only suspects something."""
    plain = _plain(sentence)
    if _SUSPECTS.search(plain) or _NAMED_SUSPECT.search(plain):
        return True
    asked = sentence.rstrip(" )").endswith("?") and not _REASON_ASKED.search(plain)
    return _GUESS.search(plain) is not None and (asked or _BESIDE.search(plain) is not None)


def _complains(sentence: str) -> bool:
    """Return whether a sentence is long enough for a complaint, and asks for nothing but the reason."""
    plain = _plain(sentence)
    return len(words_of(plain)) > _LEAST_WORDS and ("?" not in sentence or _REASON_ASKED.search(plain) is not None)


def _plain(sentence: str) -> str:
    return folded(sentence).strip(" ?!.;()")
