"""A true claim with one change is no longer checked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.evidence.corpus import CLAIMS, ClaimRow, ResultRow, outcome_of, results_below

pytestmark = [pytest.mark.slow, pytest.mark.row("N6")]

_QUOTED = re.compile(r"`([^`]+)`")
_NUMBER = re.compile(r"(?<!not )(?<![\w.:/-])\d+(?![\w:/-]|\.\d)")
_COMPARED = re.compile(r"\b(?:than|above|below|over|least|most)\b")
_SHARE = re.compile(r"\bof the\b|\b[Oo]nly one\b")
_DENIAL = re.compile(r"\b(?:no|not|never|none|nicht|kein\w*|pas|jamais|aucun\w*|ning\w+|nunca)\b", re.IGNORECASE)
_UNITS = (("Mi", "Gi"), ("MiB", "MB"), ("hours", "minutes"), ("minutes", "hours"), ("days", "hours"), ("seconds", "ms"))
_COPULA = re.compile(r"\b(is|are|was|were|has|have)\b (?!no\b|not\b|never\b|been\b)")
_STATUSES = ("Running", "Pending", "CrashLoopBackOff", "ImagePullBackOff", "OOMKilled", "Completed", "Evicted")
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")


def checked_claims() -> list[tuple[ResultRow, ClaimRow]]:
    pairs = [(row, claim) for _, row in results_below(CLAIMS / "own") for claim in row.claims]
    return [(row, claim) for row, claim in pairs if claim.truth == "true" and claim.expect == "checked"]


def swapped(row: ResultRow, answer: str) -> Iterator[tuple[str, str]]:
    """Each change with the resulting answer."""
    body, marker = answer.split("[[", 1)
    yield from ((change, f"{other}[[{marker}") for change, other in (*_other_words(row, body), *_other_numbers(body)))


def _other_words(row: ResultRow, body: str) -> Iterator[tuple[str, str]]:
    """Another name of the result, another status, and a denial."""
    names = sorted({name for name in _NAME.findall(row.text) if f"`{name}`" not in body})
    for quoted in dict.fromkeys(_QUOTED.findall(body)):
        if _NAME.fullmatch(quoted):
            yield from (("name", body.replace(f"`{quoted}`", f"`{name}`", 1)) for name in names[:3])
        if quoted in _STATUSES and not (_DENIAL.search(body) or _SHARE.search(body)):
            yield from (("status", body.replace(quoted, other)) for other in _STATUSES if other != quoted)
    if (match := _COPULA.search(_hidden(body))) and not (_DENIAL.search(body) or _SHARE.search(body)):
        yield from ((word, f"{body[: match.end()]}{word} {body[match.end() :]}") for word in ("not", "never"))


def _other_numbers(body: str) -> Iterator[tuple[str, str]]:
    """Another number, and another unit."""
    if _COMPARED.search(body):
        return  # a value above 40 is usually above 41 too
    for match in _NUMBER.finditer(_hidden(body)):
        yield "digit", f"{body[: match.start()]}{int(match[0]) + 1}{body[match.end() :]}"
    for unit, other in _UNITS:
        if found := re.search(rf"(?<=\d){unit}\b|(?<=\d ){unit}\b", _hidden(body)):
            yield "unit", f"{body[: found.start()]}{other}{body[found.end() :]}"


def _hidden(body: str) -> str:
    """`body` with its quotes made unreadable, at the same length."""
    return _QUOTED.sub(lambda match: "x" * len(match[0]), body)


async def test_no_changed_claim_stays_checked(tmp_path: Path) -> None:
    stayed: list[str] = []
    counts: dict[str, int] = {}
    for row, claim in checked_claims():
        if (await outcome_of(row.command, row.text, claim.answer, tmp_path / "results"))[0] != "checked":
            continue
        for change, answer in swapped(row, claim.answer):
            counts[change] = counts.get(change, 0) + 1
            outcome, _ = await outcome_of(row.command, row.text, answer, tmp_path / "results")
            if outcome == "checked":
                stayed.append(f"{change}: {answer} (from {claim.answer})")
    assert stayed == []
    assert min(counts[change] for change in ("name", "status", "digit", "unit", "not", "never")) >= 5
    assert sum(counts.values()) >= 150
