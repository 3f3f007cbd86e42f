"""Scans a cluster: reads its objects, runs the rules, reads the logs that the rules request, and merges the findings.

Rules that use logs run again after the logs are read. The report lists everything that could not be read. An empty list
of incidents alone does not mean that the cluster is healthy.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from holmes.diagnosis.counts import checked_kinds, objects_in_scope, too_young
from holmes.diagnosis.engine import chosen_rules, merged_findings, workload_ref
from holmes.diagnosis.facts.custom_table import known_kinds
from holmes.diagnosis.facts.typos import hint
from holmes.diagnosis.incidents import incidents_of
from holmes.diagnosis.reports import IncidentFilter, in_scope
from holmes.kubernetes.fields import written
from holmes.kubernetes.log_reader import LogLimits, read_logs
from holmes.kubernetes.scope import within
from holmes.kubernetes.state_reader import ReadLimits, Rights, StateReader
from holmes.values.errors import ConfigError
from holmes.values.findings import SEVERITIES, DiagnosisReport, NotChecked, ScanCost
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from holmes.diagnosis.rule import Fault, Rule
    from holmes.diagnosis.usage import Usage
    from holmes.kubernetes.client import ClusterClient
    from holmes.kubernetes.cluster_state import ClusterState, Gap, GapCategory, LogKey
    from holmes.kubernetes.state_reader import Progress
    from holmes.values.findings import Finding, ObjectRef

    ReadStoredOf: TypeAlias = Callable[[ClusterState, Sequence[LogKey], LogLimits], Awaitable[Mapping[LogKey, str]]]

_log = logging.getLogger(__name__)

_MOST_KINDS: Final = 24
_LONGEST_ERROR: Final = 200
_MANY_GAPS: Final = 3
"""If more than this number of kinds in a namespace could not be read for the same reason, one line lists them all."""

LOG_ROUNDS: Final = 2
"""The logs of the first round name objects, whose logs are read in the second round."""
ANSWER_LOGS: Final = LogLimits(logs=40, lines=2_000, bytes=512 * 1024)
"""The logs for one answer. They reach further back than those of a scan, to the healthy time before a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRequest:
    """The scope of a scan. Empty `namespaces` means the whole cluster, and empty `rules` means all rules.

    `rights` states what to read if the whole cluster may not be read. By default, this is the namespace of the
    kubeconfig context. `wanted` filters the incidents in the report and does not change which objects are read.
    `stored` reads logs that the nodes do not have.
    """

    namespaces: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    wanted: IncidentFilter = field(default_factory=IncidentFilter)
    read_limits: ReadLimits = field(default_factory=ReadLimits)
    log_limits: LogLimits = field(default_factory=LogLimits)
    rights: Rights | None = None
    grace_seconds: float = 60.0
    stored: ReadStoredOf | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanResult:
    """The report of a scan, the cluster state that it describes, and the findings of each rule.

    `usage` is None if it was not read. Only questions about it need it.
    """

    report: DiagnosisReport
    state: ClusterState
    run: RuleRun
    usage: Usage | None = None

    def about(self, wanted: IncidentFilter) -> DiagnosisReport:
        """Return the report with only the incidents that match `wanted`."""
        kept = tuple(each for each in self.report.incidents if in_scope(each, self.state, (), wanted))
        return replace(self.report, incidents=kept, resource=wanted.resource)

    def within(self, namespaces: tuple[str, ...]) -> ScanResult:
        """Return the result for some namespaces of a scan of the whole cluster. Raises `ConfigError`."""
        if not namespaces or namespaces == self.report.namespaces:
            return self
        _require_namespaces(self.state, namespaces)
        state, others = self.state, [each for each in self.report.not_checked if not each.kinds]
        kept = tuple(each for each in self.report.incidents if in_scope(each, state, namespaces, IncidentFilter()))
        report = replace(
            self.report,
            namespaces=namespaces,
            incidents=kept,
            checked=checked_kinds(state, kept, namespaces),
            objects=objects_in_scope(state, namespaces),
            too_young=too_young(state, kept, namespaces),
            not_checked=_not_checked(chosen_rules(()), state, others, namespaces),
        )
        return replace(self, report=report)


async def scan(client: ClusterClient, request: ScanRequest, progress: Progress | None = None) -> ScanResult:
    """Scan the cluster of `client`.

    Raises `ClusterUnreachable` if nothing can be read, or `ConfigError` if a rule or namespace is unknown.
    """
    with _deferred_collections():
        return await _scan(client, request, progress)


