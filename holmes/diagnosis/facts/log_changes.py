"""Finds what a log says in place of its usual lines: a pattern that ends, and another that begins at that time.

A program that stops its work often reports this in plain words and without a level. Only such a change makes these
words evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.previews.severity import ERROR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.diagnosis.facts.log_records import LogLines
    from holmes.previews.log_patterns import Pattern

_LEAST_USUAL: Final = 5
_LEAST_NEW: Final = 3
_LEAST_SECONDS: Final = 30.0
_LINES_BETWEEN: Final = 5
_SECONDS_BETWEEN: Final = 120.0
_SILENT_STEPS: Final = 4
_MOST_PATTERNS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A pattern that began when another one ended, although the log continues."""

    usual: Pattern
    new: Pattern


def changes_of(patterns: Sequence[Pattern], log: LogLines) -> tuple[Change, ...]:
    """Return the changes of a log. A new pattern is compared with the most frequent pattern that ended."""
    ended = sorted((each for each in patterns if _has_ended(each, log)), key=lambda each: -each.count)
    if not ended:
        return ()
    new = sorted((each for each in patterns if each.count >= _LEAST_NEW), key=lambda each: -each.count)
    found = []
    for each in new[:_MOST_PATTERNS]:
        usual = next((old for old in ended[:_MOST_PATTERNS] if _follows(each, old, log)), None)
        if usual is not None:
            found.append(Change(usual=usual, new=each))
    return tuple(found)


def _has_ended(pattern: Pattern, log: LogLines) -> bool:
    """Return whether a regular pattern without errors ended, although the log continues for a while."""
    if pattern.count < _LEAST_USUAL or (pattern.level is not None and pattern.level >= ERROR):
        return False
    lines, seconds = _steps(pattern, log)
    end = log.last_number
    if log.time_of(1):
        lasted = seconds * (pattern.count - 1)
        silent = log.time_of(end) - log.time_of(pattern.last_number)
        return lasted >= _LEAST_SECONDS and silent > _SILENT_STEPS * seconds
    return end - pattern.last_number > max(_LEAST_NEW, _SILENT_STEPS * lines)


def _follows(new: Pattern, usual: Pattern, log: LogLines) -> bool:
    """Return whether a pattern began at about the time at which the usual one ended."""
    if new is usual or new.first_number <= usual.first_number:
        return False
    lines, seconds = _steps(usual, log)
    between = new.first_number - usual.last_number
    passed = log.time_of(new.first_number) - log.time_of(usual.last_number)
    near_lines = -_LINES_BETWEEN <= between <= max(_LINES_BETWEEN, 3 * lines)
    near_time = seconds > 0 and -_SECONDS_BETWEEN <= passed <= max(_SECONDS_BETWEEN, 3 * seconds)
    return near_lines or near_time


def _steps(pattern: Pattern, log: LogLines) -> tuple[float, float]:
    """Return the average distance between the lines of a pattern, in lines and in seconds."""
    steps = pattern.count - 1
    seconds = log.time_of(pattern.last_number) - log.time_of(pattern.first_number)
    return (pattern.last_number - pattern.first_number) / steps, seconds / steps
