"""Finds the incident that explains what a log reports, so that the messenger is not blamed."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import workload_hosts
from holmes.diagnosis.facts.evidence import edited_at
from holmes.diagnosis.facts.host_mentions import settings_of
from holmes.diagnosis.facts.line_kinds import CREDENTIALS
from holmes.diagnosis.facts.log_weights import is_aside
from holmes.diagnosis.facts.producers import producers_of
from holmes.diagnosis.facts.references import references_of
from holmes.diagnosis.facts.templates import template_of
from holmes.diagnosis.rule_ids import OUTDATED_PODS
from holmes.kubernetes.fields import boolean, child, children, moment, text, texts
from holmes.triage.asked import one_sentence
from holmes.triage.blame import from_logs, from_reason, with_cause
from holmes.triage.connections import connections
from holmes.triage.harm import leaves_serving
from holmes.triage.log_evidence import cause_in_logs
from holmes.triage.log_floods import flooded_by
from holmes.triage.log_links import behind_service, named_services
from holmes.triage.log_reasons import EXPIRED
from holmes.triage.log_troubles import HOST, NO_SUCH_NAME, REACHED, troubles_of
from holmes.triage.names import names_of
from holmes.triage.past import was_there
from holmes.triage.vocabulary import symptoms_of_text
from holmes.values.expressions import expression
from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.log_evidence import LogCause
    from holmes.triage.log_troubles import Trouble
    from holmes.triage.subjects import Named
    from holmes.values.findings import Incident
    from holmes.values.first_look import FirstLook
    from holmes.values.json_types import JsonObject

_WORDS: Final = expression(r"[a-z]{3,}")
_ORDINARY: Final = frozenset(
    {"api", "key", "password", "token", "secret", "auth", "user", "credentials", "url", "host"}
)
"""Words of all credentials. They do not tell one from another."""
_SEVERAL: Final = 2
_SERVERS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "Service"})
_OF_LOAD: Final = frozenset({"memory", "ready"})
"""Symptoms that a server can have because of too many requests. A crash tells its own reason."""
_REGISTRY: Final = expression(r"(?<![\w./-])((?:[a-z0-9-]+\.)+[a-z]{2,})(?::\d+)?/")
_NOT_READY: Final = expression(
    r"(?i)\bprobe\b.{0,30}: (?:the application returns 5\d\d\b|\S+ \S+ on port \S+ does not respond within)"
)
"""An application that says to its probe that it cannot serve, or answers too late: what it needs may be at fault."""
_PROBE_FAILS: Final = expression(r"\bprobe\b.{0,20}\bfail")
_CLOCK: Final = expression(r"(?i)\b(?:ntp|clock|chronyd?|time (?:sync|skew|drift))")
_IN_FUTURE: Final = expression(
    r"(?i)(?<!expired or )(?<!expired or is )\b(?:used before issued|not yet valid|not valid yet|clock skew"
    r"|not active yet|not yet active)\b|(?<!is )\bin the future\b|\bcurrent time \S+ is before\b"
)
_READ_ONLY: Final = expression(r"(?i)\bread-?only ?file ?system|\bfilesystem(?:corruption|isreadonly)")
_PATH: Final = expression(r"(?<![\w.:/-])/[\w.@+-]+(?:/[\w.@+-]+)*")
_ON_NODE: Final = ("emptyDir", "hostPath", "ephemeral")
_SHARED: Final = frozenset({"ReadOnlyMany", "ReadWriteMany", "ro"})
"""Access modes of network file systems, and the option with which a volume cannot be written."""
_DETECTED_SECONDS: Final = 600.0
"""After this time, a detector has looked at the node again."""
_MOST_OWNERS: Final = 5
_TOGETHER_SECONDS: Final = 60.0
_SOON_SECONDS: Final = 3_600.0
_QUOTED: Final = 80
_ACCOUNTS: Final = ("User", "Account", "Role", "Grant", "Client")
"""Endings of custom kinds that stand for an account in a product, for example `KafkaUser`."""
_CUT_OFF: Final = REACHED | {"unknown host", "pool exhausted"} - {"upstream 5xx"}
"""Kinds of lines of a program that gets no connection. A pool without connections is exhausted, too."""
_REJECTIONS: Final = frozenset({"auth failed"})


def _behind_logs(asked: Asked, logged: LogCause, *, of_scope: bool) -> Incident | None:
    """Return the incident that explains the trouble in a log, or None. Logs of a scope can be those of a proxy."""
    found = [each for each in asked.report.incidents if was_there(asked, each)]
    critical = [each for each in found if each.severity == "critical"]
    maker = next(_of_makers(asked, logged, critical), None)
    if maker is not None:
        return maker
    quoting = next((each for each in critical if _quotes(each, logged.troubles[-1])), None)
    if quoting is not None:
        return quoting
    last = logged.troubles[-1]
    of_nodes = chain(_of_clocks(asked, logged, found), _of_disks(asked, last, found))
    outside = next(chain(of_nodes, _of_policies(asked, last, found)), None)
    if outside is not None:
        return outside
    if len(logged.path) > 1:  # the object to which the logs lead says why it does not answer
        owned = (each for each in critical if logged.culprit in (each.culprit, *each.affected, *_owners(asked, each)))
        owned = (each for each in owned if not leaves_serving(asked.state, each, [logged.culprit]))
        return next(owned, None) or next(_of_clients(asked, logged, found), None)
    named = (each for each in critical if of_scope and _names(logged.troubles[0].group.record, each))
    return next(named, None) or next(_of_clients(asked, logged, found), None)


def _owners(asked: Asked, incident: Incident) -> Iterator[ObjectRef]:
    """Yield the owners of the culprit of an incident, for example the Certificate of an ACME challenge."""
    each = asked.state.find(incident.culprit)
    for _ in range(_MOST_OWNERS):
        each = asked.state.by_uid(each.owner.uid) if each is not None and each.owner is not None else None
        if each is not None:
            yield each.ref


def _of_clocks(asked: Asked, logged: LogCause, incidents: list[Incident]) -> Iterator[Incident]:
    """Yield the older incidents about the clock of a node on which the programs run whose tokens are too young."""
    last = logged.troubles[-1].group
    if not _IN_FUTURE.search(last.record):
        return
    behind = behind_service(asked.state, logged.clean) if logged.clean is not None else ()
    workloads = {each.ref: each for each in (*(trouble.workload for trouble in logged.troubles), *behind)}.values()
    nodes = {pod.text("spec", "nodeName") for workload in workloads for pod in asked.state.pods_of(workload)}
    for each in incidents:
        older = (moment(each.since) or 0.0) <= last.first
        if older and each.culprit.kind == "Node" and each.culprit.name in nodes and _CLOCK.search(each.cause):
            yield each


def _of_disks(asked: Asked, last: Trouble, incidents: list[Incident]) -> Iterator[Incident]:
    """Yield the incidents about a read-only disk of the node of a pod that cannot write, unless its spec forbids it."""
    pod = asked.state.find(last.key.pod) if last.group.kind == "read only file system" else None
    containers = pod.children("spec", "containers") if pod is not None else ()
    mounts = (mount for each in containers for mount in children(each, "volumeMounts"))
    forbidden = any(boolean(each, "securityContext", "readOnlyRootFilesystem") for each in containers)
    if pod is None or forbidden or any(boolean(each, "readOnly") for each in mounts):
        return
    if _is_elsewhere(asked, pod, last):
        return
    for each in incidents:
        began = (moment(each.since) or 0.0) <= last.group.first + _DETECTED_SECONDS
        on_node = each.culprit.kind == "Node" and each.culprit.name == pod.text("spec", "nodeName")
        if began and on_node and _READ_ONLY.search(each.cause):
            yield each


def _is_elsewhere(asked: Asked, pod: ClusterObject, last: Trouble) -> bool:
    """Return whether the path in the lines may be on a volume that is not on a disk of the node, or is read-only."""
    volumes = {text(each, "name"): each for each in pod.children("spec", "volumes")}
    containers = (each for each in pod.children("spec", "containers") if text(each, "name") == last.key.container)
    mounts = {
        text(mount, "mountPath").rstrip("/"): volumes.get(text(mount, "name"), {})
        for each in containers
        for mount in children(each, "volumeMounts")
    }
    paths = [f"{path}/" for path in _PATH.findall(last.group.record)]
    within = [max((each for each in mounts if path.startswith(f"{each}/")), key=len, default="") for path in paths]
    named = [mounts[each] for each in within if each] if paths else list(mounts.values())
    return any(not _is_disk(asked, pod, volume) for volume in named)


def _is_disk(asked: Asked, pod: ClusterObject, volume: JsonObject) -> bool:
    """Return whether a volume is on a writable disk of the node, as far as its spec tells."""
    claim = child(volume, "persistentVolumeClaim")
    if not claim:
        return any(kind in volume for kind in _ON_NODE)
    bound = asked.state.get("PersistentVolumeClaim", pod.namespace, text(claim, "claimName"))
    found = asked.state.get("PersistentVolume", "", bound.text("spec", "volumeName")) if bound is not None else None
    if found is None or boolean(claim, "readOnly"):
        return False
    block = any(kind in found.child("spec") for kind in ("local", "hostPath", "csi"))
    modes = (*texts(found.body, "spec", "accessModes"), *texts(found.body, "spec", "mountOptions"))
    return block and not found.boolean("spec", "csi", "readOnly") and _SHARED.isdisjoint(modes)


def _of_policies(asked: Asked, last: Trouble, incidents: list[Incident]) -> Iterator[Incident]:
    """Yield the incidents of policies that cut off the writer of the lines from what it cannot reach, or from DNS.

    Without such lines, nothing shows that the network enforces policies. If they name Services, it must be one of them.
    """
    policies = [each for each in incidents if each.culprit.kind == "NetworkPolicy" and each.severity != "info"]
    record, kind = last.group.record, last.group.kind
    if not policies or kind not in _CUT_OFF or NO_SUCH_NAME.search(record):
        return
    if kind == "pool exhausted" and "total=0" not in record:
        return
    settings = {named.object for _, named in workload_hosts(asked.state, last.workload)} | {last.workload.ref}
    named = set(named_services(asked.state, last))
    if kind != "unknown host" and not named and HOST.search(record):  # a host outside of the cluster
        return
    for each in (one for one in policies if _may_have_begun(asked, last, one.culprit)):
        told = {one.object for finding in each.findings for one in finding.evidence}
        blocked = {ref for ref in each.affected if ref.kind == "Service"}
        if (last.workload.ref in each.affected or settings & told) and (not named or not blocked or named & blocked):
            yield each


def _may_have_begun(asked: Asked, last: Trouble, policy: ObjectRef) -> bool:
    """Return whether lines that began suddenly did so soon after an edit of a policy, or the start of a pod."""
    found, first = asked.state.find(policy), last.group.first
    pods = asked.state.pods_of(last.workload)
    changed = max((edited_at(found) if found is not None else 0.0, *(each.created for each in pods)), default=0.0)
    return not last.group.sudden or not first or changed >= first - _SOON_SECONDS


def _quotes(incident: Incident, trouble: Trouble) -> bool:
    """Return whether an incident explains the very line, and blames another object than the one that writes it."""
    affected = trouble.workload.ref in (*incident.affected, *(each.subject for each in incident.findings))
    return affected and incident.culprit != trouble.workload.ref and trouble.quote in incident.cause


def _of_makers(asked: Asked, logged: LogCause, incidents: list[Incident]) -> Iterator[Incident]:
    """Yield the incidents of what makes the workload's Secrets, if the lines tell of rejected credentials."""
    last = logged.troubles[-1]
    if logged.reason is None and last.group.kind in CREDENTIALS:
        made = connections(asked.state, (last.workload,))
        makers = [each for each in incidents if each.culprit in made and each.culprit.group]
        yield from (each for each in makers if _is_sent(asked, last, each))
        yield from _of_accounts(asked, last.workload, incidents)


