"""That the server is about to end: who must know asks or waits here. Begun by the command on a signal."""

from __future__ import annotations

import asyncio

from holmes.server.errors import ending


class Draining:
    """Begins once, and never ends."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    @property
    def begun(self) -> bool:
        """Whether nothing new may be begun."""
        return self._event.is_set()

    def begin(self) -> None:
        """From now on `/readyz` fails, whatever is new is refused, and streams that only watch are ended."""
        self._event.set()

    def refuse_when_begun(self) -> None:
        """Raises `ApiError` 503 when nothing new may be begun."""
        if self.begun:
            raise ending()

    async def wait(self) -> None:
        """Until it begins."""
        await self._event.wait()
