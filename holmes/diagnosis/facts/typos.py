"""Finds the existing name that a misspelled name probably means."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.templates import labels_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef


_ALIKE = 0.6


def nearest(name: str, existing: Iterable[str]) -> str | None:
    """Return the existing name most similar to `name`, or None if no name is similar."""
    names = sorted(set(existing) - {name})
    lower = {each.lower(): each for each in names}
    close = difflib.get_close_matches(name.lower(), list(lower), n=1, cutoff=_ALIKE)
    if close:
        return lower[close[0]]
    containing = [each for each in names if name in each or each in name]
    return min(containing, key=len, default=None)


def hint(name: str, existing: Iterable[str]) -> str:
    """Return the clause `; the closest existing name is 'x'`, or an empty string if no name is similar."""
    found = nearest(name, existing)
    return f"; the closest existing name is {found!r}" if found else ""


_MOST_EDITS: Final = 2
_SHORTEST_CHARACTERS: Final = 4


def meant(name: str, existing: Iterable[str]) -> str | None:
    """Return the existing name that `name` clearly misspells, or None.

    The names differ in at most two letters and in no digit.
    """
    found = nearest(name, existing)
    return found if found is not None and _misspelt(name, found) else None


def _misspelt(name: str, other: str) -> bool:
    if name.lower() == other.lower() or name.replace("_", "-") == other.replace("_", "-"):
        return True
    if min(len(name), len(other)) < _SHORTEST_CHARACTERS:
        return False
    same_digits = [each for each in name if each.isdigit()] == [each for each in other if each.isdigit()]
    allowed = _MOST_EDITS if min(len(name), len(other)) > _SHORTEST_CHARACTERS + 1 else 1
    return same_digits and _edits(name, other) <= allowed


def _edits(one: str, other: str) -> int:
    """Compute the edit distance of two names.

    Two swapped adjacent characters count as one edit. The result is 99 if the lengths differ by more than two.
    """
    if abs(len(one) - len(other)) > _MOST_EDITS:
        return 99
    before: list[int] = []
    row = list(range(len(other) + 1))
    for index, letter in enumerate(one):
        above, before_above = row, before
        row = [index + 1]
        for position, other_letter in enumerate(other):
            cost = min(above[position + 1] + 1, row[position] + 1, above[position] + (letter != other_letter))
            swapped = index and position and letter == other[position - 1] and one[index - 1] == other_letter
            if swapped:
                cost = min(cost, before_above[position - 1] + 1)
            row.append(cost)
        before = above
    return row[-1]


_ALIKE_SERVICES: Final = 0.8


def intended_service(state: ClusterState, ref: ObjectRef, *, edited: bool) -> str | None:
    """Return the name of the existing Service that `ref` probably means.

    Returns None if the name in `ref` is probably correct, and the Service itself is missing. The name is correct if a
    workload has the same name. `ref` means another Service if it misspells the name of that Service, if one name
    contains the other, or if the names are very similar. If `edited` is true, the referring field was changed after its
    creation, and `ref` means the Service with the most similar name.
    """
    if workload_named(state, ref) is not None:
        return None
    existing = [each.name for each in state.of("Service", ref.namespace)]
    slip, near = meant(ref.name, existing), nearest(ref.name, existing)
    if slip is not None or near is None:
        return slip
    contained = f"{near}-" in f"{ref.name}-" or f"{ref.name}-" in f"{near}-"
    return near if edited or contained or _is_alike(ref.name, near) else None


def _is_alike(one: str, other: str) -> bool:
    digits = [[letter for letter in name if letter.isdigit()] for name in (one, other)]
    return digits[0] == digits[1] and difflib.SequenceMatcher(None, one, other).ratio() >= _ALIKE_SERVICES


def workload_named(state: ClusterState, ref: ObjectRef) -> ClusterObject | None:
    """Return the workload with the same name as the Service, or None.

    The Service is probably intended for this workload.
    """
    for template in labels_of(state).templates.of(ref.namespace):
        if template.workload.name == ref.name and template.workload.kind not in {"Job", "CronJob"}:
            return template.workload
    return None


def governing_service(state: ClusterState, ref: ObjectRef, hosts: Sequence[str]) -> str | None:
    """Return the Service of the StatefulSet by whose own name all hosts call its pods: `kafka-0.kafka`, or None."""
    each = workload_named(state, ref)
    if each is None or each.kind != "StatefulSet" or not hosts:
        return None
    of_pods = all(host.partition(".")[0].rpartition("-")[0] == each.name for host in hosts)
    name = each.text("spec", "serviceName")
    return name if of_pods and state.get("Service", ref.namespace, name) is not None else None
