"""Judges answers against the expectations of their cases, and adds up scores.

The worst outcome is a false answer: it looks right, but it names a wrong cause, or answers with a fact or with health
that was not expected, or only in part. An answer that leaves the question open is not false, nor is a right cause with
missing details.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from holmes.values.first_look import FirstLook
from tests.triage.corpus.asking import Answer
from tests.triage.corpus.loading import Case, Expected

MOST_LINES: Final = 20
MOST_ROWS: Final = 15
_OPEN: Final = ("Not answered", "Not known", "Cannot ")
"""The beginnings of summaries that leave the question open."""
_CONFIDENT: Final = ("answered", "healthy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The outcome of one case. `faults` contains everything that is wrong with the answer, one phrase each."""

    answer: Answer
    verdict_right: bool
    false: bool
    faults: tuple[str, ...]

    @property
    def case(self) -> Case:
        return self.answer.case

    @property
    def wholly_right(self) -> bool:
        return not self.faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Numbers of cases."""

    cases: int
    verdict_right: int
    wholly_right: int
    false: int

    @classmethod
    def of(cls, judgements: Sequence[Judgement]) -> Score:
        return cls(
            cases=len(judgements),
            verdict_right=sum(each.verdict_right for each in judgements),
            wholly_right=sum(each.wholly_right for each in judgements),
            false=sum(each.false for each in judgements),
        )


def judge(answer: Answer) -> Judgement:
    expected, look = answer.case.expected, answer.look
    if look is None:
        return Judgement(answer=answer, verdict_right=False, false=False, faults=(f"crashed: {answer.crash}",))
    return Judgement(
        answer=answer,
        verdict_right=look.verdict in expected.verdicts,
        false=_is_false(look, expected) or _misleads(answer, look),
        faults=(*_wrong_claims(look, expected), *_wrong_words(answer.text, expected), *_too_long(answer.text, look)),
    )


def _is_false(look: FirstLook, expected: Expected) -> bool:
    accepted = set(expected.verdicts)
    if look.verdict == "cause_found":
        return "cause_found" not in accepted or _is_wrong_culprit(look, expected)
    if look.verdict == "healthy":
        return accepted == {"cause_found"}
    return look.verdict == "not_found" and accepted <= {"cause_found", "healthy", "answered"}


def _misleads(answer: Answer, look: FirstLook) -> bool:
    """Return whether a confident answer is not the expected one."""
    expected = answer.case.expected
    unexpected = look.verdict not in expected.verdicts or any(_wrong_words(answer.text, expected))
    return look.verdict in _CONFIDENT and unexpected


def _is_wrong_culprit(look: FirstLook, expected: Expected) -> bool:
    wrong = bool(expected.culprits) and look.culprit not in expected.culprits
    return look.verdict == "cause_found" and (wrong or look.culprit in expected.innocents)


def _wrong_claims(look: FirstLook, expected: Expected) -> Iterator[str]:
    if look.verdict not in expected.verdicts:
        yield f"verdict {look.verdict}, expected {' or '.join(expected.verdicts)}"
    if look.verdict in ("cause_found", "answered", "healthy") and look.summary.startswith(_OPEN):
        yield f"verdict {look.verdict}, but nothing is answered"
    if _is_wrong_culprit(look, expected):
        yield f"culprit {look.culprit or 'missing'}, expected {' or '.join(expected.culprits) or 'no innocent object'}"


def _wrong_words(text: str, expected: Expected) -> Iterator[str]:
    lowered = text.lower()
    for texts in expected.says:
        if not any(each.lower() in lowered for each in texts):
            yield f"does not say {' or '.join(map(repr, texts))}"
    yield from (f"says {each!r}" for each in expected.never_says if each.lower() in lowered)


def _too_long(text: str, look: FirstLook) -> Iterator[str]:
    rows = len(look.table.rows) if look.table else 0
    lines = len(text.splitlines()) - rows
    if lines > MOST_LINES:
        yield f"{lines} lines, expected at most {MOST_LINES}"
    if rows > MOST_ROWS:
        yield f"{rows} rows, expected at most {MOST_ROWS}"


def score_table(judgements: Sequence[Judgement]) -> str:
    """Format the score of each class and of all cases as a table. A column for each language has the right answers."""
    languages = sorted({each.case.language for each in judgements})
    groups: dict[str, list[Judgement]] = defaultdict(list)
    for each in judgements:
        groups[each.case.group].append(each)
    rows = [(group, *_cells(groups[group], languages)) for group in sorted(groups)]
    header = ("class", "cases", "verdict right", "wholly right", "false", *languages)
    return _aligned([header, *rows, ("total", *_cells(judgements, languages))])


def _cells(judgements: Sequence[Judgement], languages: Sequence[str]) -> tuple[str, ...]:
    score = Score.of(judgements)
    right = (f"{count} ({count / score.cases:.0%})" for count in (score.verdict_right, score.wholly_right))
    by_language = (Score.of([each for each in judgements if each.case.language == one]) for one in languages)
    spoken = (f"{one.wholly_right}/{one.cases}" if one.cases else "" for one in by_language)
    return (str(score.cases), *right, str(score.false), *spoken)


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
