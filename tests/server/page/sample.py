"""Fills a database with what the page has to show: ordinary incidents, and texts that want to break it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, insert, update

from holmes.app.serving import Service
from holmes.investigations.records.records import add_investigation
from holmes.investigations.records.schema import ALERTS, DELIVERIES, EVENTS, INCIDENTS, INVESTIGATIONS
from holmes.investigations.records.values import (
    IncidentId,
    InvestigationId,
    NewInvestigation,
    labels_to_json,
    stats_to_json,
)
from holmes.investigations.records.wire_events import wire_events
from holmes.values.events import (
    AgentEvent,
    AnswerFinished,
    AssistantReplied,
    Citation,
    ModelSwitched,
    TokensCounted,
    ToolCallFinished,
    ToolCallStarted,
)
from holmes.values.messages import AssistantMessage, StoredResult, Text, ToolCall, ToolCallId, ToolMessage, ToolStatus
from holmes.values.stats import RequestStats
from tests.server.page import hostile

MODEL = "claude-sonnet-4-5"
NOTHING = ToolCall(id=ToolCallId("call-0"), name="kubectl_get", arguments="{}")
DESCRIBED = """Name:             checkout-7c9d5b6f4-x2x8k
Namespace:        payments
Node:             node-3/10.0.3.14
Status:           Running
Containers:
  checkout:
    Image:          registry.example/checkout:2.14.0
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       Error
      Exit Code:    78
    Restart Count:  14
    Environment Variables from:
      checkout-config  ConfigMap  Optional: false
Events:
  Type     Reason   Age                  From     Message
  Warning  BackOff  2m (x61 over 14m)    kubelet  Back-off restarting failed container checkout
"""
LOGGED = "\n".join(
    [
        f"2026-05-04T03:1{minute}:0{second}Z INFO  checkout starting version=2.14.0 pid=1"
        for minute in range(6)
        for second in range(9)
    ]
    + ['2026-05-04T03:16:02Z FATAL checkout: required setting "DATABASE_HOST" is not set; exiting with 78']
)
ANSWER = """**`checkout` cannot start because its ConfigMap lost `DATABASE_HOST`.** The container exits with code 78 \
right after it starts [[{pod}:9-12]] and says why in its last line [[{logs}:55]].

### What happened
1. At 03:02 UTC `checkout-config` was replaced by release 2.14.0; the key `DATABASE_HOST` became `DATABASE_HOSTNAME`.
2. The new pods read only the old name, so they exit; the kubelet backs off [[{pod}:18]].

### What to do
```bash
kubectl -n payments rollout undo deployment/checkout
```

