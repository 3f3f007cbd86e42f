"""Rules for port conflicts between containers of a pod, and for missing permissions for files and ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.crashes import began, crashes_of, log_command
from holmes.diagnosis.facts.evidence import spec_field, value
from holmes.diagnosis.facts.logs import last_words, wanted_logs
from holmes.diagnosis.facts.pods import container_field, container_words
from holmes.diagnosis.facts.templates import pod_templates
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import at, children, integer, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.crashes import Crash
    from holmes.diagnosis.facts.logs import LastWords
    from holmes.diagnosis.facts.pods import Container
    from holmes.diagnosis.facts.templates import PodTemplate
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Evidence, ObjectRef
    from holmes.values.json_types import JsonObject

_PRIVILEGED_PORTS: Final = 1024
_RIGHTS: Final = ("readOnlyRootFilesystem", "runAsUser", "runAsGroup", "runAsNonRoot", "capabilities", "privileged")
_POD_RIGHTS: Final = ("runAsUser", "runAsGroup", "fsGroup", "runAsNonRoot")


@Row(
    id="P17",
    title="Two containers of a pod use the same port",
    severity="warning",
    kinds=("Pod", "Deployment", "StatefulSet", "DaemonSet"),
    reads=("spec.containers[].ports[].containerPort, hostPort, protocol", "logs of crashed containers"),
    explanation=(
        "The containers of a pod share one network, so two of them cannot listen on the same port. A duplicate "
        "declaration has severity info, because a declaration alone opens no port. The severity is critical when one "
        "of the containers crashes with 'address already in use'."
    ),
)
def port_conflict(state: ClusterState) -> Iterator[Fault]:
    crashed: dict[ObjectRef, tuple[Crash, LastWords]] = {}
    for crash in crashes_of(state):
        words = last_words(crash.container, state)
        if words is not None and words.first.kind == "address in use":
            crashed[state.workload_of(crash.pod).ref] = (crash, words)
            if not _twice(children(crash.pod.body, "spec", "containers")):
                yield _busy_port(crash, words, state)
    for template in pod_templates(state):
        yield from _declared_twice(template, crashed.get(template.workload.ref))


def _twice(containers: tuple[JsonObject, ...]) -> bool:
    seen: set[tuple[int, str]] = set()
    for container in containers:
        own = {
            (integer(port, "containerPort"), text(port, "protocol") or "TCP") for port in children(container, "ports")
        }
        if seen & own:
            return True
        seen |= own
    return False


def _declared_twice(template: PodTemplate, crash: tuple[Crash, LastWords] | None) -> Iterator[Fault]:
    """Report each port that two containers of a template declare."""
    holders: dict[tuple[int, str], tuple[str, str]] = {}
    for index, container in enumerate(children(template.spec, "containers")):
        name = text(container, "name")
        for position, port in enumerate(children(container, "ports")):
            key = (integer(port, "containerPort"), text(port, "protocol") or "TCP")
            path = f"{template.path}.containers[{index}].ports[{position}].containerPort"
            first = holders.setdefault(key, (name, path))
            if first[0] != name and key[0]:
                yield _conflict(template, key[0], (first, (name, path)), crash)


def _conflict(
    template: PodTemplate,
    port: int,
    places: tuple[tuple[str, str], tuple[str, str]],
    crash: tuple[Crash, LastWords] | None,
) -> Fault:
    (first, first_path), (second, second_path) = places
    said = f"; the log contains: {crash[1].quote}" if crash else ""
    return Fault(
        subject=template.workload.ref,
        severity="critical" if crash else "info",
        cause=f"Containers {first} and {second} of {template.workload.ref} both declare port {port}{said}",
        evidence=(
            value(template.workload, second_path, port),
            value(template.workload, first_path, port),
            *(crash[1].evidence if crash else ()),
        ),
        next_check=f"kubectl -n {template.workload.namespace} get {template.workload.kind.lower()} "
        f"{template.workload.name} -o yaml",
        since=crash[0].finished if crash else None,
    )


def _busy_port(crash: Crash, words: LastWords, state: ClusterState) -> Fault:
    """Report a port that is in use although no other container declares it."""
    container = crash.container
    ports = (container_field(container, state, "ports"),) if children(container.spec, "ports") else ()
    shared = crash.pod.at("spec", "hostNetwork") is True
    where = "on the node (the pod uses hostNetwork)" if shared else "in the pod"
    network = (spec_field(crash.pod, state, "hostNetwork"),) if shared else ()
    return Fault(
        subject=crash.pod.ref,
        title="Port of the application is already in use",
        severity="critical",
        cause=(
            f"The {container_words(container, state)} cannot listen because its port is already in use {where}: "
            f"{words.quote}"
        ),
        evidence=(*network, *words.evidence, *ports),
        next_check=log_command(container),
        since=began(crash, state),
        logs=wanted_logs(container),
    )


@Row(
    id="P18",
    title="Container lacks permission for a file or port",
    severity="critical",
    kinds=("Pod",),
    reads=(
        "logs of crashed containers",
        "securityContext of pod and container: readOnlyRootFilesystem, runAsUser, fsGroup",
        "spec.containers[].volumeMounts[].readOnly",
    ),
    explanation=(
        "A crashed container reports 'permission denied' or 'read-only file system', and its security settings or "
        "mounts explain the error. Possible causes are a read-only mount, a user that does not own the files, a volume "
        "without fsGroup, or a port below 1024. The log line shows the error, but the setting that explains it is "
        "only probable."
    ),
)
def lacking_rights(state: ClusterState) -> Iterator[Fault]:
    for crash in crashes_of(state):
        if crash.ending != "application" or not (crash.again or crash.container.terminated):
            continue
        words = last_words(crash.container, state)
        if words is None or words.first.kind != "permission denied":
            continue
        why, evidence = _explained(crash.container, words.first.line, state)
        if evidence:
            yield Fault(
                subject=crash.pod.ref,
                cause=f"The {container_words(crash.container, state)} crashes because {why}: {words.quote}",
                evidence=(*evidence, *words.evidence),
                next_check=log_command(crash.container),
                since=began(crash, state),
                logs=wanted_logs(crash.container),
            )


def _explained(container: Container, line: str, state: ClusterState) -> tuple[str, tuple[Evidence, ...]]:
    """Return an explanation of the missing permission, and the settings that may have caused it, if any."""
    lower = line.lower()
    mount = _mount_of(container, line)
    if "read-only" in lower or "erofs" in lower:
        return _read_only(container, mount, state)
    settings = (*_settings(container, state),)
    if settings and mount is not None and container.pod.at("spec", "securityContext", "fsGroup") is None:
        words = f"its user has no access to the volume at {text(mount[1], 'mountPath')}, and the pod has no fsGroup"
        return words, (*settings, container_field(container, state, f"volumeMounts[{mount[0]}]"))
    if settings and ("bind" in lower or "listen" in lower):
        words = f"its user cannot listen on a port below {_PRIVILEGED_PORTS}"
        return words, (*settings, container_field(container, state, "ports"))
    return "its user lacks permission", settings


def _read_only(
    container: Container, mount: tuple[int, JsonObject] | None, state: ClusterState
) -> tuple[str, tuple[Evidence, ...]]:
    """Return a description and the field of the read-only mount or root file system.

    Both values are empty if the mount and the root file system are writable.
    """
    if mount is not None and at(mount[1], "readOnly") is True:
        words = f"the mount {text(mount[1], 'mountPath')} is read-only"
        return words, (container_field(container, state, f"volumeMounts[{mount[0]}].readOnly"),)
    if at(container.spec, "securityContext", "readOnlyRootFilesystem") is True:
        words = "its root file system is read-only (readOnlyRootFilesystem)"
        return words, (container_field(container, state, "securityContext.readOnlyRootFilesystem"),)
    return "", ()


def _mount_of(container: Container, line: str) -> tuple[int, JsonObject] | None:
    """Return the index and the definition of the mount whose path appears in the log line, or None."""
    for index, mount in enumerate(children(container.spec, "volumeMounts")):
        path = text(mount, "mountPath").rstrip("/")
        if path and path in line:
            return index, mount
    return None


def _settings(container: Container, state: ClusterState) -> Iterator[Evidence]:
    """Yield the security settings that restrict the container: first those of the container, then those of the pod."""
    for name in _RIGHTS:
        if at(container.spec, "securityContext", name) is not None:
            yield container_field(container, state, f"securityContext.{name}")
    for name in _POD_RIGHTS:
        if container.pod.at("spec", "securityContext", name) is not None:
            yield spec_field(container.pod, state, f"securityContext.{name}")
