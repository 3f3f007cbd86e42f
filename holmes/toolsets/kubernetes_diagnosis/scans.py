"""Keeps the last scan of the cluster for 30 s, with the logs that were read for answers, so that tool calls share it.

A scan covers the whole cluster if the rights allow it, because a cause can be in another namespace. Otherwise it covers
the namespaces that the calls name. Lists that are forbidden are remembered, and not requested with every scan.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.reports import masked_report
from holmes.diagnosis.scan import ScanRequest, scan, with_more_logs
from holmes.diagnosis.usage import read_usage
from holmes.kubernetes.client import ClusterClient
from holmes.kubernetes.credentials import ClusterLogin
from holmes.kubernetes.scope import objection, scope_of
from holmes.kubernetes.state_reader import Rights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holmes.diagnosis.scan import ReadStoredOf, ScanResult
    from holmes.kubernetes.cluster_state import LogKey
    from holmes.values.environment import Environment

_FRESH_SECONDS: Final = 30.0
_RIGHTS_SECONDS: Final = 600.0
"""The time for which forbidden lists are not requested again."""


class Scans:
    def __init__(
        self, environment: Environment, mask: Callable[[str], str], stored: ReadStoredOf | None = None
    ) -> None:
        self._environment = environment
        self._stored = stored
        self._mask = mask
        self._login: ClusterLogin | None = None
        self._scanning = asyncio.Lock()
        self._last: ScanResult | None = None
        self._taken_at = 0.0
        self._rights, self._rights_at = Rights(), 0.0
        self._masked_logs: dict[LogKey, tuple[str, str]] = {}

    async def current(self, namespaces: Sequence[str] = ()) -> ScanResult:
        """Return a scan that is at most 30 s old, and that covers `namespaces` as far as the rights allow it.

        Calls wait only while the same scan runs. Raises `ClusterUnreachable` if nothing can be read.
        """
        login = await self._current_login()
        scope = scope_of(self._environment)
        named = [each for each in (*namespaces, login.access.namespace) if each and objection(each, scope) is None]
        async with self._scanning:
            if self._last is not None and time.monotonic() - self._taken_at < _FRESH_SECONDS and self._covers(named):
                return self._last
            self._last = None
            known = self._rights.forbidden if time.monotonic() - self._rights_at < _RIGHTS_SECONDS else {}
            rights = Rights(namespaces=tuple(dict.fromkeys((*self._rights.namespaces, *named))), forbidden=known)
            async with ClusterClient(login) as client:
                result = await scan(client, ScanRequest(rights=rights, stored=self._stored))
            self._remember(result, rights, renewed=not known)
        return result

    def _covers(self, namespaces: Sequence[str]) -> bool:
        return "Pod" not in self._rights.forbidden or set(namespaces) <= set(self._rights.namespaces)

    def _remember(self, result: ScanResult, rights: Rights, *, renewed: bool) -> None:
        gaps = result.state.reading.gaps
        forbidden = {gap.kind: gap.why for gap in gaps if gap.category == "forbidden" and not gap.namespace}
        self._rights = replace(rights, forbidden=forbidden)
        self._rights_at = time.monotonic() if renewed else self._rights_at
        self._last, self._taken_at = result, time.monotonic()
        self._masked_logs.clear()

    async def with_logs(self, result: ScanResult, wanted: Callable[[ScanResult], Sequence[LogKey]]) -> ScanResult:
        """Read the logs that an answer needs. The next answer from the same scan does not read them again."""
        async with ClusterClient(await self._current_login()) as client:
            found = await with_more_logs(client, result, wanted, self._stored)
        if self._last is result:
            self._last = found
        return found

    async def with_usage(self, result: ScanResult) -> ScanResult:
        """Read the current use of CPU and memory, which is not kept."""
        async with ClusterClient(await self._current_login()) as client:
            return replace(result, usage=await read_usage(client, result.report.namespaces))

    def masked(self, result: ScanResult) -> ScanResult:
        """Mask the report and the logs, before any text is shortened: a part of a secret is not recognised.

        Masking takes time, so call this method in a thread.
        """
        logs = {key: self._masked_log(key, text) for key, text in result.state.timed_logs.items()}
        report = masked_report(result.report, self._mask)
        return replace(result, state=result.state.with_logs(logs), report=report)

    def _masked_log(self, key: LogKey, text: str) -> str:
        known = self._masked_logs.get(key)
        if known is None or known[0] is not text:
            known = self._masked_logs[key] = (text, self._mask(text))
        return known[1]

    async def _current_login(self) -> ClusterLogin:
        self._login = await ClusterLogin.load(self._environment, previous=self._login)
        return self._login
