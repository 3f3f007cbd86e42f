"""Finds the texts that the lines of a question must contain: quoted ones, and words that occur in the lines.

Each word is a condition, and words that are joined by "or" or "and" are alternatives. A number without one of its words
would be about other lines, so such words are reported.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.triage.ledger import Ledger
from holmes.triage.log_errors import FIRST_FAILURE
from holmes.triage.log_lines import (
    LEVELS,
    LineFilter,
    containers_named,
    finder,
    negated,
    previous_instance,
    text_finder,
    word_finder,
)
from holmes.triage.log_qualifiers import forms_of, qualifiers_of
from holmes.triage.participles import PARTICIPLES
from holmes.triage.unsaid import OF_LINES
from holmes.triage.vocabulary import beginnings, folded, symptoms_in, vocabulary, word_list, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from holmes.triage.asked import Asked
    from holmes.triage.log_lines import LogLine
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject

_SEARCHED: Final = expression(
    r"\b(?:containing|contains?|matching|match(?:es)?|mentioning|mentions?|including|include|say|says|saying"
    r"|with the (?:word|text|string)|enthalten|enthalt|contienen|contiene|contenant|contiennent|mit dem (?:wort|text)"
    r"|con (?:la palabra|el texto)|avec (?:le mot|le texte))\s{1,3}"
    r"(?:the (?:word|text|string)\s{1,3})?[\"'`]?([\w.:/=-]{2,80})"
)
_GREPPED: Final = expression(r"\bgrep (?:-[a-z]+ )*(?:for |nach |por )?([\w.:/=-]{3,80})")
_UNGREPPED: Final = word_list("determiners") | word_list("quantifiers") | word_list("locating") | word_list("of")
_LINES_WITH: Final = expression(
    r"(?:\b(?:was|were|is|are) there|(?:\blines|\bentries|\bmessages|zeilen|\blineas|\bregistros|\blignes)"
    r"\s(?:with|about|mit|zu|con|sobre|avec|sur))"
    r"\s(?:(?:a|an|any|the|dem|der|einem|el|la|un|una|le|l'|une)\s?)?([a-z]{4,40})\b"
)
_PATH: Final = expression(r"(?<!\S)(/[\w./{}*-]{1,120})")
_LEAST_STEM: Final = 4
_COUNTED_NOUN: Final = expression(
    r"\b(?:wie viele|anzahl(?: der)?|cuant[oa]s|numero de|combien d[e']|nombre de)\s?([\w-]+)"
)
_ALTERNATIVE: Final = frozenset({"or", "and", "oder", "und", "o", "u", "y", "e", "ou", "et"})
_OUTCOMES: Final = frozenset({"failing", "failed", "completed", "crashing", "evicted", "terminating", "suspended"})
"""States of objects that are also what lines say of other things: "failed logins"."""
_JOINING: Final = word_list("of") | word_list("determiners")
_OF_CALLS: Final = frozenset({"unreachable", "dns", "slow", "permission", "certificate"})
"""Symptoms of calls, which only lines count. Objects tell of restarts, starts and volumes."""
_OF_WHOM: Final = frozenset({"of", "for", "from", "by"})
_STATUS_DIGITS: Final = 3
"""Such numbers are statuses, which have a filter of their own."""
_LEAST_DIGITS: Final = 4
"""Shorter numbers are statuses or the length of a list."""
_TO: Final = frozenset(
    {"to", "for", "from", "with", "without", "an", "fur", "von", "mit", "para", "sin", "pour", "sans"}
)
"""Prepositions before what narrows a number. "By" is before the program that is asked."""
_IN_ALL: Final = expression(r"\blogged in (?:total|all|the|this|that|its?|sum)\b")
"""Not a login: "how many errors has it logged in total"."""
_BEING: Final = word_list("being")
_NUMBERED: Final = expression(r"(?<![\w.-])(?P<noun>[a-z]{3,20}) (?P<number>\d{1,6})(?![\w.:%-])")


def filters_of_texts(asked: Asked, found: Sequence[LogLine]) -> Iterator[LineFilter]:
    """Yield a filter for each text that the lines must contain. Texts that are listed are alternatives."""
    explicit = list(dict.fromkeys(_explicit(asked)))
    if explicit:
        yield _filter(asked, explicit, text_finder)
    yield from _numbered(asked, found)
    written = _written(asked, found, explicit)
    for group in _listed(asked, written):
        yield _filter(asked, group, word_finder)
    for phrase in _phrases(asked, found, {index for index, _ in written}):
        yield _filter(asked, (phrase,), word_finder)


def _numbered(asked: Asked, found: Sequence[LogLine]) -> Iterator[LineFilter]:
    """Yield the filter for a thing that question and lines tell apart by its number: "the temperature of deck 2"."""
    for match in _NUMBERED.finditer(asked.question.spoken):
        noun = rf"(?<![\w.-]){match['noun']}[ =:#-]"
        own, other = finder(rf"{noun}{match['number']}(?![\w.-])"), finder(rf"{noun}\d+(?![\w.-])")
        held = [own(line) for line in found if other(line)]
        if any(held) and not all(held):
            yield LineFilter(told=f"with text `{match[0]}`", holds=own)
            return


def words_left(asked: Asked, found: Sequence[LogLine], *, summed: bool) -> tuple[str, ...]:
    """Return the words that narrow what a number counts, but are in no line.

    `summed` means that the lines report the number themselves. Then each unknown word but the noun narrows it, and so
    does a number.
    """
    explicit = list(_explicit(asked))
    known = {index for index, _ in _written(asked, found, explicit)}
    if not _asks_number(asked.question):
        unsaid = (each for each in _symptoms_of_lines(asked.question) if each != "timeout")
        told = [each for each in unsaid if not any(map(text_finder(each), found))]
        words = (asked.question.words[index] for index in sorted(qualifiers_of(asked) - known))
        return (*told, *(word for word in words if not _is_told(word.removesuffix("s"), explicit)))
    happened = _happenings(asked)
    narrowing = _beside_noun(asked) if summed else _narrowing(asked.question)
    times = _times(asked) if summed else ()
    return times + tuple(
        word
        for index, word in _words(asked)
        if index not in known
        and not _is_told(word, explicit)
        and (index in happened or (index in narrowing and not _is_measure(asked, word)))
    )


def _beside_noun(asked: Asked) -> frozenset[int]:
    """Return the positions of the unknown words beside the noun of a number: "how many mails did it send to acme".

    If the question only has another form of the key, each of them counts, and otherwise those after a preposition.
    """
    words, unknown = asked.question.words, asked.subject.unknown
    other_form = words[-1] not in words_of(asked.question.text)
    start = min(_after_count(asked.question), default=0)
    first = next((index for index in range(start, len(words)) if words[index] not in _JOINING), start)
    noun = first
    while words[noun + 1 : noun + 2] and words[noun + 1] in unknown:
        noun += 1
    return frozenset(
        index
        for index, word in enumerate(words)
        if word in unknown and index != noun and (other_form or words[index - 1] in _TO)
    )


def _times(asked: Asked) -> tuple[str, ...]:
    """Return the small numbers that nothing else uses: how many times a thing happened, as in "sent twice"."""
    period = asked.question.period.text.split() if asked.question.period is not None else ()
    left = {number for number in Ledger.of(asked.question, asked.subject).left("bound") if len(number) < _STATUS_DIGITS}
    return tuple(word for word in asked.question.words if word.isdigit() and word in left and word not in period)


def _is_measure(asked: Asked, word: str) -> bool:
    """Return whether a word only says what a bound or a number is about: "were faster than 100 ms", "were served"."""
    bounded = bool(asked.question.comparisons) and beginnings("time measures").match(word) is not None
    return bounded or _is_of_lines(word)


def _explicit(asked: Asked) -> Iterator[str]:
    """Yield the texts that the question writes as such: in quotes, after "containing", as a label or a path."""
    question = asked.question
    names = {each.name for each in asked.subject.named} | {*asked.subject.namespaces, *containers_named(asked)}
    quoted = [text for text in question.quoted if text.lower() not in names]
    yield from quoted
    single = {word for _, word in _words(asked)}
    ignored = names | vocabulary().stop  # no text: "says something about redis"
    searched = (match[1] for match in _SEARCHED.finditer(question.text) if match[1] not in ignored and not quoted)
    yield from (each for each in searched if each not in single)
    grepped = (match[1] for match in _GREPPED.finditer(question.text) if match[1] not in names and not quoted)
    yield from (each for each in grepped if each not in single | _UNGREPPED and not _is_of_lines(each))
    yield from (str(term) for term in question.labels if str(term) in question.text and str(term) not in quoted)
    yield from (match[1] for match in _PATH.finditer(question.text))
    other = {*names, *words_of(previous_instance(question))}
    yield from (word for word in question.words if _is_literal(question, word) and word not in other)
    yield from (each for each in _symptoms_of_lines(question) if each not in names and not quoted)


def _symptoms_of_lines(question: Question) -> Iterator[str]:
    """Yield the symptoms that lines must mention: "lines with timeouts". Levels and exceptions have filters."""
    for match in _LINES_WITH.finditer(question.text):
        word = match[1]
        if symptoms_in((word,)) and word not in LEVELS and word.removesuffix("s") not in LEVELS:
            yield word.removesuffix("s")


def _words(asked: Asked) -> Iterator[tuple[int, str]]:
    """Yield the words that can be texts of lines, with their positions: unknown ones, and in a number what happened."""
    question, subject = asked.question, asked.subject
    if any(text.lower() not in {each.name for each in subject.named} for text in question.quoted):
        return
    happened = _happenings(asked)
    written = question.period.text if question.period is not None else ""
    period = {*written.split(), *words_of(written)}
    numbers = {word for word in question.words if word.isdigit() and len(word) == _STATUS_DIGITS}
    numbers |= {f"{each.number:g}" for each in question.comparisons}
    for index, word in enumerate(question.words):
        wanted = word in subject.unknown or index in happened or _is_value(question, word)
        plain = len(word) > 2 and word not in period and word not in numbers and not word.startswith("/")
        if wanted and plain and (index in happened or not _is_condition(word)):
            yield index, word


def _is_literal(question: Question, word: str) -> bool:
    """Return whether a word for a symptom is written as logs write it: "lines with x509", "errors with OOM"."""
    mixed = word.isalnum() and not word.isalpha() and not word.isdigit() and not word.endswith("xx")
    shouted = word.isalpha() and re.search(rf"\b{word.upper()}\b", question.written) is not None
    return bool(symptoms_in((word,))) and (mixed or shouted)


def _happenings(asked: Asked) -> frozenset[int]:
    """Return the positions of what a number counts and of the words for outcomes and symptoms: "failed logins"."""
    question = asked.question
    if not _asks_number(question):
        return qualifiers_of(asked)
    taken = {each.name for each in asked.subject.named} | {*asked.subject.namespaces} | vocabulary().stop
    taken |= {each.of for each in question.comparisons}
    wanted, known, counts = set(_noun_of(question)), set(), question.asks("count")
    logins = {each.first for each in question.found if each.sense == "concept" and each.name == "login"}
    logins = {each for each in logins if question.words[each] != "log" and not _IN_ALL.search(question.text)}
    wanted |= logins | (qualifiers_of(asked) if _COUNTED_NOUN.search(question.spoken) is None else set())
    for each in question.found:
        known |= set(range(each.first, each.last + 1))
        if each.sense == "state" and each.name in _OUTCOMES and not _is_of_lines(question.words[each.first]):
            wanted.add(each.first)
    for index, word in enumerate(question.words):
        bounded = (question.comparisons or not counts) and beginnings("time measures").match(word)
        failed = beginnings("failed").match(word) is not None
        if index not in known and (failed or symptoms_in((word,))) and not bounded and not _is_of_lines(word):
            wanted.add(index)
    return frozenset(index for index in wanted if index in logins or question.words[index] not in taken)


def of_which(asked: Asked, found: Sequence[LogLine]) -> Sequence[LogLine]:
    """Return the lines of which a share is asked for: those of logins for "the share of failed logins"."""
    words = asked.question.words
    written = dict(_written(asked, found, list(_explicit(asked))))
    start = next((index for index, word in enumerate(words) if beginnings("share words").match(word)), len(words))
    first = next((index for index in range(start + 1, len(words)) if words[index] not in _JOINING), len(words))
    end = next((index for index in range(first, len(words)) if index not in written), len(words))
    if end == first or len(written) == 1:
        return found
    test = word_finder(written[end - 1])
    return [line for line in found if test(line)]


def _asks_number(question: Question) -> bool:
    """Return whether a question asks for a number, a share or a statistic."""
    share = beginnings("share words").search(question.spoken) is not None
    share = share or FIRST_FAILURE.search(question.text) is not None
    return share or question.asks("count", "average", "sum", "maximum", "minimum", "percentile")


def _noun_of(question: Question) -> Iterator[int]:
    """Yield the position of the noun after "how many", if its meaning is not a kind of object or line."""
    if _COUNTED_NOUN.search(question.spoken) is not None:
        return  # a noun of another language than the lines
    things = {each.first for each in question.found if each.sense in ("kind", "word", "state")}
    for index in _after_count(question):
        word = question.words[index]
        if index not in things and word.isalpha() and not _is_condition(word) and not _is_of_lines(word):
            yield index


def counts_unknown(question: Question, subject: Subject) -> bool:
    """Return whether the things of a number or a share are not objects of a cluster: "how many payments failed"."""
    words = question.words
    after = {words[index] for index in _after_count(question)} - {each.name for each in subject.named}
    if after & word_list("everyday things"):
        return True
    share = [index for index, word in enumerate(words) if beginnings("share words").match(word)]
    near = {word for index in share for word in words[index + 1 : index + 5]}
    return bool({*(words[index] for index in _after_count(question)), *near} & set(subject.unknown))


def counts_symptom(question: Question) -> bool:
    """Return whether a question counts what only lines tell: "how many timeouts", "how often was it refused"."""
    if not question.symptoms or not question.symptoms <= _OF_CALLS or question.asks("changes", "health"):
        return False
    words = question.words
    after = {next((at for at in range(index, len(words)) if words[at] not in _JOINING), index)
        for index in _after_count(question)}  # fmt: skip
    often = beginnings("how often").search(question.spoken) is not None
    return often or any(symptoms_in((words[index],)) for index in after)


def _after_count(question: Question) -> tuple[int, ...]:
    """Return the positions of the words that follow "how many" and the like."""
    counts = {each.last for each in question.found if each.sense == "concept" and each.name == "count"}
    often = beginnings("how often")
    return tuple(
        each + 1 for each in counts if each + 1 < len(question.words) and not often.match(question.words[each])
    )


def _is_value(question: Question, word: str) -> bool:
    """Return whether a word is a value that lines can have: "of customer 4711", "from 10.0.0.7"."""
    return (word.isdigit() and len(word) >= _LEAST_DIGITS) or word in question.addresses


def _narrowing(question: Question) -> frozenset[int]:
    """Return the positions of words that say which things are counted: "successful logins", "were declined".

    A German participle is at the end of its clause: "wie viele wurden heute abgelehnt".
    """
    words = question.words
    being = [index for index, word in enumerate(words) if word in _BEING]
    after = {index + 1 for index, word in enumerate(words) if word in _BEING | _OF_WHOM}
    after |= {question.clause(index).stop - 1 for index in being}
    after |= {index for index, word in enumerate(words) if _is_value(question, word)}
    return frozenset((*(_after_count(question) if _COUNTED_NOUN.search(question.spoken) is None else ()), *after))


def foreign_noun(asked: Asked, found: Sequence[LogLine]) -> str:
    """Return the noun that a question in another language than the lines counts, if no line has a word like it."""
    match = _COUNTED_NOUN.search(asked.question.spoken)
    noun = match[1] if match is not None else ""
    if noun not in asked.subject.unknown or _is_of_lines(noun):
        return ""
    start = _stem(noun)[:_LEAST_STEM]  # the noun of another language often begins alike
    return "" if any(start in line.text.lower() for line in found) else noun


def _is_of_lines(word: str) -> bool:
    return _is_condition(word) or any(beginnings(name).match(word) for name in OF_LINES)


def _is_condition(word: str) -> bool:
    """Return whether a word asks for a level or for lines, and is not a text to search for."""
    names = (*(name for name, _, _ in LEVELS), "exceptions", "line words", "writing")
    return word.startswith("level") or any(beginnings(name).match(word) for name in names)


def _written(asked: Asked, found: Sequence[LogLine], explicit: Sequence[str]) -> list[tuple[int, str]]:
    """Return the words that lines contain as the lines write them, with their positions in the question."""
    written = []
    qualifiers = qualifiers_of(asked)
    for index, word in _words(asked):
        forms = (word, _stem(word), *(forms_of(word) if index in qualifiers else ()), PARTICIPLES.get(word, word))
        text = next((each for each in forms if any(map(word_finder(each), found))), "")
        if text and not _is_told(word, explicit):
            written.append((index, text))
    return written


def _is_told(word: str, explicit: Sequence[str]) -> bool:
    return any(word in folded(text) for text in explicit)


def _listed(asked: Asked, written: Sequence[tuple[int, str]]) -> list[list[str]]:
    """Return the words in groups of alternatives."""
    groups: list[list[str]] = []
    last = -1
    for index, text in written:
        between = asked.question.words[last + 1 : index]
        listed = not _ALTERNATIVE.isdisjoint(between) and all(word in _ALTERNATIVE | _BEING for word in between)
        joined = groups and (listed or (not between and index in asked.question.breaks))
        if joined:
            groups[-1].append(text)
        else:
            groups.append([text])
        last = index
    return [list(dict.fromkeys(each)) for each in groups]


def _filter(asked: Asked, wanted: Sequence[str], test_of: Callable[[str], Callable[[LogLine], bool]]) -> LineFilter:
    """Return the filter for lines with one of the texts."""
    whole = asked.question.text
    told = " or ".join(f"`{each}`" for each in wanted)
    first = min(max(0, whole.find(folded(each))) for each in wanted)
    tests = [test_of(each) for each in wanted]
    one = negated(asked, whole, first, f"text {told}", lambda line: any(test(line) for test in tests))
    return replace(one, parts=tuple((f"`{each}`", test) for each, test in zip(wanted, tests, strict=True)))


def _phrases(asked: Asked, found: Sequence[LogLine], known: set[int]) -> Iterator[str]:
    """Yield two words of a question that are side by side in some of the lines: "average ms of hold placed"."""
    words, names = asked.question.words, {each.name for each in asked.subject.named}
    period = asked.question.period.text.split() if asked.question.period is not None else ()
    said = {*_UNGREPPED, *_TO, *names, *asked.subject.namespaces, *period}
    for index, pair in enumerate(pairwise(words)):
        plain = all(len(word) >= _LEAST_STEM and word.isalpha() for word in pair)
        told = all(map(_is_of_lines, pair)) or not known.isdisjoint((index, index + 1))
        if not plain or told or not said.isdisjoint(pair):
            continue
        phrase = " ".join(pair)
        if f"no {phrase}" in asked.question.text and any(map(text_finder(f"no {phrase}"), found)):
            phrase = f"no {phrase}"  # no negation: "no space left"
        if phrase in asked.question.text and any(map(text_finder(phrase), found)):
            yield phrase


def _stem(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > _LEAST_STEM else word
