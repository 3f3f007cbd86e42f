"""Which existing Service was meant by a name that does not exist. Called by rules about Services and Ingresses."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.label_index import labels_of
from holmes.diagnosis.facts.nearest import nearest
from holmes.diagnosis.facts.typos import meant

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef

_ALIKE: Final = 0.8


def intended_service(state: ClusterState, ref: ObjectRef, *, edited: bool) -> str | None:
    """The name of the existing Service that was meant, None when the named one is rather missing.

    It is missing when its workload exists. A name that is only similar was meant when it is a slip of the pen, when one
    contains the other, or when the place where it stands was `edited` after its creation.
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
    return digits[0] == digits[1] and difflib.SequenceMatcher(None, one, other).ratio() >= _ALIKE


def workload_named(state: ClusterState, ref: ObjectRef) -> ClusterObject | None:
    """The workload that has the name of a Service, and would be behind it."""
    for template in labels_of(state).templates.of(ref.namespace):
        if template.workload.name == ref.name and template.workload.kind not in {"Job", "CronJob"}:
            return template.workload
    return None
