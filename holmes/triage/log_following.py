"""Follows the trouble in a log to the workload behind it: the server that the lines name, and its own trouble in turn.

A server is at fault if its log reports trouble of that time. A server that rejects one client's credentials is not, and
neither is one that only waits for another client: such trouble leads to that client.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import edges, workload_hosts
from holmes.diagnosis.facts.line_groups import OFTEN
from holmes.diagnosis.facts.line_kinds import CREDENTIALS
from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.references import references_of
from holmes.diagnosis.facts.templates import template_of
from holmes.triage.log_actors import (
    CONTENDED,
    actor_of,
    client_by_path,
    job_before,
    named_actor,
    new_client,
    records_of,
)
from holmes.triage.log_calls import speaks_of_call
from holmes.triage.log_links import behind_service, name_servers, named_services, own_services
from holmes.triage.log_queues import idle_consumer, stopped_client
from holmes.triage.log_reasons import EXPIRED, old_server
from holmes.triage.log_servers import (
    SERVER_STATE,
    blamed_server,
    changed_issuer,
    changed_itself,
    changed_server,
    configured_servers,
    ended_server,
    mixed_server,
    moved_service,
    of_product,
    only_pod,
    stuck_server,
)
from holmes.triage.log_troubles import HOST, REACHED, troubles_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.diagnosis.facts.line_groups import LogGroup
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.log_reasons import Reason
    from holmes.triage.log_troubles import Trouble
    from holmes.values.findings import ObjectRef

_MOST_HOPS: Final = 4
_EARLIER_SECONDS: Final = 3_600.0
_LATER_SECONDS: Final = 180.0
_SHORTLY_SECONDS: Final = 600.0
_SOON_SECONDS: Final = 60.0
_REFUSED_BY_SERVER: Final = expression(
    r"(?i)\btoo many (?:clients|connections)\b|\bconnection slots\b|\bmax(?:imum)? number of clients\b"
    r"|\bconnection limit exceeded\b"
)
"""Words with which a server refuses one more connection."""
_HOST_NAME: Final = expression(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+")
_LOOKUP: Final = expression(r"\blookup \S{1,253} on \S{1,60}:53\b")
_ELSEWHERE: Final = expression(r"://|(?<![\w.])[a-z][\w-]*\.[\w.-]+:\d{2,5}\b|\b\d{1,3}(?:\.\d{1,3}){3}:\d{2,5}\b")
"""An address in a line about another server than those that the workload is configured to use."""
_ITEM: Final = expression(r"\b((?:delivery|message|msg|job|task|event|offset)(?:[ _-]?(?:tag|id))?[ =:#]{1,2}\d{4,})\b")
"""A message of a queue with its number."""
_KEPT: Final = expression(
    r"(?i)(?<![./-])(?<!(?:update|source) )(?<!node )(?<!,')\block(?:s|ed|ing)?\b(?! file|:\w)"
    r"|(?<!-only )(?<!use by )\btransactions?\b"
    r"|(?<!ssl )(?<![./])\bsessions?\b(?!\.\w|[ _]token)|\bconnections? (?:leak|not (?:closed|returned))"
    r"|\brequeue[ds]?\b|\bredeliver(?:y|ed)\b|\bunacked\b"
)
"""Words about what a client keeps on a server or gives back to it."""
_CLOCK: Final = expression(r"(?i)\b(?:clock|time|ntp|chrony)\b")
_REJECTS: Final = expression(
    r"(?i)(?:\bstatus|(?<![?&])\bcode|\bhttp(?:/[\d.]+)?|\banswered|\breturned|->|\bgot)\W{0,3}40[13]\b"
    r"|(?<![\w/.=+-])(?<!\b0 )(?<!queue )(?:(?<!execution was )rejected"
    r"(?!.{0,100}\b(?:execution|java|full|since|too many|limit|adding|signature|pool|nack)\b)"
    r"|unauthori[sz]ed|(?<!:)(?:denied(?!\" =>)|forbidden(?!: (?:exceeded|failed|m..imum|\w+ max)\b)))(?![\w-]|\.\w)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The way from the first trouble to its origin.

    `path` contains the objects between the subject and `culprit`. `clean` is the Service that the last lines name, if
    the logs behind it report nothing wrong, or were not read, which `unread` means. `reason` tells why the culprit is
    at fault, if its own log does not.
    """

    troubles: tuple[Trouble, ...]
    culprit: ObjectRef
    path: tuple[ObjectRef, ...]
    clean: ObjectRef | None = None
    unread: bool = False
    reason: Reason | None = None

    @property
    def last(self) -> Trouble:
        """The trouble that is nearest to the origin."""
        return self.troubles[-1]

    def to(self, trouble: Trouble, *between: ObjectRef) -> Way:
        """Return the way one step further."""
        path = (*self.path, *between, trouble.workload.ref)
        return Way(troubles=(*self.troubles, trouble), culprit=trouble.workload.ref, path=tuple(dict.fromkeys(path)))

    def at(self, service: ObjectRef, blamed: ObjectRef, reason: Reason | None) -> Way:
        """Return the way to an object behind a Service that is at fault, although its log does not say so."""
        path = tuple(dict.fromkeys((*self.path, service, blamed)))
        return replace(self, culprit=blamed, path=path, reason=reason)


