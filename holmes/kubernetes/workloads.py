"""Finds one pod by name, or the pods of a workload at any depth of ownership.

If a name does not exist, the error lists similar names. A `PodView` contains only the fields that explain the state of
the pod.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from holmes.kubernetes.cluster_object import owner_of
from holmes.kubernetes.errors import Forbidden, NotFound
from holmes.kubernetes.fields import boolean, child, children, integer, text, text_map, texts
from holmes.kubernetes.kinds import api_path
from holmes.kubernetes.nearest_names import NamedPlace, with_nearest_names
from holmes.values.errors import ToolError
from holmes.values.steps import concurrently

if TYPE_CHECKING:
    from holmes.kubernetes.client import ClusterClient
    from holmes.values.json_types import JsonObject

ContainerRole: TypeAlias = Literal["init", "container", "ephemeral"]

_ROLES: tuple[tuple[ContainerRole, str, str], ...] = (
    ("init", "initContainers", "initContainerStatuses"),
    ("container", "containers", "containerStatuses"),
    ("ephemeral", "ephemeralContainers", "ephemeralContainerStatuses"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """The state of a container. Times are in RFC 3339 format, or empty if unknown."""

    status: Literal["waiting", "running", "terminated", "unknown"]
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    started_at: str = ""
    finished_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerView:
    """One container of a pod. `last` is the state of its previous instance, if Kubernetes still reports it."""

    name: str
    role: ContainerRole
    image: str
    ready: bool
    restarts: int
    state: ContainerState
    last: ContainerState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """One pod. `containers` are in start order: init, main, ephemeral.

    `problem` explains why the pod as a whole is not running, for example because it was evicted. Otherwise, it is
    empty.
    """

    name: str
    namespace: str
    phase: str
    node: str
    problem: str
    containers: tuple[ContainerView, ...]

    @property
    def ready(self) -> bool:
        """Whether all main containers are ready, or the pod has completed."""
        return self.phase == "Succeeded" or all(
            container.ready for container in self.containers if container.role == "container"
        )

    @property
    def restarts(self) -> int:
        """The total number of restarts of all containers."""
        return sum(container.restarts for container in self.containers)


def _pod_view(pod: JsonObject) -> PodView:
    metadata, spec, status = child(pod, "metadata"), child(pod, "spec"), child(pod, "status")
    containers = [
        _container(role, container, statuses.get(text(container, "name"), {}))
        for role, spec_key, status_key in _ROLES
        for statuses in ({text(entry, "name"): entry for entry in children(status, status_key)},)
        for container in children(spec, spec_key)
    ]
    return PodView(
        name=text(metadata, "name"),
        namespace=text(metadata, "namespace"),
        phase=text(status, "phase"),
        node=text(spec, "nodeName"),
        problem=_problem(status),
        containers=tuple(containers),
    )


def _problem(status: JsonObject) -> str:
    if text(status, "reason") or text(status, "message"):
        return _joined(text(status, "reason"), text(status, "message"))
    for condition in children(status, "conditions"):
        if text(condition, "type") == "PodScheduled" and text(condition, "status") == "False":
            return _joined("not scheduled", text(condition, "message"))
    return ""


def _container(role: ContainerRole, container: JsonObject, status: JsonObject) -> ContainerView:
    last = _state(child(status, "lastState"))
    return ContainerView(
        name=text(container, "name"),
        role=role,
        image=text(container, "image"),
        ready=boolean(status, "ready"),
        restarts=integer(status, "restartCount"),
        state=_state(child(status, "state")),
        last=last if last.status == "terminated" else None,
    )


def _state(state: JsonObject) -> ContainerState:
    if "running" in state:
        return ContainerState(status="running", started_at=text(state, "running", "startedAt"))
    if "terminated" in state:
        ended = child(state, "terminated")
        return ContainerState(
            status="terminated",
            reason=text(ended, "reason"),
            message=" ".join(text(ended, "message").split()),
            exit_code=integer(ended, "exitCode"),
            started_at=text(ended, "startedAt"),
            finished_at=text(ended, "finishedAt"),
        )
    if "waiting" in state:
        waiting = child(state, "waiting")
        message = " ".join(text(waiting, "message").split())
        return ContainerState(status="waiting", reason=text(waiting, "reason"), message=message)
    return ContainerState(status="unknown")


def _joined(reason: str, message: str) -> str:
    return ": ".join(part for part in (reason, " ".join(message.split())) if part)


_POD_LIMIT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind that owns pods.

    `between` is the kind through which it owns them, for example ReplicaSet for Deployment.
    """

    name: str
    group_version: str
    resource: str
    aliases: tuple[str, ...]
    between: str = ""