def _of_accounts(asked: Asked, workload: ClusterObject, incidents: list[Incident]) -> Iterator[Incident]:
    """Yield the incidents of custom resources that are the account whose name a setting of the workload contains."""
    texts = (each.text for each in settings_of(asked.state, workload))
    values = {part.strip(" \"'") for text in texts for part in text.split("=", 1)}
    for each in incidents:
        account = each.culprit.group and each.culprit.kind.endswith(_ACCOUNTS)
        if account and each.culprit.namespace == workload.namespace and each.culprit.name in values:
            yield each


def _is_sent(asked: Asked, rejected: Trouble, incident: Incident) -> bool:
    """Return whether what a custom resource makes can be what the server rejected.

    If a workload has several Secrets, only the one whose name or variable shares a word with the lines.
    """
    used = [each for each in references_of(template_of(rejected.workload).spec) if each.kind == "Secret"]
    names = {each.name for each in used}
    if len(names) < _SEVERAL:
        return True
    space = rejected.workload.namespace
    made = {each for each in names if incident.culprit in producers_of(asked.state, _secret(space, each))}
    told = set(_WORDS.findall(rejected.group.record.lower()))
    sent = {each for each in names if told.intersection(_words_of(rejected, each))}
    return not made or not made.isdisjoint(sent)


