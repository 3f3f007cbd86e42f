"""Every expression over event and log text finds its texts, none of its near misses, and no record of other classes.

`pytest -s` prints the counts of both parts.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest

from holmes import triage
from tests.diagnosis.lines.corpus import records
from tests.diagnosis.lines.expressions import (
    ALL,
    ENTRIES,
    OF_ANSWERS,
    OF_QUESTIONS,
    PROPERTIES,
    SETTINGS,
    count,
    listing,
    matches,
    strangers,
)

FEWEST: Final = 5
MOST_STRANGERS: Final = 0
"""Records of the blind part that may be matched by an expression of another class."""
NAMED: Final = sorted(name for name, entry in ENTRIES.items() if entry.tells is None)


def test_every_expression_is_in_the_table() -> None:
    assert sorted(ALL) == sorted({*ENTRIES, *SETTINGS})


def test_every_module_that_reads_logs_is_in_a_list() -> None:
    modules = {path.stem for path in Path(str(triage.__file__)).parent.glob("log_*.py")}
    assert modules - {*OF_ANSWERS, *OF_QUESTIONS} == set()


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_an_expression_finds_its_texts_and_no_near_miss(name: str) -> None:
    entry, expression = ENTRIES[name], ALL[name]
    assert len(set(entry.find)) >= FEWEST
    assert len(set(entry.miss)) >= FEWEST
    assert [text for text in entry.find if not expression.search(text)] == []
    assert [text for text in entry.miss if expression.search(text)] == []


@pytest.mark.parametrize("name", NAMED)
def test_an_expression_matches_no_record_of_another_class(name: str) -> None:
    assert [f"{record.component}: {record.text}" for record in strangers(name, "development")] == []


@pytest.mark.parametrize("name", NAMED)
def test_the_classes_of_an_expression_are_classes_of_the_corpus_that_it_matches(name: str) -> None:
    found = {each for record in matches(name, "development") for each in record.classes}
    known = {each for record in records("development") for each in record.classes} - {"none"}
    assert ENTRIES[name].classes <= known
    assert not found or ENTRIES[name].classes <= found


def test_an_expression_without_classes_tells_a_known_property() -> None:
    told = {entry.tells for entry in ENTRIES.values() if entry.tells is not None}
    assert told == set(PROPERTIES)
    assert [name for name, entry in ENTRIES.items() if entry.tells and (entry.classes or entry.after)] == []


def test_the_blind_part_stays_below_its_ceiling() -> None:
    sys.stdout.write(listing("development"))
    sys.stdout.write(listing("blind"))
    found, foreign = count("blind")
    assert found >= 100
    assert foreign <= MOST_STRANGERS