def way_from(state: ClusterState, trouble: Trouble) -> Way:
    """Return the way from a trouble to its origin."""
    ref = trouble.workload.ref
    return _followed(state, Way(troubles=(trouble,), culprit=ref, path=(ref,)), None)


def _followed(state: ClusterState, way: Way, reached: ObjectRef | None) -> Way:
    """Follow the last trouble of a way. `reached` is the Service through which it was reached."""
    if len(way.troubles) > _MOST_HOPS:
        return way
    named = tuple(each for each in named_services(state, way.last) if not _is_peer(state, each, way.last))
    named = named or _meant(state, way.last)
    before = _by_what_was_before(state, way) if not named else None
    found = before or _to_troubled_server(state, way, named) or _other_client(state, way, reached)
    return found or (_to_quiet_server(state, way, named[0]) if named else _to_changed_server(state, way))


def _by_what_was_before(state: ClusterState, way: Way) -> Way | None:
    """Return the way to a server that a rare line just before the trouble names, if this server changed."""
    for service in _named_before(state, way.last):
        blamed, reason = ended_server(state, service, way.last)
        blamed, reason = (blamed, reason) if blamed is not None else changed_server(state, service, way.last)
        if blamed is not None and blamed not in way.path:
            return way.at(service, blamed, reason)
    return None


def _to_troubled_server(state: ClusterState, way: Way, named: tuple[ObjectRef, ...]) -> Way | None:
    """Return the way through a server whose own log reports trouble, and on from there."""
    known = named or (configured_servers(state, way.last) if speaks_of_call(way.last) else ())
    for service in (*_resolving(state, way.last), *(known or _alike(state, way.last))):
        deeper = _deeper(state, service, way)
        if deeper is not None:
            return _at_server(state, way, deeper, service)
    return None


def _to_quiet_server(state: ClusterState, way: Way, service: ObjectRef) -> Way:
    """Return the way to a server that lines name, if something else than its log is against it."""
    blamed, reason = ended_server(state, service, way.last)
    old = old_server(state, service, way.last) if blamed is None else None
    if old is not None:
        return replace(way, culprit=old.culprit, path=(*way.path, old.culprit), reason=old)
    if blamed is None:
        blamed, reason = moved_service(state, service, way.last)
    if blamed is None:
        blamed = blamed_server(state, service, way.last)
    if blamed is None:
        blamed, reason = mixed_server(state, service, way.last)
    if blamed is None:
        blamed, reason = stuck_server(state, service, way.last)
    if blamed is None:
        reason = named_actor(state, service, way.last, way.path)
        blamed = reason.culprit if reason is not None else None
    if blamed is None:
        blamed, reason = only_pod(state, service, way.last)
    if blamed is None and not changed_itself(state, way.last):
        blamed, reason = changed_server(state, service, way.last)
    if blamed is not None and blamed not in way.path:
        return way.at(service, blamed, reason)
    clean = service if state.find(service) is not None and blamed is None else None
    servers = behind_service(state, clean) if clean is not None else ()
    return replace(way, clean=clean, unread=not any(stories_of(state, each) for each in servers))


def _to_changed_server(state: ClusterState, way: Way) -> Way:
    """Blame the only server of a workload that changed just before its trouble, although no line names it."""
    if changed_itself(state, way.last) or _ELSEWHERE.search(way.last.group.record):
        return way
    found: list[tuple[ObjectRef, ObjectRef, Reason | None]] = []
    for service in configured_servers(state, way.last):
        blamed, reason = changed_server(state, service, way.last, named=False)
        if blamed is not None and blamed not in way.path:
            found.append((service, blamed, reason))
    return way.at(*found[0]) if len(found) == 1 else way


def _named_before(state: ClusterState, trouble: Trouble) -> tuple[ObjectRef, ...]:
    """Return the Services that a rare line just before the trouble names."""
    if not trouble.group.sudden:
        return ()
    story = dict(stories_of(state, trouble.workload))[trouble.key]
    line = story.line_before(trouble.group)
    return named_services(state, replace(trouble, group=replace(trouble.group, record=line))) if line else ()