def _words_of(trouble: Trouble, secret: str) -> set[str]:
    """Return the words of the name of a Secret and of the variables that contain its values."""
    variables = (
        text(variable, "name")
        for container in children(template_of(trouble.workload).spec, "containers")
        for variable in children(container, "env")
        if text(variable, "valueFrom", "secretKeyRef", "name") == secret
    )
    return set(_WORDS.findall(" ".join((secret, *variables)).lower())) - _ORDINARY


def _secret(namespace: str, name: str) -> ObjectRef:
    return ObjectRef(kind="Secret", namespace=namespace, name=name)


def blamed(asked: Asked, logged: LogCause, named: Named | None) -> FirstLook:
    """Return the look that names what explains the trouble in a log: an incident, or the lines themselves."""
    behind = _behind_logs(asked, logged, of_scope=named is None)
    if behind is None:
        return from_logs(asked, named, logged)
    look = with_origin(asked, behind, named, logged.path)
    look = replace(look, evidence=tuple(dict.fromkeys((*logged.evidence[:1], *look.evidence))))
    return as_told(look, behind, logged.troubles)


def as_told(look: FirstLook, incident: Incident, troubles: Sequence[Trouble]) -> FirstLook:
    """Return the look at an incident that logs show to do harm: it is at least a warning.

    The old certificate of an outdated process is at fault because it has expired, which the logs of clients say.
    """
    look = replace(look, severity="warning" if look.severity == "info" else look.severity)
    outdated = any(each.rule_id == OUTDATED_PODS for each in incident.findings)
    expired = (each for each in troubles if each.group.kind == "tls" and EXPIRED.search(each.group.record))
    teller = next(expired, None) if outdated else None
    said = f" The certificate that they still use has expired, says the log of {teller.workload.ref}." if teller else ""
    return replace(look, summary=f"{look.summary}{said}")


