"""Recognises questions about the error lines of a log, and finds error lines that contradict "healthy"."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.log_weights import is_telemetry
from holmes.kubernetes.fields import written
from holmes.previews.severity import ERROR, WARNING, severity_of
from holmes.triage.log_lines import lines_of
from holmes.triage.markdown import counted, plain
from holmes.triage.vocabulary import word_list, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.triage.asked import Asked
    from holmes.triage.log_lines import LineFilter, LogLine
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject

_NOUN: Final = (
    r"(?:errors?|warn(?:ed|s)?|exceptions?|time-?outs?|warnings?|stack ?traces?|panics?|fehler[ns]?|ausnahmen?|errores"
    r"|excepcion(?:es)?|erreurs?)"
)
ERROR_NOUN: Final = expression(_NOUN)
"""A word for errors: `timeouts`."""
_LOGGED: Final = expression(
    rf"\b(?:log(?:s|ged|ging)?|throw(?:s|ing)?|thrown|threw|loggt|geloggt|wirft|geworfen|registra|registro|journalise)\b"
    rf"(?: \w+){{0,3}} {_NOUN}\b"
)
_WHEN: Final = expression(
    r"\b(?:when|at what time|wann|cuando|quand)\b[^,;.?!]{0,40}\b(?:last|latest|first|letzte[rn]?|erste[rn]?|ultim[oa]"
    rf"|primer[oa]?|dernier\w*|premier\w*)\b[^,;.?!]{{0,20}}\b{_NOUN}\b"
)
FIRST_FAILURE: Final = expression(
    r"\b(?:when|at what time|wann|cuando|quand)\b[^,;.?!]{0,40}\b(?:last|first|letzte\w*|zuletzt|erste\w*|zuerst"
    r"|ultim[oa]|primer[oa]?|dernier\w*|premier\w*)\b[^,;.?!]{0,20}"
    r"\b(?:(?:fail|unable) to (?:connect|reach|resolve)|time out|(?:lose|lost) (?:its|the) connection|refuse)\b"
)
"""A question for the first or the last line about a call that failed."""
ORDINAL_LINE: Final = expression(
    r"^(?:\w+ (?:was|is|war|ist|fue|es|etait|est) )?(?:the |der |die |das |el |la |le |l')?"
    r"(?P<order>first|last|latest|newest|erste[rns]?|letzte[rns]?|primer[oa]?|ultim[oa]|premiere?|derniere?) "
    rf"(?:log |logged )?(?:{_NOUN}|[45]\d\d)s? (?:of|in|from|for|by|von|im|in|aus|bei|de|del|du|dans|en)\b"
)
"""A question for one error line: "first error of checkout"."""
_ANYTHING: Final = expression(
    r"\b(?:geloggt|loggte|logge|journalise|registro algo|log(?:ged)? (?:anything|something|nothing))\b"
)
_OF_LOGS: Final = expression(
    rf"(?:\bany|^(?:the )?) ?{_NOUN} (?:in|im) (?:the |its |dem )?(?:[\w.-]+ )?logs?\b"
    r"|^(?:errores|erreurs) (?:en|dans) (?:el |los |le |les )?(?:logs?|registros?|journal|journaux)\b"
)
_LAST_WORDS: Final = expression(
    r"\b(?:last|final|letzte[ns]?|ultim[oa]s?|derni\w+)"
    r" (?:things?|words?|lines?|messages?|zeilen?|worte?|lineas?|lignes?)"
    r" (?:(?:that|of|by|die|que) )?(?:\S+ ){1,3}(?:logged|said|wrote|printed|geloggt|schrieb|registro|ecrit)\b"
)
MOST_ERRORS: Final = expression(
    r"\b(?:which|what|welche[rs]?|que|cual|quel) pods?\b[^,;.?!]{0,40}\b(?:most|more|meisten|mehr|mas|plus)"
    rf" (?:d['e] ?)?{_NOUN}\b"
)
_BLAMING: Final = expression(r"\b(?:caused?|causing|because|related|verursacht|wegen|causo|a cause|provoque)\b")
_ASKED: Final = expression(rf"\b{_NOUN}\b")
_PAST: Final = word_list("past verbs")
_YES_OR_NO: Final = word_list("yes or no")
_WERE_THERE: Final = expression(r"(?:y a-t-il eu|y avait-il|est-ce qu.il y a eu)\b")
_STATUS_CODE: Final = expression(r"\bstatus(?: code)? [1-5]\d\d\b")
_HAPPENED: Final = expression(
    r"^(?:hubo|(?:were|was|have|has|had|gab|did) (?:(?:there|es)\b(?: been)?(?: any| an?| some| many)?|any|some|many))"
    r" (?P<what>[\w-]+(?: [\w-]+)?)"
)
_FAILED_TO: Final = expression(r"^(?:did|has|have|had|was|were)\b.*\b(?:fail(?:ed)?|unable) to \w+")
_ANY_AT: Final = expression(rf"(?:any|irgendwelche|algun|des) {_NOUN}\b.*\b\d{{1,2}}:\d\d\b")
_LEAST_VERB, _LONGEST_STEM = 3, 8
_WORKING: Final = frozenset({
    "work", "worked", "start", "started", "finish", "finished", "succeed", "complete", "completed", "recover", "come",
    "restart", "crash", "fail", "funktioniert", "geklappt", "gestartet",
})  # fmt: skip
"""Verbs that the state of an object answers."""
_LATELY_SECONDS: Final = 3_600.0
_NOW_SECONDS: Final = 300.0
_SHOWN_CHARACTERS: Final = 160


def asks_error_lines(question: Question, subject: Subject) -> bool:
    """Return whether a question asks if or when a log has errors: "was there an error in web at 4:22"."""
    judged = question.asks("health") and _STATUS_CODE.search(question.text) is None
    if not subject.named or question.asks("why") or judged or _BLAMING.search(question.text):
        return False
    past = question.words[0] in _PAST or _WERE_THERE.match(question.text) is not None
    about = (past or _ANY_AT.match(question.text) is not None) and _ASKED.search(question.text) is not None
    dated = question.period is not None and (about or _ANYTHING.search(question.text) is not None)
    asked = past or question.words[0] in _YES_OR_NO
    logged = asked and not question.complains and _LOGGED.search(question.text) is not None
    forms = (_WHEN, FIRST_FAILURE, ORDINAL_LINE, _OF_LOGS, _LAST_WORDS, MOST_ERRORS)
    if happened(question, subject):
        return True
    return dated or logged or any(each.search(question.text) for each in forms)


def happened(question: Question, subject: Subject) -> tuple[int, ...]:
    """Return the positions of the words for what only lines tell of: "were there failed logins in web"."""
    match = _HAPPENED.match(question.text)
    other = question.comparisons or question.asks("changes", "events")
    if match is None or ERROR_NOUN.search(match["what"]) or not subject.named or other:
        return ()
    what = words_of(match["what"])
    start = next(
        (index for index in range(len(question.words)) if question.words[index : index + len(what)] == what), -1
    )
    logins = {each.first for each in question.found if each.sense == "concept" and each.name == "login"}
    places = tuple(range(start, start + len(what)))
    unknown = not set(subject.unknown).isdisjoint(what)
    return places if start > 0 and (unknown or (not logins.isdisjoint(places) and what[-1] != "log")) else ()


def against_health(asked: Asked) -> str:
    """Return what the logs tell against "healthy", or an empty string.

    Only a question about errors, logs or a time asks for more than the present state.
    """
    question = asked.question
    period = question.period
    told = told_by_lines(asked) if asked.subject.named else ""
    if told:
        return f"But {told}"
    failed = _FAILED_TO.search(question.text) is not None
    errors = failed or _ASKED.search(question.text) is not None
    about = not question.asks("health") and (question.asks("logs") or errors)
    ended = any(each.kind in ("Job", "CronJob") for each in asked.subject.objects)  # their condition decides
    if not asked.subject.named or ended or not (period is not None or about):
        return ""
    lately = _NOW_SECONDS if question.asks("now") else _LATELY_SECONDS
    start = asked.state.now - lately if period is None or question.asks("now") else 0.0
    found = [line for line in lines_of(asked) if line.at >= start and _is_error(line)]
    if not found:
        return ""
    when = f"time: {period.text}" if period is not None else "last hour"
    last = plain(found[-1].text, _SHOWN_CHARACTERS)
    at = f" at {written(found[-1].at)}" if found[-1].at else ""
    return f"But its log has {counted(len(found), 'error line')} ({when}), the last one{at}: {last}"


def told_by_lines(asked: Asked) -> str:
    """Return that lines have the verb of the question, or an empty string: "did chat drop clients"."""
    words, names = asked.question.words, {each.name for each in asked.subject.named}
    verb = next((after for word, after in pairwise(words) if word in names), "")
    if words[0] not in _PAST or len(verb) < _LEAST_VERB or not verb.isalpha() or verb in _WORKING:
        return ""
    said = re.compile(rf"\b{verb.removesuffix('s')[:_LONGEST_STEM]}", re.IGNORECASE)
    told = [line for line in lines_of(asked) if said.search(line.text)]
    if not told:
        return ""
    first, last = told[0], plain(told[-1].text, _SHOWN_CHARACTERS)
    since = f" since {written(first.at)}" if first.at else ""
    return f"its log has {counted(len(told), 'line')} with `{verb}`{since}, the last one: {last}"


def _is_error(line: LogLine) -> bool:
    level = line.level if line.level is not None else severity_of(line.text)
    return level >= ERROR and not is_telemetry(line.text)


def warnings_instead(asked: Asked, filters: Sequence[LineFilter], found: Sequence[LogLine]) -> str:
    """Return a sentence with the warnings of logs in which no line has the level that the question asks for."""
    if asked.question.period is not None or not any("level" in one.told for one in filters):
        return ""
    milder = [line for line in found if WARNING <= severity_of(line.text, line.level) < ERROR]
    return (
        f" {counted(len(milder), 'line')} with a warning, the last: {plain(milder[-1].text, _SHOWN_CHARACTERS)}."
        if milder
        else ""
    )
