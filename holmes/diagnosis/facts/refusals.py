"""Pods that the API server refuses to create: who asks for them, and what it is told. Called by the rules about that.

A refusal counts while pods are missing, however old it is: controllers try again with growing pauses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from holmes.diagnosis.facts import evidence
from holmes.kubernetes.fields import text
from holmes.kubernetes.moments import moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, Severity

MAKERS: Final = ("ReplicaSet", "StatefulSet", "DaemonSet", "Job")
QUOTA: Final = re.compile(
    r"exceeded quota: (?P<quota>[^\s,]+), requested: (?P<requested>.+?),"
    r" used: (?P<used>.+?), limited: (?P<limited>\S+)",
    re.IGNORECASE,
)
MUST_SPECIFY: Final = re.compile(r"failed quota: (?P<quota>[^\s:]+): must specify (?P<what>.+)", re.IGNORECASE)
BOUNDS: Final = re.compile(
    r"(?P<bound>maximum|minimum) (?P<resource>\S+) usage per (?P<type>\w+) is (?P<allowed>\S+?),"
    r" but (?:(?P<part>limit|request) is (?P<value>[^\s,]+)|no (?P<absent>limit|request) is specified)",
    re.IGNORECASE,
)
RATIO: Final = re.compile(
    r"(?P<resource>\S+) max limit to request ratio per (?P<type>\w+) is (?P<allowed>\S+?),", re.IGNORECASE
)
SERVICE_ACCOUNT: Final = re.compile(
    r"service ?account (?:(?P<namespace>[^\s/\"]+)/(?P<plain>[^\s:\"]+)|\"(?P<quoted>[^\"]+)\").*not found",
    re.IGNORECASE,
)
POD_SECURITY: Final = re.compile(r"violates PodSecurity \"(?P<level>[^\"]+)\": (?P<violations>.+)", re.IGNORECASE)
WEBHOOK_FAILED: Final = re.compile(
    r"failed (?:calling|to call) webhook:? \"(?P<webhook>[^\"]+)\":?(?P<why>.*)", re.IGNORECASE
)
WEBHOOK_DENIED: Final = re.compile(
    r"admission webhook \"(?P<webhook>[^\"]+)\" denied the request(?: without explanation)?:?\s*(?P<why>.*)",
    re.IGNORECASE,
)
POLICY_DENIED: Final = re.compile(
    r"ValidatingAdmissionPolicy '(?P<policy>[^']+)' with binding '[^']+' denied request:?\s*(?P<why>.*)", re.IGNORECASE
)
_KNOWN: Final = (
    QUOTA, MUST_SPECIFY, BOUNDS, RATIO, SERVICE_ACCOUNT, POD_SECURITY, WEBHOOK_FAILED, WEBHOOK_DENIED, POLICY_DENIED,
)  # fmt: skip
_PREFIX: Final = re.compile(r"^(\(combined from similar events\): )?(Error creating: )?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refusal: `maker` asked for pods, `message` is the newest answer and `proof` where it stands.

    `running` counts the pods of the maker's workload that are ready all the same.
    """

    maker: ClusterObject
    workload: ClusterObject
    message: str
    proof: Evidence
    since: float
    running: int

    @property
    def severity(self) -> Severity:
        """Critical when nothing of the workload is ready."""
        return "warning" if self.running else "critical"

    @property
    def is_known(self) -> bool:
        """Whether it is of a kind that has its own rule."""
        return any(pattern.search(self.message) for pattern in _KNOWN)


_REFUSALS: Final[WeakKeyDictionary[ClusterState, tuple[Refusal, ...]]] = WeakKeyDictionary()


def refusals(state: ClusterState) -> tuple[Refusal, ...]:
    """All makers of pods that are refused some at present; looked for once for each state."""
    found = _REFUSALS.get(state)
    if found is None:
        found = _REFUSALS[state] = tuple(_refusals(state))
    return found


def _refusals(state: ClusterState) -> Iterator[Refusal]:
    for kind in MAKERS:
        for maker in state.of(kind):
            if maker.deleted is None and _lacks_pods(maker):
                refusal = _refusal(state, maker)
                if refusal is not None:
                    yield refusal


def refused_with(state: ClusterState, pattern: re.Pattern[str]) -> Iterator[tuple[Refusal, re.Match[str]]]:
    """The refusals whose message has the pattern."""
    for refusal in refusals(state):
        found = pattern.search(refusal.message)
        if found is not None:
            yield refusal, found


def _lacks_pods(maker: ClusterObject) -> bool:
    match maker.kind:
        case "ReplicaSet":
            return maker.integer("spec", "replicas") > maker.integer("status", "replicas")
        case "StatefulSet":
            wanted = maker.at("spec", "replicas")
            return (wanted if isinstance(wanted, int) else 1) > maker.integer("status", "replicas")
        case "DaemonSet":
            return maker.integer("status", "desiredNumberScheduled") > maker.integer("status", "currentNumberScheduled")
        case _:
            return (
                not maker.integer("status", "active") and not _is_over(maker) and not maker.boolean("spec", "suspend")
            )


def _is_over(job: ClusterObject) -> bool:
    return any(text(job.condition(kind), "status") == "True" for kind in ("Complete", "Failed", "SuccessCriteriaMet"))


def _refusal(state: ClusterState, maker: ClusterObject) -> Refusal | None:
    """The newest event counts: a condition keeps the message of the first refusal."""
    condition = maker.condition("ReplicaFailure")
    stands = text(condition, "status") == "True" and text(condition, "reason") == "FailedCreate"
    events = state.events_of(maker, "FailedCreate")
    if maker.kind == "ReplicaSet" and not stands:
        return None
    if not events and not stands:
        return None
    workload = state.workload_of(maker)
    since = (moment(text(condition, "lastTransitionTime")) if stands else None) or maker.created
    if events:
        message, proof = events[-1].message, evidence.event(events[-1])
        since = since if stands else events[0].first
    else:
        message = " ".join(text(condition, "message").split())
        proof = evidence.value(maker, "status.conditions[type=ReplicaFailure].message", message)
    return Refusal(
        maker=maker,
        workload=workload,
        message=_PREFIX.sub("", message),
        proof=proof,
        since=since,
        running=_ready_pods(workload),
    )


def _ready_pods(workload: ClusterObject) -> int:
    return max(workload.integer("status", key) for key in ("readyReplicas", "numberReady", "ready", "succeeded"))