@contextmanager
def _deferred_collections() -> Iterator[None]:
    """Disable garbage collection during a scan, because a scan frees no memory until it ends.

    With 100 MB of objects, garbage collection would take a third of the scan's time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():
                # Move all objects to the oldest generation. Otherwise, the next two collections would examine them.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


async def _scan(client: ClusterClient, request: ScanRequest, progress: Progress | None) -> ScanResult:
    started = time.monotonic()
    rules = chosen_rules(request.rules)
    request = replace(request, namespaces=within(request.namespaces, client.scope))
    reader = StateReader(
        client,
        namespaces=request.namespaces,
        limits=replace(request.read_limits, first_kinds=await asyncio.to_thread(known_kinds)),
        rights=request.rights or Rights(namespaces=tuple(filter(None, (client.namespace,)))),
        grace_seconds=request.grace_seconds,
        progress=progress,
    )
    state, cost = await reader.read()
    _require_namespaces(state, request.namespaces)
    run = await asyncio.to_thread(run_rules, rules, state)
    stored = partial(request.stored, state) if request.stored is not None else None
    logs = await read_logs(client, run.wanted_logs, request.log_limits, stored)
    if logs.logs:
        state = state.with_logs(logs.logs)
        run = await asyncio.to_thread(run_rules, rules, state, run)
    spent = ScanCost(
        list_calls=cost.list_calls,
        requests=cost.requests + logs.requests,
        logs_read=len(logs.logs),
        seconds=time.monotonic() - started,
    )
    return await asyncio.to_thread(result_of, state, run, request, cost=spent, unread=logs.unread)


def result_of(
    state: ClusterState,
    run: RuleRun,
    request: ScanRequest,
    *,
    cost: ScanCost,
    unread: Sequence[NotChecked] = (),
) -> ScanResult:
    """Merge the findings of `run` into incidents and report them. `unread` contains logs that could not be read."""
    rules = chosen_rules(request.rules)
    incidents = incidents_of(run.findings, state)
    report = DiagnosisReport(
        taken_at=written(state.now),
        namespaces=request.namespaces,
        resource=request.wanted.resource,
        incidents=tuple(each for each in incidents if in_scope(each, state, request.namespaces, request.wanted)),
        checked=checked_kinds(state, incidents, request.namespaces),
        not_checked=_not_checked(rules, state, (*unread, *run.failed)),
        objects=objects_in_scope(state, request.namespaces),
        too_young=too_young(state, incidents, request.namespaces),
        rules_run=len(rules),
        cost=cost,
    )
    return ScanResult(report=report, state=state, run=run)


async def with_more_logs(
    client: ClusterClient,
    result: ScanResult,
    wanted: Callable[[ScanResult], Sequence[LogKey]],
    stored: ReadStoredOf | None = None,
) -> ScanResult:
    """Read the logs that an answer needs, and judge the cluster again with them.

    The logs name further objects, whose logs are then read as well, for one hop.
    """
    tried = set(result.state.logs)
    for _ in range(LOG_ROUNDS):
        missing = [key for key in await asyncio.to_thread(wanted, result) if key not in tried]
        if not missing:
            break
        tried |= set(missing)
        result = await _with_logs(client, result, missing, stored)
    return result


async def _with_logs(
    client: ClusterClient, result: ScanResult, missing: Sequence[LogKey], stored: ReadStoredOf | None
) -> ScanResult:
    of_state = partial(stored, result.state) if stored is not None else None
    reading = await read_logs(client, missing, ANSWER_LOGS, of_state)
    if not reading.logs:
        unread = tuple(dict.fromkeys((*result.report.not_checked, *reading.unread)))
        return replace(result, report=replace(result.report, not_checked=unread))
    state = result.state.with_logs(reading.logs)
    run = await asyncio.to_thread(run_rules, chosen_rules(()), state, result.run)
    cost = replace(
        result.report.cost,
        requests=result.report.cost.requests + reading.requests,
        logs_read=result.report.cost.logs_read + len(reading.logs),
    )
    request = ScanRequest(namespaces=result.report.namespaces)
    found = await asyncio.to_thread(result_of, state, run, request, cost=cost, unread=reading.unread)
    gaps = tuple(dict.fromkeys((*result.report.not_checked, *found.report.not_checked)))
    return replace(found, report=replace(found.report, not_checked=gaps))


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRun:
    """The findings of each rule, and the logs that can add detail to the findings, the most useful logs first.

    `log_readers` contains the ids of the rules that use logs. Only their findings can change after logs are read.
    `failed` contains the rules that raised an error, which have no findings.
    """

    by_rule: dict[str, tuple[Finding, ...]]
    wanted_logs: tuple[LogKey, ...]
    log_readers: frozenset[str]
    failed: tuple[NotChecked, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for found in self.by_rule.values() for finding in found)


def run_rules(rules: Sequence[Rule], state: ClusterState, earlier: RuleRun | None = None) -> RuleRun:
    """Run all rules. After an `earlier` run without logs, run again only the rules that use logs."""
    by_rule: dict[str, tuple[Finding, ...]] = {}
    wanted: list[tuple[int, int, str, str, LogKey]] = []
    readers: set[str] = set()
    failed: list[NotChecked] = []
    for rule in rules:
        if earlier is not None and rule.id not in earlier.log_readers:
            by_rule[rule.id] = earlier.by_rule[rule.id]
            failed += (each for each in earlier.failed if rule.id in each.rules)
            continue
        questions = state.log_questions
        try:
            by_rule[rule.id], asked = _run_rule(rule, state)
            wanted += asked
        except Exception as error:  # noqa: BLE001  a bug in one rule must not cost the findings of the others
            by_rule[rule.id] = ()
            failed.append(_failure(rule, error))
        if state.log_questions != questions:
            readers.add(rule.id)
    wanted.sort(key=lambda each: each[:4])
    return RuleRun(
        by_rule=by_rule,
        wanted_logs=tuple(dict.fromkeys(key for *_, key in wanted)),
        log_readers=frozenset(readers),
        failed=tuple(failed),
    )


def _run_rule(
    rule: Rule, state: ClusterState
) -> tuple[tuple[Finding, ...], tuple[tuple[int, int, str, str, LogKey], ...]]:
    """Return the findings of a rule, and the logs that it requests with their sort keys."""
    faults = tuple(rule.check(state))
    return merged_findings(rule, faults, state), tuple(_wanted_logs(rule, faults, state))


def _failure(rule: Rule, error: Exception) -> NotChecked:
    _log.debug("rule %s failed", rule.id, exc_info=error)
    why = shortened(" ".join(f"the rule failed: {type(error).__name__}: {error}".split()), _LONGEST_ERROR)
    return NotChecked(what=f"rule {rule.id} ({rule.row.title})", why=why, rules=(rule.id,))


def _wanted_logs(
    rule: Rule, faults: Sequence[Fault], state: ClusterState
) -> Iterator[tuple[int, int, str, str, LogKey]]:
    """Yield the requested logs with their sort keys.

    The first pod of each workload precedes its other pods, because the pods of a workload usually log the same lines.
    """
    earlier: Counter[ObjectRef] = Counter()
    for fault in faults:
        workload = workload_ref(fault.subject, state)
        severity = SEVERITIES.index(fault.severity or rule.row.severity)
        for key in fault.logs:
            yield earlier[workload], severity, rule.id, str(fault.subject), key
        earlier[workload] += 1


def _require_namespaces(state: ClusterState, namespaces: Iterable[str]) -> None:
    known = [each.name for each in state.of("Namespace")]
    for namespace in namespaces:
        if state.is_missing("Namespace", "", namespace):
            message = f"namespace {namespace!r} does not exist{hint(namespace, known)}"
            raise ConfigError(message)


def _not_checked(
    rules: Sequence[Rule], state: ClusterState, others: Sequence[NotChecked], namespaces: Sequence[str] = ()
) -> tuple[NotChecked, ...]:
    """Return the kinds that could not be read, with the rules that need them, and `others`: logs and failed rules.

    `namespaces` selects the gaps that concern some namespaces of a scan of the whole cluster.
    """
    alike: dict[tuple[str, GapCategory], list[Gap]] = defaultdict(list)
    for gap in sorted(state.reading.gaps, key=lambda gap: (gap.namespace, gap.kind)):
        if not namespaces or (gap.namespace in ("", *namespaces) and any(map(gap.hides, namespaces))):
            alike[_place(gap), gap.category].append(gap)
    found = []
    for (place, _), gaps in alike.items():
        together = len(gaps) > _MANY_GAPS
        for same in [gaps] if together else [[gap] for gap in gaps]:
            kinds = [gap.kind for gap in same]
            ids = tuple(rule.id for rule in rules if set(kinds) & set(rule.row.needed_kinds))
            found.append(NotChecked(what=f"{_named(kinds)}{place}", why=same[0].why, rules=ids, kinds=tuple(kinds)))
    return (*found, *others)


def _place(gap: Gap) -> str:
    if gap.namespace:
        return f" in namespace {gap.namespace}"
    return f" outside namespace {', '.join(gap.read_in)}" if gap.read_in else ""


def _named(kinds: Sequence[str]) -> str:
    more = f" and {len(kinds) - _MOST_KINDS} more kinds" if len(kinds) > _MOST_KINDS else ""
    return ", ".join(kinds[:_MOST_KINDS]) + more
