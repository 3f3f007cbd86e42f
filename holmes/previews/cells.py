"""What the words and numbers of Kubernetes mean: healthy states, false conditions, image tags, amounts.

Also which of several numbers are far from the rest.
"""

from __future__ import annotations

import functools
import math
import re
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.previews.severity import word_severity

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEALTHY = frozenset(
    {
        "", "running", "completed", "succeeded", "active", "bound", "ready", "available", "true", "normal", "healthy",
        "synced", "deployed", "complete", "ok", "yes", "established", "valid", "issued", "success", "none", "<none>",
        "clusterip", "nodeport", "loadbalancer", "externalname", "opaque", "approved,issued", "up", "pass", "passed",
        "progressing", "initialized", "podscheduled", "containersready", "terminated", "started", "reconciled",
        "online", "open", "enabled", "created", "pulled", "scheduled", "on", "connected", "superseded",
    }
)  # fmt: skip
_BAD = (
    "backoff", "err", "fail", "oomkilled", "evicted", "notready", "unknown", "crash", "invalid", "lost", "deadline",
    "unhealthy", "degraded", "terminating", "pending", "schedulingdisabled", "outofsync", "missing",
    "containercreating", "init:", "podinitializing", "false", "released", "stalled", "unschedulable", "nodelost",
    "containercannotrun",
    "warning", "critical", "down", "suspended", "conflict", "exhausted", "expired", "rejected", "denied", "timeout",
)  # fmt: skip
_MILDLY_BAD = ("terminating", "pending", "containercreating", "podinitializing", "false", "released", "suspended")
NEGATIVE_CONDITIONS = ("Pressure", "Unavailable", "Failed", "Failure", "Degraded", "Stalled", "Disruption", "Problem",
                       "Deadlock", "Terminating", "Dangling", "FailureTarget", "NonStructuralSchema")  # fmt: skip
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)(%|[num]|[kKMGT]i?|[EP]i|)(?: \(.*)?$")
_DURATION = re.compile(r"(?:(\d+)y)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?: ago)?$")
_UNITS = {
    "": 1.0, "%": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
_SAMPLE = 20_000
_FAR = 3.5
_MOST = 12.0


def badness_of(value: str, *, total: int, count: int) -> float:
    """How bad a state sounds, 0 to 18; less when very many share it."""
    lowered = value.lower()
    if lowered in _HEALTHY:
        return 0.0
    if not any(word in lowered for word in _BAD):
        return 4.0 if word_severity(value) else 0.0
    points = 9.0 if lowered in _MILDLY_BAD else 18.0
    return points if count * 10 <= total or count <= 3 else points * 0.5


def condition_is_bad(kind: str, status: str) -> bool:
    """Whether a condition of type `kind` says with `status` that something is wrong."""
    if kind.endswith(NEGATIVE_CONDITIONS):
        return status == "True"
    return status in {"False", "Unknown"}


def image_parts(images: str) -> list[tuple[str, str]]:
    """Repository and tag of each image in a list with commas; a digest or a missing tag counts as a tag."""
    parts = []
    for image in images.split(","):
        if "://" in image or ("/" not in image and ":" not in image):
            continue
        if "@" in image:
            repository, _, digest = image.partition("@")
            parts.append((repository, digest[:14]))
            continue
        repository, colon, tag = image.rpartition(":")
        if not colon or "/" in tag:
            repository, tag = image, "(no tag)"
        parts.append((repository, tag))
    return parts


@functools.lru_cache(maxsize=16_384)
def number_of(cell: str) -> float | None:
    """The number in a cell such as `12`, `250m`, `3 (5m ago)`, `87%` or `5d3h` (in seconds), else None."""
    if not cell or not (cell[0].isdigit() or cell[0] == "-") or len(cell) > 40:
        return None
    match = _NUMBER.match(cell)
    if match:
        return float(match[1]) * _UNITS[match[2]]
    duration = _DURATION.match(cell)
    if duration is None:
        return None
    years, days, hours, minutes, seconds = (int(part or 0) for part in duration.groups())
    return float((((years * 365 + days) * 24 + hours) * 60 + minutes) * 60 + seconds)


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle of numbers, how far they usually are from it (of their logarithms), and the largest."""

    median: float
    middle: float
    width: float
    largest: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Spread:
        """Of `numbers`, at least one; of an even sample when there are many."""
        sample = numbers[:: max(1, len(numbers) // _SAMPLE)]
        logs = [_log(number) for number in sample]
        middle = statistics.median(logs)
        width = statistics.median(abs(each - middle) for each in logs) * 1.4826
        spread = statistics.pstdev(logs)
        return cls(statistics.median(sample), middle, max(0.3, width, spread * 0.4), max(numbers))

    def distance(self, number: float) -> float:
        """How far `number` is from the rest: 0 for usual ones, else 3.5 to 12."""
        far = abs(_log(number) - self.middle) / self.width
        return min(_MOST, far) if far >= _FAR else 0.0


def _log(number: float) -> float:
    return math.copysign(math.log1p(abs(number)), number)
