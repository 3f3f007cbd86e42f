"""Judges assertions about several records: counts, "all", "only" and "none".

Each function returns None for assertions that it cannot judge. A count must be correct both for the cited lines and for
the whole result. Only a complete list proves absence.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.evidence.comparisons import duration_of, judge_time_between
from holmes.evidence.records import CHECKED, CITED, Judgement, Passage, not_found
from holmes.evidence.trial import Trial
from holmes.evidence.words import Token, names_of, number_in, said, share_token, states_of, words_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.evidence.records import Record

from holmes.evidence.comparisons import compared, extreme, holds, number_of, total
from holmes.evidence.sources import canonical_kind

_NOT_FOUND = expression(r"([\w.-]+) \"?([\w.:-]+)\"? not found")
_UNQUOTED = expression(r"\"")
_LONGEST_LINE: Final = 2_000
_MOST_WORK: Final = 20_000
"""Maximum number of tokens multiplied by the number of records. Larger assertions are not judged."""
_ENTRIES: Final = ("error", "warning")


def judge_set(passage: Passage, tokens: Sequence[Token], subjects: Sequence[Token]) -> tuple[Judgement | None, bool]:
    """Judge an assertion about several records.

    Returns the judgement, or None if no function applies, and whether the judgement is final.
    """
    if any(token.has("both") for token in tokens) and len(subjects) == 2:
        return None, False
    if len(tokens) * len(passage.records) > _MOST_WORK:
        return CITED, True
    for is_final, judges in ((True, _FINAL), (False, _OPEN)):
        for judge in judges:
            judgement = judge(passage, tokens, subjects)
            if judgement is not None:
                is_other = passage.is_chosen(tokens) or _is_elsewhere(passage, tokens)
                is_open = judge not in _OF_ONE and is_other and judgement.outcome == "checked"
                return (CITED, True) if is_open else (judgement, is_final)
    return None, False


def _is_elsewhere(passage: Passage, tokens: Sequence[Token]) -> bool:
    """Return whether an assertion is about several namespaces but the result covers only one."""
    return passage.source.namespace != "*" and any(token.text.casefold() in words_of("everywhere") for token in tokens)


def said_not_found(passage: Passage, names: Sequence[str], kind: str = "") -> bool:
    """Return whether a cited line reports that exactly this object was not found."""
    return any(
        match[2] in names and (not kind or canonical_kind(match[1]) in (kind, ""))
        for record in passage.cited
        for _, line in record.lines
        for match in _NOT_FOUND.finditer(line[:_LONGEST_LINE])
    )


def _named_missing(passage: Passage, tokens: Sequence[Token], _: Sequence[Token]) -> Judgement | None:
    """Judge `the ConfigMap conf was not found`. A cited line must report that exactly this object was not found."""
    if "notfound" not in states_of(tokens) or any(token.has("not") for token in tokens):
        return None
    names = [token.text for token in tokens if token.is_value]
    kinds = [token.concept("kind") for token in tokens if token.has("kind") and not token.quoted]
    rest = [token for token in tokens if not (token.is_neutral or token.is_value or token.has("kind"))]
    if any(token.concept("state") != "notfound" and not token.has("field") for token in rest) or len(names) != 1:
        return None
    nouns = {token.text.casefold() for token in tokens if token.has("field") and not token.has("kind")}
    is_told = all(
        any(f"{noun} {names[0]}" in _UNQUOTED.sub("", each.folded) for each in passage.cited) for noun in nouns
    )
    return CHECKED if is_told and said_not_found(passage, names, next(iter(kinds), "")) else CITED


def _repeats(passage: Passage, tokens: Sequence[Token], _: Sequence[Token]) -> Judgement | None:
    """Judge `Heap usage is logged twice` by the number of log entries or events that contain a quote."""
    quotes = [token.text for token in tokens if token.is_value]
    number = next((token for token in tokens if token.is_count), None)
    rest = [token for token in tokens if not (token.is_neutral or token.is_value or token is number)]
    is_text = bool(passage.cited) and all(record.form in ("entry", "event") for record in passage.cited)
    if number is None or len(quotes) != 1 or not is_text or any(not token.has("times") for token in rest):
        return None
    if not rest and number.text.casefold() not in words_of("repeated"):
        return None
    counts = {sum(record.says(quotes[0]) for record in records) for records in (passage.cited, passage.records)}
    if not passage.is_uncut:
        return CITED
    return CHECKED if counts == {number_of(number)} else not_found(number.text)


def _count(passage: Passage, tokens: Sequence[Token], subjects: Sequence[Token]) -> Judgement | None:
    """Judge `3 pods are Running`, `2 of 5 pods are not ready`, `2 errors` or `2 of them`."""
    tokens = _as_share(tokens)
    number = number_in(tokens)
    if number is None or subjects or not (number.is_count or number.parts):
        return None
    place = tokens.index(number)
    counted = next((token for token in tokens[place + 1 :] if _is_counted(token)), None)
    between = tokens[place + 1 : tokens.index(counted)] if counted is not None else ()
    is_bare = counted is None and (not number.parts or any(t.has("field") and not t.has("state") for t in tokens))
    if is_bare or any(not (token.is_neutral or token.has("state")) for token in between):
        return None
    cited, everything = passage.objects(counted.concept("kind") if counted is not None else passage.source.kind)
    if counted is not None and counted.has("line") and not cited:
        cited, everything = passage.cited, passage.records
    rest = [token for token in tokens if token is not number and not token.has("only")]
    rest = [token for token in rest if token.concept("compare") != "=" and token.concept("state") != "exists"]
    rest = [token for token in rest if token is not counted or token.has("state")]
    return _counted(passage, number, rest, cited, everything) if cited else None


def _counted(
    passage: Passage, number: Token, rest: Sequence[Token], cited: Sequence[Record], everything: Sequence[Record]
) -> Judgement:
    """Judge whether the claimed number of records matches the rest of an assertion."""
    held, all_held = ([holds(passage, each, rest) for each in records] for records in (cited, everything))
    if None in held or None in all_held or not passage.is_uncut:
        return CITED
    wanted = [part.number("count") for part in number.parts] or [number_of(number)]
    if number.parts and not any(not token.is_neutral for token in rest):
        # Example: `one of the two pods, web-1, is`.
        return CHECKED if len(everything) == wanted[1] else not_found(number.text)
    found = ([sum(each is True for each in every), len(every)][: len(wanted)] for every in (held, all_held))
    return CHECKED if all(counts == wanted for counts in found) else not_found(number.text)


def _as_share(tokens: Sequence[Token]) -> Sequence[Token]:
    """Rewrite `of the 5 nodes exactly 1 is ready` as `1 of 5 nodes is ready`."""
    counts = [index for index, token in enumerate(tokens) if token.is_count]
    if len(counts) != 2 or not any(token.has("kind") for token in tokens[counts[0] : counts[0] + 3]):
        return tokens
    whole, part = (tokens[index] for index in counts)
    return [
        *tokens[: counts[0]],
        share_token(part, whole),
        *(t for i, t in enumerate(tokens) if i > counts[0] and i != counts[1]),
    ]


def _every(passage: Passage, tokens: Sequence[Token], subjects: Sequence[Token]) -> Judgement | None:
    """Judge `all pods are Running`, `both nodes are ready` or `all 3 are`."""
    quantifiers = [token for token in tokens if (token.has("all") or token.has("both")) and not token.quoted]
    if not quantifiers:
        return None
    kind = next((token.concept("kind") for token in tokens if token.has("kind")), "")
    cited, everything = passage.objects(kind or passage.source.kind)
    if not cited or subjects:
        return None if subjects else CITED
    is_counted = [token for token, after in pairwise(tokens) if token.is_count and after.concept("kind") == kind != ""]
    numbers = [number_of(token) for token in is_counted]
    numbers += [token.parts[0].number("count") for token in quantifiers if token.parts]
    if not kind and quantifiers[0] is tokens[0] and (lead := next((t for t in tokens[1:] if not t.is_neutral), None)):
        is_counted += [lead] if lead.is_count else []
        numbers += [number_of(lead)] if lead.is_count else []
    numbers += [Fraction(2) for token in quantifiers if token.has("both")]
    rest = [
        token
        for token in tokens
        if token not in quantifiers and token not in is_counted and (not kind or token.concept("kind") != kind)
    ]
    held = [holds(passage, record, rest) for record in cited]
    if False in held or any(number != len(cited) for number in numbers):
        return not_found(*(token.text for token in rest if not token.is_neutral))
    is_all = len(cited) == len(everything) and passage.is_whole and passage.source.is_complete
    if numbers and not is_all and passage.is_whole:  # for `both requests` in a log, no other entry may match
        is_all = all(each in cited or holds(passage, each, rest) is False for each in everything)
    return CHECKED if is_all and None not in held else CITED


def _only(passage: Passage, tokens: Sequence[Token], subjects: Sequence[Token]) -> Judgement | None:
    """Judge `only web is of type LoadBalancer`. The list must be complete, and only the named records may match."""
    if not subjects or said(tokens, "only") is None:
        return None
    wanted = names_of(*subjects)
    place = next(index for index, token in enumerate(tokens) if token.has("only"))
    follows = next((token for token in tokens[place + 1 :] if not token.is_neutral or token in subjects), None)
    is_of_subject = follows in subjects or any(token.has("kind") for token in tokens[place + 1 : place + 2])
    rest = [token for token in tokens if not (token in subjects or token.has("only"))]
    if not is_of_subject or not any(not (token.is_neutral or token.has("kind")) for token in rest):
        return None
    held = {id(record): holds(passage, record, rest) for record in passage.records}
    named = [record for record in passage.records if record.names & wanted]
    if any(held[id(record)] is False for record in named):
        return not_found(*(token.text for token in rest if not token.is_neutral))
    others = [held[id(record)] for record in passage.records if not record.names & wanted]
    is_sure = passage.is_uncut and len(passage.cited) == len(passage.records)
    is_sure = is_sure and all(held[id(record)] for record in named) and all(other is False for other in others)
    return CHECKED if is_sure else not_found("only") if True in others else CITED


def _absence(passage: Passage, tokens: Sequence[Token], subjects: Sequence[Token]) -> Judgement | None:
    """Judge `no Service db`, `no pod is Pending` or `db does not exist`."""
    places = [index for index, token in enumerate(tokens) if token.has("not") and not token.quoted]
    if not places:
        return None
    source = passage.source
    following = [token for token in tokens[places[-1] + 1 :] if not token.is_neutral or token.has("kind")][:1]
    kinds = [token.concept("kind") for token in (*following, *tokens) if token.has("kind") and not token.quoted]
    kind = kinds[0] if kinds else source.kind
    if "exists" not in states_of(tokens):
        is_of_kind = bool(following) and following[0].has("kind")
        has_subject = any(each not in tokens[places[-1] :] for each in subjects)
        if not is_of_kind or has_subject or (kind != source.kind and following[0].has("field")):
            return None
    return _denied(passage, tokens, kind)


def _denied(passage: Passage, tokens: Sequence[Token], kind: str) -> Judgement:
    """Judge whether the result shows that no object of `kind` matches the rest of an assertion."""
    source = passage.source
    rest = [token for token in tokens if not (token.is_neutral or _is_of_denial(token))]
    elsewhere = _namespaces(tokens) - {source.namespace}
    around = {source.namespace, *elsewhere}
    names = [token.text for token in rest if token.is_value and token.text not in around]
    if said_not_found(passage, names, kind) and not elsewhere and not _is_elsewhere(passage, tokens):
        return CHECKED
    if elsewhere and source.namespace != "*":
        return not_found(*sorted(elsewhere))
    rest = [token for token in rest if token.text != source.namespace and not _is_option(token, source.words)]
    records = () if passage.is_empty_list else passage.records
    held = [_is_denied(passage, record, rest) for record in records]
    is_other = any(token.has("unjudged") or token.shape == "number" for token in rest) or (
        bool(kind) and kind != source.kind
    )
    if True in held and not is_other:
        return not_found(f"no {' '.join(token.text for token in rest)}")
    is_shown = bool(passage.cited) and (bool(records) or passage.is_empty_list)
    is_complete = source.is_complete or (passage.is_empty_list and bool(source.filters) and "|" not in source.filters)
    is_complete = is_complete and source.kind == kind and passage.is_whole and not source.names
    is_sure = is_shown and is_complete and len(passage.cited) == len(passage.records) and None not in held
    # An empty list also proves a narrower claim. A word such as `anywhere` may claim more than the list covers.
    is_wider = any(not _narrows(token) for token in rest)
    is_wider = is_wider or (any(token.concept("kind") == "namespace" for token in tokens) and not _namespaces(tokens))
    is_wider = is_wider and not records and source.namespace != "*"
    return CHECKED if is_sure and not is_other and not is_wider else CITED


def _is_option(token: Token, words: frozenset[str]) -> bool:
    """Return whether the command already filters by this token: `pods labelled app=web` with `-l app=web`."""
    return token.is_value and token.text in words


def _narrows(token: Token) -> bool:
    return token.is_value or token.has("state") or token.has("field")


def _is_of_denial(token: Token) -> bool:
    """Return whether a token expresses only absence."""
    return token.has("not") or token.has("kind") or token.concept("state") == "exists"


def _is_denied(passage: Passage, record: Record, rest: Sequence[Token]) -> bool | None:
    """Return whether `record` matches the tokens in `rest`, and therefore disproves a claim of absence."""
    names = [token for token in rest if token.is_value]
    if names and not any(record.says(token.text, exactly=False) for token in names):
        return False
    return Trial(record=record, source=passage.source, tokens=rest).run().holds if rest else True


def _is_counted(token: Token) -> bool:
    """Return whether a token names the counted records: `pods`, `log lines`, `errors`."""
    is_entry = token.has("line") or token.concept("state") in _ENTRIES
    return (token.has("kind") or is_entry) and not token.quoted


def _namespaces(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the namespaces that an assertion names."""
    found = {token.text for before, token in pairwise(tokens) if before.concept("kind") == "namespace"}
    found |= {before.text for before, token in pairwise(tokens) if token.concept("kind") == "namespace"}
    return frozenset(token.text for token in tokens if token.is_value and token.text in found)


_FINAL: Final = (
    _named_missing, total, duration_of, judge_time_between, _only, extreme, compared, _absence,
)  # fmt: skip
_OPEN: Final = (_every, _count, _repeats)
_OF_ONE: Final = (_named_missing, duration_of, judge_time_between, compared, _repeats)
"""Functions that can judge an assertion without the whole list."""
