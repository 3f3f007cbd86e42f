"""Sends queued notifications. Each destination has its own task, so that a slow destination does not delay the others.

Notifications are delivered at least once. A delivery is marked as delivered after it is sent. If a replica dies between
these two steps, the notification is sent again with the same key.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from holmes.destinations.destination import DeliveryFailed
from holmes.investigations.deliveries.records import DeliveryClaims
from holmes.investigations.records.database import DatabaseUnavailable
from holmes.values.errors import HolmesError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from holmes.destinations.destination import Destination, IncidentNews
    from holmes.investigations.deliveries.records import Claim, Delivery
    from holmes.investigations.records.database import Database
    from holmes.telemetry.metrics import DeliveryOutcome

Compose: TypeAlias = "Callable[[Delivery], Awaitable[IncidentNews | None]]"
"""Function that composes the news of a delivery (see `NewsComposer.compose`). Returns None if the incident was deleted.
"""

CountDelivery: TypeAlias = "Callable[[str, DeliveryOutcome], None]"
"""Function that is called with the destination and the outcome of each attempt."""

_NOT_CONFIGURED_SECONDS = 3_600.0
_HOUSEKEEPING_SECONDS = 300.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPolicy:
    """Limits and pauses for delivery attempts. With the defaults, retries continue for about a day.

    `send_seconds` limits one attempt. It must be less than `lease_seconds`, after which another replica takes over.
    """

    concurrency: int = 4
    poll_seconds: float = 1.0
    send_seconds: float = 90.0
    lease_seconds: float = 120.0
    first_pause_seconds: float = 2.0
    longest_pause_seconds: float = 900.0
    longest_asked_pause_seconds: float = 3_600.0
    attempts: int = 105
    drain_seconds: float = 5.0

    def pause_seconds(self, attempts: int, asked_seconds: float | None) -> float:
        """Return the pause after an attempt.

        If the destination requests no pause, the pause grows with each attempt.
        """
        if asked_seconds is not None:
            return min(asked_seconds, self.longest_asked_pause_seconds)
        pause = min(self.first_pause_seconds * 2.0 ** min(attempts - 1, 30), self.longest_pause_seconds)
        return pause * random.uniform(0.8, 1.2)  # noqa: S311  only spreads the attempts


class DeliveryWorker:
    """Sends deliveries until cancelled. `destinations` is keyed by name. `count` is called with each outcome."""

    def __init__(
        self,
        database: Database,
        destinations: Mapping[str, Destination],
        compose: Compose,
        policy: DeliveryPolicy | None = None,
        count: CountDelivery | None = None,
    ) -> None:
        policy = policy or DeliveryPolicy()
        self._claims = DeliveryClaims(database, lease_seconds=policy.lease_seconds)
        self._lanes = {
            name: _Lane(destination, self._claims, _Ways(compose=compose, policy=policy, count=count or _uncounted))
            for name, destination in destinations.items()
        }

    def wake(self) -> None:
        """Check for new deliveries now. Workers in other processes find them at their next poll."""
        for lane in self._lanes.values():
            lane.wake()

    async def run(self) -> None:
        """Send due deliveries until cancelled. Running deliveries then have a few seconds to finish."""
        async with asyncio.TaskGroup() as lanes:
            for name, lane in self._lanes.items():
                lanes.create_task(lane.run(), name=f"holmes-deliveries-{name}")
            lanes.create_task(self._abandon(), name="holmes-deliveries-abandon")

    async def _abandon(self) -> None:
        while True:
            try:
                count = await self._claims.abandon(self._lanes.keys(), older_than_seconds=_NOT_CONFIGURED_SECONDS)
                if count:
                    _log.warning("failed deliveries to destinations that are no longer configured: %d", count)
            except DatabaseUnavailable as error:
                _log.warning("%s", error)
            await asyncio.sleep(_HOUSEKEEPING_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ways:
    """The functions and limits that all lanes share."""

    compose: Compose
    policy: DeliveryPolicy
    count: CountDelivery


def _uncounted(_destination: str, _outcome: DeliveryOutcome) -> None:
    return


class _Lane:
    """Sends the deliveries of one destination."""

    def __init__(self, destination: Destination, claims: DeliveryClaims, ways: _Ways) -> None:
        self._destination = destination
        self._claims = claims
        self._compose = ways.compose
        self._policy = ways.policy
        self._count = ways.count
        self._woken = asyncio.Event()
        self._sending: set[asyncio.Task[None]] = set()
        self._paused_until = 0.0
        self._has_database = True

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        try:
            while True:
                self._woken.clear()
                try:
                    await self._start_due()
                except Exception:  # noqa: BLE001  a bug must not stop a lane
                    _log.exception("deliveries to %r stopped by an internal error; retrying", self._destination.name)
                await self._rest()
        finally:
            await self._drain()

    async def _start_due(self) -> None:
        free = self._policy.concurrency - len(self._sending)
        if free <= 0 or time.monotonic() < self._paused_until:
            return
        try:
            claims = await self._claims.take(self._destination.name, free)
        except DatabaseUnavailable as error:
            if self._has_database:
                _log.warning("deliveries to %r are waiting: %s", self._destination.name, error)
            self._has_database = False
            return
        self._has_database = True
        for claim in claims:
            task = asyncio.create_task(self._deliver(claim), name=f"holmes-delivery-{claim.delivery.id}")
            self._sending.add(task)
            task.add_done_callback(self._sent)

    def _sent(self, task: asyncio.Task[None]) -> None:
        """Check the queue again after a delivery, because the incident's next delivery can now start."""
        self._sending.discard(task)
        self._woken.set()

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(self._policy.poll_seconds):
                await self._woken.wait()
        except TimeoutError:
            return

    async def _drain(self) -> None:
        if not self._sending:
            return
        _, late = await asyncio.wait(self._sending, timeout=self._policy.drain_seconds)
        for task in late:
            task.cancel()  # the next worker repeats the delivery with the same key
        await asyncio.gather(*late, return_exceptions=True)

    async def _deliver(self, claim: Claim) -> None:
        try:
            failure = await self._attempt(claim)
            if failure is not None:
                await self._not_delivered(claim, failure)
        except DatabaseUnavailable as error:
            _log.warning("delivery %s may be repeated; its record cannot be updated: %s", claim.delivery.key, error)

    async def _attempt(self, claim: Claim) -> DeliveryFailed | None:
        """Send a delivery and mark it as delivered. Returns the failure, or None on success."""
        name = self._destination.name
        try:
            async with asyncio.timeout(self._policy.send_seconds):
                news = await self._compose(claim.delivery)
                if news is None:
                    return DeliveryFailed("the incident was deleted", retryable=False)
                reference = await self._destination.send(news, claim.reference)
        except DeliveryFailed as failure:
            return failure
        except TimeoutError:
            return DeliveryFailed(
                f"{name}: the attempt did not finish within {self._policy.send_seconds:.0f} s", retryable=True
            )
        except HolmesError as error:
            return DeliveryFailed(str(error), retryable=True)
        except Exception:  # noqa: BLE001  a bug must not stop the lane
            _log.exception("delivery %s failed: internal error", claim.delivery.key)
            return DeliveryFailed(f"{name}: internal error; see the server log", retryable=True)
        await self._claims.delivered(claim, reference)
        self._count(name, "delivered")
        return None

    async def _not_delivered(self, claim: Claim, failure: DeliveryFailed) -> None:
        delivery, policy, reason = claim.delivery, self._policy, str(failure)
        if failure.retry_after_seconds is not None:
            pause = min(failure.retry_after_seconds, policy.longest_asked_pause_seconds)
            self._paused_until = time.monotonic() + pause
        gave_up = failure.retryable and delivery.attempts >= policy.attempts
        if gave_up or not failure.retryable:
            _log.error("delivery %s failed permanently: %s", delivery.key, reason)
            await self._claims.failed(claim, reason, gave_up=gave_up, reference=failure.reference)
            self._count(self._destination.name, "gave_up")
            return
        if delivery.attempts == 1:
            _log.warning("delivery %s failed; will retry: %s", delivery.key, reason)
        seconds = policy.pause_seconds(delivery.attempts, failure.retry_after_seconds)
        await self._claims.later(claim, reason, seconds=seconds, reference=failure.reference)
        self._count(self._destination.name, "retried")
