"""Reads the corpus of log and event records, and scores what the expressions find in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

import yaml

from holmes.diagnosis.facts.line_kinds import kind_of

Part: TypeAlias = Literal["development", "blind"]
_HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record of a component and its classes, which are kinds or `none` for a near miss. Any of them is right."""

    component: str
    text: str
    classes: tuple[str, ...]

    @property
    def is_near_miss(self) -> bool:
        return self.classes == ("none",)


@dataclass(slots=True)
class Score:
    """How many records with trouble were found, and how many were found wrongly."""

    expected: int = 0
    found: int = 0
    wrong: int = 0

    @property
    def recall(self) -> float:
        return self.found / self.expected if self.expected else 1.0

    @property
    def precision(self) -> float:
        return self.found / (self.found + self.wrong) if self.found + self.wrong else 1.0


@dataclass(slots=True)
class Scores:
    """The scores of one part by class, by component, and in total."""

    total: Score = field(default_factory=Score)
    by_class: dict[str, Score] = field(default_factory=dict)
    by_component: dict[str, Score] = field(default_factory=dict)
    mistakes: Counter[tuple[str, str, str]] = field(default_factory=Counter)


def files(part: Part) -> list[Path]:
    """Return the files of one part of the corpus, one for each component."""
    return sorted((_HERE / part).glob("*.yaml"))


@cache
def records(part: Part) -> tuple[Record, ...]:
    """Return all records of one part of the corpus."""
    found: list[Record] = []
    for path in files(part):
        written = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
        for each in written["lines"]:
            classes = each["class"] if isinstance(each["class"], list) else [each["class"]]
            kinds = tuple(name.replace("_", " ") for name in classes)
            found.append(Record(component=path.stem, text=each["line"], classes=kinds))
    return tuple(found)


@cache
def scores(part: Part) -> Scores:
    """Score the kind of each record. A wrong kind counts for the class that it names, not for the class expected."""
    result = Scores()
    for record in records(part):
        kind = kind_of(record.text)
        expected, component = record.classes[0], result.by_component.setdefault(record.component, Score())
        if not record.is_near_miss:
            for score in (result.total, component, result.by_class.setdefault(expected, Score())):
                score.expected += 1
                score.found += kind in record.classes
        if kind is not None and kind not in record.classes:
            for score in (result.total, component, result.by_class.setdefault(kind, Score())):
                score.wrong += 1
            result.mistakes[record.component, expected, kind] += 1
    return result


def table(part: Part) -> str:
    """Return precision and recall by class and component as text."""
    measured = scores(part)
    lines = [f"\n{part}: {len(records(part))} records, {_words(measured.total)}"]
    for title, group in (("class", measured.by_class), ("component", measured.by_component)):
        lines.append(f"  by {title}")
        lines += [f"    {name:28} {_words(score)}" for name, score in sorted(group.items())]
    return "\n".join(lines)


def _words(score: Score) -> str:
    counts = f"{score.found}/{score.expected}, {score.wrong} wrong"
    return f"precision {score.precision:.3f}, recall {score.recall:.3f} ({counts})"
