"""Tells why the numbers in log lines must not be added up: levels, running counters, progress, and the future.

A number that lines repeat is not answered, since a sum of it would be wrong.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import written
from holmes.triage.log_errors import ERROR_NOUN
from holmes.triage.log_values import STATISTICS, names_key, series_of
from holmes.triage.vocabulary import beginnings, word_list
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.triage.asked import Asked
    from holmes.triage.log_lines import LogLine
    from holmes.triage.log_values import Series
    from holmes.triage.question import Question

_FUTURE: Final = expression(
    r"\b(?:will|shall|going to|tomorrow|next (?:hour|day|week|month)|demain)\b"
    r"|\bwird\b.*(?<!ge)(?:senden|schicken|verarbeiten|bekommen)\b"
    r"|\bvan? a \w+[aei]r\b|\b(?:va|vont) \w+(?:er|ir|re)\b"
)
_NOT_DONE: Final = expression(
    r"\bhow many\b.*\b(?P<part>(?:can|could|should|must|would|may|might|supposed to|allowed to)"
    r"(?! (?:you|i|we|not)\b|(?: \w+){0,2} ?(?:not\b|n't))|at (?:most|least|once|a time)(?! \d))\b"
)
"""Words for what is possible or wanted, and for a part of the numbers: "how many can it send", "at once"."""
_UNDONE: Final = expression(
    r"\b(?:fail(?:s|ed|ing)? to|unable to|(?:can|could|did|does|do|was|were|would) ?(?:not|n't)|nicht"
    r"|no (?:pudo|se)|pas)\b"
)
_HAS_NOW: Final = expression(
    r"\b(?:how many|wie viele|cuant[oa]s|combien de?)\b[^?]*?(?:\b(?:does|do)\b[^?]*\bhave\b"
    r"|\b(?:are|is|were|had|sind|waren|hat|hatte|tiene|tenia|hay|habia|estan|estaban|sont|etaient"
    r"|avait|y a-t-il)\b(?P<after>(?: [\w-]+){0,3}))"
)
_PARTICIPLE: Final = expression(
    r"(?!(?:connected|queued|blocked|cached|used|reserved|allocated|stored|subscribed|left)\b)"
    r"(?:\w{2,}(?:ed|en|wn)|sent|made|read|built|lost|kept|done|put|sold|told|paid"
    r"|bought|caught|brought|found|spent|met|cut|hit|set|shut|spun|run|won|begun|dealt|ge\w+t|\w+iert|\w+[ai]d[oa]s?)"
)
_FRENCH_PARTICIPLE: Final = expression(r"\w{3,}(?:es?|is|us?)")
_LEVEL_NOUN: Final = expression(
    r"(?:connections?|sessions?|threads?|workers?|goroutines?|subscribers?|consumers?|sockets?|online|active|idle|busy"
    r"|pending|waiting|queued|inflight|in-flight|backlog|depth|lag|heap|pool|verbindungen|sitzungen|conexiones|sesiones"
    r"|connexions)"
)
"""Nouns of what exists at a time, and not of what happened."""
_SO_FAR: Final = expression(
    r"(?i)\b(?:so far|cumulative|overall|bisher|until now|up to now|since (?:the )?start|running total)\b"
)
_PROGRESS: Final = expression(r"(?<![\w/.-])(\d+) ?(?:out of|of|/|von|de|sur) ?(\d+)(?![\w/.-])")
_LEAST_GROWN: Final = 3
_LEAST_STEM: Final = 4
_COUNTED_ERRORS: Final = expression(
    r"\b(?:how many|number of|wie viele|cuant[oa]s|combien d[e']) ?"
    rf"(?:{ERROR_NOUN.pattern}|warnungen|advertencias|avertissements)\b"
)
COUNTS: Final = frozenset({"count", "total", "n", "num", "number"})
REQUESTS: Final = word_list("requests in logs")
METHOD: Final = expression(r"\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\b")
_STATUS: Final = expression(r"(?<![\w.:/-])[1-5]\d\d(?![\w.:/%-])(?! ?(?:ms|s)\b)")
_OWN_CALL: Final = expression(
    r"(?i)\b(?:calling|outgoing|outbound|upstream|fetching|requesting|request to|sending request)\b"
    r"|(?-i:\b(?:GET|POST|PUT|PATCH|DELETE|HEAD)) \"?https?://"
)


def amount_left(asked: Asked, shown: Sequence[LogLine]) -> str:
    """Return why a number of the question is not the sum of the numbers in lines, or the number of the lines."""
    question = asked.question
    if not question.asks("count"):
        return ""
    future, wanted = _FUTURE.search(question.text), _NOT_DONE.search(question.text)
    if future is not None or wanted is not None:
        part = future[0] if future is not None else wanted["part"] if wanted is not None else ""
        return f"`{part}` could not be applied to log lines, which tell what happened."
    requests = _requests_left(question, shown)
    of_lines = beginnings("line words").search(question.spoken) or beginnings("how often").search(question.spoken)
    if requests or of_lines or question.quoted or not shown:
        return requests
    every = [each for each in series_of(shown) if len(each.values) == len(shown)]
    undone = _UNDONE.search(question.text)
    if undone is not None and any(_is_said(question, each) for each in every):
        return f"`{undone[0]}` could not be applied to the numbers in log lines."
    counts = [each for each in every if not each.is_time]
    named = [each for each in counts if each.key in COUNTS] or [each for each in counts if names_key(question, each)]
    reported = [each.key for each in counts if _DONE.search(each.key) and not each.is_numbering]
    errors = _COUNTED_ERRORS.search(question.text) is not None  # lines, whatever they report
    if reported and not (named or errors) and not question.asks(*STATISTICS):
        return f"the log lines report `{reported[0]}`, which is not what was asked for."
    return next(filter(None, (_repeated(question, each, shown) for each in named)), "")


def _repeated(question: Question, series: Series, shown: Sequence[LogLine]) -> str:
    """Return why the numbers of a series are not numbers of new things."""
    key = series.key
    if _is_level(question, series):
        pods = {line.pod for line in series.lines}
        last = series.lines[-1]
        when = f" at {written(last.at)}" if last.at else ""
        value = f" The last one is {series.values[-1]:g}{when}." if len(pods) == 1 else ""
        return f"`{key}` is a level, so its numbers are not added up.{value}"
    said = any(_SO_FAR.search(line.text) for line in shown) and len(shown) > 1
    if said or _grows(question, series):
        return f"`{key}` grows from line to line like a counter, so its numbers are not added up."
    parts = [match for line in shown if (match := _PROGRESS.search(line.text)) is not None]
    of_parts = [tuple(float(match[index]) for match in parts) for index in (1, 2)]
    if len(parts) > 1 and len({match[2] for match in parts}) == 1 and series.values in of_parts:
        return f"`{parts[-1][0]}` is a progress, which is not added up."
    return ""


def _is_level(question: Question, series: Series) -> bool:
    """Return whether a question asks how many things there are at a time: "how many sessions are active"."""
    now = _HAS_NOW.search(question.text)
    after = (now["after"] or "").split() if now is not None else []
    done = (_PARTICIPLE, *((_FRENCH_PARTICIPLE,) if now is not None and now[0].startswith("combien") else ()))
    if now is not None and not any(each.fullmatch(word) for each in done for word in after):
        return True
    words = (*question.words, *re.split(r"[ _.-]", series.key.lower()))
    return any(_LEVEL_NOUN.fullmatch(word) for word in words)


def _grows(question: Question, series: Series) -> bool:
    """Return whether numbers never fall: those of a counter. Records with growing numbers are things of their own."""
    by_pod: dict[str, list[float]] = defaultdict(list)
    for line, number in zip(series.lines, series.values, strict=True):
        by_pod[line.pod].append(number)
    rising = all(all(one <= other for one, other in pairwise(each)) for each in by_pod.values())
    changed = any(len(set(each)) >= _LEAST_GROWN for each in by_pod.values())
    plural = series.key.endswith("s") and series.key.lower() in question.words
    return rising and changed and (plural or not series.is_numbering)


def _is_said(question: Question, series: Series) -> bool:
    """Return whether a word of the question begins like a part of the key: `failed` of "fail to send"."""
    parts = [part for part in re.split(r"[ _.-]", series.key.lower()) if len(part) >= _LEAST_STEM]
    return any(part[:_LEAST_STEM] == word[:_LEAST_STEM] for part in parts for word in question.words)


def is_count_of(key: str, word: str, question: Question) -> bool:
    """Return whether a key counts what a verb did: `skipped` or `rejected_files`, but not `import_id` or `load`."""
    first, *others = re.split(r"[ _.-]", key.lower())
    plain = all(part in COUNTS or part in question.words or f"{part}s" in question.words for part in others)
    form = first != word or word.endswith("ed")
    return plain and form and _DONE.search(first) is not None


_DONE: Final = expression(r"(?:ed|en|wn|ne|nt|lt|pt|ght|ut|it|et|ead|old|ot|ost|de|un|iert)$")


def _requests_left(question: Question, shown: Sequence[LogLine]) -> str:
    """Return why lines about requests are not the requests: some only begin one, or are calls of the program."""
    if REQUESTS.isdisjoint(question.words):
        return ""
    requests = [line for line in shown if METHOD.search(line.text)]
    answered = sum(_STATUS.search(line.text) is not None for line in requests)
    own = sum(_OWN_CALL.search(line.text) is not None for line in requests)
    if 0 < answered < len(requests) and 2 * answered <= len(requests) + 1:
        return "the log has several lines for each request."
    if own:
        return "the log lines do not tell which of the requests were received, and which were sent."
    return ""