def with_origin(asked: Asked, incident: Incident, named: Named | None, path: tuple[ObjectRef, ...] = ()) -> FirstLook:
    """Return the look that blames an incident, or else who makes the server fail that the incident is about.

    This is a client that floods it, or a server that it needs.
    """
    server = asked.state.find(incident.culprit) if incident.culprit.kind in _SERVERS else None
    overloaded = symptoms_of_text(f"{incident.title} {incident.cause}") & _OF_LOAD
    reason = flooded_by(asked.state, server) if server is not None and overloaded else None
    if reason is None:
        needed = _needed_by(asked, incident, server) if server is not None else None
        if needed is None:
            return _with_own_log(asked, incident, server, with_cause(asked, incident, named, path))
        needed = replace(needed, path=tuple(dict.fromkeys((*path, *needed.path))))
        return replace(blamed(asked, needed, named), severity=incident.severity)
    told = replace(reason, words=f"{one_sentence(reason.words)} {incident.cause}")
    way = tuple(dict.fromkeys((*path, incident.culprit, reason.culprit)))
    return replace(from_reason(asked, named, told, way), severity=incident.severity, since=incident.since)


def _with_own_log(asked: Asked, incident: Incident, server: ClusterObject | None, look: FirstLook) -> FirstLook:
    """Return the look with what the log of a server reports whose probe fails, because this often tells the reason."""
    if server is None or not _PROBE_FAILS.search(incident.cause):
        return look
    lasting = (each for each in troubles_of(asked.state, server) if each.group.weight != "none" and not each.group.over)
    told = (each for each in lasting if not is_aside(each.group.record))
    trouble = max(told, key=lambda each: each.group.count, default=None)
    if trouble is None or trouble.group.count < _SEVERAL or trouble.quote in look.summary:
        return look
    return replace(look, summary=f"{look.summary} Its log reports {trouble.group.span}: {one_sentence(trouble.quote)}")