_KINDS = (
    _Kind(
        name="Deployment",
        group_version="apps/v1",
        resource="deployments",
        aliases=("deploy", "deployments"),
        between="ReplicaSet",
    ),
    _Kind(name="StatefulSet", group_version="apps/v1", resource="statefulsets", aliases=("sts", "statefulsets")),
    _Kind(name="DaemonSet", group_version="apps/v1", resource="daemonsets", aliases=("ds", "daemonsets")),
    _Kind(name="Job", group_version="batch/v1", resource="jobs", aliases=("jobs",)),
    _Kind(name="CronJob", group_version="batch/v1", resource="cronjobs", aliases=("cj", "cronjobs"), between="Job"),
    _Kind(name="ReplicaSet", group_version="apps/v1", resource="replicasets", aliases=("rs", "replicasets")),
    _Kind(name="Pod", group_version="v1", resource="pods", aliases=("po", "pods")),
)
_KIND_NAMES = tuple(kind.name for kind in _KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPods:
    """The pods of `kind`/`name`. `complete` is false if more pods exist than were read."""

    kind: str
    name: str
    namespace: str
    pods: tuple[PodView, ...]
    complete: bool = True


async def find_pods(client: ClusterClient, *, kind: str, name: str, namespace: str) -> FoundPods:
    """Find the pods of a workload, or one pod.

    `kind` accepts kubectl names (`deploy`), and both accept `kind/name`. Without a kind, or with the kind Pod, `name`
    is a pod or a workload. Raises `ToolError` for a kind without pods. Raises `NotFound` with similar names if `name`
    does not exist.
    """
    for written in (kind, name):
        if "/" in written:
            kind, _, name = written.partition("/")
    if not kind or _kind(kind).name == "Pod":
        return await _pod_or_workload(client, name, namespace)
    return await _found(client, _kind(kind), name, namespace)


def _kind(written: str) -> _Kind:
    plain = written.strip().lower().split(".")[0]
    for kind in _KINDS:
        if plain == kind.name.lower() or plain in kind.aliases:
            return kind
    known = ", ".join(_KIND_NAMES)
    raise ToolError(f"{written!r} is not a kind with pods; use one of {known}, or the name of a pod")


async def _found(client: ClusterClient, kind: _Kind, name: str, namespace: str) -> FoundPods:
    path = api_path(kind.group_version, kind.resource, namespace=namespace, name=name)
    try:
        document = await client.get(path)
    except NotFound as error:
        raise await with_nearest_names(client, error, name, [_place(kind, namespace)]) from error
    return await _found_of(client, kind, document, name, namespace)


async def _found_of(client: ClusterClient, kind: _Kind, document: JsonObject, name: str, namespace: str) -> FoundPods:
    if kind.name == "Pod":
        return FoundPods(kind="Pod", name=name, namespace=namespace, pods=(_pod_view(document),))
    if kind.name == "CronJob":
        pods, complete = await _pods_of_cron_job(client, document, namespace)
    else:
        pods, complete = await _pods_of_selector(client, kind, document, namespace)
    return FoundPods(kind=kind.name, name=name, namespace=namespace, pods=pods, complete=complete)


async def _pod_or_workload(client: ClusterClient, name: str, namespace: str) -> FoundPods:
    """Find the pod with this name, or a workload, because models often pass a workload's name as a pod name."""
    by_name = {kind.name: kind for kind in _KINDS}
    try:
        return await _found_of(
            client,
            by_name["Pod"],
            await client.get(api_path("v1", "pods", namespace=namespace, name=name)),
            name,
            namespace,
        )
    except NotFound as error:
        missing = error
    workloads = [kind for kind in _KINDS if kind.name != "Pod"]
    documents = await concurrently(_get_or_none(client, kind, name, namespace) for kind in workloads)
    for kind, document in zip(workloads, documents, strict=True):
        if document is not None:
            return await _found_of(client, kind, document, name, namespace)
    places = [_place(by_name[kind], namespace) for kind in ("Pod", "Deployment")]
    raise await with_nearest_names(client, missing, name, places) from missing


def _place(kind: _Kind, namespace: str) -> NamedPlace:
    return NamedPlace(kind=kind.name, group_version=kind.group_version, resource=kind.resource, namespace=namespace)


async def _get_or_none(client: ClusterClient, kind: _Kind, name: str, namespace: str) -> JsonObject | None:
    try:
        return await client.get(api_path(kind.group_version, kind.resource, namespace=namespace, name=name))
    except (NotFound, Forbidden):
        return None


async def _pods_of_selector(
    client: ClusterClient, kind: _Kind, document: JsonObject, namespace: str
) -> tuple[tuple[PodView, ...], bool]:
    """Find pods that match the selector and belong to the workload, because several selectors can match a pod."""
    selector = {"labelSelector": label_selector(child(document, "spec", "selector"))}
    pods_path = api_path("v1", "pods", namespace=namespace)
    owner_uids = {text(document, "metadata", "uid")}
    if kind.between == "ReplicaSet":
        path = api_path("apps/v1", "replicasets", namespace=namespace)
        between, listed = await concurrently(client.list(one, selector, limit=_POD_LIMIT) for one in (path, pods_path))
        owner_uids = _owned_uids(between.items, owner_uids)
    else:
        listed = await client.list(pods_path, selector, limit=_POD_LIMIT)
    owned = tuple(_pod_view(pod) for pod in listed.items if _is_owned(pod, owner_uids))
    return owned, listed.complete


async def _pods_of_cron_job(
    client: ClusterClient, document: JsonObject, namespace: str
) -> tuple[tuple[PodView, ...], bool]:
    jobs = await client.list(api_path("batch/v1", "jobs", namespace=namespace), limit=_POD_LIMIT)
    mine = [job for job in jobs.items if _is_owned(job, {text(document, "metadata", "uid")})]
    if not mine:
        return (), jobs.complete
    names = ",".join(text(job, "metadata", "name") for job in mine)
    selector = {"labelSelector": f"job-name in ({names})"}
    listed = await client.list(api_path("v1", "pods", namespace=namespace), selector, limit=_POD_LIMIT)
    uids = {text(job, "metadata", "uid") for job in mine}
    return tuple(_pod_view(pod) for pod in listed.items if _is_owned(pod, uids)), listed.complete and jobs.complete


def _owned_uids(documents: tuple[JsonObject, ...], owner_uids: set[str]) -> set[str]:
    return {text(document, "metadata", "uid") for document in documents if _is_owned(document, owner_uids)}


def _is_owned(document: JsonObject, owner_uids: set[str]) -> bool:
    owner = owner_of(document)
    return owner is not None and owner.uid in owner_uids


def label_selector(selector: JsonObject) -> str:
    """Convert a `matchLabels`/`matchExpressions` selector to a `labelSelector` parameter."""
    terms = [f"{key}={value}" for key, value in text_map(selector, "matchLabels").items()]
    for expression in children(selector, "matchExpressions"):
        key, values = text(expression, "key"), ",".join(texts(expression, "values"))
        match text(expression, "operator"):
            case "In":
                terms.append(f"{key} in ({values})")
            case "NotIn":
                terms.append(f"{key} notin ({values})")
            case "Exists":
                terms.append(key)
            case "DoesNotExist":
                terms.append(f"!{key}")
            case _:
                pass
    return ",".join(terms)
