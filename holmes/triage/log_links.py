"""Follows the names in the lines of a log: the Services and other objects that a workload waits for or cannot use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.changes import services_selecting
from holmes.diagnosis.facts.edges import host_uses, workload_hosts
from holmes.diagnosis.facts.templates import serving_workloads, template_of
from holmes.kubernetes.fields import integer, text
from holmes.kubernetes.kinds import WORKLOADS
from holmes.triage.log_troubles import failed_at_start, troubles_of, workloads_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.log_troubles import Trouble
    from holmes.values.findings import ObjectRef

_FROM_CLIENT: Final = expression(
    r"(?i)\b(?:(?:requests?|connections?|calls?|quer(?:y|ies)|traffic|logins?|attempts?) from|for client|by client)"
    r"[ \"']{1,3}\S+"
    r"|\b(?:client|caller|referer|referrer|origin|remote(?:_addr)?)[=: ]{1,2}\"?\S+"
)
"""A client that a line names is not something that the workload needs."""
_NO_SERVER: Final = expression(
    r"(?i)\b(?:flag|toggle|feature|experiment|topic|queue|exchange|channel|stream|table|index|column|schema|bucket|tenant"
    r"|user|role|group|label|tag|branch|job|task|metric|template|file|folder|directory|image|package|module|key)"
    r"(?:s|name)?[ =:]{1,2}[\"'`]?[a-z0-9][a-z0-9-]{1,61}(?![\w-]*:\d)"
)
"""A name of something that is not a server, for example of a feature flag or a topic."""
_NAME_SERVER: Final = expression(r"\blookup \S{1,253} on (\d{1,3}(?:\.\d{1,3}){3}:53)\b(?!: no such host)")
"""A name server that did not answer. The name that was looked up is not at fault."""
_UNANSWERED: Final = expression(
    r"\bEAI_AGAIN\b|\b[Tt]emporary failure in name resolution\b|: server misbehaving\b|\bSERVFAIL\b"
)
"""A lookup without an answer, in the words of programs that do not name the name server."""
_ANSWERED: Final = expression(r"\b(lookup \S{1,253}) on \S{1,60}:53(?=: no such host)")
"""A name server that answered that the name does not exist."""
_KINDS: Final = {
    kind.lower(): kind
    for kind in (
        "Job", "CronJob", "Lease", "Secret", "ConfigMap", "PersistentVolumeClaim", "Deployment", "StatefulSet",
        "DaemonSet", "Pod", "ServiceAccount",
    )
}  # fmt: skip
_OBJECT: Final = expression(
    rf"(?i)\b({'|'.join(_KINDS)})s?[ /:=]{{1,2}}[\"']?((?:[a-z0-9-]{{1,63}}/)?[a-z0-9][a-z0-9.-]{{1,80}})"
)
_WORD: Final = expression(r"(?<![\w./@-])[a-z][a-z0-9-]{1,61}[a-z0-9](?![\w@-]|\.\w)")
_DNS_PORT: Final = 53
_MOST_HOPS: Final = 4


def links_in_logs(
    state: ClusterState, subjects: Sequence[ClusterObject], *, starting: bool = False
) -> dict[ObjectRef, tuple[ObjectRef, ...]]:
    """Return the objects that the logs of the subjects blame or wait for, each with the objects up to it.

    The logs behind a Service are followed in turn. The nearest objects come first. With `starting`, also what young
    pods could not reach so far counts.
    """
    found: dict[ObjectRef, tuple[ObjectRef, ...]] = {}
    waiting: list[tuple[ClusterObject, tuple[ObjectRef, ...]]] = [
        (each, (each.ref,)) for each in workloads_of(state, subjects)
    ]
    seen = {each.ref for each, _ in waiting}
    while waiting:
        workload, path = waiting.pop(0)
        if len(path) > _MOST_HOPS:
            break
        for ref in _named(state, workload, starting=starting):
            found.setdefault(ref, (*path, ref))
            for behind in behind_service(state, ref) if ref.kind == "Service" else ():
                if behind.ref not in seen:
                    seen.add(behind.ref)
                    found.setdefault(behind.ref, (*path, ref, behind.ref))
                    waiting.append((behind, (*path, ref, behind.ref)))
    return found


def way_to(
    state: ClusterState, links: Mapping[ObjectRef, tuple[ObjectRef, ...]], culprit: ObjectRef
) -> tuple[ObjectRef, ...] | None:
    """Return the objects up to a culprit: one that the logs lead to, or what a named Service would select."""
    each = state.find(culprit)
    if culprit in links or each is None or each.kind not in WORKLOADS:
        return links.get(culprit)
    services = services_selecting(state, each.namespace, template_of(each).labels)
    return next(((*links[one.ref], culprit) for one in services if one.ref in links), None)


def _named(state: ClusterState, workload: ClusterObject, *, starting: bool) -> Iterator[ObjectRef]:
    early = failed_at_start(state, workload) if starting else ()
    for trouble in (*troubles_of(state, workload), *early):
        if trouble.group.is_lasting:
            yield from named_services(state, trouble)
            yield from objects_named(state, trouble)


def objects_named(state: ClusterState, trouble: Trouble) -> Iterator[ObjectRef]:
    """Yield the existing objects that the lines name with their kind, for example `job schema-2`."""
    for match in _OBJECT.finditer(trouble.group.record):
        space, _, name = match[2].rstrip(".").rpartition("/")
        each = state.get(_KINDS[match[1].lower()], space or trouble.workload.namespace, name)
        if each is not None and each.ref != trouble.workload.ref:
            yield each.ref


def named_services(state: ClusterState, trouble: Trouble) -> tuple[ObjectRef, ...]:
    """Return the Services that the lines name, without those that only sent a request."""
    failing = failing_name_servers(state) if _UNANSWERED.search(trouble.group.record) else ()
    if failing:
        return failing
    record = _ANSWERED.sub(r"\1", _FROM_CLIENT.sub(" ", trouble.group.record))
    server = _NAME_SERVER.search(record)
    if server is not None:
        record = f"dial {server[1]}"
    pods = state.pods_of(trouble.workload)
    names = {pod.name for pod in pods}  # many programs write the name of their pod into each line
    uses = host_uses(record, trouble.workload.namespace, state)
    found = [use.service for use in uses if use.service.name not in names]
    own = own_services(state, trouble.workload)
    return tuple(each for each in dict.fromkeys((*found, *_by_name(state, trouble, record))) if each not in own)


def _by_name(state: ClusterState, trouble: Trouble, record: str) -> Iterator[ObjectRef]:
    """Yield the Services whose plain names the lines contain, if the workload is configured to use them.

    Such a Service is not a client, even if the line calls its name that of an HTTP client. A name with a hyphen is not
    an ordinary word, so it counts also if no setting contains it.
    """
    configured = {use.service.name: use.service for use, _ in workload_hosts(state, trouble.workload)}
    told = set(_WORD.findall(record))
    if _NAME_SERVER.search(trouble.group.record):
        return
    for word in dict.fromkeys(_WORD.findall(_NO_SERVER.sub(" ", trouble.group.record))):
        service = configured.get(word)
        if service is None and "-" in word and word in told:
            each = state.get("Service", trouble.workload.namespace, word)
            service = each.ref if each is not None else None
        if service is not None:
            yield service


def name_servers(state: ClusterState) -> tuple[ObjectRef, ...]:
    """Return the Services of the cluster's name servers."""
    return tuple(
        each.ref
        for each in state.of("Service", "kube-system")
        if any(integer(port, "port") == _DNS_PORT for port in each.children("spec", "ports"))
    )


def failing_name_servers(state: ClusterState) -> tuple[ObjectRef, ...]:
    """Return the name servers that have no pods, or only pods that are not ready. Empty if pods cannot be listed."""
    return tuple(
        service
        for service in (name_servers(state) if state.covers("Pod", "kube-system") else ())
        if all(
            text(pod.condition("Ready"), "status") == "False"
            for each in behind_service(state, service)
            for pod in state.pods_of(each)
        )
    )


def own_services(state: ClusterState, workload: ClusterObject) -> tuple[ObjectRef, ...]:
    """Return the Services that select the pods of a workload."""
    return tuple(dict.fromkeys(each.ref for pod in state.pods_of(workload)[:1] for each in state.services_of(pod)))


def behind_service(state: ClusterState, service: ObjectRef) -> tuple[ClusterObject, ...]:
    """Return the workloads whose pods a Service selects."""
    found = state.find(service)
    return serving_workloads(state, found) if found is not None else ()
