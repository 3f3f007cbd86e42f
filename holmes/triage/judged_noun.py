"""Finds the word whose health a question asks for, by its place: the `orders` in "how is orders doing".

If no object has this name, no other fault answers the question, even if the word also has an everyday meaning. In
other forms, only a word without any meaning counts: the `minio` in "minio up or down" and "minio pods wont start".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.plans import plans_of
from holmes.triage.vocabulary import sightings, symptoms_in, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from holmes.triage.asked import Asked
    from holmes.triage.question import Question

_EVERYDAY: Final = word_list("everyday things")
_OPENERS: Final = (
    word_list("before subjects") | word_list("verbs before subjects") | word_list("fillers") | word_list("auxiliary")
)
"""Words that can stand before the subject of a clause."""
_NO_VERB_BEFORE: Final = (
    word_list("determiners") | word_list("quantifiers") | word_list("persons") | word_list("pronouns")
) | {"nothing", "everything", "something", "nobody", "nichts", "etwas", "nada", "algo", "rien", "namespace"}
"""Words after which the word before them is a verb or an adverb, and no subject."""
_INDEFINITE: Final = word_list("indefinite")
_JUDGING: Final = frozenset({"why", "health", "trouble", "ready", "not_ready", "running", "failing", "crashing"})
_AFTER_SEVERAL: Final = word_list("plural verbs") | word_list("of")
_ABOUT: Final = frozenset({"with", "bei", "mit", "avec", "con"})
_ON: Final = frozenset({"on", "an", "auf", "sur", "en"})
_STATUS: Final = expression(r"[45]\d\ds?")
_NOUN: Final = (
    r"(?:the |our |my |your |die |der |das |unser\w{0,2} |el |la |los |las |nuestr\w+ |le |les |l'|notre )?"
    r"(?P<noun>[a-z0-9][a-z0-9._-]*[a-z0-9])"
)
_END: Final = (
    r"(?= *(?:$|[?!.,;]| (?:please|pls|bitte|por favor|s'il vous plait|now|right now|again|today|in|doing|going|for me"
    r"|jetzt|heute|ahora|hoy|maintenant|aujourd'hui)\b))"
)
_WRITTEN: Final = r"""
(?:how is|how are|how's|how does|hows) NOUN (?:doing|going|look\w*|hold\w*|do|far\w*|feel\w*|behav\w*)\b
(?:how is|how are|how's|hows) NOUN END
how are (?:things|we) (?:going |looking |doing )?(?:with|on|for) NOUN END
(?:is|are) NOUN (?:ok|okay|alive|fine|healthy|well|good|up|down|still|back|in (?:good|bad)|all right|alright|sick)\b
(?:is|are) NOUN (?:dead|stable|happy|working|running)\b
(?:did|has|have) NOUN (?:recover\w*|come back|came back|survive\w*)\b
(?:what's|what is|whats) (?:up|going\s+on|happening|with|the (?:status|state|health) of) (?:with )?NOUN END
(?:(?:give|show|tell) me )?(?:an? |the )?(?:health|status|state)(?: report| check| update)? (?:of|on|for) NOUN END
NOUN (?:status|health)(?: report| check)?END
(?:REQUEST )?(?:check|look at|look into|check on|check up on|inspect|diagnose|examine|triage|assess) NOUN END
(?:REQUEST )?(?:pruf\w+|schau dir|revisa|verifi\w+|regarde) NOUN END
NOUN (?:keeps? (?:dying|crashing|failing|restarting)|never comes? up|crash(?:es|ed)|won't start|dies|is down)\b
(?:what about|tell me about|tell me why) NOUN\b
(?:since when|why) is NOUN (?:down|dead|sick)\b
can NOUN be (?:reached|used)\b
does NOUN (?:respond|answer|work|run|start)\b
NOUN can(?:'t|not) be (?:reached|used)\b
(?:was ist(?: los)?|was ist denn) mit NOUN END
wie (?:geht es|geht's|lauft|steht es um) NOUN END
(?:que le pasa a|que pasa con|que tal|como (?:esta|va|anda)) NOUN END
(?:comment va|qu'est-ce qui se passe avec|que se passe-t-il avec|ou en est) NOUN END
"""
"""Questions and reports of health, one on each line."""
_REQUEST: Final = "(?:please|can you|could you|pls|bitte)"


def _form(written: str) -> re.Pattern[str]:
    form = written.replace(" END", "END").replace("NOUN", _NOUN).replace("END", _END).replace("REQUEST", _REQUEST)
    return expression(rf"(?:^|[.,;:!?] +|\b(?:and|und|y|et) ){form}")


_FORMS: Final = tuple(map(_form, _WRITTEN.strip().splitlines()))


def judged_noun(asked: Asked) -> str:
    """Return the word that the question judges and that nothing has as its name, or an empty string."""
    return next(_nouns(asked), "")


def _nouns(asked: Asked) -> Iterator[str]:
    question, subject = asked.question, asked.subject
    if subject.named or subject.values or question.whole_cluster:
        return
    nouns = {*subject.unknown, *_EVERYDAY}.intersection(question.words).difference(subject.namespaces)
    judges = question.complains or any(each.name in _JUDGING for each in question.found)
    if subject.kinds:
        yield from _before_kinds(question, nouns - _EVERYDAY) if judges else ()
        return
    for form in _FORMS if nouns else ():
        yield from (match["noun"] for match in form.finditer(question.text) if match["noun"] in nouns)
    if (judges or not question.found) and nouns and plans_of(question, subject) and not question.asks("changes"):
        yield from _leading(question, nouns - _EVERYDAY)


def _leading(question: Question, unknown: AbstractSet[str]) -> Iterator[str]:
    """Yield the unknown words that lead a clause, or that a complaint is about: "rabbitmq dead", "503s on hologram"."""
    words = question.words
    for index, word in enumerate(words):
        if word not in unknown or word.endswith(("ing", "ly")):
            continue
        clause = question.clause(index)
        before, after = words[clause.start : index], words[index + 1 : clause.stop]
        is_verb = after[:1] and (after[0] in _NO_VERB_BEFORE or not _INDEFINITE.isdisjoint(after[1:2]))
        is_several = word.endswith(("s", "en")) and after[:1] and after[0] in _AFTER_SEVERAL
        leads = _OPENERS.issuperset(before) and after and not is_verb and not is_several
        is_object = before and (before[-1] in _ABOUT or (before[-1] in _ON and _tells(before[-2:-1])))
        if (leads and _is_asked(question, clause)) or is_object:
            yield word


def _before_kinds(question: Question, unknown: AbstractSet[str]) -> Iterator[str]:
    """Yield the unknown words before a kind at the start of a complaint: the `minio` in "minio pods wont start"."""
    for seen in (each for each in question.found if each.sense == "kind"):
        clause = question.clause(seen.first)
        before = question.words[clause.start : seen.first]
        if before and before[-1] in unknown and _OPENERS.issuperset(before[:-1]) and _is_asked(question, clause):
            yield before[-1]


def _is_asked(question: Question, clause: range) -> bool:
    """Return whether the question is in this clause: it is the only one, or it tells of trouble."""
    return len(clause) == len(question.words) or _tells(question.words[clause.start : clause.stop])


def _tells(words: Sequence[str]) -> bool:
    """Return whether words name a symptom, ask for health or its reason, or have the status of a response."""
    judged = any(each.name in _JUDGING for each in sightings(words))
    return judged or bool(symptoms_in(words)) or any(map(_STATUS.fullmatch, words))
