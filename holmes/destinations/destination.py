"""What every destination is, and how one says that it could not deliver. Implemented by `slack`, `webhook`, ...

Delivery is at least once: whoever sends may send the same news again, with the same key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holmes.values.errors import HolmesError, masked
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from holmes.destinations.message import IncidentNews

LONGEST_REASON_CHARACTERS = 500


class DeliveryFailed(HolmesError):
    """The news did not arrive, or nobody knows. The message is one line without secrets that says what to do.

    `retryable` says whether the same news may arrive later; `retry_after_seconds` is how long the destination asked to
    wait. `reference` is what was achieved until then, for the next attempt.
    """

    exit_code = 3

    def __init__(self, message: str, *, retryable: bool, retry_after_seconds: float | None = None) -> None:
        super().__init__(shortened(" ".join(masked(message).split()), LONGEST_REASON_CHARACTERS))
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds
        self.reference: str | None = None


class Destination(Protocol):
    """Somebody who hears of incidents. `name` is the one of the configuration."""

    @property
    def name(self) -> str:
        """What routes call it."""
        ...

    async def send(self, news: IncidentNews, reference: str | None) -> str | None:
        """Deliver `news`; returns what later news of the same incident must know (JSON), or None.

        `reference` is what an earlier delivery of this incident returned, None when there was none. Raises
        `DeliveryFailed`.
        """
        ...
