"""Defines the errors of a single request to the API server. Each message is one line.

If every request fails, `ClusterUnreachable` is raised instead.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import unquote

from holmes.kubernetes.fields import text
from holmes.values.errors import ToolError, masked
from holmes.values.expressions import expression
from holmes.values.texts import shortened

_SUBJECT = expression(r'User "([^"]+)"')


class ApiError(ToolError):
    """An error from the API server. `status_code` is the HTTP status.

    `reason` and `detail` are the reason and the message of the Kubernetes `Status`.
    """

    def __init__(self, message: str, *, status_code: int, reason: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.status_code = status_code
        self.reason = reason
        self.detail = detail


class Forbidden(ApiError):
    """The credentials are valid, but do not allow this request."""


class NotFound(ApiError):
    """The object, its namespace or its kind does not exist."""


class Gone(ApiError):
    """A page of a list has expired (410)."""


class Throttled(ApiError):
    """The API server rejected the request because of too much load (429)."""


class ReadCutOff(ToolError):
    """The connection ended before the response was complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPath:
    """The parts of an API path such as `/apis/apps/v1/namespaces/shop/deployments/cart`. Missing parts are empty."""

    group: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""

    @classmethod
    def parse(cls, path: str) -> ApiPath:
        """Parse `path`. All parts of a path outside `/api` and `/apis`, such as `/version`, are empty."""
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[0] == "api":
            group, rest = "", parts[2:]
        elif parts[0] == "apis":
            group, rest = (parts[1] if len(parts) > 1 else ""), parts[3:]
        else:
            return cls()
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        resource, name, subresource = (*rest[:3], "", "", "")[:3]
        return cls(group=group, namespace=namespace, resource=resource, name=name, subresource=subresource)

    @property
    def verb(self) -> str:
        """The RBAC verb: `get` for one object, `list` for several."""
        return "get" if self.name else "list"

    @property
    def kind_of_thing(self) -> str:
        """The resource as RBAC rules name it, for example `pods/log` or `deployments.apps`."""
        group = f".{self.group}" if self.group else ""
        subresource = f"/{self.subresource}" if self.subresource else ""
        return f"{self.resource}{group}{subresource}"

    @property
    def place(self) -> str:
        """The scope for messages: `in namespace 'shop'` or `in the whole cluster`."""
        return f"in namespace {self.namespace!r}" if self.namespace else "in the whole cluster"


def error_of_answer(path: str, status_code: int, body: bytes) -> ApiError:
    """Create the error for a `status_code` other than 2xx and 401."""
    parts = ApiPath.parse(path)
    reason, detail = _status(body)
    if status_code == 403:
        return Forbidden(_forbidden(path, parts, detail), status_code=status_code, reason=reason, detail=detail)
    if status_code == 404:
        return NotFound(_not_found(path, parts, detail), status_code=status_code, reason=reason, detail=detail)
    kind = {410: Gone, 429: Throttled}.get(status_code, ApiError)
    what = f"{parts.verb} {parts.kind_of_thing} {parts.place}" if parts.resource else f"GET {path}"
    message = f"{what}: the API server returned {status_code}: {detail or 'no explanation'}"
    return kind(message, status_code=status_code, reason=reason, detail=detail)


def _status(body: bytes) -> tuple[str, str]:
    """Return the reason and message of a Kubernetes `Status`, or the first line of a response from a proxy."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        lines = masked(body.decode("utf-8", "replace")).strip().splitlines()
        return "", shortened(lines[0], 300) if lines else ""
    return text(document, "reason"), shortened(" ".join(masked(text(document, "message")).split()), 1000)


def _forbidden(path: str, parts: ApiPath, detail: str) -> str:
    subject = _SUBJECT.search(detail)
    if subject is None and "recording" in detail:
        return f"Not recorded: {detail.partition(' is forbidden: ')[2] or detail}"
    who = f"user {subject[1]!r}" if subject else "these credentials"
    if not parts.resource:
        return f"Forbidden: {who} may not GET {path!r}; ask for a role that allows it"
    name = f" {parts.name!r}" if parts.name else ""
    resource = f"{parts.resource}.{parts.group}" if parts.group else parts.resource
    subresource = f" --subresource={parts.subresource}" if parts.subresource else ""
    where = f" -n {parts.namespace}" if parts.namespace else " --all-namespaces"
    check = f"kubectl auth can-i {parts.verb} {resource}{subresource}{where}"
    return (
        f"Forbidden: {who} may not {parts.verb} {parts.kind_of_thing}{name} {parts.place}; "
        f"check with `{check}` and ask for a role that allows it"
    )


def _not_found(path: str, parts: ApiPath, detail: str) -> str:
    if not parts.resource:
        return f"Not found: the server does not have {path!r}"
    if not parts.name:
        explanation = detail or "no explanation"
        return f"Not found: the server does not have the resource {parts.kind_of_thing!r} ({explanation})"
    return f"Not found: {parts.resource} {parts.name!r} does not exist {parts.place}"
