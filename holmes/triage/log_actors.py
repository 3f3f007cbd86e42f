"""Finds who overloads, blocks or fills a shared server: another of its clients.

Its log names the client, or the client was started or changed just before the trouble of the server.

A client is named by its name, its user, its pod's address, or the process that holds a lock. A name that the log also
contains in the healthy time proves nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.edges import edges, workload_hosts
from holmes.diagnosis.facts.host_mentions import settings_of
from holmes.diagnosis.facts.line_kinds import CREDENTIALS
from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.logs import quoted
from holmes.diagnosis.facts.pods import containers_of
from holmes.kubernetes.cluster_state import once_per_state
from holmes.kubernetes.fields import written
from holmes.triage.client_runs import has_harmless_runs
from holmes.triage.log_links import behind_service, own_services
from holmes.triage.log_reasons import Reason
from holmes.triage.log_troubles import troubles_of
from holmes.triage.recent_changes import changes_of, shares_identifier, told_change
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.diagnosis.facts.log_groups import LogStory
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.log_troubles import Trouble
    from holmes.values.findings import ObjectRef

CONTENDED: Final[frozenset[LineKind | None]] = frozenset({
    "lock", "slow", "pool exhausted", "queue full", "rate limited", "quota", "out of memory", "disk full",
    "too many open files",
})  # fmt: skip
"""Kinds of trouble of a server that one of its clients can cause."""
_CREDENTIALS: Final = CREDENTIALS - {"tls"}
_PATH_PART: Final = expression(r"(?<![\w:/-])([a-z_][\w-]{4,60})(?=/)")
_INDEX: Final = expression(r"(?i)\bindex(?: concurrently)?(?: if exists)? [`\"']?(\w+(?:\.\w+)?)")
_DROPPED: Final = expression(r"(?i)\b(?:drop(?:s|ped|ping)?|remov(?:e[ds]?|ing)|delet(?:e[ds]?|ing))\b")
_INDEX_PARTS: Final = frozenset({"idx", "ix", "index", "key", "by", "on", "public", "btree", "gin", "uq"})
_QUERY_WORD: Final = expression(r"[A-Za-z][A-Za-z0-9]*")
_ALTERED: Final = expression(
    r"(?i)\b(?:drop(?:ped|ping)?|alter(?:ed|ing)?|renam(?:e|ed|ing)|truncat(?:e|ed|ing)|delet(?:e|ed|ing)|revok(?:e|ed|ing)"
    r"|migrat(?:e|ed|ing)|upgrad(?:e|ed|ing)|replac(?:e|ed|ing)|mov(?:e|ed|ing)|remov(?:e|ed|ing)|lock(?:ed|ing)?"
    r"|flush(?:ed|ing|all|db)?|purg(?:e|ed|ing)|clear(?:ed|ing)|emptied|wip(?:e|ed|ing)|evict(?:ed|ing)?)\b"
)
"""Words about a change of data or of a schema."""
_COPIES: Final = expression(r"(?i)\b(?:dumps?|backups?|archives?|archived|snapshots?|copy|copies|files?|logs?)\b")
"""Words about copies of data. A change of a copy does not change the data itself."""
_LOADED: Final = expression(
    r"(?i)\block(?:s|ed|ing)?\b|\bholds?\b|\bholding\b|\brate.?limit|\btoo many\b|\bshed\b|\boverload|\bin-?flight\b"
    r"|\bsaturat|\bbusy\b|\bbacklog\b|\bthrottl|\bqueue\b|\bslots?\b|\bquota\b|\blimit\b|\bslow\b|\bblocked\b"
)
_BURDEN: Final = expression(
    rf"{_LOADED.pattern}|(?<![\w-])(?:statement|quer(?:y|ies)|scan(?:s|ned|ning)?|bulk|transactions?)(?![\w-])"
    r"|\b\d+ (?:rows|keys|messages|requests|streams|connections|bytes|[KMG]i?B)\b"
)
"""Words about what a client asks of a server."""
_HOLDS: Final = expression(
    r"(?i)\b(?:hold(?:s|er|ing|ers)?|held|owner|owned|blocked by|locked by|taken by|acquired by)\b"
)
"""Words before the one who has a lock."""
_WAITS: Final = expression(
    r"(?i)\bwait(?:s|ed|ing)?\b|\btime(?:d )?-?outs?\b|\bcancel\w*|\bdeadlock|\bcould not\b|\bfail\w*"
)
"""Words about the one who does not get a lock."""
_REJECTED: Final = expression(
    r"(?i)(?<![\w.-])(?<!java:)(?<!&code=)40[13]\b(?!: quota)|(?<![\w/=:+-])(?:denied\b(?!\" =>)|unauthori[sz]ed)(?!-)"
    r"|(?<![\w.-])(?<!full, )(?<!queue )(?<!execution was )reject"
    r"(?!s an\b|ed_|-|.{0,100}\b(?:execution|java|full|since|too many|limit|adding|signature|pool|nack)\b)"
    r"|(?<!out )(?<!out has )(?<!ion )(?<!ts an )(?<![?&-]token=)\bexpired?\b(?!-)"
)
_NAME: Final = expression(r"(?<![\w./-])[A-Za-z0-9](?:[\w-]{1,61}[A-Za-z0-9])(?![\w-])")
_AMOUNT: Final = expression(
    r"(?<![\w./-])([A-Za-z0-9][\w-]{1,62})[\"']?(?:\s?[:=(]\s?\"?|\s)(\d{1,12}(?:\.\d{1,6})?)(?!\w|\.\d)"
)
"""The amount of a client, for example the number of its requests or its share of them."""
_OF_CLIENT: Final = expression(r"^(?:client|caller|user|by|from)-")
_SHARE: Final = expression(r"(?i)\b(?:shares?|load|traffic|requests?|usage)\b")
_NO_SHARE: Final = expression(r"(?i)(?:\b|_)(?:hits?|ratios?|success|accept\w*|health|latency|scores?|rates?)(?:\b|_)")
_GENERATED: Final = expression(r"(?:-[a-z]?\d[\w]*)+$")
"""The part of a Job's name that differs for each run."""
_ADDRESS: Final = expression(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
_PROCESS: Final = expression(
    r"(?i)\b(?:process|pid|thread|session|transaction|holder|blocked by|holding)\D{0,24}(\d{2,12})\b"
)
_WORKLOADS: Final = ("CronJob", "Job", "Deployment", "StatefulSet", "DaemonSet")
_LEAST_CHARACTERS: Final = 4
_DOMINANT: Final = 3.0
_MOST_OF_ALL: Final = 0.5
_GROWN: Final = 1.5
_SHORTLY_SECONDS: Final = 600.0
_RAN_SECONDS: Final = 3_600.0
_AFTER_SECONDS: Final = 30.0
_MOST_LINES: Final = 3_000
_COMPARED_LINES: Final = 300
_OFTEN: Final = 5


def actor_of(state: ClusterState, trouble: Trouble, callers: Sequence[ObjectRef], *, works: bool) -> Reason | None:
    """Return the client that the trouble of a server comes from. `callers` are the objects on the way to the server.

    They can only be found if the server's log tells how much each client uses. A rejected client is only at fault if
    the server `works` for others.
    """
    story = next((story for key, story in stories_of(state, trouble.workload) if key == trouble.key), None)
    if story is None:
        return None
    names = clients_of(state, trouble.workload)
    records = list(records_of(trouble, story))
    told = [(each, amounts) for each in records if _LOADED.search(each) and (amounts := _amounts(each, names))]
    if told:
        ref, line = _largest(*told[-1], _healthy_amounts(story, trouble, names))
    else:
        others = {name: ref for name, ref in names.items() if ref not in callers}
        rejects = trouble.group.kind in _CREDENTIALS or _REJECTED.search(records[-1]) if records else False
        loaded = trouble.group.kind in CONTENDED or (records and _LOADED.search(records[-1]))
        ref, line = _only_one(trouble, records, others, story) if loaded or (rejects and works) else (None, "")
    if ref is None:
        return None
    own = line.split("\n")[0] in "\n".join(records)
    words = f"these lines name {ref}" if own else f"the same log names {ref}: {quoted(line)}"
    shown = () if own else (f"{trouble.key.pod}, log of container {trouble.key.container}: {quoted(line)}",)
    says = _own_words(state, ref, trouble)
    return Reason(culprit=ref, words=f"{words}{f', whose log says: {says}' if says else ''}", evidence=shown)


def _own_words(state: ClusterState, ref: ObjectRef, trouble: Trouble) -> str:
    """Return what the log of a client says at the time of the trouble, or an empty string."""
    client = state.find(ref)
    found = troubles_of(state, client) if client is not None else ()
    same = [each for each in found if each.group.count >= _OFTEN and each.group.last >= trouble.group.first]
    return max(same, key=lambda each: each.group.share).quote if same else ""


def _only_one(
    trouble: Trouble, records: Sequence[str], names: dict[str, ObjectRef], story: LogStory
) -> tuple[ObjectRef | None, str]:
    """Return the only client that the lines of the trouble name, or new lines just before it."""
    told = [line for record in records for line in record.split("\n")]
    others = [*_of_holders(records, story)], [*_new_lines(story, trouble)]
    for lines in (told, *others):
        found: dict[ObjectRef, str] = {}
        for line in _without_waiting(lines) if trouble.group.kind == "lock" else lines:
            found |= dict.fromkeys(clients_in(line, names), line)
        if len(found) == 1:
            return next(iter(found.items()))
        if found:
            break
    return None, ""


def _without_waiting(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines about locks without the sessions that wait for one: they suffer from the holder."""
    for line in lines:
        holds = _HOLDS.search(line)
        if holds is not None or not _WAITS.search(line):
            yield line[holds.start() :] if holds is not None else line


def clients_of(state: ClusterState, server: ClusterObject) -> dict[str, ObjectRef]:
    """Return the workloads that can be clients of a server, by their names and the addresses of their pods.

    An ordinary word counts only if the workload of this name is known to use the server.
    """
    upstream = {use.service for use, _ in workload_hosts(state, server)}
    needed = {each.ref for service in upstream for each in behind_service(state, service)} | {server.ref}
    users = {edge.consumer.ref for service in own_services(state, server) for edge in edges(state).get(service, ())}
    return {
        name: ref
        for name, ref in _named_workloads(state).items()
        if ref not in needed and (ref in users or (len(name) >= _LEAST_CHARACTERS and not name.isalpha()))
    }


@once_per_state
def _named_workloads(state: ClusterState) -> dict[str, ObjectRef]:
    return dict(_names_of_workloads(state))


def _names_of_workloads(state: ClusterState) -> Iterator[tuple[str, ObjectRef]]:
    for pod in state.of("Pod"):
        owner = state.workload_of(pod).ref
        address = pod.text("status", "podIP")
        if address and not pod.boolean("spec", "hostNetwork"):
            yield address, owner
        yield pod.name, owner
    for kind in reversed(_WORKLOADS):
        for each in state.of(kind):
            if each.owner is None:
                yield each.name, each.ref
                stem = _GENERATED.sub("", each.name) if kind == "Job" else each.name
                if stem != each.name and not any(state.get(other, each.namespace, stem) for other in _WORKLOADS):
                    yield stem, each.ref


def clients_in(line: str, names: dict[str, ObjectRef]) -> Iterator[ObjectRef]:
    for word in (*_NAME.findall(line), *_ADDRESS.findall(line)):
        ref = names.get(word.lower().replace("_", "-"))
        if ref is not None:
            yield ref


def _amounts(record: str, names: dict[str, ObjectRef]) -> dict[ObjectRef, float]:
    """Return how much a record tells of each client. Shares of the whole, such as 0.98, count in percent.

    Without a client that has most of it, shares tell nothing, and neither do decimals that are called otherwise.
    """
    amounts: dict[ObjectRef, float] = {}
    for name, number in _AMOUNT.findall(record):
        whole = name.lower().replace("_", "-")
        ref = names.get(whole) or names.get(_OF_CLIENT.sub("", whole))
        amounts |= {ref: float(number)} if ref is not None else {}
    if not amounts or max(amounts.values()) > 1 or all(each.is_integer() for each in amounts.values()):
        return amounts
    shares = _SHARE.search(record) is not None and _NO_SHARE.search(record) is None
    return (
        {ref: 100 * each for ref, each in amounts.items()} if shares and max(amounts.values()) >= _MOST_OF_ALL else {}
    )


def _amounts_told(state: ClusterState, trouble: Trouble) -> dict[ObjectRef, float]:
    """Return how much each client used according to the newest line that compares clients, or an empty dictionary."""
    names = clients_of(state, trouble.workload)
    story = dict(stories_of(state, trouble.workload))[trouble.key]
    told = (_amounts(line, names) for line in reversed(story.lines[-_COMPARED_LINES:]))
    return next((each for each in told if len(each) > 1), {})


def _healthy_amounts(story: LogStory, trouble: Trouble, names: dict[str, ObjectRef]) -> dict[ObjectRef, float]:
    """Return how much each client used according to the lines before the trouble."""
    before = story.lines[max(0, trouble.group.first_number - _MOST_LINES) : trouble.group.first_number - 1]
    found: dict[ObjectRef, float] = {}
    for line in before if trouble.group.sudden else ():
        found |= _amounts(line, names)
    return found


def _largest(
    record: str, amounts: dict[ObjectRef, float], healthy: dict[ObjectRef, float]
) -> tuple[ObjectRef | None, str]:
    """Return the client with by far the largest amount, unless it was as large in the healthy time."""
    ranked = sorted(amounts.items(), key=lambda each: -each[1])
    (ref, most), next_most = ranked[0], ranked[1][1] if len(ranked) > 1 else 0
    dominant = most > 1 and most >= _DOMINANT * max(1, next_most)
    return (ref, record) if dominant and most >= _GROWN * healthy.get(ref, 0) else (None, "")


def records_of(trouble: Trouble, story: LogStory) -> Iterator[str]:
    """Yield the newest records of a trouble with all their lines."""
    pattern = next((each for each in story.patterns if each.text == trouble.group.template), None)
    numbers = [each for each in pattern.numbers if each >= trouble.group.first_number] if pattern is not None else []
    for number in numbers[-20:]:
        after = bisect_right(story.heads, number)
        end = story.heads[after] - 1 if after < len(story.heads) else min(len(story.lines), number + 20)
        yield "\n".join(story.lines[number - 1 : max(number, end)])


def _of_holders(records: Sequence[str], story: LogStory) -> Iterator[str]:
    """Yield the other lines of the processes that the records name."""
    ids = {each for record in records for each in _PROCESS.findall(record)}
    if not ids:
        return
    own = {line for record in records for line in record.split("\n")}
    for line in story.lines[-_MOST_LINES:]:
        if line not in own and any(re.search(rf"(?<![\w.]){each}(?![\w.])", line) for each in ids):
            yield line


def _new_lines(story: LogStory, trouble: Trouble) -> Iterator[str]:
    """Yield the lines about load or locks of patterns that began shortly before the trouble or with it."""
    first = trouble.group.first
    for pattern in story.patterns:
        if not pattern.numbers or pattern.is_cause or pattern.text == trouble.group.template:
            continue
        begun = story.time_of(pattern.numbers[0])
        if not _BURDEN.search(pattern.last_line):  # each client connects, also one that only measures the server
            continue
        if begun and first - _SHORTLY_SECONDS <= begun <= first + _AFTER_SECONDS:
            yield pattern.last_line


def named_actor(state: ClusterState, service: ObjectRef, trouble: Trouble, path: Sequence[ObjectRef]) -> Reason | None:
    """Return the only other client that the log of a quiet server names in a change since the client's trouble began.

    The change did not occur in the healthy time before, for example that a job empties a cache.
    """
    first = trouble.group.first
    found: dict[ObjectRef, tuple[str, str]] = {}
    for workload in behind_service(state, service) if first and trouble.group.sudden else ():
        names = {name: ref for name, ref in clients_of(state, workload).items() if ref not in path}
        for key, story in stories_of(state, workload):
            for pattern in story.patterns:
                begun = story.time_of(pattern.numbers[0]) if pattern.numbers else 0.0
                near = first - _SHORTLY_SECONDS <= begun <= first + _AFTER_SECONDS
                line = story.lines[pattern.numbers[0] - 1] if near else ""
                told = set(clients_in(line, names)) if _ALTERED.search(line) else set()
                found |= dict.fromkeys(told, (f"{key.pod}, log of container {key.container}", quoted(line)))
    if len(found) != 1:
        return None
    ((ref, (place, said)),) = found.items()
    words = f"when it began, the log of {service} named {ref}: {said}"
    return Reason(culprit=ref, words=words, evidence=(f"{place}: {said}",))


def new_client(state: ClusterState, service: ObjectRef, trouble: Trouble, path: Sequence[ObjectRef]) -> Reason | None:
    """Return the only other client of a Service that was started or changed just before the trouble of its server."""
    first = trouble.group.first
    found: dict[ObjectRef, list[str]] = defaultdict(list)
    told: list[Reason] = []
    if not first or trouble.group.kind not in CONTENDED:
        return None
    uses = _amounts_told(state, trouble)
    for edge in edges(state).get(service, ()):
        consumer = edge.consumer
        if consumer.ref in {*path, trouble.workload.ref} or (
            uses and consumer.ref != max(uses, key=lambda each: uses[each])
        ):
            continue
        for what, at in changes_of(state, consumer, restarts=False):
            if 0 <= first - at <= _SHORTLY_SECONDS and not has_harmless_runs(state, consumer, trouble):
                found[consumer.ref].append(f"{what} at {written(at)}")
        said = told_change(state, consumer, first, trouble.group.record) if consumer.ref not in found else None
        if said is not None:
            told.append(said)
    if len(found) != 1:
        return told[0] if not found and len(told) == 1 else None
    ((ref, changes),) = found.items()
    words = f"{ref}, which also uses {service}, {changes[0]}, just before it began"
    return Reason(culprit=ref, words=words, evidence=(f"{ref}: {changes[0]}",))


def client_by_path(state: ClusterState, trouble: Trouble, callers: Sequence[ObjectRef]) -> Reason | None:
    """Return the only client of a server whose settings contain a path that the lines name, for example a prefix."""
    paths = set(_PATH_PART.findall(trouble.group.record)) if trouble.group.kind in CONTENDED else set()
    found: dict[ObjectRef, str] = {}
    for service in own_services(state, trouble.workload) if paths else ():
        for edge in edges(state).get(service, ()):
            texts = "\n".join(each.text for each in settings_of(state, edge.consumer))
            told = next((path for path in paths if re.search(rf"/{re.escape(path)}(?![\w-])", texts)), "")
            found |= {edge.consumer.ref: told} if told else {}
    if len(found) != 1 or not found.keys().isdisjoint(callers):
        return None
    ((ref, path),) = found.items()
    words = f"these lines name `{path}`, which only the settings of {ref} contain"
    return Reason(culprit=ref, words=words, evidence=(f"{ref}, settings: {path}",))


def job_before(state: ClusterState, trouble: Trouble) -> Reason | None:
    """Return the only Job that changed what the lines speak of just before they began, according to its log."""
    first, found = trouble.group.first, {}
    story = next((story for key, story in stories_of(state, trouble.workload) if key == trouble.key), None)
    record = "\n".join((trouble.group.record, *([*records_of(trouble, story)][-1:] if story is not None else ())))
    for job in state.of("Job", trouble.workload.namespace) if first else ():
        own = trouble.workload in (job, state.workload_of(job))
        for pod in () if own else state.pods_of(job):
            ran = pod.created <= first and first - pod.created <= _RAN_SECONDS
            for container in containers_of(pod) if ran else ():
                log = state.log_of(pod, container.name, previous=False) or ""
                told = (line for line in log.splitlines() if _ALTERED.search(line) and not _COPIES.search(line))
                line = next((each for each in told if shares_identifier(each, record) or _drops(each, record)), "")
                if line:
                    found[job.ref] = (f"{pod.ref}, log of container {container.name}", line)
    if len(found) != 1:
        return None
    ((ref, (place, line)),) = found.items()
    words = f"{ref} ran just before, and its log says: {quoted(line)}"
    return Reason(culprit=ref, words=words, evidence=(f"{place}: {quoted(line)}",))


def _drops(line: str, record: str) -> bool:
    """Return whether a line tells of a dropped index whose name contains the table and the columns of a query."""
    words = {word.lower() for word in _QUERY_WORD.findall(record)}
    for match in _INDEX.finditer(line) if _DROPPED.search(line) else ():
        parts = {part for part in re.split(r"[_.]", match[1].lower()) if part and part not in _INDEX_PARTS}
        if len(parts) > 1 and parts <= words:
            return True
    return False
