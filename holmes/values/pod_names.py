"""Tells by the name of a pod or a Job which workload can have made it.

This is for objects that no longer exist. The workload of a pod that exists is known by its ownerReferences.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_SAFE: Final = "[bcdfghjklmnpqrstvwxz2456789]"
"""The characters of generated names: no vowels, and no digits that look like them."""
_RANDOM: Final = rf"{_SAFE}{{5}}"
_HASH: Final = rf"(?:{_SAFE}{{6,10}}|(?=[bcdf]*\d)[4-9bcdf]{{1,5}})"
"""The hash of a pod template, which names a ReplicaSet: a number in ten of these characters.

Few are shorter than 6 characters. A short one counts only with a digit, because `db` and `gw` are parts of names.
"""
_MINUTES: Final = r"\d{8,10}"
"""The time of a CronJob's run, in minutes since 1970 or, in old clusters, in seconds."""
_ORDINAL: Final = r"(?:0|[1-9]\d{0,4})"
_POD_NAMES: Final = (
    (re.compile(rf"(.+)-{_HASH}-{_RANDOM}"), ("Deployment",)),
    (re.compile(rf"(.+)-{_MINUTES}-{_RANDOM}"), ("CronJob", "Job")),
    (re.compile(rf"(.+)-{_ORDINAL}-{_RANDOM}"), ("Job",)),
    (re.compile(rf"(.+)-{_RANDOM}"), ("DaemonSet", "Job", "ReplicaSet")),
    (re.compile(rf"(.+)-{_ORDINAL}"), ("StatefulSet",)),
)
"""The names of pods, with the kinds of their workloads. A pod of an indexed Job also has its index in the name."""
_JOB_NAME: Final = re.compile(rf"(.+)-{_MINUTES}")
_REPLICA_SET_NAME: Final = re.compile(rf"(.+)-{_HASH}")


def owners_of_pod(pod: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the possible names of the workload of a pod, and the kinds of workloads whose pods have such names."""
    for pattern, kinds in _POD_NAMES:
        match = pattern.fullmatch(pod)
        if match is not None:
            yield match[1], kinds


def is_pod_name_of(pod: str, kind: str, workload: str) -> bool:
    """Return whether a pod with this name can be of a workload. `web-worker-x2k4p` is not a pod of Deployment `web`."""
    return any(name == workload and kind in kinds for name, kinds in owners_of_pod(pod))


def cron_job_of(job: str) -> str:
    """Return the name of the CronJob that can have made a Job, or an empty string."""
    match = _JOB_NAME.fullmatch(job)
    return match[1] if match is not None else ""


def deployment_of(replica_set: str) -> str:
    """Return the name of the Deployment that can have made a ReplicaSet, or an empty string."""
    match = _REPLICA_SET_NAME.fullmatch(replica_set)
    return match[1] if match is not None else ""
