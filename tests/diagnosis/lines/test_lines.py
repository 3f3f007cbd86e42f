"""Precision and recall of the expressions over log and event text. `pytest -s` prints them by class and component."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

import pytest
import yaml

from holmes.diagnosis.facts.line_kinds import alternatives, expressions, kind_of, kinds_of, may_report_trouble
from holmes.diagnosis.facts.line_patterns import LINE_PATTERNS
from holmes.diagnosis.facts.logs import LastWords, signatures_of
from tests.diagnosis.lines.corpus import Part, files, records, scores, table

KINDS: Final = tuple(LINE_PATTERNS)
COMPILED: Final = {
    kind: re.compile("|".join(patterns), re.IGNORECASE) for kind, patterns in LINE_PATTERNS.items()
}  # fmt: skip
NEAR_MISSES: Final[dict[str, list[str]]] = {
    kind.replace("_", " "): texts
    for kind, texts in yaml.safe_load((Path(__file__).parent / "near_misses.yaml").read_text()).items()
}
FEWEST: Final = 5
LINES_OF_COMPONENT: Final = 100
BLIND_PRECISION: Final = 0.97
BLIND_RECALL: Final = 0.96
PARTS: Final[tuple[Part, ...]] = ("development", "blind")


def test_the_development_part_is_classified_without_a_mistake() -> None:
    sys.stdout.write(table("development"))
    measured = scores("development")
    assert not measured.mistakes
    assert measured.total.recall >= 0.99


def test_the_blind_part_stays_above_its_floors() -> None:
    sys.stdout.write(table("blind"))
    total = scores("blind").total
    assert total.precision >= BLIND_PRECISION
    assert total.recall >= BLIND_RECALL


def test_each_component_has_its_records() -> None:
    fewest_of: dict[Part, int] = {"development": 70, "blind": LINES_OF_COMPONENT // 3 + 1}
    assert sum(fewest_of.values()) >= LINES_OF_COMPONENT
    for part, fewest in fewest_of.items():
        counts = scores(part).by_component
        assert len(counts) == 29
        for component in counts:
            mine = [record for record in records(part) if record.component == component]
            assert len(mine) >= fewest
            assert sum(record.is_near_miss for record in mine) * 5 >= len(mine) * 2


@pytest.mark.parametrize("part", PARTS)
def test_each_file_says_how_it_was_made(part: Part) -> None:
    made = [yaml.load(path.read_text(), Loader=yaml.CSafeLoader).get("made", "") for path in files(part)]
    assert len(made) == 29
    assert all(words.startswith(("made by running", "the ", "about ", "composed from")) for words in made)


@pytest.mark.parametrize("kind", KINDS)
def test_each_expression_finds_its_records(kind: str) -> None:
    """Every kind has at least five records that its expression finds, and no record of another class gets it."""
    of_kind = [record for part in PARTS for record in records(part) if kind in record.classes]
    pattern = next(COMPILED[each] for each in KINDS if each == kind)
    assert sum(pattern.search(record.text) is not None for record in of_kind) >= FEWEST
    others = [record for record in records("development") if kind not in record.classes]
    assert [record.text for record in others if kind_of(record.text) == kind] == []


@pytest.mark.parametrize("kind", KINDS)
def test_each_expression_has_near_misses_that_it_does_not_find(kind: str) -> None:
    texts = NEAR_MISSES[kind]
    assert len(set(texts)) >= FEWEST
    assert [text for text in texts if kind_of(text) == kind] == []


def test_an_expression_never_matches_without_its_word() -> None:
    """The words that decide which expressions are tried lose nothing."""
    for record in records("development"):
        lowered = record.text.lower()
        for literal, pattern, _ in expressions():
            assert literal in lowered or pattern.search(record.text) is None
        assert may_report_trouble(record.text) or kind_of(record.text) is None


def test_an_expression_is_split_at_its_outer_bars() -> None:
    assert list(alternatives(r"a|(?:b|c)d|[|\]]e\|f")) == ["a", "(?:b|c)d", r"[|\]]e\|f"]


def test_records_that_differ_in_numbers_are_classified_alike() -> None:
    texts = [record.text for record in records("development")]
    assert list(kinds_of(texts)) == [kind_of(text) for text in texts]


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("APPLICATION FAILED TO START\n\nDescription:\n\nPort 81 was already in use.", "port in use"),
        ("IllegalStateException: start failed\nCaused by: java.net.UnknownHostException: stock", "unknown host"),
        ("Error: boot\n  at run (a.js:1:1)\nCaused by: connect ECONNREFUSED 10.0.0.1:80", "connection refused"),
    ],
)
def test_the_reason_below_a_heading_decides(heading: str, kind: str) -> None:
    assert kind_of(heading) == kind


@pytest.mark.parametrize(
    "text",
    [
        "module connection-refused not loaded yet",
        "GET https://s3.example/k?X-Amz-Signature=ab&error=permission%20denied 200",
        "inotify watch count 8192 of 65536",
        "class UnknownHostExceptionMapper registered",
        "resolve step finished",
    ],
)
def test_names_and_addresses_are_not_errors(text: str) -> None:
    assert kind_of(text) is None


def test_a_quote_keeps_the_decisive_words() -> None:
    line = f"ERROR {'step of the import ' * 30}: dial tcp 10.0.0.1:5432: connect: connection refused"
    words = LastWords(signatures=signatures_of(line), evidence=(), blamed=())
    assert words.quote.startswith("…")
    assert words.quote.endswith("connection refused")
    assert len(words.quote) <= 240
