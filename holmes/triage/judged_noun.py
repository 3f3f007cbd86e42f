"""Finds the word whose health a question asks for, by its place: the `orders` in "how is orders doing".

If no object has this name, no other fault answers the question, even if the word also has an everyday meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.vocabulary import word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from holmes.triage.asked import Asked

_EVERYDAY: Final = word_list("everyday things")
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
    if subject.named or subject.kinds or subject.values or question.whole_cluster:
        return
    nouns = {*subject.unknown, *_EVERYDAY}.intersection(question.words).difference(subject.namespaces)
    for form in _FORMS if nouns else ():
        yield from (match["noun"] for match in form.finditer(question.text) if match["noun"] in nouns)