def _needed_by(asked: Asked, incident: Incident, server: ClusterObject) -> LogCause | None:
    """Return the trouble of another server to which the log of a server leads that says itself that it is not ready.

    The line that the incident quotes must name the next server on the way, or begin together with trouble of a known
    kind there.
    """
    if not _NOT_READY.search(incident.cause):
        return None
    logged = cause_in_logs(asked.state, asked.question, (server,))
    if logged is None or logged.clean is not None or logged.doubtful or logged.culprit == server.ref:
        return None
    last, following = logged.troubles[-1], next((each.name for each in logged.path if each.kind == "Service"), "")
    said = following and re.search(rf"(?<![\w-]){re.escape(following)}(?![\w-])", incident.cause)
    first = logged.troubles[0]
    together = first.group.sudden and abs(last.group.first - first.group.first) <= _TOGETHER_SECONDS
    quoted = first.quote[:_QUOTED] in incident.cause
    begins = last.group.weight == "kind" and together and quoted
    if logged.culprit.kind == "Service" and last.workload.ref == server.ref and last.group.weight == "kind" and quoted:
        return logged  # a Service without pods, to which the quoted line leads
    fatal = last.workload.ref != server.ref and last.group.weight in {"kind", "error"}
    return logged if fatal and (said or begins) else None


def origin_of(asked: Asked, incident: Incident) -> Incident:
    """Return the fault of the registry behind an image that cannot be pulled, if the cluster itself runs it."""
    if "image" not in symptoms_of_text(incident.title):
        return incident
    hosts = _REGISTRY.findall(incident.cause)
    served = [each for host in hosts for each in names_of(asked.state).at_address(host)]
    found = connections(asked.state, served)
    faults = (each for each in asked.report.incidents if each.severity == "critical" and each.culprit in found)
    return next((each for each in faults if was_there(asked, each)), incident)


def _names(record: str, incident: Incident) -> bool:
    """Return whether a line names the Service with the incident, as proxies do: `shop-web-80`, `web.shop.svc`."""
    services = (each for each in (incident.culprit, *incident.affected) if each.kind == "Service")
    return any(
        re.search(rf"(?<![\w-])(?:{each.namespace}[-/]{each.name}|{each.name}\.{each.namespace})(?![a-z])", record)
        for each in services
    )


def _of_clients(asked: Asked, logged: LogCause, incidents: list[Incident]) -> Iterator[Incident]:
    """Yield the incidents of clients with an old password, if a server reports that it rejects passwords."""
    if logged.troubles[0].group.kind not in _REJECTIONS or logged.culprit.kind not in _SERVERS:
        return
    for incident in incidents:
        client = asked.state.find(incident.culprit)
        outdated = any(each.rule_id == OUTDATED_PODS for each in incident.findings)
        served = client is not None and client.ref != logged.culprit
        if client is not None and served and outdated and logged.culprit in connections(asked.state, (client,)):
            yield incident