def _resolving(state: ClusterState, trouble: Trouble) -> Iterator[ObjectRef]:
    """Yield the name server whose log reports trouble with a host that the lines cannot resolve."""
    record = trouble.group.record
    hosts = _HOST_NAME.findall(record) if trouble.group.kind == "unknown host" or _LOOKUP.search(record) else ()
    for service in name_servers(state) if hosts else ():
        told = (each for server in behind_service(state, service) for each in troubles_of(state, server))
        stories = ((each, dict(stories_of(state, each.workload))[each.key]) for each in told)
        if any(host in record for each, story in stories for record in records_of(each, story) for host in hosts):
            yield service


def _alike(state: ClusterState, trouble: Trouble) -> Iterator[ObjectRef]:
    """Yield the Service of the only stateful server with the same trouble at the same time.

    The settings of a workload do not name its server if its address is in a Secret. Without a Secret, nothing connects
    the two.
    """
    group, spec = trouble.group, template_of(trouble.workload).spec
    if all(each.kind != "Secret" for each in references_of(spec)):
        return
    found: set[ObjectRef] = set()
    for each in state.of("StatefulSet", trouble.workload.namespace) if group.kind in CONTENDED else ():
        same = (one.group for one in troubles_of(state, each) if one.group.kind == group.kind)
        if each.ref != trouble.workload.ref and any(abs(one.first - group.first) <= _LATER_SECONDS for one in same):
            found.update(own_services(state, each))
    if len(found) == 1:
        yield from found


def _meant(state: ClusterState, trouble: Trouble) -> tuple[ObjectRef, ...]:
    """Return the only server of a workload, or of its product, if the lines are about a server without its name."""
    group = trouble.group
    told = SERVER_STATE.search(group.record) is not None
    about = told or group.kind in REACHED or _REFUSED_BY_SERVER.search(group.record) is not None
    found = configured_servers(state, trouble) if about and not HOST.search(group.record) else ()
    found = of_product(state, found, group.record) if len(found) > 1 else found
    return found if len(found) == 1 else ()


def _is_peer(state: ClusterState, service: ObjectRef, trouble: Trouble) -> bool:
    """Return whether the lines name a client of the workload or of a server that it uses, and not what it needs."""
    configured = {use.service for use, _ in workload_hosts(state, trouble.workload)}
    if service in configured or trouble.group.kind in REACHED:
        return False
    behind = behind_service(state, service)
    shared = (*configured, *own_services(state, trouble.workload))
    return any(edge.consumer in behind for each in shared for edge in edges(state).get(each, ()))


def _at_server(state: ClusterState, way: Way, deeper: Trouble, service: ObjectRef) -> Way:
    """Continue at a server, or stop at its client if the server only rejects the credentials of this client."""
    rejected = _is_rejected(deeper) and not _tells_of_its_clock(deeper)
    told = _is_rejected(way.last) and deeper.group.kind != "tls" and EXPIRED.search(deeper.group.record) is not None
    # With other clients, the server would continue with its work.
    expired = told and len({edge.consumer.ref for edge in edges(state).get(service, ())}) == 1
    issued = _to_issuer(state, way, deeper, service) if rejected else None
    if issued is not None:
        return issued
    if rejected and (expired or way.last.group.kind == "clock or token" or _works(state, deeper)):
        return replace(way, troubles=(*way.troubles[:-1], deeper, way.last))
    found = _followed(state, way.to(deeper, service), service)
    same = deeper.group.kind == way.last.group.kind == "schema missing"
    if same and found.culprit == deeper.workload.ref:
        return replace(way, troubles=(*way.troubles[:-1], deeper, way.last))  # the statement of the client is wrong
    return found


def _to_issuer(state: ClusterState, way: Way, rejecting: Trouble, service: ObjectRef) -> Way | None:
    """Return the way to the server that issued what another server rejects, if it was changed just before."""
    for other in configured_servers(state, way.last):
        reason = changed_issuer(state, other, way.last, rejecting) if other != service else None
        if reason is not None and reason.culprit not in way.path:
            return way.at(other, reason.culprit, reason)
    return None


def _is_rejected(trouble: Trouble) -> bool:
    return trouble.group.kind in CREDENTIALS or _REJECTS.search(trouble.group.record) is not None


def _tells_of_its_clock(trouble: Trouble) -> bool:
    """Return whether the lines are about the clock of the workload itself, and not about a token."""
    record = trouble.group.record
    return trouble.group.kind == "clock or token" and bool(_CLOCK.search(record)) and not _REJECTS.search(record)


def _works(state: ClusterState, trouble: Trouble) -> bool:
    """Return whether the ordinary lines of a workload continue while it reports trouble."""
    found = False
    for _, story in stories_of(state, trouble.workload):
        troubled = {group.template for group in story.groups}
        for pattern in story.patterns:
            if pattern.text in troubled or pattern.is_cause or pattern.count < OFTEN:
                continue
            if story.time_of(pattern.numbers[-1]) < trouble.group.first <= story.time_of(story.last_number):
                return False
            found = True
    return found


