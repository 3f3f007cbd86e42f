"""Finds the trouble that the logs of running containers report, although Kubernetes sees nothing wrong.

A group of lines is evidence if it still occurs, occurs often enough, and did not occur in the healthy time before. If
the lines name a Service, or the workload is configured to use one, the search continues in the logs behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.line_groups import MOST_OF_THE_LOG, OFTEN
from holmes.diagnosis.facts.line_kinds import CREDENTIALS, kind_of
from holmes.diagnosis.facts.log_groups import stories_of
from holmes.diagnosis.facts.logs import quoted
from holmes.diagnosis.facts.network import is_of_pods
from holmes.diagnosis.facts.stale_settings import visible_edits
from holmes.kubernetes.fields import text, written
from holmes.triage.harm import is_about_behaviour, is_about_results
from holmes.triage.log_actors import records_of
from holmes.triage.log_following import way_from
from holmes.triage.log_policies import denying_policy
from holmes.triage.log_proofs import felt_at, is_opaque, tells_of_lock
from holmes.triage.log_reasons import lost_lease, reason_of
from holmes.triage.log_troubles import REACHED, troubles_of, workloads_of
from holmes.triage.vocabulary import symptoms_of_text
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holmes.diagnosis.facts.line_groups import LogGroup
    from holmes.diagnosis.facts.line_patterns import LineKind
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.log_following import Way
    from holmes.triage.log_reasons import Reason
    from holmes.triage.log_troubles import Trouble
    from holmes.triage.question import Question
    from holmes.values.findings import ObjectRef

_SHORTLY_SECONDS: Final = 300.0
_NEIGHBOURS: Final[frozenset[LineKind | None]] = frozenset({
    *REACHED, "slow", "lock", "queue full", "pool exhausted", "rate limited",
})  # fmt: skip
_ADDRESS: Final = expression(
    r"(?i)(?:\b(?:remote|client|from|ip|peer|src|source|host|rhost|addr|address)\w{0,8}[\"']?[ :=]{1,2}[\"']?|^)"
    r"(\d{1,3}(?:\.\d{1,3}){3})(?![\d.])"
)
"""The address of a client, behind a word for it or at the beginning of a line."""
_ROUTE: Final = expression(r"(?<![\w/.])(?:https?://[^\s\"/]{1,200})?(/[a-z][\w/-]{2,60})")
_SLOW: Final[frozenset[LineKind | None]] = frozenset({"slow", "lock", "pool exhausted", "queue full"})
_SLOWNESS: Final = expression(
    r"(?i)slow|time(?:d)?[- ]?out|latency|\bgc\b|pause|retr(?:y|ies)|took|stall|saturat|throttl|wait|busy|overload"
    r"|overhead|deadline|cache|block|backlog|lock|queue|pool|exhaust|memory|\d{4,}(?:\.\d+)? ?ms"
)
_WAITING: Final = expression(r"(?i)queue|backlog|lag\b|pending|waiting|depth")
_MEMORY: Final = expression(r"(?i)heap|rss|mem")
_TOGETHER_SECONDS: Final = 2.0
_SPECIFIC: Final = frozenset({"memory", "disk", "certificate", "evicted", "scaling"})
_LESS_SPECIFIC: Final = frozenset({"dns", "permission"})
"""Symptoms whose words have other meanings, too. Lines that fill the log explain them anyway."""
_SYMPTOMS: Final[dict[LineKind, frozenset[str]]] = {
    "out of memory": frozenset({"memory"}),
    "unknown host": frozenset({"dns"}),
    "tls": frozenset({"certificate"}),
    "auth failed": frozenset({"permission"}),
    "clock or token": frozenset({"permission", "certificate"}),
    "forbidden": frozenset({"permission"}),
    "permission denied": frozenset({"permission", "disk"}),
    "disk full": frozenset({"disk"}),
    "read only file system": frozenset({"disk"}),
    "volume": frozenset({"disk"}),
}
"""The specific symptoms that a kind explains. A question about another specific symptom is not answered by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCause:
    """The trouble in the logs: from the subject to the culprit, and the objects between them.

    `clean` is the Service that the last lines name, if the logs behind it report nothing wrong, or were not read, which
    `unread` means. `ended` means that the log is silent since the lines. `reason` is a setting or an object that
    explains the lines. `outside` are the addresses outside the cluster of which the lines only tell that they do not
    answer as expected. `former` means that they are addresses of the pod network, which pods of the past may have had.
    """

    troubles: tuple[Trouble, ...]
    culprit: ObjectRef
    path: tuple[ObjectRef, ...]
    clean: ObjectRef | None = None
    unread: bool = False
    ended: bool = False
    reason: Reason | None = None
    outside: tuple[str, ...] = ()
    former: bool = False

    @property
    def doubtful(self) -> bool:
        """Whether it cannot be determined which side is at fault: the server that does not answer, or its client."""
        group, alone = self.troubles[-1].group, len(self.path) == 1
        if self.reason is not None or group.kind in CREDENTIALS:
            return self.reason is None and tells_of_lock(group)
        return self.clean is not None or (alone and (bool(self.outside) or is_opaque(group)))

    @property
    def doubt(self) -> str:
        """A sentence that tells which state would decide who is at fault."""
        if not self.outside:
            return "Which side is at fault cannot be determined."
        told = " and ".join(f"`{each}`" for each in self.outside)
        if self.former:
            return f"This is only where it is felt: no pod or Service of the cluster has the address {told} now."
        return f"This is only where it is felt: {told} is outside of this cluster, and only its own state decides."

    @property
    def sentence(self) -> str:
        """The cause in one sentence."""
        last = self.troubles[-1]
        said = f"The log of {last.workload.ref} reports {last.group.span}: {last.quote}"
        if last.group.detail:
            since = f" since {written(last.group.first)}" if last.group.first else ""
            said = f"The log of {last.workload.ref} shows that {_lowered(last.group.detail)}{since}: {last.quote}"
        if len(self.troubles) > 1:
            alike = (each for each in reversed(self.troubles[:-1]) if each.group.kind == last.group.kind)
            other = next(alike, self.troubles[0])  # both sides of a connection report the same kind
            said = f"{said}; {other.workload.ref} reports: {other.quote}"
        if self.reason is not None:
            return f"{said}; {self.reason.words}"
        before = f"; just before: {last.before}" if last.before else ""
        behind = f"; {self.culprit} is what it needs" if self.culprit != last.workload.ref else ""
        found = "were not read" if self.unread else "report nothing wrong"
        clean = f"; the logs behind {self.clean} {found}" if self.clean is not None else ""
        ended = "; its log is silent since then" if self.ended else ""
        return f"{said}{before}{behind}{clean}{ended}"

    @property
    def evidence(self) -> tuple[str, ...]:
        shown = self.reason.evidence if self.reason is not None else ()
        return shown + tuple(
            f"{each.key.pod}, log of container {each.key.container}, {each.group.span}: {each.quote}"
            for each in self.troubles
        )


