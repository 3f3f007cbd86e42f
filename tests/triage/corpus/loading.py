"""Reads the cases of the corpora and their clusters.

Each half is a folder: `questions`, `alerts` and `classes` contain files with cases, `clusters` the clusters that cases
share. README.md describes the format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import yaml

from holmes.diagnosis.engine import all_rules
from holmes.diagnosis.facts.pods import containers_of
from holmes.diagnosis.scan import LOG_ROUNDS, ScanRequest, ScanResult, result_of, run_rules
from holmes.kubernetes.cluster_state import ClusterState, LogKey
from holmes.kubernetes.kinds import KINDS
from holmes.kubernetes.log_reader import LogLimits
from holmes.kubernetes.one_list import slim
from holmes.values.findings import ScanCost
from holmes.values.verdicts import VERDICT_KINDS, VerdictKind
from tests.diagnosis.row_cases import state_of
from tests.triage.corpus.servers import log_name, log_text, server_objects

Half: TypeAlias = Literal["blind", "unseen", "development"]
Corpus: TypeAlias = Literal["questions", "alerts", "classes"]

HALVES: Final[tuple[Half, ...]] = get_args(Half)
CORPORA: Final[tuple[Corpus, ...]] = get_args(Corpus)
DEMO: Final = "demo"
"""The cluster of cases that are asked of the recorded demo cluster."""
FOLDER: Final = Path(__file__).parent
_CLUSTER: Final = frozenset({"objects", "events", "logs", "servers"})
_EXPECTED: Final = frozenset({"verdict", "culprit", "says", "never_says", "innocent"})
_ASKED: Final = frozenset({"id", "title", "class", "language", "question", "namespace", "earlier", "cluster"})
_ALERT: Final = frozenset({"alert", "labels", "annotations"})
_METADATA_ONLY: Final = frozenset(kind.name for kind in KINDS if kind.metadata_only)
ALERT_ANNOTATIONS: Final = ("summary", "description", "message")
_ANNOTATION_CHARACTERS: Final = 400
"""The annotations that reach a first look, and their length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The answers that are right.

    An answer must contain one of the texts in each item of `says`. An empty `culprits` accepts every culprit.
    `innocents` are never the culprit.
    """

    verdicts: tuple[VerdictKind, ...]
    culprits: tuple[str, ...] = ()
    says: tuple[tuple[str, ...], ...] = ()
    never_says: tuple[str, ...] = ()
    innocents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question, or an alert with its labels and annotations, and the cluster that it is about.

    `cluster` is the name of a shared cluster. It is empty if the case has a cluster of its own.
    """

    id: str
    half: Half
    group: str
    language: str
    question: str
    namespace: str
    earlier: tuple[str, ...]
    alert: Mapping[str, str]
    cluster: str
    expected: Expected
    own_cluster: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def asked(self) -> str:
        """The question, or the labels of the alert, on one line."""
        if self.alert:
            return " ".join(f"{name}={value}" for name, value in self.alert.items() if name not in ALERT_ANNOTATIONS)
        place = f" (namespace {self.namespace})" if self.namespace else ""
        return f"{' → '.join((*self.earlier, self.question))}{place}"


@cache
def read_corpus(half: Half, corpus: Corpus) -> tuple[Case, ...]:
    """Read the cases of one corpus. Empty if this half does not have it."""
    files = sorted((FOLDER / half / corpus).glob("*.yaml"))
    return tuple(_case(half, path.stem, raw) for path in files for raw in _read(path))


def _read(path: Path) -> Any:  # noqa: ANN401  whatever YAML holds
    """Use the fast YAML reader, because there are more than 100,000 lines."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506  both are safe


def _case(half: Half, group: str, raw: Mapping[str, Any]) -> Case:
    unknown = raw.keys() - _CLUSTER - _EXPECTED - _ASKED - _ALERT
    assert not unknown, f"{raw['id']}: unknown keys {sorted(unknown)}"
    own = {key: raw[key] for key in _CLUSTER if key in raw}
    assert bool(own) != ("cluster" in raw), f"{raw['id']}: expected either cluster or objects"
    return Case(
        id=raw["id"],
        half=half,
        group=raw.get("class", group),
        language=raw.get("language", "en"),
        question=raw.get("question", ""),
        namespace=raw.get("namespace", ""),
        earlier=tuple(raw.get("earlier", ())),
        alert=_alert(raw.get("alert", raw)),
        cluster=raw.get("cluster", ""),
        expected=_expected(raw),
        own_cluster=own,
    )


def _expected(raw: Mapping[str, Any]) -> Expected:
    unknown = set(raw["verdict"]) - set(VERDICT_KINDS)
    assert raw["verdict"], f"{raw['id']}: no verdict"
    assert not unknown, f"{raw['id']}: unknown verdicts {sorted(unknown)}"
    return Expected(
        verdicts=tuple(raw["verdict"]),
        culprits=tuple(raw.get("culprit", ())),
        says=tuple(tuple(map(str, each)) if isinstance(each, list) else (str(each),) for each in raw.get("says", ())),
        never_says=tuple(map(str, raw.get("never_says", ()))),
        innocents=tuple(raw.get("innocent", ())),
    )


def _alert(raw: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the labels and annotations as a conversation gives them to a first look."""
    labels = {name: str(value) for name, value in raw.get("labels", {}).items()}
    notes = {name: str(value) for name, value in raw.get("annotations", {}).items() if name in ALERT_ANNOTATIONS}
    return {**labels, **{name: value[:_ANNOTATION_CHARACTERS] for name, value in notes.items()}}