| Workload | Ready | Restarts |
|---|--:|--:|
| `checkout` | 0 of 3 | 14 |
| `checkout-worker` | 2 of 2 | 0 |
"""


@dataclass(slots=True, kw_only=True)
class Sample:
    """Ids of what was put in, by a word."""

    incidents: dict[str, IncidentId] = field(default_factory=dict)
    investigations: dict[str, InvestigationId] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)


async def fill(service: Service) -> Sample:
    """Put everything in."""
    sample = Sample()
    outputs = {"pod": DESCRIBED, "logs": LOGGED, "hostile": hostile.OUTPUT, "long": _long_output()}
    stored = {name: await _store(service, name, text) for name, text in outputs.items()}
    sample.results = {name: result.id for name, result in stored.items()}
    await service.database.transaction(lambda connection: _ordinary(connection, sample, stored))
    await service.database.transaction(lambda connection: _hostile(connection, sample, stored))
    return sample


async def fill_many(service: Service, count: int) -> None:
    """Put in as many incidents, each with an alert and an investigation."""

    def write(connection: Connection) -> None:
        now = time.time()
        for number in range(count):
            identity = add_incident(connection, f"many-{number:04}", f"KubeJobFailed batch-{number:04}", now - number)
            add_one(connection, f"job {number}", "answered", incident=identity, answer="It ran out of memory.")

    await service.database.transaction(write)


def add_incident(
    connection: Connection, identity: str, title: str, at: float, *, severity: str = "warning", **columns: object
) -> IncidentId:
    """An incident with one firing alert of the same name."""
    alertname = title.split(maxsplit=1)[0]
    labels = {"alertname": alertname, "namespace": "payments", "severity": severity, "cluster": "prod-eu-1"}
    values = {
        "id": identity, "group_key": identity, "title": title, "state": "open", "severity": severity,
        "route": "default", "labels": labels_to_json(labels), "opened_at": at - 840, "updated_at": at, **columns,
    }  # fmt: skip
    connection.execute(insert(INCIDENTS).values(**values))
    add_alert(connection, identity, f"{identity}-1", labels, at, resolved=values["state"] == "closed")
    return IncidentId(identity)


def add_alert(
    connection: Connection,
    incident: str,
    fingerprint: str,
    labels: dict[str, str],
    at: float,
    *,
    resolved: bool = False,
) -> None:
    """An alert of an incident."""
    annotations = {
        "summary": "Pod payments/checkout-7c9d5b6f4-x2x8k is restarting 2.1 times / 10 minutes.",
        "runbook_url": "https://runbooks.example/kubepodcrashlooping",
    }
    connection.execute(
        insert(ALERTS).values(
            fingerprint=fingerprint, incident_id=incident, status="resolved" if resolved else "firing",
            labels=labels_to_json(labels), annotations=labels_to_json(annotations), starts_at=at - 900,
            generator_url="http://prometheus.example/graph?g0.expr=up", received=7, first_seen=at - 840, last_seen=at,
        )
    )  # fmt: skip


def add_delivery(
    connection: Connection, incident: str, investigation: str, destination: str, **columns: object
) -> None:
    """A message about an answer."""
    values: dict[str, object] = {"state": "waiting", "attempts": 1, "gave_up": False, **columns}
    connection.execute(
        insert(DELIVERIES).values(
            key=f"{incident}/{destination}", destination=destination, event="answered", incident_id=incident,
            investigation_id=investigation, created_at=time.time() - 120, due_at=time.time(), **values,
        )
    )  # fmt: skip


def add_one(
    connection: Connection, title: str, state: str, *, incident: IncidentId | None = None, **columns: object
) -> InvestigationId:
    """An investigation in any state."""
    now = time.time()
    new = NewInvestigation(
        question=f"Alert: {title}\nFind out why.", title=title, source="alertmanager" if incident else "api",
        incident_id=incident, route="default" if incident else "", namespace="payments",
    )  # fmt: skip
    identity = add_investigation(connection, new, now)
    is_final = state in {"answered", "failed", "cancelled"}
    stats = RequestStats(prompt_tokens=182_400, completion_tokens=6_120, cached_tokens=151_000, cost=0.1834, calls=9)
    values: dict[str, object] = {
        "state": state,
        "attempts": 0 if state == "queued" else 1,
        "started_at": None if state == "queued" else now - 74,
        "finished_at": now - 3 if is_final else None,
        "replica": None if state == "queued" else "holmes-5f7c8-a1b2c3d4",
        "answered_by": MODEL if state == "answered" else None,
        **({"stats": stats_to_json(stats), "cost": stats.cost} if state in {"answered", "failed"} else {}),
        **columns,
    }
    connection.execute(update(INVESTIGATIONS).where(INVESTIGATIONS.c.id == identity).values(**values))
    return identity


def add_events(connection: Connection, identity: InvestigationId, events: Sequence[AgentEvent]) -> None:
    """Keep events as the worker does, three seconds apart."""
    wires = [wire for event in events for wire in wire_events(event)]
    begin = time.time() - 72
    for number, wire in enumerate(wires):
        add_raw_event(connection, identity, wire.name, json.dumps(wire.data, ensure_ascii=False), begin + 3 * number)


def add_raw_event(connection: Connection, identity: InvestigationId, name: str, data: str, at: float) -> None:
    """Keep an event of any name and content."""
    key = f"{name}:{at}:{time.monotonic_ns()}"
    connection.execute(insert(EVENTS).values(investigation_id=identity, key=key, name=name, at=at, data=data))


def call(number: int, description: str, name: str = "kubectl_get") -> ToolCallStarted:
    """A tool call begins."""
    tool_call = ToolCall(id=ToolCallId(f"call-{number}"), name=name, arguments="{}")
    return ToolCallStarted(call=tool_call, toolset="kubernetes/core", description=description)


def result(
    started: ToolCallStarted, text: str, *stored: StoredResult, status: ToolStatus = "success", seconds: float = 0.4
) -> ToolCallFinished:
    """The same tool call ends."""
    return ToolCallFinished(
        call=started.call,
        toolset=started.toolset,
        description=started.description,
        message=ToolMessage(
            call_id=started.call.id, tool_name=started.call.name, status=status, parts=(Text(text=text),), stored=stored
        ),
        invocation=started.description,
        error=text if status == "error" else None,
        elapsed_seconds=seconds,
    )


def counted(tokens: int, cost: float) -> TokensCounted:
    """How full the window is."""
    return TokensCounted(prompt_tokens=tokens, context_window_tokens=200_000, stats=RequestStats(cost=cost, calls=1))


def said(text: str) -> AssistantReplied:
    """What the model said before a tool call."""
    message = AssistantMessage(text=text, tool_calls=(NOTHING,))
    return AssistantReplied(message=message, stats=RequestStats(), model=MODEL)


async def _store(service: Service, name: str, text: str) -> StoredResult:
    assert service.results is not None
    content = text.encode("utf-8", "replace")
    return await service.results.put(
        content, tool_name="kubectl", call_id=ToolCallId(f"stored-{name}"), media_type="text/plain"
    )


def _long_output() -> str:
    return "\n".join(f"line {number} of a long output" for number in range(1, 1_501))


def _ordinary(connection: Connection, sample: Sample, stored: dict[str, StoredResult]) -> None:
    now = time.time()
    ids = {name: result.id for name, result in stored.items()}
    answer = ANSWER.format(**ids)
    cause = answer.splitlines()[0].replace("**", "").replace("`", "")
    crash = add_incident(connection, "inc-crash", "KubePodCrashLooping payments/checkout", now - 130,
                         severity="critical", root_cause=cause)  # fmt: skip
    node = add_incident(connection, "inc-node", "NodeMemoryPressure node-7", now - 20, severity="warning")
    add_incident(connection, "inc-cert", "CertificateExpiresSoon shop.example", now - 9_000, severity="info")
    disk = add_incident(connection, "inc-disk", "KubePersistentVolumeFillingUp logging/loki-0", now - 90_000,
                        severity="critical", state="closed", closed_at=now - 90_000,
                        root_cause="Loki's volume is full: retention was switched off in release 6.2.")  # fmt: skip
    sample.incidents.update({"crash": crash, "node": node, "disk": disk})
    answered = add_one(connection, "KubePodCrashLooping payments/checkout", "answered", incident=crash, answer=answer,
                       max_cost=0.5)  # fmt: skip
    add_events(connection, answered, _crash_events(stored, answer))
    add_delivery(connection, crash, answered, "slack", state="delivered", delivered_at=now - 100)
    add_delivery(connection, crash, answered, "webhook", last_error="HTTP 503 from the destination")
    running = add_one(connection, "NodeMemoryPressure node-7", "running", incident=node)
    first = call(1, "kubectl describe node node-7")
    add_events(connection, running, [first, result(first, "MemoryPressure True"), counted(24_100, 0.012),
                                     call(2, "kubectl top pods -A --sort-by=memory")])  # fmt: skip
    add_one(connection, "NodeMemoryPressure node-7: kubelet evicts pods", "queued", incident=node)
    sample.investigations.update({"answered": answered, "running": running})
    sample.investigations["failed"] = add_one(
        connection, "Why is the nightly backup slow?", "failed",
        error="The cluster did not answer for 600 s: connect to 10.0.0.1:6443 refused.")  # fmt: skip
    sample.investigations["triage"] = add_one(
        connection, "KubePersistentVolumeFillingUp logging/loki-0", "answered", incident=disk,
        answer="Loki's volume is full because retention was switched off in release 6.2.", answered_by="builtin/triage",
        without_llm="the limit of $20 for today is spent")  # fmt: skip
    add_one(connection, "Is ingress-nginx healthy after the upgrade?", "cancelled", error="Cancelled.")


def _crash_events(stored: dict[str, StoredResult], answer: str) -> list[AgentEvent]:
    pods, described = call(1, "kubectl get pods -n payments"), call(2, "kubectl describe pod checkout-7c9d5b6f4-x2x8k")
    logs = call(3, "kubectl logs checkout-7c9d5b6f4-x2x8k --previous", "fetch_pod_logs")
    releases = call(4, "helm history checkout -n payments", "helm_history")
    cited = Citation(result_id=stored["logs"].id, first_line=55, last_line=55,
                     claim='The container says that "DATABASE_HOST" is not set.')  # fmt: skip
    return [
        said("I start with the pods of the namespace and what the kubelet says about them."),
        pods,
        result(pods, "NAME  READY  STATUS\ncheckout-7c9d5b6f4-x2x8k  0/1  CrashLoopBackOff"),
        described,
        logs,
        result(described, DESCRIBED, stored["pod"], seconds=0.61),
        result(logs, LOGGED, stored["logs"], seconds=1.24),
        counted(31_200, 0.041),
        ModelSwitched(from_model="gpt-5", to_model=MODEL, reason="429: rate limit"),
        said("Exit code 78 and the log agree: a setting is missing. I check which release changed the ConfigMap."),
        releases,
        result(releases, "Error: release: not found", status="error", seconds=2.7),
        counted(86_400, 0.1834),
        AnswerFinished(text=answer, messages=(), stats=RequestStats(), steps=4, model=MODEL, citations=(cited,)),
    ]  # fmt: skip


def _hostile(connection: Connection, sample: Sample, stored: dict[str, StoredResult]) -> None:
    now = time.time()
    incident = add_incident(connection, "inc-hostile", hostile.TITLE, now - 500, severity=hostile.SEVERITY,
                            root_cause=hostile.CAUSE)  # fmt: skip
    add_alert(connection, incident, "hostile-2", hostile.LABELS, now)
    identity = add_one(connection, hostile.TITLE, "answered", incident=incident,
                       answer=hostile.ANSWER.replace("RESULT", stored["hostile"].id))  # fmt: skip
    started = call(9, hostile.TITLE)
    events: list[AgentEvent] = [said(hostile.ANSWER), started, result(started, hostile.OUTPUT, stored["hostile"])]
    add_events(connection, identity, events)
    for number, (name, data) in enumerate(hostile.RAW_EVENTS):
        add_raw_event(connection, identity, name, data, now + number)
    sample.incidents["hostile"], sample.investigations["hostile"] = incident, identity
