"""A cluster behind an API server that serves one kind badly: over real HTTP, in the ways of a busy API server.

The objects are written in the short form of `tests.diagnosis.row_cases`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from holmes.kubernetes.kinds import EVENT, KINDS, api_path
from tests.diagnosis.row_cases import bodies_of, event_bodies_of
from tests.support.kubernetes_api import Answer, Request, empty_cluster, listing, status

if TYPE_CHECKING:
    from tests.support.kubernetes_api import KubernetesApi, Responder

Fault: TypeAlias = Callable[["Responder"], "Responder | Answer"]
"""Makes the bad answers of a list from its good ones."""

_REJECTED: Final = status(429, "TooManyRequests", "too many requests, please try again later", {"Retry-After": "1"})
_PATHS: Final = {kind.name: api_path(kind.group_version, kind.resource) for kind in (*KINDS, EVENT)}


def _after_first_page(broken: Answer) -> Fault:
    """Serve the first page only, whatever the size of the pages."""

    def wrap(good: Responder) -> Responder:
        def respond(request: Request) -> Answer:
            if request.query.get("continue"):
                return broken
            return good(Request(**{**vars(request), "query": {**request.query, "limit": "1"}}))

        return respond

    return wrap


FAULTS: Final[Mapping[str, Fault]] = {
    "throttled": lambda _: _REJECTED,
    "stalled": lambda _: Answer(delay_seconds=20),
    "forbidden": lambda _: status(403, "Forbidden", 'User "eve" cannot list this resource at the cluster scope'),
    "failing": lambda _: status(500, "InternalError", "etcdserver: request timed out"),
    "unavailable": lambda _: status(503, "ServiceUnavailable", "the server is currently unable to handle the request"),
    "cut off": _after_first_page(Answer(body=b'{"items": [' + b" " * 1000, cut_after=500)),
    "expired": _after_first_page(status(410, "Expired", "the provided continue parameter is too old")),
}
"""What happens to a list."""


def serve_objects(api: KubernetesApi, raw: Mapping[str, Any]) -> None:
    """Serve the objects and events of a case."""
    empty_cluster(api)
    bodies = bodies_of(raw)
    lists: dict[str, Sequence[Any]] = {kind: [each for each in bodies if each["kind"] == kind] for kind in _PATHS}
    for kind, items in {**lists, EVENT.name: event_bodies_of(raw)}.items():
        if items:
            api.on(_PATHS[kind], listing(items))


def serve_badly(api: KubernetesApi, kind: str, fault: str, raw: Mapping[str, Any]) -> None:
    """Serve the list of one kind with a fault."""
    bodies = event_bodies_of(raw) if kind == EVENT.name else bodies_of(raw)
    items = [dict(each) for each in bodies if each["kind"] == kind]
    api.on(_PATHS[kind], FAULTS[fault](listing(items)))
