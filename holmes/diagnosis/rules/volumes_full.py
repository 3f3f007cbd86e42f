"""Volumes without space, as far as the logs say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts import evidence
from holmes.diagnosis.facts.full_volumes import files_in, full_mount, says_full
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.facts.spec_places import owner_words, spec_field
from holmes.diagnosis.rule import Fault, Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.diagnosis.facts.full_volumes import FullMount
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence

_SHARED_MEMORY: Final = "/dev/shm/"  # noqa: S108  a name in logs, nothing is written there


@Row(
    id="V11",
    title="Volume is full",
    severity="critical",
    kinds=("Pod",),
    needs=("PersistentVolumeClaim",),
    reads=("log lines with No space left on device", "spec.containers[].volumeMounts"),
    explanation="The log of a failing container says that there is no space left, with a file below one of its "
    "mounts. How full volumes are is not in the API's lists, so that a full volume is seen only once it breaks "
    "something and the log says so. Enlarge the claim, or remove what fills it; `/dev/shm` has 64 MiB unless it is "
    "mounted otherwise.",
)
def full(state: ClusterState) -> Iterator[Fault]:
    """The volume behind the file that could not be written."""
    for key, log in state.logs.items():
        pod = state.find(key.pod)
        lines = [line.strip() for line in log.splitlines() if says_full(line)]
        container = next((each for each in containers_of(pod) if each.name == key.container), None) if pod else None
        if pod is None or container is None or not lines:
            continue
        proof = evidence.log_line(pod, key.container, lines[-1], previous=key.previous)
        mount = next((found for line in reversed(lines) if (found := full_mount(container, line))), None)
        yield _no_mount(state, container, lines, proof) if mount is None else _full(state, container, mount, proof)


def _no_mount(state: ClusterState, container: Container, lines: Sequence[str], proof: Evidence) -> Fault:
    pod = container.pod
    shared = next((file for line in lines for file in files_in(line) if file.startswith(_SHARED_MEMORY)), "")
    return Fault(
        subject=pod.ref,
        title="Shared memory is full" if shared else "Disk of the container is full",
        severity="warning",
        cause=f"container {container.name} of {owner_words(pod, state)} has no space left"
        f"{f' in {shared}, which has 64 MiB unless a volume is mounted there' if shared else ''}",
        evidence=(proof,),
        next_check=f"kubectl -n {pod.namespace} exec {pod.name} -c {container.name} -- df -h",
    )


def _full(state: ClusterState, container: Container, mount: FullMount, proof: Evidence) -> Fault:
    pod, claim = container.pod, mount.claim
    known = state.find(claim) if claim is not None else None
    size = () if known is None else (evidence.field(known, "status", "capacity"),)
    mounted = f"{container.spec_path.removeprefix('spec.')}.volumeMounts[{mount.index}].mountPath"
    return Fault(
        subject=pod.ref,
        culprit=claim,
        cause=f"volume {mount.volume}{f' ({claim})' if claim else ''} at {mount.path} of container {container.name} of "
        f"{owner_words(pod, state)} has no space left for {mount.file}",
        evidence=(
            *size,
            proof,
            spec_field(pod, state, mounted),
            spec_field(pod, state, f"volumes[{mount.position}]"),
        ),
        next_check=f"kubectl -n {pod.namespace} exec {pod.name} -c {container.name} -- df -h {mount.path}",
    )
