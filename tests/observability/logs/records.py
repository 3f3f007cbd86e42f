"""Lines of containers as collectors store them, for the sources of logs of the tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

import httpx

from holmes.observability.logs.source import rfc3339
from tests.observability.logs.loki import Entry

BEGIN: Final = 1_767_348_000  # 2026-01-02T10:00:00Z
COLLECTORS: Final = {
    "fluent-bit": ("kubernetes.namespace_name", "kubernetes.pod_name", "kubernetes.container_name"),
    "vector": ("kubernetes.pod_namespace", "kubernetes.pod_name", "kubernetes.container_name"),
    "filebeat": ("kubernetes.namespace", "kubernetes.pod.name", "kubernetes.container.name"),
    "opentelemetry": ("k8s.namespace.name", "k8s.pod.name", "k8s.container.name"),
    "promtail": ("namespace", "pod", "container"),
    "own": ("ns", "podname", "c"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a container, with its time in seconds after `BEGIN`. Collectors of one store have days of their own."""

    at: float
    text: str
    pod: str
    namespace: str = "shop"
    container: str = "app"
    level: str = ""
    cluster: str = ""

    @property
    def at_ns(self) -> int:
        return BEGIN * 1_000_000_000 + round(self.at * 1_000) * 1_000_000


def flat(line: Line, collector: str) -> dict[str, str]:
    """Return the fields of a line without its time and text."""
    places = dict(zip(COLLECTORS[collector], (line.namespace, line.pod, line.container), strict=True))
    others = {"level": line.level, "cluster": line.cluster}
    return {**places, **{name: value for name, value in others.items() if value}}


def send_to_victoria_logs(url: str, lines: list[Line], collector: str) -> None:
    """Store lines, and wait until queries see them."""
    rows = (json.dumps({"_time": rfc3339(e.at_ns), "_msg": e.text, **flat(e, collector)}) for e in lines)
    kind = {"Content-Type": "application/stream+json"}
    pod = COLLECTORS[collector][1]
    content = "\n".join(rows).encode()
    sent = httpx.post(
        f"{url}/insert/jsonline", params={"_stream_fields": pod}, content=content, headers=kind, timeout=60
    )
    sent.raise_for_status()
    httpx.get(f"{url}/internal/force_flush", timeout=60).raise_for_status()


def send_to_search_engine(url: str, index: str, lines: list[Line], collector: str) -> None:
    """Store lines in a new index, in the order of the lines, and wait until searches see them."""
    body: list[str] = []
    for line in lines:
        document: dict[str, object] = {"@timestamp": rfc3339(line.at_ns), "message": line.text}
        for name, value in flat(line, collector).items():
            place, *path = reversed(name.split("."))
            inner: dict[str, object] = document
            for step in reversed(path):
                inner = inner.setdefault(step, {})  # type: ignore[assignment]
            inner[place] = value
        body += [json.dumps({"create": {}}), json.dumps(document)]
    kind = {"Content-Type": "application/x-ndjson"}
    content = "\n".join([*body, ""]).encode()
    sent = httpx.post(f"{url}/{index}/_bulk?refresh=true", content=content, headers=kind, timeout=60)
    assert not sent.raise_for_status().json()["errors"], sent.text[:500]


def entries(lines: list[Line], collector: str) -> list[Entry]:
    """Return the lines for the stand-in of Loki, whose labels have no dots. The level is not a label."""
    return [
        Entry(
            at_ns=line.at_ns,
            text=line.text,
            labels={name.replace(".", "_"): value for name, value in flat(line, collector).items() if name != "level"},
        )
        for line in lines
    ]
