"""Rules for workload settings that refer to a missing Service or port."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.actors import who_changed
from holmes.diagnosis.facts.edges import consumer_logs, edges, failures, is_blocking
from holmes.diagnosis.facts.evidence import value
from holmes.diagnosis.facts.fixes import exposed, replaced
from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.network import container_ports, service_ports
from holmes.diagnosis.facts.pods import containers_of, is_sick
from holmes.diagnosis.facts.services import edited_at, is_headless, pods_behind, selector_of, was_edited
from holmes.diagnosis.facts.stale_settings import old_host
from holmes.diagnosis.facts.templates import labels_of, template_of
from holmes.diagnosis.facts.typos import governing_service, hint, intended_service, nearest, workload_named
from holmes.diagnosis.rule import Fault, Row
from holmes.kubernetes.fields import children, integer, matches_map, text, texts
from holmes.values.expressions import expression
from holmes.values.findings import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.edges import Edge, Failure
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import FixStep, ObjectRef, Severity

_MOST_EVIDENCE: Final = 4
_CALM_LINES: Final = 20
_ANSWERED: Final = expression(
    r"(?i)\b(?:answer(?:ed|s)|return(?:ed|s)|respond(?:ed|s)(?: with)?|got) (?:with )?(?:HTTP )?[1-5]\d\d\b"
    r"|(?:->|: ) ?[1-5]\d\d\b(?! ?ms)|\bstatus(?:_?code)?[=: ]{1,2}[1-5]\d\d\b|\bHTTP/\d(?:\.\d)?\"? [1-5]\d\d\b"
)
"""An HTTP status proves that a program listens at the address of the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Missing:
    """A Service that does not exist, with the evidence that clients need it.

    `meant` is the existing Service that clients probably intended to use. `orphan` is the workload that the missing
    Service would select. `blocked` contains the workloads that have an init container waiting for the Service, each
    with evidence.
    """

    ref: ObjectRef
    edges: tuple[Edge, ...]
    failures: tuple[Failure, ...]
    meant: str | None
    orphan: ClusterObject | None
    blocked: tuple[tuple[ClusterObject, Evidence], ...]

    @property
    def correction(self) -> tuple[str, str]:
        """The wrong text in a setting and the right one. Both have a namespace if the namespace is wrong."""
        right = self.meant or self.ref.name
        return (f"{self.ref.name}.{self.ref.namespace}" if "." in right else self.ref.name), right

    @property
    def consumers(self) -> tuple[ClusterObject, ...]:
        return (*(edge.consumer for edge in self.edges), *(failure.consumer for failure in self.failures))

    @property
    def proofs(self) -> tuple[Evidence, ...]:
        return (*(proof for _, proof in self.blocked), *(failure.line for failure in self.failures))