def _deeper(state: ClusterState, service: ObjectRef, way: Way) -> Trouble | None:
    """Return the trouble behind a Service that began at about the same time."""
    for workload in behind_service(state, service):
        found = [each for each in troubles_of(state, workload) if _overlaps(state, each, way.last)]
        if found and workload.ref not in way.path:
            return min(found, key=_upstream_rank)
    return None


def _other_client(state: ClusterState, way: Way, reached: ObjectRef | None) -> Way | None:
    """Return the way to another client of the server at the end of `way`, which overloads, blocks or starves it."""
    last, own = way.last, next(iter(own_services(state, way.last.workload)), None)
    callers = [each for each in way.path if each != last.workload.ref]
    actor = actor_of(state, last, callers, works=_works(state, last))
    actor = actor or client_by_path(state, last, callers) or job_before(state, last)
    actor = actor or stopped_client(state, last, way.path) or idle_consumer(state, last, way.path)
    shared = configured_servers(state, last) if reached is None else ()
    for server in dict.fromkeys(filter(None, (reached, own, *shared))):
        earlier = _earlier_client(state, server, way) if actor is None else None
        if earlier is not None:
            return _followed(state, way.to(earlier, server), server)
        actor = actor or new_client(state, server, last, way.path)
    if actor is None:
        return None
    path = tuple(dict.fromkeys((*way.path, actor.culprit)))
    return replace(way, culprit=actor.culprit, path=path, reason=actor)


def _earlier_client(state: ClusterState, server: ObjectRef, way: Way) -> Trouble | None:
    """Return the trouble of another client that began before that of the server, which waits for this client."""
    last = way.last.group
    if last.kind not in CONTENDED and "queue" not in last.record:
        return None
    users = {edge.consumer.ref: edge.consumer for edge in edges(state).get(server, ())}
    others = (each for ref, user in users.items() if ref not in way.path for each in troubles_of(state, user))
    others = (each for each in others if each.group.weight != "warning" and _is_about(state, each, server, way.last))
    begun, items = way.troubles[0].group.first - 1, set(_ITEM.findall(last.record))
    earlier = [
        each for each in others
        if (0 < each.group.first < begun or not items.isdisjoint(_ITEM.findall(each.group.record)))
        and _overlaps(state, each, way.last)
    ]  # fmt: skip
    return min(earlier, key=lambda each: each.group.first, default=None)


def _is_about(state: ClusterState, client: Trouble, server: ObjectRef, trouble: Trouble) -> bool:
    """Return whether the trouble of a client can keep a server busy: the client takes what fills up, or it holds locks.

    Other errors of a neighbour that also uses the server do not connect the two.
    """
    record = client.group.record
    fills = trouble.group.kind == "queue full" or "queue" in trouble.group.record
    return fills or client.group.kind == "lock" or bool(_KEPT.search(record)) or server in named_services(state, client)


def _upstream_rank(trouble: Trouble) -> tuple[bool, bool, bool, float, bool, float]:
    """Return a sort key that puts the strongest evidence first, and of equally strong ones the earliest.

    Of lines that began together, a lock or a full queue is the reason of the requests that were given up.
    """
    group = trouble.group
    return (
        group.weight == "warning", group.is_amount, group.weight != "kind", group.first // 60, group.kind in REACHED,
        -group.share,
    )  # fmt: skip


def _overlaps(state: ClusterState, upstream: Trouble, client: Trouble) -> bool:
    """Return whether trouble of an upstream can be the reason of a client's: not later, and not long over."""
    group, other = upstream.group, client.group
    if other.sudden and not group.sudden and 0 < group.first < other.first - _SOON_SECONDS:
        return False  # the client was well in spite of these lines
    counts = replace(group, of_client=False, sudden=True, over=False).is_evidence(other.last or state.now)
    if _begins_with(state, upstream, other):
        return True
    if not counts or not (group.first and other.first):
        return counts and group.weight != "warning"
    slowly = other.kind in CONTENDED or "queue" in other.record  # what fills up begins long before it is full
    earliest = other.first - _EARLIER_SECONDS * (4 if slowly else 1)
    return earliest <= group.first <= other.first + _LATER_SECONDS and group.last >= other.first


def _begins_with(state: ClusterState, upstream: Trouble, other: LogGroup) -> bool:
    """Return whether single lines tell of a change just when a client's trouble begins, for example of an alarm."""
    group = upstream.group
    if group.weight not in ("kind", "error") or group.of_client or not (group.first and other.first):
        return False
    if group.count > OFTEN and group.over:
        return False
    if group.kind is None and not group.persists and _works(state, upstream):
        return False  # one bad request, after which the server worked as before
    return -_SHORTLY_SECONDS <= group.first - other.first <= _SHORTLY_SECONDS / 10