def _lowered(detail: str) -> str:
    return detail[0].lower() + detail[1:]


def cause_in_logs(
    state: ClusterState,
    question: Question,
    subjects: Sequence[ClusterObject],
    period: tuple[float, float] | None = None,
) -> LogCause | None:
    """Return the trouble that the logs of the subjects report, or None if none of it answers the question.

    `period` is the time that the question is about, or None for the present.
    """
    found = [each for workload in workloads_of(state, subjects) for each in troubles_of(state, workload)]
    if period is not None:
        answering: Iterable[Trouble] = (each for each in found if _was_in(each.group, *period))
    else:
        confirmed = (each for each in map(partial(_confirmed, state), found) if not _is_of_stranger(state, each))
        answering = (each for each in confirmed if _answers(question, each, state.now))
    fitting = sorted(answering, key=lambda each: _rank(question, each))
    if not fitting:
        waiting = (_waiting(state, trouble) for trouble in found)
        leading = (_leading(state, trouble) for trouble in found if question.wants_cause and period is None)
        return next((each for each in (*waiting, *leading) if each is not None), None)
    return _cause_from(state, fitting[0], way_from(state, fitting[0]))


def _cause_from(state: ClusterState, first: Trouble, way: Way) -> LogCause:
    ended = first.group.is_end(state.now)
    cause = LogCause(
        troubles=way.troubles,
        culprit=way.culprit,
        path=way.path,
        clean=way.clean,
        unread=way.unread,
        ended=ended,
        reason=way.reason,
    )
    explained = _with_its_reason(state, _with_what_was_before(state, cause))
    outside = _felt_outside(state, explained)
    return replace(
        explained, outside=outside, former=state.covers("Pod") and any(is_of_pods(state, each) for each in outside)
    )