@Row(
    id="N-S05",
    title="Service that a workload needs does not exist",
    severity="critical",
    kinds=("Service", "Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "Pod"),
    needs=("ConfigMap",),
    reads=("env, command and args of pod templates", "ConfigMaps that they use", "logs", "spec.ports of Services"),
    explanation=(
        "A variable, an argument or a ConfigMap names a Service that does not exist, or a port that the Service does "
        "not have. If the name misspells an existing Service, or the port is wrong, correct the setting. Otherwise "
        "create the Service. The severity is critical when a log, or an init container that waits for the Service, "
        "shows the failure. It is warning when an existing Service was clearly meant, or when the workload behind the "
        "missing Service exists. In all other cases it is info, because the name may belong to a host outside the "
        "cluster."
    ),
)
def named_service_is_wrong(state: ClusterState) -> Iterator[Fault]:
    named, failed = edges(state), failures(state)
    for ref in sorted({*named, *failed}):
        service = state.find(ref)
        if service is not None:
            yield from _wrong_ports(state, service)
        elif state.is_missing("Service", ref.namespace, ref.name) and state.covers("Service"):
            yield from _missing(state, _about(state, ref))


def _about(state: ClusterState, ref: ObjectRef) -> _Missing:
    named = tuple(edge for edge in edges(state).get(ref, ()) if not _resolves_otherwise(edge.consumer, edge.use.host))
    named = tuple(edge for edge in named if edge.use.host in edge.named.value) or named
    failed = tuple(
        each
        for each in failures(state).get(ref, ())
        if each.kind in {"unresolved", "failed"} and not _resolves_otherwise(each.consumer, each.use.host)
    )
    governing = governing_service(state, ref, [edge.use.host for edge in named])
    orphan = workload_named(state, ref) if governing is None else None
    blocked = [(edge.consumer, proof) for edge in named for proof in [_blocked_init(state, edge)] if proof is not None]
    blocked += [(each.consumer, each.line) for each in failed if each.blocks and _is_old(state, each.pod)]
    return _Missing(
        ref=ref,
        edges=named,
        failures=failed,
        meant=governing or (None if orphan is not None else _meant(state, ref, named)),
        orphan=orphan,
        blocked=tuple({consumer.uid: (consumer, proof) for consumer, proof in reversed(blocked)}.values()),
    )


def _is_old(state: ClusterState, pod: ClusterObject) -> bool:
    return state.age_seconds(pod) >= state.grace_seconds


def _resolves_otherwise(consumer: ClusterObject, host: str) -> bool:
    """Return whether the host is defined in the pod, is one of its own, or can be in the search domains of its node."""
    spec = template_of(consumer).spec
    if "." not in host and (texts(spec, "dnsConfig", "searches") or text(spec, "dnsPolicy") in ("Default", "None")):
        return True
    aliases = {name for alias in children(spec, "hostAliases") for name in texts(alias, "hostnames")}
    return host in aliases or host.partition(".")[0].rpartition("-")[0] == consumer.name or host == consumer.name


def _meant(state: ClusterState, ref: ObjectRef, named: tuple[Edge, ...]) -> str | None:
    """Return `name` or `name.namespace` of the existing Service that clients intended to use, or None."""
    places = [state.find(edge.named.object) for edge in named]
    edited = bool(places) and all(place is not None and was_edited(place) for place in places)
    found = intended_service(state, ref, edited=edited)
    if found is not None:
        return found
    same_name = {each.namespace for each in state.of("Service") if each.name == ref.name}
    namespaces = {each.name for each in state.of("Namespace")} or {each.namespace for each in state.of("Service")}
    place = nearest(ref.namespace, same_name) if ref.namespace not in namespaces else None
    return f"{ref.name}.{place}" if place else None


def _blocked_init(state: ClusterState, edge: Edge) -> Evidence | None:
    """Return the state of an unfinished init container whose command refers to the Service, or None."""
    _, marker, rest = edge.named.path.partition(".initContainers[")
    if not marker or ".env[" in rest:
        return None
    index = int(rest.partition("]")[0])
    for pod in state.pods_of(edge.consumer):
        inits = [each for each in containers_of(pod) if each.kind == "init"]
        if index < len(inits) and is_blocking(inits[index]) and _is_old(state, pod):
            return inits[index].evidence("state")
    return None


def _missing(state: ClusterState, about: _Missing) -> Iterator[Fault]:
    found = tuple(_missing_faults(state, about))
    # The waiting workload is the subject, so that this finding explains the workload's other findings.
    waited = [
        replace(found[0], subject=each.ref, title=f"Init container of {each.name} waits for a Service that is missing")
        for each, _ in about.blocked
        if found
    ]
    yield from waited
    yield from (each for each in found if not waited or each.culprit != about.ref)


def _missing_faults(state: ClusterState, about: _Missing) -> Iterator[Fault]:
    if not about.edges and not about.failures:
        return
    severity = _severity_of_missing(state, about)
    if severity == "info" and all(edge.use.port is None and edge.use.form == "variable" for edge in about.edges):
        return
    places = {edge.named.object: edge for edge in reversed(about.edges)} if about.meant else {}
    for place, edge in sorted(places.items()):
        yield Fault(
            subject=about.ref,
            culprit=place,
            title="Setting names a Service that does not exist",
            cause=(
                f"{place} names {edge.use.host!r} in {_setting(edge)}, but {about.ref} does not exist; did you mean "
                f"{about.meant!r}? {edge.consumer.ref} uses the setting"
            ),
            evidence=(edge.named, *about.proofs)[:_MOST_EVIDENCE],
            next_check=f"kubectl -n {about.ref.namespace} get services",
            severity=severity,
            logs=consumer_logs(state, about.consumers),
            fix=replaced(edge.named, *about.correction, edge.consumer.ref),
        )
    if not places:
        yield (_outdated(state, about) if not about.edges else None) or _not_there(state, about, severity)


def _not_there(state: ClusterState, about: _Missing, severity: Severity) -> Fault:
    named = dict.fromkeys(str(each.ref) for each in about.consumers[:3])
    existing = [each.name for each in state.of("Service", about.ref.namespace)]
    actor = who_changed(state, about.ref, None, ("delete", "replace"))
    proofs = actor.evidence if actor is not None else ()
    return Fault(
        subject=about.ref,
        culprit=about.ref if not about.meant else about.consumers[0].ref,
        cause=(
            f"{about.ref} does not exist, but {', '.join(named)} {'needs' if len(named) == 1 else 'need'} it"
            + (f" ({_setting(about.edges[0])} refers to it)" if about.edges else " (according to its log)")
            + (f"; {about.orphan.ref} exists, but no Service with this name selects it" if about.orphan else "")
            + ("" if about.orphan else _elsewhere(state, about.ref) or hint(about.ref.name, existing))
            + (f"; {actor.words}" if actor is not None else "")
        ),
        evidence=(*proofs, *(edge.named for edge in about.edges[:2]), *about.proofs)[:_MOST_EVIDENCE],
        next_check=f"kubectl -n {about.ref.namespace} get services",
        severity=severity,
        logs=consumer_logs(state, about.consumers),
        fix=(exposed(about.ref, about.orphan) if about.orphan else None,),
    )


def _outdated(state: ClusterState, about: _Missing) -> Fault | None:
    """Return the fault of pods that use a host which only their former settings named."""
    for failure in about.failures:
        old = old_host(state, failure.pod, failure.use.host)
        if old is not None:
            return Fault(
                subject=failure.consumer.ref,
                culprit=old.culprit,
                title="Pod uses a host that its current settings do not contain",
                cause=f"{failure.consumer.ref} still connects to {failure.use.host}, which does not exist: {old.words}",
                evidence=(Evidence(object=old.culprit, path=old.path, value=old.value), failure.line),
                next_check=f"kubectl -n {failure.consumer.namespace} rollout status {failure.consumer.kind.lower()} "
                f"{failure.consumer.name}",
                fix=(old.fix,),
                logs=consumer_logs(state, [failure.consumer]),
            )
    return None


def _elsewhere(state: ClusterState, missing: ObjectRef) -> str:
    """Return where a Service with the same name exists, as the end of a sentence, or an empty string."""
    found = [each.ref for each in state.of("Service") if each.name == missing.name]
    return f"; {found[0]} exists in another namespace" if len(found) == 1 else ""


def _severity_of_missing(state: ClusterState, about: _Missing) -> Severity:
    if about.proofs:
        return "critical"
    if about.meant or about.orphan:
        return "warning"
    commands = [edge for edge in about.edges if edge.use.form == "command"]
    return "warning" if any(is_sick(state, edge.consumer) for edge in commands) else "info"


def _setting(edge: Edge) -> str:
    """Return the path of a setting, followed by the variable name if the setting is a variable."""
    path = edge.named.path
    variable = ""
    if ".env[" in path and edge.named.object == edge.consumer.ref:
        prefix, _, index = path.removesuffix("].value").rpartition(".env[")
        variable = f" ({_variable(edge.consumer, prefix, int(index))})" if index.isdigit() else ""
    return f"{path}{variable}"


def _variable(workload: ClusterObject, prefix: str, index: int) -> str:
    template = template_of(workload)
    kind, _, position = prefix.removeprefix(f"{template.path}.").removesuffix("]").partition("[")
    containers = children(template.spec, kind)
    variables = children(containers[int(position)], "env") if int(position) < len(containers) else ()
    return str(variables[index].get("name", "")) if index < len(variables) else ""


def _wrong_ports(state: ClusterState, service: ClusterObject) -> Iterator[Fault]:
    ports = {port.port for port in service_ports(service)}
    if not ports or is_headless(service) or service.text("spec", "type") == "ExternalName":
        return
    failed = [each for each in failures(state).get(service.ref, ()) if each.kind != "unresolved"]
    named = [edge for edge in edges(state).get(service.ref, ()) if not _is_own(service, edge.consumer)]
    wrong = [(edge, port) for edge in named for port in [_port_of(edge)] if port is not None and port not in ports]
    places, users = ({edge.named.object for edge, _ in wrong}, {edge.consumer.uid for edge, _ in wrong})
    everybody = min(len(places), len(users)) > 1 and len({port for _, port in wrong}) == 1
    agreed = everybody and len(wrong) == len(named)
    for edge, port in {(edge.consumer.uid, edge.named.object, port): (edge, port) for edge, port in wrong}.values():
        proofs = [each for each in failed if each.consumer is edge.consumer and each.use.port in {port, None}]
        if (edge.use.port is None and not proofs) or _is_refuted(state, edge, proofs):
            continue
        lost = _listens(state, service, port) and (agreed or _was_service_changed(state, service, edge))
        yield _wrong_port(state, service, edge, proofs, blame_service=lost)
    if not wrong:
        yield from _unknown_wrong_port(service, failed, ports)


def _is_refuted(state: ClusterState, edge: Edge, proofs: list[Failure]) -> bool:
    """Return whether the consumer's log shows that the port answers, or that it answered with the same setting."""
    if any(_ANSWERED.search(proof.line.value) for proof in proofs):
        return True
    place = state.find(edge.named.object)
    since = edited_at(place) if place is not None else 0.0
    groups = [group for _, story in stories_of(state, edge.consumer) for group in story.groups]
    later = [group for group in groups if group.sudden and group.first > since and edge.use.host in group.record]
    return bool(proofs and later)


def _is_own(service: ClusterObject, consumer: ClusterObject) -> bool:
    return consumer.namespace == service.namespace and matches_map(selector_of(service), template_of(consumer).labels)


def _port_of(edge: Edge) -> int | None:
    """Return the port in the setting, the default port of its URL scheme, or None."""
    if edge.use.port is not None or edge.use.form not in {"url", "qualified"}:
        return edge.use.port
    for scheme, port in (("https://", 443), ("http://", 80)):
        if f"{scheme}{edge.use.host}" in edge.named.value:
            return port
    return None


def _listens(state: ClusterState, service: ClusterObject, number: int) -> bool:
    """Return whether the port is a target port of the Service or a declared port of its pods."""
    targets = {port.target for port in service_ports(service)}
    templates = labels_of(state).templates.selected(service.namespace, selector_of(service))
    specs = [each.spec for each in templates] + [pod.child("spec") for pod in pods_behind(state, service)]
    return number in targets or any(port.number == number for spec in specs for port in container_ports(spec))


def _was_service_changed(state: ClusterState, service: ClusterObject, edge: Edge) -> bool:
    """Return whether the Service was edited later than the object with the setting."""
    place = state.find(edge.named.object)
    return was_edited(service) and place is not None and edited_at(service) > edited_at(place)


def _wrong_port(
    state: ClusterState, service: ClusterObject, edge: Edge, proofs: list[Failure], *, blame_service: bool
) -> Fault:
    port = _port_of(edge)
    known = _port_words([each.port for each in service_ports(service)])
    ports = value(service, "spec.ports[0].port", integer(service.children("spec", "ports")[0], "port"))
    if len(service_ports(service)) > 1:
        ports = value(service, "spec.ports", service.at("spec", "ports"))
    first = (ports, edge.named) if blame_service else (edge.named, ports)
    return Fault(
        subject=service.ref,
        culprit=service.ref if blame_service else edge.named.object,
        title="Service does not have the port that its clients use"
        if blame_service
        else "Setting names a port that the Service does not have",
        cause=(
            f"{edge.consumer.ref} connects to port {port} of {service.ref} ({edge.named.object}, {_setting(edge)}), "
            f"but the Service has only {known}"
        ),
        evidence=(*first, *(proof.line for proof in proofs))[:_MOST_EVIDENCE],
        next_check=f"kubectl -n {service.namespace} get service {service.name} -o yaml",
        severity="critical" if proofs or is_sick(state, edge.consumer) else _unproved(state, edge.consumer),
        logs=consumer_logs(state, [edge.consumer]),
        fix=() if blame_service else _port_fix(service, edge),
    )


def _port_fix(service: ClusterObject, edge: Edge) -> tuple[FixStep | None, ...]:
    """Use the only port of the Service in the setting, if the setting names a port."""
    ports = service_ports(service)
    if len(ports) != 1 or edge.use.port is None or f":{edge.use.port}" not in edge.named.value:
        return ()
    wrong, right = (f"{edge.use.host}:{port}" for port in (edge.use.port, ports[0].port))
    return replaced(edge.named, wrong, right, edge.consumer.ref)


def _unproved(state: ClusterState, consumer: ClusterObject) -> Severity:
    """Return the severity for a consumer without failures. If its log was read, it does not use the port."""
    calm = any(story.last_number >= _CALM_LINES for _, story in stories_of(state, consumer))
    return "info" if calm else "warning"


def _port_words(ports: list[int]) -> str:
    return f"{'port' if len(ports) == 1 else 'ports'} {', '.join(map(str, ports))}"


def _unknown_wrong_port(service: ClusterObject, failed: list[Failure], ports: set[int]) -> Iterator[Fault]:
    """Report a port that appears in the log of a client but is not a port of the Service.

    The setting is unknown, because it is in a Secret or in the program.
    """
    addresses = {service.text("spec", "clusterIP"), *texts(service.body, "spec", "clusterIPs")}
    for each in failed:
        is_pod = each.use.form == "ip" and each.use.host not in addresses
        if each.use.port is None or each.use.port in ports or is_pod or _is_own(service, each.consumer):
            continue
        yield Fault(
            subject=service.ref,
            culprit=each.consumer.ref,
            title="Workload uses a port that the Service does not have",
            cause=(
                f"{each.consumer.ref} connects to port {each.use.port} of {service.ref}, but the Service has only "
                f"{_port_words(sorted(ports))}"
            ),
            evidence=(each.line, value(service, "spec.ports", service.at("spec", "ports"))),
            next_check=f"kubectl -n {service.namespace} get service {service.name} -o yaml",
        )
        return
