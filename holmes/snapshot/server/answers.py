"""Responds to requests for logs and discovery documents.

Discovery documents are returned as recorded, or aggregated into one document.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import boolean, child, children, nanoseconds, text, text_map, texts
from holmes.snapshot.recorded_logs import LogKey, LogQuery, select
from holmes.snapshot.server.responses import ApiFailure, bad_request, no_such_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holmes.snapshot.discovery import Discovery
    from holmes.snapshot.recording import Recording
    from holmes.values.json_types import JsonObject, JsonValue

_DEPRECATED: Final = {
    ("", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
    ("", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
_CORE_VERSIONS: JsonObject = {
    "kind": "APIVersions",
    "versions": ["v1"],
    "serverAddressByClientCIDRs": [],
}


def deprecation(group: str, plural: str) -> str:
    """Return the warning for a deprecated kind, or "" for other kinds."""
    return _DEPRECATED.get((group, plural), "")


def plain_answer(discovery: Discovery, parts: tuple[str, ...]) -> JsonObject:
    """Return the response for `/api`, `/apis`, `/api/v1`, `/apis/GROUP` or `/apis/GROUP/VERSION`.

    Raises `ApiFailure` for any other path.
    """
    match parts:
        case ("api",):
            return _CORE_VERSIONS
        case ("apis",):
            return discovery.groups
        case ("api", version):
            found = discovery.resource_list(version)
        case ("apis", group):
            groups = children(discovery.groups, "groups")
            named = next((each for each in groups if text(each, "name") == group), None)
            found = None if named is None else {"kind": "APIGroup", "apiVersion": "v1", **named}
        case ("apis", group, version):
            found = discovery.resource_list(f"{group}/{version}")
        case _:
            found = None
    if found is None:
        raise no_such_path()
    return found


def aggregated_answer(discovery: Discovery, root: str) -> JsonObject:
    """Return all groups under `/api` or `/apis` with their resources in one document."""
    if root == "api":
        items: list[JsonValue] = [_group(discovery, "", ["v1"])]
    else:
        items = [
            _group(discovery, text(group, "name"), [text(each, "version") for each in children(group, "versions")])
            for group in children(discovery.groups, "groups")
        ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _group(discovery: Discovery, name: str, versions: list[str]) -> JsonObject:
    return {
        "metadata": {"name": name} if name else {},
        "versions": [
            {"version": version, "resources": _resources(found, name, version), "freshness": "Current"}
            for version in versions
            for found in (discovery.resource_list(f"{name}/{version}" if name else version),)
            if found is not None
        ],
    }


def _resources(found: JsonObject, group: str, version: str) -> list[JsonValue]:
    entries = children(found, "resources")
    return [
        {
            "resource": text(entry, "name"),
            "responseKind": _kind(entry, group, version),
            "scope": "Namespaced" if boolean(entry, "namespaced") else "Cluster",
            "singularResource": text(entry, "singularName"),
            "verbs": texts(entry, "verbs"),
            "shortNames": texts(entry, "shortNames"),
            "categories": texts(entry, "categories"),
            "subresources": [
                {
                    "subresource": text(below, "name").partition("/")[2],
                    "responseKind": _kind(below, group, version),
                    "verbs": texts(below, "verbs"),
                }
                for below in entries
                if text(below, "name").startswith(f"{text(entry, 'name')}/")
            ],
        }
        for entry in entries
        if "/" not in text(entry, "name")
    ]


def _kind(entry: JsonObject, group: str, version: str) -> JsonObject:
    return {
        "group": text(entry, "group") or group,
        "version": text(entry, "version") or version,
        "kind": text(entry, "kind"),
    }


_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_GROUPS = (
    ("containers", "containerStatuses"),
    ("initContainers", "initContainerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
)


def log_answer(recording: Recording, pod: JsonObject, query: Mapping[str, str]) -> bytes:
    """Return the requested part of a container log of `pod`. Raises `ApiFailure`."""
    namespace, name = text(pod, "metadata", "namespace"), text(pod, "metadata", "name")
    container = _container(pod, query.get("container", ""))
    previous = _flag(query, "previous")
    if not text(pod, "spec", "nodeName"):
        return b""  # the pod is not scheduled, so the API server returns an empty log
    key = LogKey(namespace=namespace, pod=name, container=container, previous=previous)
    recorded = recording.logs.get(key)
    if recorded is None and child(_status_of(pod, container), "state", "waiting"):
        recorded = recording.logs.get(replace(key, previous=not previous))  # both are the log of its last instance
    if recorded is None:
        raise _no_log(recording, pod, key)
    try:
        return select(recorded, _query(recording, query))
    except OSError as error:
        message = f"the log {str(recorded.path)!r} cannot be read: {error.strerror}"
        raise ApiFailure(500, "InternalError", message) from error


def _container(pod: JsonObject, wanted: str) -> str:
    """Return the name of the container to read.

    The request can omit the name if the pod has only one container, or a default container.
    """
    name = text(pod, "metadata", "name")
    known = [text(each, "name") for group, _ in _GROUPS for each in children(pod, "spec", group)]
    if wanted:
        if wanted not in known:
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    default = text_map(pod, "metadata", "annotations").get(_DEFAULT_CONTAINER, "")
    if default in known:
        return default
    main = [text(each, "name") for each in children(pod, "spec", "containers")]
    if len(main) == 1 and len(known) == 1:
        return main[0]
    choices = f"[{' '.join(main)}]"
    init = [text(each, "name") for each in children(pod, "spec", "initContainers")]
    others = f" or one of the init containers: [{' '.join(init)}]" if init else ""
    raise bad_request(f"a container name must be specified for pod {name}, choose one of: {choices}{others}")


def _no_log(recording: Recording, pod: JsonObject, key: LogKey) -> ApiFailure:
    """Create the error for a missing log.

    Its message is the kubelet's message, or states that the log was not recorded.
    """
    status = _status_of(pod, key.container)
    last = child(status, "lastState")
    if key.previous and "terminated" not in last:
        message = f'previous terminated container "{key.container}" in pod "{key.pod}" not found'
        return bad_request(message)
    waiting = child(status, "state", "waiting")
    if waiting and "terminated" not in last:
        return bad_request(_waiting(key, text(waiting, "reason")))
    if not status:
        return bad_request(f'container "{key.container}" in pod "{key.pod}" is not available')
    which = f"{key.pod}/{key.container}{' (previous)' if key.previous else ''}: "
    reasons = (each.reason.removeprefix(which) for each in recording.unread if each.reason.startswith(which))
    why = next(reasons, "logs are not part of this recording")
    return ApiFailure(404, "NotFound", f"the log was not recorded: {why}")


def _waiting(key: LogKey, reason: str) -> str:
    start = f'container "{key.container}" in pod "{key.pod}" is waiting to start'
    pulling = {"ErrImagePull": "image can't be pulled", "ImagePullBackOff": "trying and failing to pull image"}
    return f"{start}: {pulling.get(reason, reason)}"


def _status_of(pod: JsonObject, container: str) -> JsonObject:
    return next((each for each in _statuses(pod) if text(each, "name") == container), {})


def _statuses(pod: JsonObject) -> Iterator[JsonObject]:
    for _, group in _GROUPS:
        yield from children(pod, "status", group)


def _query(recording: Recording, query: Mapping[str, str]) -> LogQuery:
    since = None
    if "sinceTime" in query:
        since = nanoseconds(query["sinceTime"])
        if since is None:
            raise bad_request(
                f"sinceTime: {query['sinceTime']!r} is not a valid time; expected for example 2026-01-31T12:00:00Z"
            )
    elif (seconds := _number(query, "sinceSeconds")) is not None:
        since = int((recording.recorded_at.timestamp() - seconds) * 1_000_000_000)
    return LogQuery(
        tail_lines=_number(query, "tailLines"),
        since_nanoseconds=since,
        limit_bytes=_number(query, "limitBytes"),
        timestamps=_flag(query, "timestamps"),
    )


def _number(query: Mapping[str, str], name: str) -> int | None:
    value = query.get(name, "")
    if not value:
        return None
    if not value.isdigit():
        raise bad_request(f"{name}: {value!r} is not a number")
    return int(value)


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "").lower() in {"true", "1"}
