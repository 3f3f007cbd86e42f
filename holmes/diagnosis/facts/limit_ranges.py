"""Which values of a pod template the LimitRanges of its namespace do not allow. Called by rules; reads lists only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.quantities import quantity
from holmes.kubernetes.fields import at, child, children, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.templates import PodTemplate
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence
    from holmes.values.json_types import JsonObject

_COMPARED: Final = (("max", "limits"), ("max", "requests"), ("min", "requests"), ("min", "limits"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A value of a template (`found`) outside of a bound of a LimitRange (`bound`)."""

    limit_range: ClusterObject
    found: Evidence
    bound: Evidence


def violations(state: ClusterState, template: PodTemplate) -> tuple[Violation, ...]:
    """Every value of the template's containers that is above a maximum or below a minimum."""
    return tuple(
        violation
        for limit_range in state.of("LimitRange", template.workload.namespace)
        for index, bounds in enumerate(limit_range.children("spec", "limits"))
        if text(bounds, "type") == "Container"
        for violation in _of_bounds(limit_range, index, bounds, template)
    )


def _of_bounds(
    limit_range: ClusterObject, index: int, bounds: JsonObject, template: PodTemplate
) -> Iterator[Violation]:
    for key in ("containers", "initContainers"):
        for position, container in enumerate(children(template.spec, key)):
            for side, part in _COMPARED:
                for resource, allowed in child(bounds, side).items():
                    asked = at(container, "resources", part, resource)
                    if _is_outside(side, asked, allowed):
                        where = f"{template.path}.{key}[{position}].resources.{part}.{resource}"
                        yield Violation(
                            limit_range=limit_range,
                            found=evidence.value(template.workload, where, asked),
                            bound=evidence.value(limit_range, f"spec.limits[{index}].{side}.{resource}", allowed),
                        )


def _is_outside(side: str, asked: object, allowed: object) -> bool:
    if asked is None or allowed is None:
        return False
    found, bound = quantity(str(asked)), quantity(str(allowed))
    if found is None or bound is None:
        return False
    return found > bound if side == "max" else found < bound
