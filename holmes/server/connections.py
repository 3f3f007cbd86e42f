"""What one client may do to a connection before it asks for anything. The protocol of `holmes.server.listening`.

Refuses heads that do not arrive in time, and more connections than there are files for: whoever waits longest without
having asked makes room for who comes; when all of them are at work, the new one is told 503.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Any, ClassVar, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

_HEAD_SECONDS: Final = 10.0
_MOST: Final = 4_096
_LEAST: Final = 16
_OTHER_FILES: Final = 128  # databases, providers, pipes of tools, and those that wait to be accepted
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 22\r\n"
    b"retry-after: 1\r\nconnection: close\r\n\r\ntoo many connections.\n"
)


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 for clients that are in a hurry."""

    head_seconds: ClassVar[float] = _HEAD_SECONDS
    most: ClassVar[int] = _MOST

    def __init__(self, *args: Any, **keywords: Any) -> None:  # noqa: ANN401  uvicorn's
        super().__init__(*args, **keywords)
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client came."""
        if len(self.connections) >= self.most and not self._make_room():
            self.transport = transport
            transport.write(_BUSY)
            transport.close()
            return
        super().connection_made(transport)
        self._deadline = self.loop.call_later(self.head_seconds, self.give_up)

    def data_received(self, data: bytes) -> None:
        """A client sent something."""
        super().data_received(data)
        if not self.is_waiting:
            self._forget_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.head_seconds, self.give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._forget_deadline()
        super().connection_lost(exc)

    @property
    def is_waiting(self) -> bool:
        """Whether the next head has not arrived."""
        return self.conn.their_state is h11.IDLE

    @property
    def given_up_at(self) -> float:
        """When it ends if nothing arrives; those of a connection that was used before come first."""
        return self._deadline.when() if self._deadline else 0

    def give_up(self) -> None:
        """Close it."""
        self._forget_deadline()
        self.connections.discard(self)
        self.transport.close()

    def _make_room(self) -> bool:
        waiting = [each for each in self.connections if isinstance(each, GuardedProtocol) and each.is_waiting]
        if not waiting:
            return False
        min(waiting, key=lambda each: each.given_up_at).give_up()
        return True

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def guarded(*, head_seconds: float = _HEAD_SECONDS, most: int | None = None) -> type[GuardedProtocol]:
    """The protocol with these limits; `most` is what this process may have files for."""
    limits = {"head_seconds": head_seconds, "most": _most_connections() if most is None else most}
    return type("LimitedProtocol", (GuardedProtocol,), limits)


def _most_connections() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MOST
    return max(_LEAST, min(_MOST, files - max(_OTHER_FILES, files // 4)))
