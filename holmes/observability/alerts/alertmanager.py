"""Reads Alertmanager over its API, version 2. Mimir and Grafana offer the same API below a path."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, cast

from holmes.observability.alerts.source import ListedAlert, Silence
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.observability.access import SourceAccess, SourceClient
    from holmes.observability.alerts.source import AlertState
    from holmes.values.json_types import JsonObject, JsonValue

_API = "/api/v2"


class AlertmanagerSource:
    """A source of alerts. Every method raises `ToolError` if the source does not answer as the API requires."""

    def __init__(self, client: SourceClient) -> None:
        self._client = client

    @property
    def access(self) -> SourceAccess:
        return self._client.access

    async def version(self) -> str:
        """Return for example `Alertmanager 0.27.0`."""
        status = await self._read("/status")
        information = status.get("versionInfo") if isinstance(status, dict) else None
        return f"Alertmanager {_text(information, 'version')}".strip()

    async def alerts(self, matchers: Sequence[str] = ()) -> tuple[ListedAlert, ...]:
        return tuple(_alert(each) for each in _items(await self._read("/alerts", matchers)))

    async def silences(self, matchers: Sequence[str] = ()) -> tuple[Silence, ...]:
        return tuple(_silence(each) for each in _items(await self._read("/silences", matchers)))

    async def receivers(self) -> tuple[str, ...]:
        return tuple(_text(each, "name") for each in _items(await self._read("/receivers")))

    async def _read(self, path: str, matchers: Sequence[str] = ()) -> JsonValue:
        answered = await self._client.read(f"{_API}{path}", [("filter", each) for each in matchers])
        try:
            return cast("JsonValue", await asyncio.to_thread(json.loads, answered.body))
        except (ValueError, RecursionError) as error:
            raise ToolError(
                f"{self.access.name}: {_API}{path} did not return JSON; check the path of the configured URL"
            ) from error


def _alert(written: JsonObject) -> ListedAlert:
    labels, status = _pairs(written.get("labels")), written.get("status")
    silences, inhibitors = _texts(status, "silencedBy"), _texts(status, "inhibitedBy")
    state: AlertState = "silenced" if silences else "inhibited" if inhibitors else "active"
    notes = dict(_pairs(written.get("annotations")))
    return ListedAlert(
        name=dict(labels).get("alertname", ""),
        labels=tuple(pair for pair in labels if pair[0] != "alertname"),
        state=state,
        since=_text(written, "startsAt"),
        summary=notes.get("summary") or notes.get("description") or notes.get("message") or "",
        silences=silences,
        inhibitors=len(inhibitors),
        receivers=tuple(_text(each, "name") for each in _items(written.get("receivers"))),
    )


def _silence(written: JsonObject) -> Silence:
    return Silence(
        id=_text(written, "id"),
        state=_text(written.get("status"), "state"),
        matchers=tuple(_matcher(each) for each in _items(written.get("matchers"))),
        starts=_text(written, "startsAt"),
        ends=_text(written, "endsAt"),
        author=_text(written, "createdBy"),
        comment=_text(written, "comment"),
    )


def _matcher(written: JsonObject) -> str:
    """Return a matcher as PromQL writes it. `isEqual` is missing in versions before 0.22, which have no negation."""
    sign = "=" if written.get("isEqual", True) else "!"
    sign += "~" if written.get("isRegex") else "=" if sign == "!" else ""
    return f"{_text(written, 'name')}{sign}{json.dumps(_text(written, 'value'), ensure_ascii=False)}"


def _items(written: JsonValue) -> tuple[JsonObject, ...]:
    return tuple(each for each in written if isinstance(each, dict)) if isinstance(written, list) else ()


def _text(written: JsonValue, key: str) -> str:
    value = written.get(key) if isinstance(written, dict) else None
    return value if isinstance(value, str) else ""


def _texts(written: JsonValue, key: str) -> tuple[str, ...]:
    value = written.get(key) if isinstance(written, dict) else None
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _pairs(written: JsonValue) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in written.items())) if isinstance(written, dict) else ()
