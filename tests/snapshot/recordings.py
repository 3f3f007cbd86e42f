"""Small recordings for tests, and a client for the server of one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from holmes.snapshot.assembly import Assembly, assemble
from holmes.snapshot.recorded_logs import LogKey, RecordedLog
from holmes.snapshot.recording import Recording
from holmes.snapshot.server.access_reviews import Subject
from holmes.snapshot.server.api import Answer, Api, ApiRequest, failure_answer
from holmes.snapshot.server.responses import ApiFailure
from holmes.snapshot.server.serving import serve_snapshot

RECORDED_AT = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def thing(
    kind: str,
    name: str,
    *,
    version: str = "v1",
    namespace: str = "shop",
    **parts: Any,  # noqa: ANN401  any field
) -> dict[str, Any]:
    """An object, created an hour before the recording. `labels` go into the metadata."""
    labels = {"labels": parts.pop("labels")} if "labels" in parts else {}
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": "2026-01-31T11:00:00Z", **labels}
    return {"apiVersion": version, "kind": kind, **parts, "metadata": {**metadata, **parts.get("metadata", {})}}


def recording(
    *objects: Mapping[str, Any], logs: Mapping[LogKey, RecordedLog] | None = None, namespaces: Sequence[str] = ()
) -> Recording:
    """A recording of `objects`, made at `RECORDED_AT`."""
    clock = thing("Event", "clock", lastTimestamp="2026-01-31T12:00:00Z", involvedObject={"kind": "Pod"})
    return assemble(
        Assembly(
            source=Path("test"),
            context="test",
            objects=(*objects, clock),
            changed_at=RECORDED_AT,
            namespaces=tuple(namespaces),
            logs=logs or {},
        )
    )


@asynccontextmanager
async def api_of(source: Recording | Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client for the server of a recording."""
    async with (
        serve_snapshot(source) as server,
        httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=10) as client,
    ):
        yield client


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the API answered, without HTTP between."""

    status_code: int
    body: Any


def ask(
    source: Recording,
    path: str,
    query: Mapping[str, str] | None = None,
    *,
    caller: Subject | None = None,
    body: bytes | None = None,
    accept: str = "",
) -> Asked:
    """What the API of a recording answers to a GET, or to a POST of `body`."""
    method = "GET" if body is None else "POST"
    request = ApiRequest(
        method=method,
        path=path,
        query=query or {},
        accept=accept,
        body=body or b"",
        impersonated=caller or Subject(),
    )
    try:
        answer = Api(source).answer(request)
    except ApiFailure as failure:
        answer = failure_answer(failure)
    assert isinstance(answer, Answer)
    return Asked(status_code=answer.status_code, body=json.loads(answer.body))


def names(source: Recording, path: str, query: Mapping[str, str] | None = None) -> list[str]:
    """The names of the objects in a list."""
    answer = ask(source, path, query)
    assert answer.status_code == 200, answer.body
    return [item["metadata"]["name"] for item in answer.body["items"]]
