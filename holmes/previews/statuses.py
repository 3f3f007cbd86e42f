"""What the words of Kubernetes mean: which states are healthy, which conditions should be false, what an image tag is.

Called by `tables`, `events` and `findings`.
"""

from __future__ import annotations

from holmes.previews.severity import word_severity

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
