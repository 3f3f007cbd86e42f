"""Starts and stops the server of a recording in the event loop of the caller.

Listens only on 127.0.0.1. The kubeconfig is in a private folder that is removed when the server stops.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import shutil
import socket
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holmes.snapshot.private_folder import private_folder
from holmes.snapshot.recording import Recording
from holmes.snapshot.server.metrics_api import METRICS_PATH
from holmes.snapshot.sources import load_snapshot
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    import uvicorn

    from holmes.redaction.redactor import Redactor

_log = logging.getLogger(__name__)

_ADDRESS = "127.0.0.1"
_BACKLOG = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotServer:
    """A running server. `url` is the address in the kubeconfig, and `namespace` is the default namespace in it.

    `metrics` has the address of the Prometheus API for each source of metrics in the recording.
    """

    url: str
    kubeconfig: Path
    recorded_at: datetime
    namespace: str
    metrics: Mapping[str, str] = field(default_factory=dict)


@asynccontextmanager
async def serve_snapshot(
    source: Path | Recording, *, port: int = 0, redactor: Redactor | None = None
) -> AsyncIterator[SnapshotServer]:
    """Serve a recording, or any other source that `load_snapshot` reads, until the block ends.

    `port` 0 selects a free port. `redactor` masks secrets in the files of other tools. Logs a warning for content that
    cannot be used. Does not handle signals. Raises `ConfigError` if the source cannot be read or the port is in use.
    """
    folder = await asyncio.to_thread(private_folder)
    try:
        recording = (
            source
            if isinstance(source, Recording)
            else await asyncio.to_thread(load_snapshot, source, scratch=folder, redactor=redactor)
        )
        for note in recording.notes:
            _log.warning("%s: %s", recording.source, note)
        async with _served(recording, folder, port) as server:
            yield server
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


@asynccontextmanager
async def _served(recording: Recording, folder: Path, port: int) -> AsyncIterator[SnapshotServer]:
    """Serve a recording. `folder` is for the kubeconfig."""
    listener = _listen(port)
    closing = asyncio.Event()
    # kubectl caches discovery by address for hours, so each recording has its own path.
    prefix = f"recording-{_fingerprint(recording)}"
    server = await asyncio.to_thread(_make_server, recording, prefix, closing)
    url = f"http://{_ADDRESS}:{listener.getsockname()[1]}/{prefix}"
    task = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        namespace = recording.namespaces[0] if len(recording.namespaces) == 1 else recording.namespace
        kubeconfig = folder / "kubeconfig"
        _write_kubeconfig(kubeconfig, url, namespace, recording.context or "recording")
        yield SnapshotServer(
            url=url,
            kubeconfig=kubeconfig,
            recorded_at=recording.recorded_at,
            namespace=namespace,
            metrics={name: f"{url}/{METRICS_PATH}/{place}" for place, name in enumerate(recording.metrics)},
        )
    finally:
        closing.set()
        server.should_exit = True
        await asyncio.wait({task})
        listener.close()


def _make_server(recording: Recording, prefix: str, closing: asyncio.Event) -> uvicorn.Server:
    # Imported here because both imports take 150 ms and only a server needs them.
    import uvicorn

    from holmes.snapshot.server.api import SnapshotApp

    class SignalFreeServer(uvicorn.Server):
        """A server that leaves signal handling to the caller."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(
        SnapshotApp(recording, prefix=prefix, closing=closing),
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        date_header=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    return SignalFreeServer(config)


def _listen(port: int) -> socket.socket:
    """Open a socket that already accepts connections, so that clients need not wait for the server."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_ADDRESS, port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else "it is not a valid port"
        raise ConfigError(
            f"port {port} of {_ADDRESS} cannot be used: {reason}; choose another port or omit it"
        ) from error
    listener.setblocking(False)  # noqa: FBT003  the interface of sockets
    return listener


def _fingerprint(recording: Recording) -> str:
    discovery = recording.discovery
    content = json.dumps([discovery.groups, discovery.resources], sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()[:10]


def _write_kubeconfig(path: Path, url: str, namespace: str, context: str) -> None:
    """Write the kubeconfig as JSON, which is valid YAML and avoids quoting problems."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": "recording", "cluster": {"server": url}}],
        "users": [{"name": "reader", "user": {}}],
        "contexts": [{"name": context, "context": {"cluster": "recording", "user": "reader", "namespace": namespace}}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=1) + "\n")
