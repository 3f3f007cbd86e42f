"""Refusals as Kubernetes writes them: an HTTP status and a `Status` object. Raised all over the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holmes.values.json_types import JsonObject, JsonValue

READ_ONLY: Final = "this is a recording, it is read-only"


class ApiFailure(Exception):
    """An answer that is not what was asked for. `reason` is one of Kubernetes' words."""

    def __init__(
        self, status_code: int, reason: str, message: str, *, details: JsonObject | None = None, allow: str = ""
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.allow = allow
        self._reason = reason
        self._details = details

    def document(self) -> JsonObject:
        """The `Status` object."""
        document: dict[str, JsonValue] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self._reason,
            "code": self.status_code,
        }
        if self._details is not None:
            document["details"] = self._details
        return document


def bad_request(message: str) -> ApiFailure:
    """The request cannot be understood."""
    return ApiFailure(400, "BadRequest", message)


def no_such_path() -> ApiFailure:
    """The server serves nothing under this path."""
    return ApiFailure(404, "NotFound", "the server could not find the requested resource", details={})


def read_only() -> ApiFailure:
    """The request would change something."""
    return ApiFailure(405, "MethodNotAllowed", READ_ONLY, details={}, allow="GET, HEAD")


def no_such_object(group: str, plural: str, name: str) -> ApiFailure:
    """There is no object of this name."""
    qualified = f"{plural}.{group}" if group else plural
    details = {"name": name, **({"group": group} if group else {}), "kind": plural}
    return ApiFailure(404, "NotFound", f'{qualified} "{name}" not found', details=details)


def not_recorded(group: str, plural: str, why: str) -> ApiFailure:
    """What was asked for exists or existed, but is not in this recording: never an empty list."""
    qualified = f"{plural}.{group}" if group else plural
    details = {**({"group": group} if group else {}), "kind": plural}
    return ApiFailure(403, "Forbidden", f"{qualified} is forbidden: {why}", details=details)
