"""The small clusters of the rules of `tests/diagnosis` as incidents: the faults of single rules, and the chains."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tests.diagnosis.row_cases import ROWS, raw_cases
from tests.diagnosis.test_chains import CASES as CHAIN_CASES
from tests.diagnosis.test_chains import cluster_of_chain
from tests.support.recorded_incidents import RecordedIncident, incident_of
from tests.triage.corpus.loading import Case, Expected

if TYPE_CHECKING:
    from collections.abc import Mapping

_CLUSTER: Final = ("objects", "events", "logs")


def row_incidents() -> tuple[RecordedIncident, ...]:
    """The faults of the rows whose culprit is known. Those that need missing rights or namespaces are left out."""
    return tuple(
        _incident(f"row-{path.stem}-{number}", raw, [raw["culprit"]])
        for path in sorted(ROWS.glob("*.yaml"))
        for number, raw in enumerate(raw_cases(path))
        if raw["fires"] and "culprit" in raw and not raw.keys() & {"namespaces", "gaps"}
    )


def chain_incidents() -> tuple[RecordedIncident, ...]:
    """The chains with a culprit. An answer names one of the culprits."""
    return tuple(
        _incident(f"chain-{theme}-{number}", cluster_of_chain(raw), raw["incidents"])
        for number, (theme, raw) in enumerate(CHAIN_CASES)
        if raw["incidents"]
    )


def _incident(name: str, cluster: Mapping[str, Any], culprits: list[str]) -> RecordedIncident:
    places = {match[1] for each in culprits if (match := re.search(r" ([\w-]+)/", each))}
    place = places.pop() if len(places) == 1 else ""
    case = Case(
        id=name,
        half="development",
        group="rules",
        language="en",
        question=f"What is wrong in namespace {place}?" if place else "What is broken in this cluster?",
        namespace="",
        earlier=(),
        alert={},
        cluster="",
        expected=Expected(verdicts=("cause_found",), culprits=tuple(culprits)),
        own_cluster={key: cluster[key] for key in _CLUSTER if key in cluster},
    )
    return incident_of(case)
