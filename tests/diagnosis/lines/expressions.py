"""Collects the expressions over log and event text, and counts the records of the corpus that each one matches."""

from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from holmes import triage
from holmes.diagnosis import facts, rules
from holmes.diagnosis.facts.line_kinds import kind_of
from holmes.diagnosis.facts.log_groups import story_of
from holmes.values.expressions import LazyExpression
from tests.diagnosis.lines.corpus import records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.diagnosis.lines.corpus import Part, Record

BY_CORPUS: Final = {"line_kinds", "line_patterns", "logs"}
BY_FIELDS: Final = {"custom_health", "custom_links", "custom_reasons"}
"""Modules whose expressions read fields of custom resources, not text."""
OF_ANSWERS: Final = (
    "log_calls", "log_feeds", "log_floods", "log_following", "log_policies", "log_queues", "recent_changes",
    "log_reasons", "log_servers", "log_troubles", "log_links", "log_actors", "log_blame", "log_evidence",
    "log_proofs", "log_values", "log_words", "log_counts", "run_logs",
)  # fmt: skip
"""Modules of the answers whose expressions read the text of log lines."""
OF_QUESTIONS: Final = {
    "log_amounts",
    "log_answers",
    "log_bounds",
    "log_certainty",
    "log_choice",
    "log_errors",
    "log_lines",
    "log_order",
    "log_qualifiers",
    "log_texts",
    "log_times",
}
"""Modules whose expressions read the question, or filter lines as it asks. They name no cause."""
BY_ROWS: Final = ("edges._KINDS", "pods_images._COMPILED", "unscheduled._REASONS", "admission._KNOWN")
"""Ordered alternatives. The first that matches decides, so the rows of tests/diagnosis/rows test them."""
_LOG: Final = "INFO ready to serve\n{}" + "\nINFO served page in 3 ms" * 8
"""A log with ordinary lines around one record."""
_HERE: Final = Path(__file__).parent
_TABLES: Final = tuple(yaml.safe_load((_HERE / name).read_text()) for name in ("expressions.yaml", "answers.yaml"))
SETTINGS: Final[tuple[str, ...]] = tuple(name for table in _TABLES for name in table["settings"])
PROPERTIES: Final[dict[str, str]] = _TABLES[0]["properties"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is written about an expression: its texts, and either its classes or the property that it tells."""

    find: tuple[str, ...]
    miss: tuple[str, ...]
    classes: frozenset[str]
    tells: str | None
    after: tuple[str, ...]
    """Expressions or kinds that the code demands first of the same text, or `evidence` of trouble in its log."""


def _entry(written: dict[str, object]) -> Entry:
    def texts(key: str) -> tuple[str, ...]:
        value = written.get(key, [])
        return tuple(map(str, value)) if isinstance(value, list) else ()

    tells = written.get("tells")
    return Entry(
        find=texts("find"),
        miss=texts("miss"),
        classes=frozenset(name.replace("_", " ") for name in texts("classes")),
        tells=None if tells is None else str(tells),
        after=texts("after"),
    )


ENTRIES: Final[dict[str, Entry]] = {
    name: _entry(written) for table in _TABLES for name, written in table["expressions"].items()
}


def _expressions(value: object, path: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    if isinstance(value, (re.Pattern, LazyExpression)):
        yield path, re.compile(value.pattern, value.flags)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _expressions(each, f"{path}[{key}]")
    elif isinstance(value, tuple):
        for index, each in enumerate(value):
            yield from _expressions(each, f"{path}[{index}]")


def _modules() -> Iterator[tuple[str, str]]:
    for package in (facts, rules):
        for module in pkgutil.iter_modules(package.__path__):
            if module.name not in BY_CORPUS | BY_FIELDS:
                yield package.__name__, module.name
    yield from ((triage.__name__, name) for name in OF_ANSWERS)


def _all() -> dict[str, re.Pattern[str]]:
    found: dict[str, re.Pattern[str]] = {}
    for package, module in _modules():
        for name, value in vars(importlib.import_module(f"{package}.{module}")).items():
            for path, expression in _expressions(value, f"{module}.{name}"):
                if expression not in found.values() and not path.startswith(BY_ROWS):
                    found[path] = expression
    return found


ALL: Final = _all()


@cache
def matches(name: str, part: Part) -> tuple[Record, ...]:
    """Return the records that an expression matches after what the code demands first."""
    entry = ENTRIES[name]
    return tuple(
        record
        for record in records(part)
        if ALL[name].search(record.text) and all(_is_let_through(record.text, each) for each in entry.after)
    )


def _is_let_through(text: str, gate: str) -> bool:
    if gate in ALL:
        return ALL[gate].search(text) is not None
    return bool(story_of(_LOG.format(text)).groups) if gate == "evidence" else kind_of(text) == gate


@cache
def strangers(name: str, part: Part) -> tuple[Record, ...]:
    """Return the matched records of which no class is a class of the expression."""
    return tuple(each for each in matches(name, part) if ENTRIES[name].classes.isdisjoint(each.classes))


def count(part: Part) -> tuple[int, int]:
    """Return how many records all expressions with classes match, and how many of them are of another class."""
    named = [name for name, entry in ENTRIES.items() if entry.tells is None]
    return sum(len(matches(name, part)) for name in named), sum(len(strangers(name, part)) for name in named)


def listing(part: Part) -> str:
    """Return the counts of a part as text, and each expression that matches records of another class."""
    found, wrong = count(part)
    told = sum(entry.tells is not None for entry in ENTRIES.values())
    lines = [
        f"\n{part}, {len(records(part))} records: {len(ENTRIES) - told} expressions of classes, {told} of properties",
        f"  the expressions of classes match {found} times, {wrong} of them a record of another class",
    ]
    lines += [
        f"    {name:28} {len(foreign)} ({', '.join(sorted({'+'.join(each.classes) for each in foreign}))})"
        for name in sorted(ENTRIES)
        if ENTRIES[name].tells is None and (foreign := strangers(name, part))
    ]
    return "\n".join(lines)
