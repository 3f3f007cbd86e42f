"""Finds the words that explain the trouble of a custom resource best: in any part of its status, or in its events."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.custom_health import Trouble, reports_failure
from holmes.diagnosis.facts.custom_words import SAYS_WHY, gist, specificity
from holmes.kubernetes.fields import moment, text
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.custom_table import KindRow
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence
    from holmes.values.json_types import JsonObject, JsonValue

_TELLING: Final = expression(
    r"(?:message|errors?|reason|description|trace|details?|failures?|cause|stderr)$", re.IGNORECASE
)
_PAST: Final = frozenset({"history", "previous", "managedFields"})
_STATES: Final = ("status", "state", "phase", "health", "result")
_WELL: Final = expression(
    r"ready|running|active|healthy|available|succeeded|success\w*|complet\w*|ok|bound|online|synced|deployed|true|valid",
    re.IGNORECASE,
)
_TIMES: Final = ("time", "timestamp", "lastTransitionTime", "lastUpdateTime", "finishedAt", "completedAt")
_RECENT_SECONDS: Final = 3_600.0
_DEEPEST: Final = 8
_CLEARLY: Final = 2
"""Other words explain a trouble only if they say this much more than its own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reason:
    words: str
    proof: Evidence


def with_reason(state: ClusterState, each: ClusterObject, row: KindRow, trouble: Trouble) -> Trouble:
    """Return the trouble with the most specific words that the object or its events say about it."""
    found = [*_in_status(each, row, trouble), *_in_events(state, each)]
    best = max(found, key=lambda one: specificity(one.words, each), default=None)
    if best is None or best.words in trouble.why:
        return trouble
    own, score = specificity(trouble.words, each), specificity(best.words, each)
    if score < max(SAYS_WHY, own + _CLEARLY):
        return trouble
    return replace(trouble, words=best.words, proof=(best.proof, *trouble.proof))


def _in_events(state: ClusterState, each: ClusterObject) -> Iterator[_Reason]:
    for event in reversed(state.events_of(each)):
        if event.type == "Warning" and state.now - event.last < _RECENT_SECONDS:
            yield _Reason(words=gist(event.message), proof=evidence.event(event))


def _in_status(each: ClusterObject, row: KindRow, trouble: Trouble) -> Iterator[_Reason]:
    for path, words in _texts(each.child("status"), "status", row, _DEEPEST, trouble.since):
        yield _Reason(words=gist(words), proof=evidence.value(each, path, words))


def _texts(
    value: JsonValue, path: str, row: KindRow, depth: int, since: float | None, *, telling: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield the texts of all fields that explain something, without the parts that report that they are well."""
    if isinstance(value, str) and telling and " " in value:
        yield path, value
    elif isinstance(value, list) and depth:
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}[{index}]", row, depth - 1, since, telling=telling)
    elif isinstance(value, dict) and depth and (path == "status" or _may_explain(value, row, since)):
        for key, item in value.items():
            if key not in _PAST:
                yield from _texts(
                    item, f"{path}.{key}", row, depth - 1, since, telling=_TELLING.search(key) is not None
                )


def _may_explain(part: JsonObject, row: KindRow, since: float | None) -> bool:
    """Return whether a part of a status neither reports that it is well nor is older than the trouble."""
    if text(part, "type") and text(part, "status"):
        return reports_failure(part, row)
    if any(_WELL.fullmatch(text(part, key)) for key in _STATES):
        return False
    times = [found for key in _TIMES if (found := moment(text(part, key))) is not None]
    return since is None or not times or max(times) >= since - _RECENT_SECONDS