def scan_for(case: Case, wanted: Callable[[ScanResult], Sequence[LogKey]] | None = None) -> ScanResult:
    """Return the scan of the cluster of a case. Cases with the same shared cluster get the same scan, with all logs.

    The scan of a cluster of its own has only the logs that the rules request, and those that are `wanted`.
    """
    if case.cluster:
        return _shared_scan(case.half, case.cluster)
    return scan_of(case.own_cluster) if wanted is None else _scan_with(case.own_cluster, wanted)


def cluster_of(case: Case) -> Mapping[str, Any]:
    """Return the compact cluster of a case, without short forms."""
    return _shared_cluster(case.half, case.cluster) if case.cluster else _written_out(case.own_cluster)


@cache
def _shared_scan(half: Half, name: str) -> ScanResult:
    return scan_of(_shared_cluster(half, name))


@cache
def _shared_cluster(half: Half, name: str) -> Mapping[str, Any]:
    own, shared = (FOLDER / each / "clusters" / f"{name}.yaml" for each in (half, "development"))
    return _written_out(_read(own if own.exists() else shared))


def scan_of(cluster: Mapping[str, Any]) -> ScanResult:
    """Run all rules over a compact cluster. Objects are as a scan reads them, and all logs have been read."""
    return _judged(_state_of(cluster))


def _scan_with(cluster: Mapping[str, Any], wanted: Callable[[ScanResult], Sequence[LogKey]]) -> ScanResult:
    """Scan a compact cluster, and read logs in the rounds in which the toolset reads them."""
    full = _state_of(cluster)
    logs = full.timed_logs
    state = _state_of({**cluster, "logs": {}})
    requested = run_rules(all_rules(), state).wanted_logs[: LogLimits().logs]
    scan = _judged(state.with_logs(_served(state, logs, requested)))
    for _ in range(LOG_ROUNDS):
        more = _served(state, logs, [key for key in wanted(scan) if key not in scan.state.timed_logs])
        if not more:
            break
        scan = _judged(scan.state.with_logs(more))
    return scan


def _served(state: ClusterState, logs: Mapping[LogKey, str], keys: Iterable[LogKey]) -> dict[LogKey, str]:
    """Return logs as the API server does: while a container waits, both of its logs are that of its last instance."""
    found = {}
    for key in keys:
        pod = state.find(key.pod)
        waits = any(each.name == key.container and each.waiting for each in containers_of(pod)) if pod else False
        log = logs.get(key, logs.get(replace(key, previous=not key.previous)) if waits else None)
        if log is not None:
            found[key] = log
    return found


def _state_of(cluster: Mapping[str, Any]) -> ClusterState:
    written = _written_out(cluster)
    return state_of({**written, "objects": [_as_read(each) for each in written["objects"]]})


def _written_out(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Expand the short forms of a cluster."""
    servers = cluster.get("servers", {})
    bodies = [*cluster.get("objects", ()), *(each for name in servers for each in server_objects(name, servers[name]))]
    logs = {log_name(name, servers): log_text(log) for name, log in cluster.get("logs", {}).items()}
    bodies += _default_accounts(bodies)
    return {**{key: cluster[key] for key in cluster if key != "servers"}, "objects": bodies, "logs": logs}


def _default_accounts(bodies: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the account `default` of each namespace in which pods name it, as every real namespace has one."""
    spaces = {
        each["metadata"].get("namespace", "shop"): None
        for each in bodies
        if each["kind"] == "Pod" and each.get("spec", {}).get("serviceAccountName") == "default"
    }
    given = {
        each["metadata"].get("namespace", "shop")
        for each in bodies
        if each["kind"] == "ServiceAccount" and each["metadata"]["name"] == "default"
    }
    return [
        {"kind": "ServiceAccount", "metadata": {"name": "default", "namespace": each, "age": 8_640_000}}
        for each in spaces
        if each not in given
    ]


def _judged(state: ClusterState) -> ScanResult:
    cost = ScanCost(list_calls=0, requests=0, logs_read=0, seconds=0)
    return result_of(state, run_rules(all_rules(), state), ScanRequest(), cost=cost)


def _as_read(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Remove the fields that a scan does not read, for example the data of Secrets."""
    kept = ("apiVersion", "kind", "metadata") if raw["kind"] in _METADATA_ONLY else raw
    return slim({key: raw[key] for key in kept if key in raw}, raw["kind"])
