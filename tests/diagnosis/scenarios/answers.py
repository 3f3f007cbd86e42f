"""Compares the answer to the question of a hard scenario with the expectations of the scenario.

The first paragraph of an answer must name the culprit and the mechanism. A cause that blames another object is worse
than no cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import Final, Literal, TypeAlias, get_args

from holmes.values.findings import SEVERITIES, ObjectRef
from holmes.values.first_look import FirstLook
from tests.diagnosis.scenarios.model import Expected, Places, Scenario, Target, replace_placeholders

Half: TypeAlias = Literal["blind", "development"]
HALVES: Final[tuple[Half, ...]] = get_args(Half)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerScore:
    """The outcome of one hard scenario. If `error` is set, the question was not asked or not answered.

    `culprit` means that the first paragraph blames an expected object, `top1` that it also names the mechanism, `top3`
    that the answer names both anywhere. `innocent` is an object that is wrongly blamed. `unsaid` are words that the
    answer about a healthy state lacks.
    """

    scenario: str
    half: Half
    fault: bool
    error: str = ""
    culprit: bool = False
    top1: bool = False
    top3: bool = False
    innocent: str = ""
    unsaid: tuple[str, ...] = ()
    lines: int = 0
    expected: str = ""
    answer: str = ""

    @property
    def right(self) -> bool:
        return not self.error and not self.innocent and not self.unsaid and (self.top1 or not self.fault)


def judge_answer(scenario: Scenario, places: Places, look: FirstLook, text: str) -> AnswerScore:
    """Judge the answer `text`, which was formatted from `look`."""
    expected = scenario.header.expected
    blamed = blamed_object(look.culprit) if look.verdict == "cause_found" else None
    named = [each for each in expected if blamed is not None and _is_one_of(each.culprit, blamed, places)]
    first, *rest = text.split("\n\n", 1)
    top1 = any(_says(each, first, places) for each in named)
    # One paragraph cannot explain two independent faults, but the answer must name both.
    complete = all(each in named or _names(each, "".join(rest), places) for each in expected)
    return AnswerScore(
        scenario=scenario.name,
        half=half_of(scenario),
        fault=bool(expected),
        culprit=bool(named),
        top1=top1 and complete,
        top3=all(_names(each, text, places) and _says(each, text, places) for each in expected) if expected else False,
        innocent=str(blamed) if blamed is not None and not named and not _is_tolerated(scenario, look) else "",
        unsaid=tuple(each for each in scenario.header.says if each.casefold() not in text.casefold()),
        lines=len(text.splitlines()) - (len(look.table.rows) if look.table else 0),
        expected=" and ".join(f"{'/'.join(map(str, each.culprit))} {each.evidence}" for each in expected),
        answer=text,
    )


def unanswered(scenario: Scenario, error: str) -> AnswerScore:
    return AnswerScore(
        scenario=scenario.name, half=half_of(scenario), fault=bool(scenario.header.expected), error=error or "unknown"
    )


def half_of(scenario: Scenario) -> Half:
    return "blind" if scenario.header.blind else "development"


def blamed_object(words: str) -> ObjectRef:
    """Read `Kind namespace/name` or `Kind name`."""
    kind, _, path = words.partition(" ")
    namespace, _, name = path.rpartition("/")
    return ObjectRef(kind=kind, namespace=namespace, name=name)


def _is_one_of(targets: Sequence[Target], found: ObjectRef, places: Places) -> bool:
    return any(target.matches(found, places) for target in targets)


def _is_tolerated(scenario: Scenario, look: FirstLook) -> bool:
    """Whether a healthy scenario accepts a remark of this severity."""
    if scenario.header.expected or look.severity is None:
        return False
    return SEVERITIES.index(look.severity) >= SEVERITIES.index(scenario.header.tolerated)


def _names(expected: Expected, text: str, places: Places) -> bool:
    return any(_is_named(target, text, places) for target in expected.culprit)


def _is_named(target: Target, text: str, places: Places) -> bool:
    """Whether the text has the kind and the name, with or without the namespace."""
    name = translate(replace_placeholders(target.name, places)).removesuffix(r"\Z").removesuffix(r"\z")
    name = name.replace(".*", "[a-z0-9.-]*")
    return re.search(rf"\b{target.kind} `?(?:[a-z0-9-]+/)?{name}(?![\w-])", text) is not None


def _says(expected: Expected, text: str, places: Places) -> bool:
    words = text.casefold()
    wanted = ((each,) if isinstance(each, str) else each for each in expected.evidence)
    return all(any(replace_placeholders(one, places).casefold() in words for one in each) for each in wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Numbers over many scores. A scenario without an answer never counts as right."""

    faults: int
    healthy: int
    unanswered: int
    culprit: int
    top1: int
    top3: int
    innocents_in_faults: int
    innocents_in_healthy: int
    median_lines: int
    most_lines: int


def figures_of(scores: Sequence[AnswerScore]) -> Figures:
    faults = [each for each in scores if each.fault]
    lines = sorted(each.lines for each in scores if not each.error) or [0]
    return Figures(
        faults=len(faults),
        healthy=len(scores) - len(faults),
        unanswered=sum(bool(each.error) for each in scores),
        culprit=sum(each.culprit for each in faults),
        top1=sum(each.top1 for each in faults),
        top3=sum(each.top1 or each.top3 for each in faults),
        innocents_in_faults=sum(bool(each.innocent) for each in faults),
        innocents_in_healthy=sum(bool(each.innocent) for each in scores if not each.fault),
        median_lines=lines[len(lines) // 2],
        most_lines=lines[-1],
    )


def describe_answer(score: AnswerScore) -> str:
    """One line for the result of a development scenario, followed by the answer if it is wrong."""
    head = f"{'ok' if score.right else 'ERROR' if score.error else 'MISS':<6}{score.scenario}"
    if score.right or score.error:
        return f"{head} {score.error}"
    blamed = f" (blames {score.innocent})" if score.innocent else ""
    blamed += f" (does not say {', '.join(score.unsaid)})" if score.unsaid else ""
    quoted = "\n".join(f"      | {line}" for line in score.answer.splitlines())
    return f"{head}{blamed}\n      expected: {score.expected or 'no cause'}\n{quoted}"


def figures_table(scores: Sequence[AnswerScore]) -> str:
    """The figures of both halves side by side, as Markdown."""
    columns = [figures_of([each for each in scores if each.half == half]) for half in HALVES]
    rows: tuple[tuple[str, Callable[[Figures], str]], ...] = (
        ("faults", lambda one: f"{one.faults}"),
        ("culprit and mechanism in the first paragraph (top-1)", lambda one: share(one.top1, one.faults)),
        ("culprit in the first paragraph", lambda one: share(one.culprit, one.faults)),
        ("culprit and mechanism anywhere in the answer (top-3)", lambda one: share(one.top3, one.faults)),
        ("an innocent object blamed", lambda one: share(one.innocents_in_faults, one.faults)),
        ("healthy look-alikes", lambda one: f"{one.healthy}"),
        ("something blamed", lambda one: share(one.innocents_in_healthy, one.healthy)),
        ("not shown or not answered", lambda one: f"{one.unanswered}"),
        (
            "lines per answer without rows of tables, median and maximum",
            lambda one: f"{one.median_lines}, {one.most_lines}",
        ),
    )
    head = ["| | " + " | ".join(HALVES) + " |", "|---|" + "---|" * len(HALVES)]
    return "\n".join([*head, *(f"| {title} | {' | '.join(map(cell, columns))} |" for title, cell in rows)])


def share(count: int, total: int) -> str:
    return f"{count} = {100 * count / total:.0f} %" if total else "-"
