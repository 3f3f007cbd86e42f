"""Judges if it is certain that nothing matches a question, or if that only follows from a condition that is a guess.

Only a certain "none" is an answer. Each condition tells if it is `sure`: a state or a field that the objects have, a
label that others of their kind have, a relation that this pair of kinds can have and that was traced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.facts import fact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holmes.triage.asked import Asked
    from holmes.values.first_look import FirstLook

T = TypeVar("T")
_T_contra = TypeVar("_T_contra", contravariant=True)


class Condition(Protocol[_T_contra]):
    """A condition on objects or lines, with its description."""

    @property
    def told(self) -> str:
        """The condition as a phrase."""

    @property
    def sure(self) -> bool:
        """Whether the condition is not a guess."""

    @property
    def holds(self) -> Callable[[_T_contra], bool]:
        """The test of an object or a line."""


_RUN: Final = frozenset({*WORKLOADS, "Pod"})
_OF_RUN: Final = frozenset({"Service", "NetworkPolicy", "PodDisruptionBudget", "ConfigMap", "Secret",
    "PersistentVolumeClaim", "Node", "Ingress", "ResourceQuota", "LimitRange", "PriorityClass",
    "RuntimeClass"})  # fmt: skip
_BINDINGS: Final = frozenset({"RoleBinding", "ClusterRoleBinding"})
_OF_SCALED: Final = _OF_RUN | {"HorizontalPodAutoscaler", "ReplicaSet", "Pod"}
_TRACED: Final[Mapping[str, frozenset[str]]] = {
    "Deployment": _OF_SCALED,
    "StatefulSet": _OF_SCALED,
    "ReplicaSet": _OF_SCALED | {"Deployment"},
    "DaemonSet": _OF_RUN | {"Pod"},
    "CronJob": _OF_RUN | {"Job", "Pod"},
    "Job": _OF_RUN | {"CronJob", "Pod"},
    "Pod": _OF_RUN | _RUN,
    "Node": frozenset({"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}),
    "Service": _RUN | {"Ingress", "EndpointSlice"},
    "Ingress": frozenset({"Service", "Secret", "IngressClass"}),
    "IngressClass": frozenset({"Ingress"}),
    "ConfigMap": _RUN,
    "Secret": _RUN | {"Ingress"},
    "PersistentVolumeClaim": _RUN | {"PersistentVolume", "StorageClass"},
    "PersistentVolume": frozenset({"PersistentVolumeClaim", "StorageClass"}),
    "StorageClass": frozenset({"PersistentVolumeClaim"}),
    "ServiceAccount": _RUN | _BINDINGS,
    "Role": _BINDINGS,
    "ClusterRole": _BINDINGS,
    "RoleBinding": frozenset({"Role", "ClusterRole"}),
    "PriorityClass": _RUN,
    "RuntimeClass": _RUN,
    "HorizontalPodAutoscaler": frozenset({"Deployment", "StatefulSet", "ReplicaSet"}),
    "PodDisruptionBudget": _RUN - {"CronJob", "Job"},
}
"""For each kind, the kinds whose objects are all found if they belong to an object of it, use it, or are used by it."""
USED: Final = frozenset(_TRACED) - {"Node", "HorizontalPodAutoscaler", "PodDisruptionBudget", "Ingress", "RoleBinding"}
"""The kinds whose users are all found."""


def is_traced(of: str, kinds: Iterable[str]) -> bool:
    """Return whether all objects of `kinds` that are related to one of a kind are found, so that none means none."""
    return of == "Namespace" or _TRACED.get(of, frozenset()).issuperset(kinds)


def guesses(found: Sequence[T], conditions: Sequence[Condition[T]]) -> tuple[str, ...]:
    """Return the guesses among conditions that nothing meets, if something meets all of the others."""
    unsure = [one for one in conditions if not one.sure]
    if not unsure or not any(all(one.holds(each) for one in conditions if one.sure) for each in found):
        return ()
    return tuple(one.told for one in unsure)


def unsettled(asked: Asked, what: str, told: Sequence[str]) -> FirstLook:
    """Return the answer without a number, because only a guess says that nothing matches."""
    parts = " and ".join(f"`{each}`" for each in told)
    text = f"{what} cannot be determined: nothing that was read settles {parts}."
    return fact(asked, text, None, "inconclusive")
