"""Records the objects, events and logs of a cluster to a folder.

Sends only read requests. Values of Secrets and recognised secrets are removed before anything is written. The recording
lists the resources that could not be read. It fails only if the cluster does not respond, or if nothing can be read.
The folder is created only when the recording is complete.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from holmes.kubernetes.errors import ApiError, Forbidden, NotFound
from holmes.kubernetes.fields import child, children, text
from holmes.kubernetes.kinds import checked_name
from holmes.kubernetes.scope import within
from holmes.snapshot.discovery import Discovery, ResourceType
from holmes.snapshot.log_recording import LogLimits, LogReader
from holmes.snapshot.recording import VERSION, Unread, is_recording
from holmes.snapshot.scrubbing import KnownSecrets, Scrubber
from holmes.snapshot.writer import RecordingWriter
from holmes.values.errors import ClusterUnreachable, ConfigError, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from holmes.kubernetes.client import ClusterClient
    from holmes.observability.metrics.recorded import RecordedMetrics
    from holmes.redaction.redactor import Redactor
    from holmes.snapshot.metrics_recording import MetricsLimits
    from holmes.values.json_types import JsonObject, JsonValue

_NODE_LEASES = "kube-node-lease"
_NODE_EVENTS = "default"
_CLOCK_TOLERANCE_SECONDS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """Selects what to record. If `namespaces` is empty, the whole cluster is recorded.

    Cluster-scoped objects are always recorded. `objects_per_kind` limits each list. `openapi` adds the schemas for
    `kubectl explain`, which take a few megabytes. `metrics` adds those of monitoring systems.
    """

    namespaces: tuple[str, ...] = ()
    logs: LogLimits | None = field(default_factory=LogLimits)
    openapi: bool = False
    metrics: MetricsLimits | None = None
    objects_per_kind: int = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSummary:
    """Describes a finished recording.

    `objects` lists each resource that has objects, with the number of its objects, in discovery order. `metrics` has
    those of each source.
    """

    folder: Path
    recorded_at: datetime
    objects: tuple[tuple[str, int], ...]
    logs: int
    size_bytes: int
    unread: tuple[Unread, ...]
    metrics: Mapping[str, RecordedMetrics] = field(default_factory=dict)


async def record_cluster(
    client: ClusterClient,
    folder: Path,
    options: RecordOptions,
    redactor: Redactor | None,
    progress: Callable[[str], None],
) -> RecordSummary:
    """Record the cluster of `client` to `folder`, which may be missing, empty or an older recording.

    `progress` receives short lines. Raises `ConfigError` for a folder with other content, `ClusterUnreachable` if the
    cluster does not respond or nothing can be read, and `HolmesError` if the disk is full. After an error, all files of
    the new recording are removed, and an older recording is unchanged.
    """
    options = replace(options, namespaces=within(options.namespaces, client.scope))
    async with RecordingWriter.open(folder) as writer:
        recorder = _Recorder(client, options, redactor, progress)
        version = await recorder.version()
        await recorder.check_namespaces()
        discovery = await recorder.discover()
        progress(f"reading {len(discovery.listable())} kinds of objects")
        listed = await recorder.list_all(discovery)
        recorder.refuse_empty(folder, listed)
        recorded_at = _moment_of(client)
        for kind, items in listed:
            await writer.write_objects(kind, items)
        pods = next((items for kind, items in listed if kind.qualified == "pods"), ())
        logs = await recorder.record_logs(pods, writer)
        metrics = await recorder.record_metrics(listed, recorded_at, writer)
        if options.openapi:
            await recorder.record_openapi(writer)
        await writer.write_discovery(discovery)
        await writer.write_manifest(recorder.manifest(version, recorded_at))
        size_bytes = await writer.publish()
    return RecordSummary(
        folder=folder,
        recorded_at=recorded_at,
        objects=tuple((kind.qualified, len(items)) for kind, items in listed if items),
        logs=logs,
        size_bytes=size_bytes,
        unread=tuple(recorder.unread),
        metrics=metrics,
    )


def _moment_of(client: ClusterClient) -> datetime:
    """Return the time of the cluster, which has a resolution of one second.

    If it is within 3 seconds of the local clock, the more precise local time is returned.
    """
    ours, theirs = datetime.now(UTC), client.server_seconds
    if theirs is None or abs(ours.timestamp() - theirs) < _CLOCK_TOLERANCE_SECONDS:
        return ours
    return datetime.fromtimestamp(theirs, UTC)


class _Recorder:
    """Reads the cluster for one recording, and lists what could not be read."""

    def __init__(
        self,
        client: ClusterClient,
        options: RecordOptions,
        redactor: Redactor | None,
        progress: Callable[[str], None],
    ) -> None:
        self._client = client
        self._options = options
        self._redactor = redactor
        self._progress = progress
        self._scrubber = Scrubber(redactor, KnownSecrets())
        self.unread: list[Unread] = []

    async def version(self) -> JsonObject:
        """Read the version of the server. If it cannot be read, it is empty and listed as unread."""
        try:
            return await self._client.get("/version")
        except ToolError as error:
            self._note(VERSION, "", error)
            return {}

    def manifest(self, version: JsonObject, recorded_at: datetime) -> Mapping[str, JsonValue]:
        return {
            "recordedAt": recorded_at.isoformat().replace("+00:00", "Z"),
            "serverVersion": version,
            "context": self._client.context,
            "namespace": self._client.namespace,
            "namespaces": list(self._options.namespaces),
            "unread": [asdict(each) for each in self.unread],
        }

    def refuse_empty(self, folder: Path, listed: Sequence[tuple[ResourceType, Sequence[JsonObject]]]) -> None:
        """Raise `ClusterUnreachable` if no list was read, or if most lists are missing and the others are empty.

        Such a recording would only replace a better one.
        """
        missing = [each for each in self.unread if each.resource != VERSION]
        if any(items for _, items in listed) or (listed and len(missing) <= len(listed)):
            return
        why = missing[0].reason if missing else "the API server has no lists of objects"
        if len(missing) > 1:
            why = f"{why} (the first of {len(missing):,} errors)"
        kept = "The recording was not changed" if is_recording(folder) else "Nothing was written"
        raise ClusterUnreachable(
            f"Cannot record anything from the cluster at {self._client.server}: {' '.join(why.split())}. {kept}; "
            "check the address and the permissions with `kubectl get pods`, then record again"
        )

    async def check_namespaces(self) -> None:
        """Raise `ConfigError` for a selected namespace that does not exist, because its lists would be empty."""
        for name in self._options.namespaces:
            try:
                await self._client.get(f"/api/v1/namespaces/{checked_name(name, 'namespace')}")
            except NotFound as error:
                raise ConfigError(f"namespace {name!r} does not exist in {self._client.server}") from error
            except Forbidden:
                continue  # the credentials may still allow reading its objects

    async def discover(self) -> Discovery:
        """Read the API discovery.

        If the server of a group does not respond, the group is omitted and listed as unread.
        """
        groups = await self._get_list("/apis", "groups")
        versions = [
            text(version, "groupVersion")
            for group in children(groups, "groups")
            for version in children(group, "versions")
        ]
        core, *others = await asyncio.gather(
            self._get_list("/api/v1", "resources"), *(self._resources_of(group_version) for group_version in versions)
        )
        return Discovery(groups=groups, resources=tuple(answer for answer in (core, *others) if answer is not None))

    async def _resources_of(self, group_version: str) -> JsonObject | None:
        try:
            return await self._get_list(f"/apis/{group_version}", "resources")
        except ToolError as error:
            self._note(group_version, "", error)
            return None

    async def _get_list(self, path: str, key: str) -> JsonObject:
        """Read a discovery document. Raises `ToolError` if it does not have a list at `key`, which null stands for."""
        answer = await self._client.get(path)
        if not isinstance(answer.get(key, ""), list | None):
            raise ToolError(f"GET {path}: the API server did not return a list of {key}")
        return answer

    async def list_all(self, discovery: Discovery) -> list[tuple[ResourceType, Sequence[JsonObject]]]:
        """Read, scrub and sort all objects in scope. Kinds that could not be read at all are omitted."""
        kinds = [kind for kind in discovery.listable() if kind.qualified != "events.events.k8s.io"]
        lists = await asyncio.gather(*(self._list_kind(kind) for kind in kinds))
        found = [(kind, items) for kind, items in zip(kinds, lists, strict=True) if items is not None]
        secrets = [item for kind, items in found if kind.qualified == "secrets" for item in items]
        self._scrubber = Scrubber(self._redactor, await asyncio.to_thread(KnownSecrets, secrets))
        return [(kind, await asyncio.to_thread(self._scrubbed, kind, items)) for kind, items in found]

    async def _list_kind(self, kind: ResourceType) -> Sequence[JsonObject] | None:
        """Read all objects of `kind` in scope, without scrubbing. Returns None if no list could be read."""
        namespaces: Sequence[str] = self._options.namespaces if kind.namespaced else ()
        if kind.qualified == "leases.coordination.k8s.io" and namespaces:
            namespaces = (*namespaces, _NODE_LEASES)
        parts = await asyncio.gather(*(self._list(kind, namespace) for namespace in namespaces or ("",)))
        if all(part is None for part in parts):
            return None
        if kind.qualified == "events" and namespaces:
            parts = [*parts, await self._node_events(kind)]
        return [item for part in parts if part for item in part]

    def _scrubbed(self, kind: ResourceType, items: Sequence[JsonObject]) -> Sequence[JsonObject]:
        is_secret = kind.qualified == "secrets"
        ordered = sorted(items, key=lambda item: (text(item, "metadata", "namespace"), text(item, "metadata", "name")))
        return tuple(self._scrubber.scrubbed(item, secret=is_secret) for item in ordered)

    async def _node_events(self, kind: ResourceType) -> Sequence[JsonObject] | None:
        """Read the events of nodes, which are in the namespace `default`.

        Returns None if this namespace is recorded anyway, or if the events cannot be read.
        """
        if _NODE_EVENTS in self._options.namespaces:
            return None
        return await self._list(kind, _NODE_EVENTS, {"fieldSelector": "involvedObject.kind=Node"})

    async def _list(
        self, kind: ResourceType, namespace: str, selector: Mapping[str, str] | None = None
    ) -> Sequence[JsonObject] | None:
        try:
            found = await self._client.list(kind.path(namespace), selector, limit=self._options.objects_per_kind)
        except Forbidden as error:
            if kind.qualified == "namespaces" and self._options.namespaces:
                return await self._chosen_namespaces(kind)
            self._note(kind.qualified, namespace, error)
            return None
        except ToolError as error:
            self._note(kind.qualified, namespace, error)
            return None
        if not found.complete:
            reason = f"more than {len(found.items)} objects; the others were not recorded"
            self.unread.append(
                Unread(resource=kind.qualified, namespace=namespace, forbidden=False, reason=reason, partly=True)
            )
        return found.items

    async def _chosen_namespaces(self, kind: ResourceType) -> Sequence[JsonObject] | None:
        """Read the selected namespaces by name, because the credentials do not allow listing them.

        Returns None if none can be read.
        """
        found: list[JsonObject] = []
        for name in self._options.namespaces:
            try:
                found.append(await self._client.get(f"{kind.path()}/{name}"))
            except ToolError as error:
                self._note(kind.qualified, name, error)
        return found or None

    async def record_logs(self, pods: Sequence[JsonObject], writer: RecordingWriter) -> int:
        """Record the logs of `pods` within the limits. Returns the number of recorded logs."""
        if self._options.logs is None:
            return 0
        reader = LogReader(self._client, self._options.logs, self._scrubber)
        self._progress(f"reading logs of {len(pods)} pods")
        written = 0
        async for key, content in reader.read_all(pods):
            await writer.write_log(key, content)
            written += 1
        self.unread += reader.unread
        return written

    async def record_metrics(
        self,
        listed: Sequence[tuple[ResourceType, Sequence[JsonObject]]],
        recorded_at: datetime,
        writer: RecordingWriter,
    ) -> Mapping[str, RecordedMetrics]:
        """Record the metrics of the recorded namespaces. Sources that cannot be read are listed as unread."""
        limits = self._options.metrics
        written: dict[str, RecordedMetrics] = {}
        if limits is None:
            return written
        from holmes.snapshot.metrics_recording import record_metrics

        found = {text(each, "metadata", "namespace") for kind, items in listed for each in items if kind.namespaced}
        namespaces = self._options.namespaces or tuple(sorted(found))
        count = f"{len(namespaces)} namespace{'' if len(namespaces) == 1 else 's'}"
        for access in limits.sources:
            self._progress(f"reading metrics of {count} from {access.name}")
            part = await record_metrics(
                access, limits, namespaces, recorded_at.timestamp(), self._scrubber.scrubbed_text
            )
            self.unread += part.unread
            if part.metrics is not None:
                await writer.write_metrics(access.name, part.metrics)
                written[access.name] = part.metrics
        return written

    async def record_openapi(self, writer: RecordingWriter) -> None:
        """Record the schemas of all group versions."""
        self._progress("reading the schemas")
        try:
            index = await self._client.get("/openapi/v3")
            for path in child(index, "paths"):
                await writer.write_openapi(path, await self._client.get(f"/openapi/v3/{path}"))
        except ToolError as error:
            self._note("openapi", "", error)

    def _note(self, resource: str, namespace: str, error: ToolError) -> None:
        reason = error.detail if isinstance(error, ApiError) and error.detail else str(error)
        forbidden = isinstance(error, Forbidden)
        self.unread.append(Unread(resource=resource, namespace=namespace, forbidden=forbidden, reason=reason))
