"""Answers questions about logs: their lines, how often something occurs, and statistics of a number in the lines."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.scan import ANSWER_LOGS
from holmes.kubernetes.fields import children, text, written
from holmes.triage.causes import look_for_cause
from holmes.triage.facts import fact, place_of, table_of
from holmes.triage.filters import WORKLOAD_KINDS, pod_spec
from holmes.triage.grammar import unknown_parts
from holmes.triage.log_amounts import REQUESTS, amount_left
from holmes.triage.log_bounds import bounds_left, bounds_of_lines
from holmes.triage.log_certainty import doubt_of_none
from holmes.triage.log_counts import methods_of_lines, number_of_verb, requests_of_lines, unclear_key, verb_left
from holmes.triage.log_errors import MOST_ERRORS, ORDINAL_LINE, asks_error_lines, warnings_instead
from holmes.triage.log_lines import filters_of_lines, lines_of, reads_whole, span_of
from holmes.triage.log_order import FEW, asks_one, some_of_order, successes, wants_first, wants_success
from holmes.triage.log_texts import counts_symptom, counts_unknown, filters_of_texts, foreign_noun, of_which, words_left
from holmes.triage.log_values import (
    STATISTICS,
    amount_text,
    chosen_series,
    measures_left,
    result_of,
    results_of,
    series_of,
    statistic_of,
    statistics_of,
    wanted_key,
)
from holmes.triage.markdown import counted
from holmes.triage.periods import unread_time
from holmes.triage.unsaid import of_these_lines
from holmes.triage.vocabulary import beginnings, folded, word_list
from holmes.values.durations import UNIT_SECONDS
from holmes.values.errors import masked
from holmes.values.expressions import expression
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.triage.asked import Asked
    from holmes.triage.log_lines import LineFilter, LogLine
    from holmes.triage.log_values import Series, Statistic
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_SHOWN_CHARACTERS: Final = 240
_KEYS: Final = 10
_PER: Final = expression(
    r"\b(?:per|by|pro|je|por|par|(?:for |in |on )?(?:each|every|jede[rn]?|cada|chaque)) (?:each |every |cada |chaque )?"
    r"(?P<what>minute|minuto|hour|stunde|hora|heure|day|tag|dia|jour|pod|container|contenedor|level|nivel|niveau|stufe|severity|status|code)s?\b"
)
_LEVEL_WORDS: Final = ("level", "nivel", "niveau", "stufe", "severity")
_SHOWN: Final = word_list("showing")
_WHICH_POD: Final = expression(r"\b(?:which|what|welche[rs]?|que|cual|quel) pods?\b")
_OCCURS: Final = expression(
    r"\b[45](?:\d\d|xx)s?\b|\b(?:how many (?:errors|exceptions)|wie viele fehler|cuantos errores|combien d.?erreurs)\b"
    r"|(?<!\S)/[a-z][\w./-]*"
)
"""Only logs can count these: HTTP statuses, errors, and paths."""
DISTINCT: Final = expression(
    r"\b(?:distinct|unique|different|verschiedene[nr]?|unterschiedliche[nr]?|eindeutige[nr]?|distint[oa]s|diferentes"
    r"|unic[oa]s|differente?s|distincte?s|uniques)\b"
)


_RATE: Final = expression(r"\b(?:per second|pro sekunde|por segundo|par seconde|rps|qps)\b")
"""A rate, which needs the number of all requests. Logs show only some."""


def asks_logs(question: Question, subject: Subject) -> bool:
    """Return whether a question asks for log lines, their number, or a number in them."""
    return asks_error_lines(question, subject) or _asks_lines(question, subject)


def _asks_lines(question: Question, subject: Subject) -> bool:
    per = _PER.search(question.text)
    counts = question.asks("list", "count", "when", *STATISTICS) or per
    amounts = any(beginnings(each).search(question.spoken) for each in ("cpu", "memory", "storage words"))
    if question.asks("resources", "usage") and amounts and not question.asks("logs"):
        return False
    names = "|".join(re.escape(each.name) for each in subject.named)
    told = re.sub(names, " ", question.spoken) if names else question.spoken  # the restarts of `label-printer`
    of_lines = any(beginnings(each).search(told) for each in ("line words", "writing"))
    quoted = any(not any(folded(text) == each.name for each in subject.named) for text in question.quoted)
    which = _WHICH_POD.search(question.text) and of_lines
    if (
        subject.named
        and (question.asks("count", "list") or which)
        and (of_lines or quoted)
        and not question.asks("changes")
    ):
        return True
    if subject.named and question.asks("trouble") and (_names_container(question, subject) or _shows(question)):
        return True
    one = (asks_one(question) and not wants_success(question)) or beginnings("line words").search(question.spoken)
    if subject.named and one and not question.asks("why", "health"):
        return True
    if question.asks("logs") or (subject.named and FEW.search(question.text) and of_lines):
        return bool(counts or FEW.search(question.text)) or not question.asks("health", "trouble")
    kinds = set(subject.kinds) - ({"Pod"} if per else set())
    counted = not REQUESTS.isdisjoint(question.words) or _OCCURS.search(question.text)
    runs = any(each.kind in (*WORKLOAD_KINDS, "Pod") for each in subject.objects)
    word = any(each.sense == "word" for each in question.found)
    states = question.states and not counts_unknown(question, subject)
    things = unknown_parts(question, subject) or counts_symptom(question) or counts_unknown(question, subject)
    of_things = runs and things and not kinds and not states and not word
    share = beginnings("share words").search(question.spoken) is not None
    requests = (share or question.asks("count")) and bool(counted or of_things) and bool(subject.named)
    return requests or (statistic_of(question, subject) is not None and not kinds and bool(subject.named))


def searches_lines(question: Question) -> bool:
    """Return whether a question wants lines or their share whatever they say: "grep timeout", "the share of 5xx"."""
    share = beginnings("share words").search(question.spoken) is not None and not question.complains
    lines = beginnings("line words").search(question.spoken) is not None and not question.complains
    return "grep" in question.words or share or lines or _shows(question)


def _unread(asked: Asked, found: Sequence[LogLine], shown: Sequence[LogLine], filters: Sequence[LineFilter]) -> str:
    """Return why a number would ignore a part of the question: its time, or a word that no line contains."""
    time = unread_time(asked.question.text)
    if time:
        return f"the time in `{time}` was not understood."
    quoted = {text.lower() for text in asked.question.quoted}  # a text that lines contain
    missing = next((each.name for each in asked.subject.missing if each.name not in quoted), "")
    if missing:
        return f"`{missing}` could not be applied to log lines."
    counts = asked.question.asks("count")
    distinct = (DISTINCT.search(asked.question.text) or _RATE.search(asked.question.text)) if counts else None
    rate = _PER.search(asked.question.text) if counts and asked.question.asks("average") else None
    said = (*(match[0] for match in (distinct, rate) if match is not None), *bounds_left(asked, filters))
    left = (*said, *measures_left(asked.question, asked.subject, len({each.pod for each in shown})))
    if left:
        return f"`{left[0]}` could not be applied to log lines."
    if MOST_ERRORS.search(asked.question.text) and len({each.pod for each in found}) == 1:
        return f"only the log of {found[0].pod} was read."
    gap = amount_left(asked, shown) or _unread_words(asked, found, shown, filters)
    if not (gap or shown) and wants_success(asked.question):
        return f"no log line {place_of(asked)} tells of such a success."
    return gap or ("" if shown else doubt_of_none(asked, found, filters))


def _unread_words(
    asked: Asked, found: Sequence[LogLine], shown: Sequence[LogLine], filters: Sequence[LineFilter]
) -> str:
    """Return which word of a question does not narrow its number, or why the number is not clear."""
    things = _things(asked, shown)
    words = words_left(asked, found, summed=things is not None)
    rate = _PER.search(asked.question.text) if things is not None else None
    if rate is not None and _size(rate["what"]):
        return f"`{rate[0]}` could not be applied to the numbers in log lines."
    verb = verb_left(asked, shown) if things is not None else ""
    unclear = unclear_key(asked, shown) if things is not None else ""
    if unclear:
        return f"the log lines do not tell if `{unclear}` is the number that was asked for."
    words = words or ((verb,) if verb else ())
    if not words and not filters and beginnings("share words").search(asked.question.spoken):
        return f"the log lines {place_of(asked)} do not tell which of them the share counts."
    return f"no log line {place_of(asked)} contains `{words[0]}`." if words else ""


def _names_container(question: Question, subject: Subject) -> bool:
    """Return whether a question names one of several containers."""
    specs = [children(pod_spec(each), "containers") for each in subject.objects]
    names = {text(one, "name") for spec in specs if len(spec) > 1 for one in spec}
    return not (names - {each.name for each in subject.objects}).isdisjoint(question.words)


def _shows(question: Question) -> bool:
    """Return whether a question wants to see the errors of a period: "show the errors between 4:30 and 4:35"."""
    return question.period is not None and not _SHOWN.isdisjoint(question.words)


def _wants_lines(asked: Asked) -> bool:
    """Return whether a question wants lines or their number, even if they tell of trouble."""
    question = asked.question
    said = any(each.search(question.text) for each in (_PER, FEW, _WHICH_POD))
    lists = said or not _SHOWN.isdisjoint(question.words)
    counts = lists or question.asks("count", "when") or searches_lines(question)
    return counts or asks_error_lines(question, asked.subject)


def log_answer(asked: Asked) -> FirstLook:
    """Answer a question about log lines: a statistic, a number of lines, or the lines."""
    asked = _where_told(asked)
    found = lines_of(asked)
    if not found:
        return _nothing(asked)
    filters, shown = _filtered(asked, found)
    gap = _unread(asked, found, shown, filters)
    if gap:
        return fact(asked, f"Not answered: {gap}", None, "inconclusive")
    statistic = statistic_of(asked.question, asked.subject)
    if statistic is not None:
        return _statistic(asked, shown, statistic, "".join(f" {one.told}" for one in filters))
    counts = _wants_lines(asked)
    troubled = (asked.question.asks("trouble") and not _names_container(asked.question, asked.subject)) or beginnings(
        "exceptions"
    ).search(asked.question.spoken)
    if troubled and not counts and not asked.question.quoted:
        look = look_for_cause(asked)
        if look.verdict == "cause_found":
            return look
    told = "".join(f" {one.told}" for one in filters)
    things = _things(asked, shown) if filters or asked.question.asks("count") else None
    if things is not None:
        number, key = things
        lines = f"the sum of `{key}` in {counted(len(shown), 'log line')}{told} {place_of(asked)}"
        noun = foreign_noun(asked, found)
        more = f" No line contains `{noun}`." if noun else ""
        return _table(asked, shown, f"{amount_text(number)}: {lines}.{more}", filters)
    span = f", {written(shown[0].at)} to {written(shown[-1].at)}" if shown and shown[0].at else ""
    if asked.question.period is not None:
        start, end = span_of(asked)
        span = f", from {written(start)} to {written(end)}" if start else f", until {written(end)}"
    share = beginnings("share words").search(asked.question.spoken) if filters else None
    every = of_which(asked, found) if share is not None else found
    of_all = f" ({len(shown) / max(1, len(every)):.1%} of {len(every):,})" if share is not None else ""
    summary = f"{counted(len(shown), 'log line')}{of_all}{told} {place_of(asked)}{span}."
    summary += warnings_instead(asked, filters, found) if not shown else ""
    if shown and asks_one(asked.question):
        one = some_of_order(asked, shown)[0]
        which = "first" if wants_first(asked.question) else "last"
        where = f"{one.pod}{f' at {written(one.at)}' if one.at else ''}"
        line = shortened(masked(one.text), _SHOWN_CHARACTERS)
        summary = f"The {which} of {counted(len(shown), 'log line')}{told}, {where}: {line}"
    noun = foreign_noun(asked, found) if asked.question.asks("count") and not filters else ""
    more = f" No line contains `{noun}`, so all lines are counted." if noun else ""
    return _table(asked, shown, summary + more, filters)


def _filtered(asked: Asked, found: Sequence[LogLine]) -> tuple[tuple[LineFilter, ...], list[LogLine]]:
    """Return the conditions of the question, and the lines for which they hold."""
    filters = (*filters_of_lines(asked, found), *methods_of_lines(asked), *filters_of_texts(asked, found))
    filters = (*(filters or requests_of_lines(asked, found)), *bounds_of_lines(asked, found))
    shown = [line for line in found if all(one.holds(line) for one in filters)]
    return filters, successes(asked.question, shown) if wants_success(asked.question) else shown


def _where_told(asked: Asked) -> Asked:
    """Return the question about the lines with a name, if no workload has just this name: "first 503 for invoices"."""
    loose = tuple(each.name for each in asked.subject.named if each.match != "exact")
    if not loose or len(loose) < len(asked.subject.named) or not ORDINAL_LINE.search(asked.question.text):
        return asked
    subject = replace(asked.subject, named=(), unknown=(*asked.subject.unknown, *loose))
    other = replace(asked, subject=subject, ledger=asked.ledger.copy())
    _, shown = _filtered(asked, lines_of(asked))
    filters, elsewhere = _filtered(other, lines_of(other))
    told = all(any(f"`{name}`" in one.told for one in filters) for name in loose)
    return other if elsewhere and told and not shown else asked


def _things(asked: Asked, shown: Sequence[LogLine]) -> tuple[float, str] | None:
    """Return the number of things that lines report: "how many records were merged" adds `count=318` of each line."""
    question = asked.question
    of_lines = (
        beginnings("line words").search(question.spoken)
        or question.quoted
        or beginnings("how often").search(question.spoken)
    )
    if not question.asks("count") or of_lines or question.asks("trouble") or not shown:
        return None
    return number_of_verb(asked, shown)


def _nothing(asked: Asked) -> FirstLook:
    """Answer that no line is there: none in the period, or no log at all."""
    time = unread_time(asked.question.text)
    if time:
        return fact(asked, f"Not answered: the time in `{time}` was not understood.", None, "inconclusive")
    if asked.question.period is not None and asked.subject.named and asked.state.timed_logs:
        start, end = span_of(asked)
        if end <= start:
            return fact(asked, "Not answered: the time of the question is not in the past.", None, "inconclusive")
        if reads_whole(asked, start):
            return fact(asked, f"0 log lines {place_of(asked)} from {written(start)} to {written(end)}.")
        text = f"No log lines {place_of(asked)} were read between {written(start)} and {written(end)}."
        return fact(asked, text, None, "inconclusive")
    return fact(asked, f"No log lines were read {place_of(asked)}.", None, "inconclusive")


def _table(asked: Asked, shown: Sequence[LogLine], summary: str, filters: Sequence[LineFilter]) -> FirstLook:
    """Return the lines, or their numbers for each pod, time or level."""
    notes = _notes(asked, shown)
    per = _PER.search(asked.question.text)
    if per is not None and shown:
        rows = _grouped(shown, per["what"])
        return of_these_lines(asked, fact(asked, summary, table_of((per["what"], "lines"), rows), notes=notes), shown)
    pods = Counter(line.pod for line in shown)
    lines = tuple(f"{pod}: {number}" for pod, number in pods.most_common()) if len(pods) > 1 else ()
    alternatives = next((one.parts for one in filters if len(one.parts) > 1), ())
    lines = (*(f"{told}: {sum(map(test, shown))}" for told, test in alternatives), *lines)
    some = some_of_order(asked, shown)
    cells = [
        (line.pod, written(line.at) if line.at else "", shortened(masked(line.text), _SHOWN_CHARACTERS))
        for line in some
    ]
    first = 0 if len(pods) > 1 or not asked.subject.named else 1
    table = table_of(("pod", "time", "line")[first:], [row[first:] for row in cells])
    if table is not None and len(shown) > len(some):
        table = replace(table, total=len(shown))
    return of_these_lines(asked, fact(asked, summary, table, lines=lines, notes=notes), shown)


def _grouped(shown: Sequence[LogLine], what: str) -> list[tuple[str, str]]:
    if what in ("pod", "container", "contenedor"):
        found = Counter(line.pod for line in shown)
    elif what in (*_LEVEL_WORDS, "status", "code"):
        found = Counter(_kind_of(line, what) for line in shown)
    else:
        size = _size(what)
        found = Counter(written(line.at - line.at % size) for line in shown if line.at)
        return sorted((name, str(number)) for name, number in found.items())
    return [(name, str(number)) for name, number in found.most_common()]


def _kind_of(line: LogLine, what: str) -> str:
    if what in _LEVEL_WORDS:
        return {None: "none", 0.0: "info", 2.0: "warning", 4.0: "error", 6.0: "fatal"}.get(line.level, "other")
    match = re.search(r"(?<![\w.:-])[1-5]\d\d(?![\w.:%-])", line.text)
    return match[0] if match else "none"


def _notes(asked: Asked, shown: Sequence[LogLine]) -> tuple[str, ...]:
    """Return a note if logs were longer than what was read, so that a number can be too small."""
    start, _ = span_of(asked)
    pods = {line.pod for line in shown}
    cut = [
        str(key.pod)
        for key, log in asked.state.timed_logs.items()
        if str(key.pod) in pods and log.count("\n") + 1 >= ANSWER_LOGS.lines and start < shown[0].at
    ]
    if not cut:
        return ()
    return (f"Only the last {ANSWER_LOGS.lines:,} lines of {', '.join(dict.fromkeys(cut))} were read.",)


def _statistic(asked: Asked, found: Sequence[LogLine], statistic: Statistic, filtered: str) -> FirstLook:
    """Return a statistic of the number that the question names. `filtered` describes the lines."""
    every = series_of(found)
    chosen = chosen_series(asked.question, every)
    if chosen is None:
        keys = ", ".join(sorted({each.key for each in every})[:_KEYS])
        hint = f" The lines contain these numbers: {keys}." if keys else ""
        wanted = wanted_key(asked.question)
        what = f"number `{wanted}`" if wanted else "number of the question"
        return fact(asked, f"The {what} is not in the log lines {place_of(asked)}.{hint}", None, "inconclusive")
    asked_for = statistics_of(asked.question, asked.subject) or (statistic,)
    every_result = [one for each in asked_for for one in results_of(asked.question, each, chosen.values)]
    first, last = chosen.lines[0], chosen.lines[-1]
    span = f" from {written(first.at)} to {written(last.at)}" if first.at else ""
    unit = f" {chosen.unit}" if chosen.unit else ""
    values = chosen.values
    told = " and ".join(label for _, label in every_result)
    numbers = " and ".join(f"{amount_text(result)}{unit}" for result, _ in every_result)
    verb = "is" if len(every_result) == 1 else "are"
    lines = f"in {counted(len(values), 'log line')}{filtered} {place_of(asked)}{span}"
    summary = f"The {told} of `{chosen.key}` {lines} {verb} {numbers}."
    more = f"smallest {amount_text(min(values))}, largest {amount_text(max(values))}, sum {amount_text(sum(values))}"
    extreme = max if statistic == "maximum" else min
    line = extreme(zip(values, chosen.lines, strict=True), key=lambda each: each[0])[1]
    quote = (
        (f"{line.pod}: {shortened(masked(line.text), _SHOWN_CHARACTERS)}",)
        if statistic in ("maximum", "minimum")
        else ()
    )
    rows = _by_group(asked, chosen, statistic)
    header = ("pod" if not rows or rows[0][0].startswith("Pod ") else "time", statistic, "lines")
    notes = _notes(asked, chosen.lines)
    look = fact(asked, summary, table_of(header, rows), lines=(more, *quote), notes=notes)
    return of_these_lines(asked, look, chosen.lines, measured=True, timed=chosen.is_time)


def _by_group(asked: Asked, chosen: Series, statistic: Statistic) -> list[tuple[str, str, str]]:
    """Return the statistic for each pod or time, if the question asks for it."""
    per = _PER.search(asked.question.text)
    groups: dict[str, list[float]] = defaultdict(list)
    for number, line in zip(chosen.values, chosen.lines, strict=True):
        if per is not None and per["what"] == "pod":
            groups[line.pod].append(number)
        elif per is not None and (size := _size(per["what"])) and line.at:
            groups[written(line.at - line.at % size)].append(number)
    return [
        (name, amount_text(result_of(asked.question, statistic, values)[0]), str(len(values)))
        for name, values in sorted(groups.items())
    ]


def _size(what: str) -> float:
    """Return the length of a unit of time in seconds, or 0 for anything else."""
    return UNIT_SECONDS.get(what, 0.0)