def _felt_outside(state: ClusterState, cause: LogCause) -> tuple[str, ...]:
    """Return the outside addresses that the last lines only complain about, unless a line before shows own trouble."""
    own = kind_of(cause.troubles[-1].before)
    return () if own is not None and own not in REACHED else felt_at(state, cause.troubles[-1])


def _leading(state: ClusterState, trouble: Trouble) -> LogCause | None:
    """Return the error of another workload to which a warning leads that fills the log of the subject."""
    if not (trouble.group.is_lasting and trouble.group.share >= MOST_OF_THE_LOG and trouble.group.count >= OFTEN):
        return None
    way = way_from(state, trouble)
    last = way.last.group
    leads = way.last.workload.ref != trouble.workload.ref and last.weight in ("kind", "error")
    return _cause_from(state, trouble, way) if leads and last.is_evidence(state.now) and way.clean is None else None


def _with_its_reason(state: ClusterState, cause: LogCause) -> LogCause:
    """Blame the setting or the object that explains the lines of one of the logs, the deepest first."""
    if cause.reason is not None:
        return cause
    for trouble in reversed(cause.troubles):
        alike = (reason_of(state, each) for each in _beside(state, trouble))
        reason = denying_policy(state, trouble) or reason_of(state, trouble) or next(filter(None, alike), None)
        if reason is not None:
            at = cause.path.index(trouble.workload.ref) + 1 if trouble.workload.ref in cause.path else len(cause.path)
            kept = cause.path[:at]
            path = tuple(dict.fromkeys((*kept, reason.culprit)))
            troubles = cause.troubles[: cause.troubles.index(trouble) + 1]
            return replace(cause, troubles=troubles, culprit=reason.culprit, path=path, clean=None, reason=reason)
    return cause


def _beside(state: ClusterState, trouble: Trouble) -> Iterator[Trouble]:
    """Yield the rejected credentials in the same log as an error that says less, if both began together."""
    for each in troubles_of(state, trouble.workload) if trouble.group.kind is None else ():
        together = abs(each.group.first - trouble.group.first) <= _TOGETHER_SECONDS
        if each.key == trouble.key and each.group.kind in CREDENTIALS and trouble.group.first and together:
            yield each


def _was_in(group: LogGroup, start: float, end: float) -> bool:
    """Return whether lines of trouble began in a period that is over, and ended with it."""
    overlaps = group.first <= end + _SHORTLY_SECONDS and group.last >= start - _SHORTLY_SECONDS
    often = group.count >= OFTEN or group.kind is not None
    return bool(group.first) and overlaps and often and group.sudden and group.weight != "warning"


def _waiting(state: ClusterState, trouble: Trouble) -> LogCause | None:
    """Return the cause of a workload that waits for a Lease of a pod that is gone."""
    reason = lost_lease(state, trouble) if trouble.group.is_lasting else None
    if reason is None:
        return None
    path = (trouble.workload.ref, reason.culprit)
    return LogCause(troubles=(trouble,), culprit=reason.culprit, path=path, reason=reason)


def _explains_slowness(group: LogGroup) -> bool:
    """Return whether the lines can be the reason of long response times. Fast errors are not."""
    return group.kind in _NEIGHBOURS or bool(group.detail) or _SLOWNESS.search(group.record) is not None


def _is_of_stranger(state: ClusterState, trouble: Trouble) -> bool:
    """Return whether a server only refuses the passwords of one client outside of the cluster, which may be guesses."""
    if trouble.group.kind != "auth failed" or not trouble.group.of_client:
        return False
    story = dict(stories_of(state, trouble.workload))[trouble.key]
    records = [*records_of(trouble, story)]
    common = set.intersection(*(set(_ADDRESS.findall(each)) for each in records)) if len(records) >= OFTEN else set()
    served = {address for line in story.lines if kind_of(line) is None for address in common if address in line}
    nodes = (text(one, "address") for node in state.of("Node") for one in node.children("status", "addresses"))
    return bool(common - served - {pod.text("status", "podIP") for pod in state.of("Pod")} - {*nodes})


