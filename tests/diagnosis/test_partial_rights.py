"""Rules ignore healthy states when a required kind cannot be read: unread objects are never called missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from holmes.diagnosis.engine import all_rules, findings_of
from holmes.values.findings import Finding
from tests.diagnosis.row_cases import ROWS, raw_cases, state_of

STILL_TOLD: Final = {
    "A01": "the webhook's Service is missing; only whether anybody asks the webhook is not known",
    "D01": "the Service has no ready endpoints",
    "G02": "the try failed; only whether a later one succeeded is not known",
    "P01": "the container failed; only who owns it, or what else was said about it, is not known",
    "P02": "the container was killed; only whether its Job succeeded later is not known",
    "P05": "the kubelet says that the object is missing",
    "P07": "the object is missing; only whether a pod has stumbled over it is not known",
    "P08a": "the kubelet says that the object is missing",
    "P08b": "the container is not there; only what the kubelet said about it is not known",
    "P10": "the probe fails; only what the kubelet said about it is not known",
    "P13": "the pod was evicted; only whether others do its work is not known",
    "P14": "the pod was refused; only whether others do its work is not known",
    "R01": "the request was denied; only whether it is allowed by now is not known",
    "S01": "the scheduler says that nothing fits",
    "W03d": "the API server says that the account is missing",
    "W09": "its own status says that a pod is not ready",
    "W10": "the Job failed; only whether a later one succeeded is not known",
}
"""Rules that rely on other evidence, with that evidence."""


def _without_one_kind(case: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The case without the objects of one kind, as if it could not be read, for each of its kinds."""
    kinds = {kind.partition(".")[0]: kind for kind in state_of(case).kinds}
    for plain, kind in sorted(kinds.items()):
        objects = [each for each in case["objects"] if each["kind"] != plain]
        yield kind, {**case, "objects": objects, "gaps": [*case.get("gaps", ()), kind]}
    if case.get("events"):
        yield "Event", {**case, "events": [], "gaps": [*case.get("gaps", ()), "Event"]}


def test_no_look_alike_becomes_a_fault_because_a_kind_could_not_be_read() -> None:
    told: dict[str, list[tuple[str, str, Finding]]] = {}
    tried = 0
    for rule in all_rules():
        for case in raw_cases(ROWS / f"{rule.id}.yaml"):
            for kind, partial in _without_one_kind(case) if not case["fires"] else ():
                tried += 1
                for finding in findings_of(rule, state_of(partial)):
                    if finding.severity != "info":
                        told.setdefault(rule.id, []).append((case["case"], kind, finding))

    assert tried > 500
    assert {rule_id: cases for rule_id, cases in told.items() if rule_id not in STILL_TOLD} == {}
    assert STILL_TOLD.keys() - told.keys() == set(), "need not be excepted any more"
