"""Tells why it is not certain that no line of a log matches a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.triage.certainty import guesses
from holmes.triage.facts import place_of
from holmes.triage.log_errors import ORDINAL_LINE
from holmes.triage.log_lines import is_of_backends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.triage.asked import Asked
    from holmes.triage.log_lines import LineFilter, LogLine


def doubt_of_none(asked: Asked, found: Sequence[LogLine], filters: Sequence[LineFilter]) -> str:
    """Return why "no line" would be a guess: no line is of such a thing, or each of its parts is there alone."""
    place = place_of(asked)
    if is_of_backends(asked, found):
        return f"no log that was read tells of the requests {place}."
    unsure = guesses(found, filters)
    if unsure:
        return f"the log lines {place} tell nothing that could be `{unsure[0].removeprefix('with ')}`."
    loose = [each.name for each in asked.subject.named if each.match != "exact"]
    if loose and ORDINAL_LINE.search(asked.question.text):  # "the first 503 for invoices" is there, but elsewhere
        return f"no log line {place} matches, and `{loose[0]}` can mean something else."
    joined = [one for one in filters if one.told.strip().startswith("with ")]
    alone = [f"{number:,} {one.told.strip()}" for one in joined if (number := sum(map(one.holds, found)))]
    texts = sum(one.told.strip().startswith("with text") for one in joined)
    if len(joined) > 1 and alone and (texts > 1 or len(alone) == len(joined)):
        return f"no log line {place} has all of it; alone, there are {'; '.join(alone)}."
    return ""
