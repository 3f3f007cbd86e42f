"""Finds what is against a server whose own log reports no trouble: it ended, changed, or is silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import workload_hosts
from holmes.diagnosis.facts.evidence import edited_at
from holmes.diagnosis.facts.line_groups import OFTEN
from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.logs import quoted
from holmes.diagnosis.facts.pods import containers_of, program_of
from holmes.diagnosis.facts.status import pod_ready
from holmes.diagnosis.facts.templates import template_of
from holmes.kubernetes.fields import children, integer, moment, text, text_map, written
from holmes.triage.log_actors import records_of
from holmes.triage.log_calls import OWN
from holmes.triage.log_links import behind_service, failing_name_servers, name_servers
from holmes.triage.log_reasons import Reason, rejected_since_edit
from holmes.triage.log_troubles import REACHED
from holmes.triage.recent_changes import changes_of, shares_identifier, told_change
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holmes.diagnosis.facts.line_groups import LogGroup
    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.diagnosis.facts.log_groups import LogStory
    from holmes.diagnosis.facts.pods import Container
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.log_troubles import Trouble
    from holmes.values.findings import ObjectRef

_LATER_SECONDS: Final = 180.0
_SHORTLY_SECONDS: Final = 600.0
_SOON_SECONDS: Final = 60.0
_MOST_LINES: Final = 400
_OF_SERVERS: Final[frozenset[LineKind | None]] = frozenset({
    "out of memory", "disk full", "pool exhausted", "queue full", "lock", "read only file system",
})  # fmt: skip
"""Kinds that a server answers about itself."""
_REGULAR_SECONDS: Final = 3_600.0
SERVER_STATE: Final = expression(
    r"\b(?:READONLY|NOREPLICAS|MISCONF|LOADING|CLUSTERDOWN|MASTERDOWN) [A-Z]|database system is "
    r"|read-only (?:transaction|option)|[Nn]ot ?(?:[Ww]ritable)? ?[Pp]rimary"
    r"|\bOOM command not allowed\b|\bcluster_block_exception\b|\bmin\.isr\b|\bVault is sealed\b"
    r"|\b[Bb]locked by (?:the )?broker\b(?!.{0,80}\b(?:clients?|rates?|limits?|quota|malformed|invalid|exceed\w*)\b)"
    r"|\b(?:connection|channel|publish\w*|producer|writes?) blocked by (?:the )?server\b"
    r"(?=\W{1,3}(?:(?:low on|out of|due to|because of|the|its|a) ){0,3}"
    r"(?:memory|disk|resource|alarm|free space|watermark)\b)"
)
"""The words with which a server answers that its own state keeps it from serving."""
_WORDS: Final = expression(r"[a-z]{4,}")
_PRODUCTS: Final = frozenset({
    "redis", "valkey", "keydb", "dragonfly", "memcached", "postgres", "postgresql", "mysql", "mariadb", "mongo",
    "mongodb", "cassandra", "clickhouse", "elasticsearch", "opensearch", "rabbitmq", "kafka", "nats", "etcd",
    "vault", "consul",
})  # fmt: skip
"""Words of error names and images that tell a product. Other words are also in ordinary lines."""
_NOT_PRIMARY: Final = expression(
    r"(?i)\bREADONLY You|\bread[- ]only (?:replica|transaction|standby|mode)"
    r"|\bnot (?:the )?(?:primary|master|leader)\b(?!-)"
)
_LONG: Final = expression(r"(?<![\w.])\d{4,} ?ms\b|(?<![\w.])\d{2,4}(?:\.\d+)? ?s(?:ec|econds)?\b")
"""A time of at least a second in milliseconds, or of at least ten seconds."""
_POD: Final = expression(r"(?<![\w.-])(?:\d{1,3}(?:\.\d{1,3}){3}|[a-z0-9][a-z0-9-]{3,60})(?![\w.-])")
_OTHER_PROTOCOL: Final = expression(
    r"(?i)\bHTTP response to HTTPS client\b|\blook like a TLS handshake\b|\bwrong version number\b"
    r"|\bplain HTTP request\b|\bnot an SSL/TLS record\b"
)
_OTHER_FORMAT: Final = expression(
    r"(?i)\bunexpected token\b|\bExpecting value: line 1\b|\binvalid character .{1,3} looking for\b"
    r"|\b(?:invalid|malformed|unexpected) (?:JSON|XML|content.?type|response (?:body|format))\b"
)
"""The words of a client that gets answers in another protocol, or in another format, than it expects."""
_ISSUER: Final = expression(r"(?i)\b(?:iss(?:uer)?|issued by|signed by)\W{1,4}(?:https?://)?([a-z0-9][a-z0-9-]*)")
"""The issuer of a token: the first label of its host."""
_STUCK: Final = expression(
    r"(?i)\b(?<!scheduling )(?:is|are|was|still|been|remains?) "
    r"(?:locked|blocked|stuck|stalled|frozen|paused|sealed|fenced)\b(?! because of many)"
    r"|\b(?:wait(?:s|ing)?|blocked) (?:for|on) (?:the |a |its )?\S{0,40} ?lock\b"
)
"""The words of a server that does nothing until something is released, whatever the level of the line."""
_OTHER_NAME: Final = expression(r"certificate (?:is )?(?:valid for|has expired)|certificate is expired|expired cert")


def configured_servers(state: ClusterState, trouble: Trouble) -> tuple[ObjectRef, ...]:
    """Return the Services that the workload is configured to use, unless the lines speak of the workload itself."""
    if trouble.group.kind in OWN:
        return ()
    return tuple(dict.fromkeys(use.service for use, _ in workload_hosts(state, trouble.workload)))


def of_product(state: ClusterState, services: Iterable[ObjectRef], record: str) -> tuple[ObjectRef, ...]:
    """Return the Services whose product a line names: `Redis::CommandError` is about the one with the image redis."""
    products = _PRODUCTS.intersection(_WORDS.findall(record.lower()))
    return tuple(each for each in services if not products.isdisjoint(_WORDS.findall(_images(state, each))))


def _images(state: ClusterState, service: ObjectRef) -> str:
    """Return the names of the images behind a Service."""
    behind = (template_of(each).spec for each in behind_service(state, service))
    return " ".join(text(one, "image").rpartition("/")[2] for spec in behind for one in children(spec, "containers"))


def blamed_server(state: ClusterState, service: ObjectRef, last: Trouble) -> ObjectRef | None:
    """Return the object behind a Service that is at fault, although no log of it says so, or None."""
    workloads = behind_service(state, service)
    group = last.group
    if service in failing_name_servers(state) or (group.kind == "tls" and _OTHER_NAME.search(group.record)):
        return workloads[0].ref if workloads else service
    if (group.kind in _OF_SERVERS or SERVER_STATE.search(group.record)) and workloads:
        return workloads[0].ref
    if group.kind not in REACHED and group.weight != "status":
        return None
    if not workloads:
        return service
    stories = [story for workload in workloads for _, story in stories_of(state, workload)]
    continues = any(_continues(story, group) for story in stories)
    if not stories and service in name_servers(state):
        return workloads[0].ref
    pods = [pod for workload in workloads for pod in state.pods_of(workload)]
    unready = bool(pods) and not any(map(pod_ready, pods))
    definite = unready or group.kind == "connection refused"  # nothing listens there, whatever its log says
    silent = definite or any(_fell_silent(story, group) for story in stories)
    return workloads[0].ref if silent and not continues else None


def only_pod(state: ClusterState, service: ObjectRef, last: Trouble) -> tuple[ObjectRef | None, Reason | None]:
    """Return the only one of several pods behind a Service whose address or name the lines contain."""
    pods = [pod for each in behind_service(state, service) for pod in state.pods_of(each)]
    records = list(records_of(last, next(story for key, story in stories_of(state, last.workload) if key == last.key)))
    words = {word for record in records for word in _POD.findall(record)}
    told = [pod for pod in pods if {pod.name, pod.text("status", "podIP")} & words]
    if len(pods) < 2 or len(told) != 1 or len(records) < OFTEN or _is_pinned(state, last, told[0]):
        return None, None
    pod = told[0]
    address = pod.text("status", "podIP")
    words_of = f"all these lines are about {pod.ref} ({address}), one of {len(pods)} pods behind {service}"
    return pod.ref, Reason(culprit=pod.ref, words=words_of, evidence=(f"{pod.ref}, status.podIP: {address}",))


def moved_service(state: ClusterState, service: ObjectRef, last: Trouble) -> tuple[ObjectRef | None, Reason | None]:
    """Return a Service that was changed just before its server began to answer that it is not the primary one."""
    found, behind = state.find(service), behind_service(state, service)
    edited = edited_at(found) if found is not None else 0.0
    if found is None or not behind or not _NOT_PRIMARY.search(last.group.record) or edited <= found.created:
        return None, None
    if not -_SOON_SECONDS <= last.group.first - edited <= _REGULAR_SECONDS:
        return None, None
    words = f"{service} was changed at {written(edited)} and leads to {behind[0].ref}"
    return service, Reason(culprit=service, words=words, evidence=(f"{service}, spec.selector: {_selector(found)}",))


def _selector(service: ClusterObject) -> str:
    return ", ".join(f"{key}={label}" for key, label in text_map(service.body, "spec", "selector").items())


def mixed_server(state: ClusterState, service: ObjectRef, last: Trouble) -> tuple[ObjectRef | None, Reason | None]:
    """Return a Service that leads to several programs, if some answers have another format than its client expects.

    Other requests must succeed, and the lines must not begin long after the newest program joined the Service.
    """
    behind, found = behind_service(state, service), state.find(service)
    programs = {program_of(pod): workload.ref for workload in behind for pod in state.pods_of(workload)[:1]}
    if found is None or len(programs) < 2 or not _OTHER_FORMAT.search(last.group.record):
        return None, None
    joined = max(edited_at(found), *(each.created for each in behind))
    story = dict(stories_of(state, last.workload))[last.key]
    well = sum(each.count for each in story.patterns if each.text != last.group.template and not each.is_cause)
    if well < OFTEN or not 0 <= last.group.first - joined <= _REGULAR_SECONDS:
        return None, None
    names = " and ".join(map(str, programs.values()))
    words = f"the selector of {service} matches the pods of several programs: {names}"
    return service, Reason(culprit=service, words=words, evidence=(f"{service}, spec.selector: {_selector(found)}",))


def stuck_server(state: ClusterState, service: ObjectRef, last: Trouble) -> tuple[ObjectRef | None, Reason | None]:
    """Return the workload behind a Service whose log says, in most of its lines and until now, that its work waits."""
    for workload in behind_service(state, service) if last.group.kind in REACHED else ():
        for key, story in stories_of(state, workload):
            for pattern in story.patterns:
                most = pattern.count >= OFTEN and pattern.count * 2 > len(story.heads)
                if most and _STUCK.search(pattern.last_line) and pattern.last_number >= story.heads[-1]:
                    said = quoted(pattern.last_line)
                    shown = (f"{key.pod}, log of container {key.container}: {said}",)
                    words = f"the log of {workload.ref} says {pattern.count} times: {said}"
                    return workload.ref, Reason(culprit=workload.ref, words=words, evidence=shown)
    return None, None


def _is_pinned(state: ClusterState, last: Trouble, pod: ClusterObject) -> bool:
    """Return whether a client named this pod also in the healthy time: all its calls use one connection to it."""
    story = next(story for key, story in stories_of(state, last.workload) if key == last.key)
    names = {pod.name, pod.text("status", "podIP")}
    healthy = story.lines[: last.group.first_number - 1][-_MOST_LINES:] if last.group.sudden else ()
    told = [found for line in healthy if (found := names.intersection(_POD.findall(line)))]
    return len(told) >= OFTEN


def changed_itself(state: ClusterState, trouble: Trouble) -> bool:
    """Return whether a change of the workload that reports the trouble is a better reason than one of its server."""
    if any(story.change_before(trouble.group.first) for _, story in stories_of(state, trouble.workload)):
        return True
    return any(0 <= trouble.group.first - at <= _SHORTLY_SECONDS for _, at in changes_of(state, trouble.workload))


def _depends(trouble: Trouble) -> bool:
    """Return whether the lines report that a server does not answer as it should, or that the work takes long."""
    group = trouble.group
    return group.kind in REACHED or group.kind == "slow" or group.weight == "status" or bool(_LONG.search(group.record))


def changed_server(
    state: ClusterState, service: ObjectRef, last: Trouble, *, named: bool = True
) -> tuple[ObjectRef | None, Reason | None]:
    """Return the workload behind a Service that was started or changed just before its client's trouble began.

    If the lines do not name the Service, a change that its log tells counts only if both speak of the same thing. A
    server that rejects the old credentials of a client does what it should.
    """
    if not last.group.sudden or rejected_since_edit(state, last) is not None:
        return None, None
    for workload in behind_service(state, service):
        record = last.group.record
        direct = named and (_OTHER_PROTOCOL.search(record) or _OTHER_FORMAT.search(record))
        for what, at in changes_of(state, workload) if direct or _depends(last) else ():
            if 0 <= last.group.first - at <= _SHORTLY_SECONDS:
                words = f"{workload.ref} {what} at {written(at)}, just before"
                return workload.ref, Reason(culprit=workload.ref, words=words, evidence=(f"{workload.ref} {what}",))
        said = told_change(state, workload, last.group.first, last.group.record)
        if said is not None and (named or _depends(last) or shares_identifier(said.words, last.group.record)):
            return workload.ref, said
    return None, None


def changed_issuer(state: ClusterState, service: ObjectRef, last: Trouble, rejecting: Trouble) -> Reason | None:
    """Return the workload behind a Service that issued what was rejected, if it was changed just before.

    The lines must call it the issuer, and neither of the two others may have changed as well. New pods of an old
    template change nothing.
    """
    told = f"{last.group.record} {rejecting.group.record}"
    if not last.group.sudden or changed_itself(state, last) or changed_itself(state, rejecting):
        return None
    if service.name not in {name.lower() for name in _ISSUER.findall(told)}:
        return None
    for workload in behind_service(state, service):
        for what, at in changes_of(state, workload, restarts=False):
            if 0 <= last.group.first - at <= _SHORTLY_SECONDS:
                words = f"{workload.ref}, which issues it, {what} at {written(at)}, just before"
                return Reason(culprit=workload.ref, words=words, evidence=(f"{workload.ref} {what}",))
    return None


def ended_server(state: ClusterState, service: ObjectRef, last: Trouble) -> tuple[ObjectRef | None, Reason | None]:
    """Return the workload behind a Service of which a container ended just before its client's trouble."""
    group = last.group
    for workload in behind_service(state, service) if group.kind in REACHED and group.first else ():
        for pod in state.pods_of(workload):
            for each in _serving(pod):
                at = moment(text(each.last_terminated, "finishedAt")) or 0.0
                if -_SOON_SECONDS <= group.first - at <= _LATER_SECONDS:
                    why = text(each.last_terminated, "reason") or "Error"
                    how = f"{why} (exit code {integer(each.last_terminated, 'exitCode')})"
                    words = f"container {each.name} of {pod.ref} ended at {written(at)}: {how}"
                    shown = (f"{pod.ref}, container {each.name}, lastState: {how}",)
                    return workload.ref, Reason(culprit=workload.ref, words=words, evidence=shown)
    return None, None


def _serving(pod: ClusterObject) -> tuple[Container, ...]:
    """Return the containers of a pod that serve requests: those with ports, or else all."""
    every = tuple(containers_of(pod))
    return tuple(each for each in every if children(each.spec, "ports")) or every


def _fell_silent(story: LogStory, group: LogGroup) -> bool:
    """Return whether a log had lines in the hour before the trouble. A server that never writes is always silent."""
    if not group.first:
        return bool(story.heads)
    since = group.first - _REGULAR_SECONDS
    return sum(since <= story.time_of(number) <= group.first + _LATER_SECONDS for number in story.heads) > 0


def _continues(story: LogStory, group: LogGroup) -> bool:
    """Return whether an upstream's log continues while its client reports trouble."""
    since = sum(1 for number in story.heads[-OFTEN:] if not group.first or story.time_of(number) >= group.first)
    return since >= OFTEN
