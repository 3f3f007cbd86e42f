"""Chooses the lines that a question asks for by their order: the first or the last ones, or the last success."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.previews.severity import WARNING, severity_of
from holmes.triage.facts import MOST_ROWS
from holmes.triage.log_errors import FIRST_FAILURE
from holmes.triage.participles import participles
from holmes.triage.points import number_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.triage.asked import Asked
    from holmes.triage.log_lines import LogLine
    from holmes.triage.question import Question

FEW: Final = expression(
    r"\b(?P<first>first|erste[nrs]?|primer[oa]?s?|premier(?:e|s|es)?)\b"
    r"|\b(?:last|latest|newest|letzte[nr]?|ultim[oa]s?|dernier(?:e|s|es)?)\b"
)
_NUMBER: Final = expression(
    r"\b(?:first|last|latest|ersten|letzten|primer[oa]s|ultim[oa]s|premiere?s|derniere?s) (\d{1,3}"
    r"|two|three|four|five|ten|zwei|drei|vier|funf|zehn|dos|tres|cuatro|cinco|diez|deux|trois|quatre|cinq|dix)\b"
    r"(?! ?(?:s|m|h|d|min|sec|hour|day|stund|tag|hora|dia|heure|jour)\w*)"
    r"|\b(?:les|los|las) (\d{1,3}) (?:dernier|premier|ultim|primer)"
)
_ONE: Final = expression(
    r"\b(?:first|last|latest|newest|erste[nr]?|letzte[nr]?|primera?|ultim[oa]|premiere?|derniere?) (?:log )?"
    r"(?:line|error|warning|entry|zeile|fehler|warnung|linea|error|ligne|erreur)\b"
    r"|^how far (?:along )?(?:is|are|has|did)\b(?!.*\bbehind\b)|^wie weit (?:ist|sind|kam)\b"
)
_SUCCESS: Final = expression(
    r"\b(?:succ?ess?full?y?|with success|erfolgreich\w*|con exito|exitosa?(?:mente)?|avec succes|reussie?)\b"
)
_LEAST_VERB: Final = 4


def asks_one(question: Question) -> bool:
    """Return whether a question asks for one line: "the last error", "when did it last fail to connect"."""
    return wants_success(question) or any(each.search(question.text) is not None for each in (_ONE, FIRST_FAILURE))


def wants_success(question: Question) -> bool:
    """Return whether a question asks for the first or the last success: "when was the last successful fetch"."""
    ordered = question.asks("when") or FEW.search(question.text) is not None
    several = question.asks("count") or _NUMBER.search(question.text) is not None
    return ordered and not several and _SUCCESS.search(question.text) is not None


def successes(question: Question, lines: Sequence[LogLine]) -> list[LogLine]:
    """Return the lines that tell that something was done: `fetched` of "fetch", or "success", without an error."""
    verbs = (word for word in question.words if len(word) >= _LEAST_VERB and word.isalpha())
    done = "|".join(each for verb in verbs for each in participles(verb))
    told = re.compile(rf"(?<!not )(?<!un)\b(?:success\w*|succeeded{'|' * bool(done)}{done})\b", re.IGNORECASE)
    calm = (each for each in lines if (each.level or 0.0) < WARNING and severity_of(each.text) < WARNING)
    return [each for each in calm if told.search(each.text)]


def wants_first(question: Question) -> bool:
    """Return whether a question asks for the first line or lines."""
    few = FEW.search(question.text)
    return few is not None and few["first"] is not None


def some_of_order(asked: Asked, shown: Sequence[LogLine]) -> Sequence[LogLine]:
    """Return the first or the last lines, as many as the question asks for."""
    number, first = _NUMBER.search(asked.question.text), wants_first(asked.question)
    if asks_one(asked.question):
        return shown[:1] if first else shown[-1:]
    most = min(MOST_ROWS, int(number_of(next(filter(None, number.groups()))))) if number else MOST_ROWS
    return shown[:most] if first else shown[-most:]