def _confirmed(state: ClusterState, trouble: Trouble) -> Trouble:
    """Return the trouble as lines that are not noise if recent warnings about the pods name the same route.

    A Job that runs has one task, so errors that fill its log are not usual.
    """
    fills = trouble.group.share >= MOST_OF_THE_LOG and trouble.group.weight in ("kind", "error")
    if trouble.workload.kind == "Job" and fills and trouble.group.is_lasting:
        return replace(trouble, group=replace(trouble.group, sudden=True))
    routes = set(_ROUTE.findall(trouble.group.record))
    if not routes or not trouble.group.is_lasting:
        return trouble
    for pod in state.pods_of(trouble.workload):
        for event in state.events_of(pod):
            recent = event.type == "Warning" and state.now - event.last <= _SHORTLY_SECONDS
            if recent and event.count >= OFTEN and routes & set(_ROUTE.findall(event.message)):
                return replace(trouble, group=replace(trouble.group, sudden=True))
    return trouble


def _rank(question: Question, trouble: Trouble) -> tuple[bool, bool, bool, bool, bool, int, int]:
    """Return a sort key that puts the strongest evidence first: what explains the symptom, and is specific."""
    group = trouble.group
    weight = ("kind", "error", "status", "warning").index(group.weight)
    common = symptoms_of_text(f"{group.record} {group.detail}") & question.symptoms
    matching = bool(common or _specific(group) & question.symptoms)
    slow = "slow" in question.symptoms and (group.kind in _SLOW or bool(group.detail))
    return (
        not slow,
        group.is_amount,
        not (matching and weight < 3),
        not group.sudden,
        weight > 0,
        weight,
        -group.count,
    )


def _specific(group: LogGroup) -> frozenset[str]:
    if group.is_amount:
        return frozenset({"memory"}) if _MEMORY.search(group.detail) else frozenset()
    return _SYMPTOMS.get(group.kind, frozenset()) if group.kind is not None else frozenset()


def _answers(question: Question, trouble: Trouble, now: float) -> bool:
    """Return whether the lines are evidence for the question."""
    group = trouble.group
    if not group.is_evidence(now):
        return False
    dominant = group.sudden and group.share >= MOST_OF_THE_LOG
    wanted = question.symptoms & (_SPECIFIC if dominant else _SPECIFIC | _LESS_SPECIFIC)
    if wanted and not wanted & (_specific(group) | symptoms_of_text(f"{group.record} {group.detail}")):
        return False
    if "slow" in question.symptoms and "unreachable" not in question.symptoms and not _explains_slowness(group):
        return False
    if group.is_amount:
        return question.wants_cause and (not is_about_behaviour(question) or _leaves_undone(question, group))
    weighty = group.weight != "warning" or group.share >= MOST_OF_THE_LOG
    noticed = group.sudden or group.always or group.weight != "status"  # a proxy always has some failed requests
    return not _is_calm(question) or (noticed and weighty and not group.is_end(now))


def _leaves_undone(question: Question, group: LogGroup) -> bool:
    """Return whether work waits, which explains that something comes late or not at all, but no wrong result."""
    return _WAITING.search(group.detail) is not None and not is_about_results(question)


def _is_calm(question: Question) -> bool:
    """Return whether a question asks for the health of something, and tells of no trouble."""
    return question.asks("health") and not question.wants_cause


def _with_what_was_before(state: ClusterState, cause: LogCause) -> LogCause:
    """Add what happened just before the last trouble: a line, for example a reload, or a change of what it uses."""
    last = cause.troubles[-1]
    if not last.group.sudden:
        return cause
    lines = (story.line_before(last.group) for _, story in stories_of(state, last.workload))
    said = [quoted(line) for line in filter(None, lines)][:1]
    before = "; ".join((*said, *_changes_before(state, last)))
    return replace(cause, troubles=(*cause.troubles[:-1], replace(last, before=before))) if before else cause


def _changes_before(state: ClusterState, last: Trouble) -> tuple[str, ...]:
    """Return the changes of Secrets and ConfigMaps of the workload shortly before the trouble began."""
    found = []
    for ref, changed in visible_edits(state, last.workload):
        if -_SHORTLY_SECONDS / 10 <= last.group.first - changed <= _SHORTLY_SECONDS:
            pods = (pod for pod in state.pods_of(last.workload) if pod.created < changed)
            older = ", which is newer than the running pods" if any(pods) else ""
            found.append(f"{ref} was changed at {written(changed)}{older}")
    return tuple(dict.fromkeys(found))
