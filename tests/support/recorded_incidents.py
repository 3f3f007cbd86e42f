"""Recorded incidents: a question, the cluster that it is about as a recording, and the answers that are right.

They come from the recorded scenarios of `tests/diagnosis` and from the corpora of `tests/triage/corpus`. No cluster is
needed, because `serve_snapshot` serves a recording as a read-only API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import translate
from pathlib import Path
from typing import Any, Final

from holmes.assets import demo_recording
from holmes.investigations.alerts.wording import alert_question
from holmes.investigations.records.values import Alert
from holmes.kubernetes.fields import child, children, text
from holmes.kubernetes.kinds import EVENT, KINDS
from holmes.snapshot.assembly import Assembly, assemble, guessed_kind
from holmes.snapshot.recorded_logs import LogKey, RecordedLog
from holmes.snapshot.recording import RecordedObjects, Recording, load_recording
from holmes.values.json_types import JsonObject
from holmes.values.verdicts import VerdictKind
from tests.diagnosis.row_cases import NOW, bodies_of, event_bodies_of, log_texts_of
from tests.diagnosis.scenarios.model import HARD, Places, Scenario, Target, load_scenarios, replace_placeholders
from tests.diagnosis.scenarios.recording import PLACES, RECORDINGS, recorded_names, unpack
from tests.triage.corpus.loading import ALERT_ANNOTATIONS, CORPORA, DEMO, Case, Corpus, Half, cluster_of, read_corpus

_TIMED: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z(?: |$)")
_VERSIONS: Final = {(kind.name, kind.group): kind.group_version for kind in (*KINDS, EVENT)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One cause that is right. An answer names an object of `culprits` and one text of each item in `says`."""

    culprits: tuple[str, ...] = ()
    """Patterns of the names of the culprits. Empty accepts every culprit."""

    says: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedIncident:
    """`verdicts` are right, and with `cause_found` one of `causes`. `source` is a scenario or a case of a corpus.

    `earlier` are questions that are asked before, in the same conversation.
    """

    id: str
    question: str
    namespace: str
    verdicts: tuple[VerdictKind, ...]
    causes: tuple[Cause, ...]
    source: Scenario | Case = field(repr=False)
    recordings: Path = RECORDINGS
    earlier: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether only the right cause is a right answer."""
        return self.verdicts == ("cause_found",)

    def recording(self, folder: Path) -> Recording | Path:
        """Return the recording, or its folder. Its files are written into `folder`, which must be empty."""
        if isinstance(self.source, Case):
            if self.source.cluster == DEMO:
                return demo_recording()
            return recording_of(cluster_of(self.source), folder)
        unpack(self.source.name, folder, self.recordings)
        return load_recording(folder)


def recorded_incidents() -> tuple[RecordedIncident, ...]:
    """All incidents, in a fixed order."""
    return (*scenario_incidents(), *case_incidents("development"))


def scenario_incidents() -> tuple[RecordedIncident, ...]:
    """The recorded scenarios. Each is asked about its namespace as a whole."""
    recorded = recorded_names()
    return tuple(_of_scenario(each, RECORDINGS) for each in load_scenarios() if each.name in recorded)


def hard_incidents(half: Half) -> tuple[RecordedIncident, ...]:
    """The recorded scenarios of the hard set, with their own questions."""
    folder = RECORDINGS / "hard" / half
    recorded = recorded_names(folder)
    return tuple(_of_scenario(each, folder) for each in load_scenarios(folder=HARD / half) if each.name in recorded)


def case_incidents(half: Half, corpus: Corpus = "classes") -> tuple[RecordedIncident, ...]:
    """The cases of a corpus that are one question about a compact cluster."""
    return tuple(
        incident_of(each)
        for each in read_corpus(half, corpus)
        if each.question and not each.alert and not each.earlier and each.cluster != DEMO
    )


def other_incidents(half: Half) -> tuple[RecordedIncident, ...]:
    """The cases of all corpora that `case_incidents` leaves out: alerts, follow-ups and the demo cluster."""
    cases = [each for corpus in CORPORA for each in read_corpus(half, corpus)]
    return tuple(incident_of(each) for each in cases if each.alert or each.earlier or each.cluster == DEMO)


def _of_scenario(scenario: Scenario, recordings: Path) -> RecordedIncident:
    places = _places(recordings / f"{scenario.name}.recorded.json")
    namespace = places[scenario.header.namespaces[0]]
    question = replace_placeholders(scenario.header.question, places)
    faulty = scenario.expectation == "faults"
    return RecordedIncident(
        id=scenario.name,
        question=question or f"What is wrong in namespace {namespace}?",
        namespace=namespace if scenario.header.namespace else "",
        verdicts=("cause_found",) if faulty else ("healthy", "inconclusive"),
        causes=tuple(
            Cause(
                culprits=tuple(_pattern(target, places) for target in expected.culprit),
                says=tuple(
                    tuple(replace_placeholders(one, places) for one in ((each,) if isinstance(each, str) else each))
                    for each in expected.evidence
                ),
            )
            for expected in scenario.header.expected
        ),
        source=scenario,
        recordings=recordings,
    )


def _places(recording: Path) -> Places:
    packed = json.loads(recording.read_text(encoding="utf-8"))
    places: Places = packed[PLACES]
    return places


def _pattern(target: Target, places: Places) -> str:
    return translate(replace_placeholders(target.name, places)).removesuffix(r"\z").removesuffix(r"\Z")


def incident_of(case: Case) -> RecordedIncident:
    expected = case.expected
    names = tuple(re.escape(each.rpartition(" ")[2].rpartition("/")[2]) for each in expected.culprits)
    return RecordedIncident(
        id=case.id,
        question=_alert_text(case.alert) if case.alert else case.question,
        namespace=case.namespace,
        verdicts=expected.verdicts,
        causes=(Cause(culprits=names, says=expected.says),),
        source=case,
        earlier=case.earlier,
    )


def _alert_text(alert: Mapping[str, str]) -> str:
    """The question about an alert, as an investigation of the server asks it."""
    notes = {name: value for name, value in alert.items() if name in ALERT_ANNOTATIONS}
    labels = {name: value for name, value in alert.items() if name not in notes}
    return alert_question([Alert(fingerprint="recorded", status="firing", labels=labels, annotations=notes)])


def recording_of(cluster: Mapping[str, Any], folder: Path) -> Recording:
    """Return a compact cluster as a recording. Writes the logs into `folder`, because a recording reads them there."""
    objects = [_on_a_node(_with_version(each)) for each in (*bodies_of(cluster), *event_bodies_of(cluster))]
    objects += _definitions(objects)
    found = Assembly(
        source=folder,
        context="recording",
        objects=objects,
        changed_at=datetime.fromtimestamp(NOW, UTC),
        logs=dict(_logs(cluster, folder)),
    )
    recording = assemble(found)
    # Kinds without objects were read, too, as in a real recording.
    empty = {
        (each.group, each.plural): RecordedObjects(type=each, items=())
        for version, resource in ((kind.group_version, kind.resource) for kind in (*KINDS, EVENT))
        if (each := recording.discovery.find(*_split(version), resource)) is not None
    }
    return replace(recording, recorded_at=datetime.fromtimestamp(NOW, UTC), objects={**empty, **recording.objects})


def _split(group_version: str) -> tuple[str, str]:
    group, _, version = group_version.rpartition("/")
    return group, version


def _with_version(body: JsonObject) -> JsonObject:
    kind, written = str(body["kind"]), str(body.get("apiVersion", ""))
    group = written.partition("/")[0] if "/" in written else ""
    known = next((version for (name, own), version in _VERSIONS.items() if name == kind and group in {"", own}), None)
    return {**body, "apiVersion": known or written}


def _on_a_node(body: JsonObject) -> JsonObject:
    """Return the body of a pod whose containers have run with the name of a node, without which it has no logs."""
    if body["kind"] != "Pod" or text(body, "spec", "nodeName") or not children(body, "status", "containerStatuses"):
        return body
    return {**body, "spec": {**child(body, "spec"), "nodeName": "node-1"}}


def _definitions(objects: Sequence[JsonObject]) -> list[JsonObject]:
    """The definitions of the custom kinds, without which a scan does not read them."""
    defined = {text(each, "metadata", "name") for each in objects if each["kind"] == "CustomResourceDefinition"}
    custom: dict[str, JsonObject] = {}
    for each in objects:
        group, version = _split(text(each, "apiVersion"))
        if not group or (text(each, "kind"), group) in _VERSIONS or group.endswith(".k8s.io"):
            continue
        kind = guessed_kind(text(each, "apiVersion"), text(each, "kind"))
        scope = "Namespaced" if text(each, "metadata", "namespace") else "Cluster"
        spec: JsonObject = {
            "group": group,
            "scope": scope,
            "names": {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower()},
            "versions": [{"name": version, "served": True, "storage": True}],
        }
        name = f"{kind.plural}.{group}"
        status = {"conditions": [{"type": "Established", "status": "True"}]}
        definition: JsonObject = {"metadata": {"name": name}, "spec": spec, "status": status}
        custom[name] = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            **definition,
        }
    return [each for name, each in custom.items() if name not in defined]


def _logs(cluster: Mapping[str, Any], folder: Path) -> Iterator[tuple[LogKey, RecordedLog]]:
    """Yield the logs. While a container waits, its current log is that of its last instance."""
    folder.mkdir(parents=True, exist_ok=True)
    waiting = set(_waiting_containers(cluster))
    logs = log_texts_of(cluster)
    for number, (key, said) in enumerate(logs.items()):
        path = folder / f"{number}.log"
        content = said.encode()
        path.write_bytes(content)
        log = RecordedLog(path=path, offset_bytes=0, size_bytes=len(content), timestamps=_is_timed(said))
        place = {"namespace": key.pod.namespace, "pod": key.pod.name, "container": key.container}
        yield LogKey(**place, previous=key.previous), log
        other = replace(key, previous=not key.previous)
        if other not in logs and (key.pod.namespace, key.pod.name, key.container) in waiting:
            yield LogKey(**place, previous=other.previous), log


def _waiting_containers(cluster: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for body in bodies_of(cluster):
        for status in children(body, "status", "containerStatuses") if body["kind"] == "Pod" else ():
            if child(status, "state", "waiting"):
                yield text(body, "metadata", "namespace"), text(body, "metadata", "name"), text(status, "name")


def _is_timed(log: str) -> bool:
    """Return whether each line begins with the time at which the container wrote it."""
    return all(map(_TIMED.match, log.splitlines()))
