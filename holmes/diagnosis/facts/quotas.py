"""Finds the quotas that leave no room for an object, and who uses most of a quota."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.resources import amount, quantity, requested, written_amount
from holmes.kubernetes.fields import text, text_map
from holmes.kubernetes.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import ObjectRef

_KINDS: Final = {kind.name: kind for kind in KINDS}
_LEAST_SHARE: Final = 4
_MOST_USERS: Final = 2


def exhausted_for(state: ClusterState, ref: ObjectRef) -> Iterator[tuple[ClusterObject, str]]:
    """Yield each quota that allows no further object of this kind in the namespace, with the used resource."""
    names = _counted_as(ref.kind)
    for quota in state.of("ResourceQuota", ref.namespace) if names else ():
        if quota.deleted is not None or quota.at("spec", "scopes") or quota.at("spec", "scopeSelector"):
            continue
        hard, used = hard_of(quota), text_map(quota.body, "status", "used")
        for name in names:
            if name in hard and _is_full(used.get(name), hard[name]):
                yield quota, name


def hard_of(quota: ClusterObject) -> dict[str, str]:
    """Return the limits of a quota by resource."""
    return text_map(quota.body, "status", "hard") or text_map(quota.body, "spec", "hard")


def _counted_as(kind: str) -> tuple[str, ...]:
    """Return the resources under which a quota counts objects of a kind."""
    known = _KINDS.get(kind)
    if known is None or not known.namespaced:
        return ()
    return (f"count/{known.resource}{f'.{known.group}' if known.group else ''}", known.resource)


def _is_full(used: str | None, hard: str) -> bool:
    taken, allowed = quantity(used), quantity(hard)
    return taken is not None and allowed is not None and taken >= allowed


def largest_users(state: ClusterState, namespace: str, resource: str, hard: str) -> str:
    """Return the workloads whose pods use at least a quarter of the quota, as a phrase. Empty if there are none."""
    part, _, plain = resource.rpartition(".") if resource.startswith(("requests.", "limits.")) else ("", "", resource)
    if plain not in {"cpu", "memory", "pods", "ephemeral-storage"}:
        return _finished_jobs(state, namespace, hard) if resource == "count/jobs.batch" else ""
    used: dict[ObjectRef, Decimal] = defaultdict(Decimal)
    for pod in state.of("Pod", namespace):
        if pod.text("status", "phase") not in {"Succeeded", "Failed"}:
            used[state.workload_of(pod).ref] += requested(pod, plain, "limits" if part == "limits" else "requests")
    large = sorted((each for each in used if used[each] * _LEAST_SHARE >= amount(hard) > 0), key=lambda ref: -used[ref])
    return " and ".join(f"{ref} ({written_amount(used[ref], plain)})" for ref in large[:_MOST_USERS])


def _finished_jobs(state: ClusterState, namespace: str, hard: str) -> str:
    """Return the Jobs that ended and still count, if they use at least a quarter of the quota."""
    ended = [
        job.ref
        for job in state.of("Job", namespace)
        if any(text(job.condition(kind), "status") == "True" for kind in ("Complete", "Failed"))
    ]
    return f"{len(ended)} Jobs that ended, such as {ended[0]}" if len(ended) * _LEAST_SHARE >= amount(hard) > 0 else ""
