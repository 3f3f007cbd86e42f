"""Reads metrics over the HTTP API of Prometheus.

VictoriaMetrics, Thanos, Mimir and Cortex also speak this API. Only read endpoints are used. Thanos answers without the
stores that fail, and says so in warnings, which are kept for the reader.
"""

from __future__ import annotations

import asyncio
import json
import math
from typing import TYPE_CHECKING, Final

from holmes.observability.access import QueryRejectedError
from holmes.observability.metrics.series import ActiveAlert, Metric, QueryResult, Rule, Series, Target
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holmes.observability.access import Answered, Method, SourceAccess, SourceClient
    from holmes.observability.metrics.series import Labels
    from holmes.values.json_types import JsonObject, JsonValue

_ANNOTATIONS: Final = ("PromQL warning:", "PromQL info:")
"""How remarks about a query begin. All other warnings tell of data that is missing."""
_PARTIAL: Final = "a part of its storage did not answer (isPartial)"
_REJECTED: Final = frozenset({400, 422, 503})
"""The statuses with which the API reports an error in a query as JSON."""


class PrometheusSource:
    """A source of metrics. Every method raises `ToolError` if the source does not answer as the API requires."""

    def __init__(self, client: SourceClient) -> None:
        self._client = client
        self._missing: dict[str, None] = {}

    @property
    def access(self) -> SourceAccess:
        return self._client.access

    @property
    def missing(self) -> tuple[str, ...]:
        """The warnings of all answers so far about data that is missing in them."""
        return tuple(self._missing)

    async def instant(self, query: str, at: float) -> QueryResult:
        """Evaluate `query` at a time in seconds since 1970."""
        return await self._query("/api/v1/query", [("query", query), ("time", f"{at:.3f}")])

    async def range(self, query: str, *, start: float, end: float, step_seconds: float) -> QueryResult:
        """Evaluate `query` at every step from `start` to `end`, in seconds since 1970."""
        times = [("start", f"{start:.3f}"), ("end", f"{end:.3f}"), ("step", f"{step_seconds:g}")]
        return await self._query("/api/v1/query_range", [("query", query), *times])

    async def syntax_error(self, query: str) -> str | None:
        """Return the source's own description of an error in the syntax of `query`, or None if it has none."""
        try:
            await self._data("/api/v1/format_query", [("query", query)], method="POST")
        except QueryRejectedError as error:
            return str(error)
        return None

    async def version(self) -> str:
        """Return the product and version, for example `Prometheus 2.42.0`.

        Products that only speak the API tell the version of Prometheus that they resemble.
        """
        try:
            data = await self._data("/api/v1/status/buildinfo")
        except ToolError:
            await self.instant("vector(1)", at=0)
            return "Prometheus API"
        version, own = _text(data, "version"), _text(data, "application")
        if not own and _text(data, "goVersion"):
            own = "Thanos" if version.startswith("0.") and await self._has_stores() else "Prometheus"
        return f"{own or 'Prometheus API'} {version}".strip()

    async def _has_stores(self) -> bool:
        """Return whether the source lists stores, which only Thanos does. Its build has the fields of Prometheus."""
        try:
            return isinstance(await self._data("/api/v1/stores"), dict)
        except ToolError:
            return False

    async def metrics(self) -> tuple[Metric, ...]:
        """Return all metrics, sorted by name. Descriptions are missing if the source does not store them."""
        names, described = await asyncio.gather(self.label_values("__name__"), self._metadata())
        return tuple(described.get(name) or _described_by_family(name, described) for name in sorted(set(names)))

    async def label_names(self, selector: str) -> tuple[str, ...]:
        """Return the names of the labels of the series that match a selector."""
        return _texts(await self._data("/api/v1/labels", [("match[]", selector)], method="POST"))

    async def label_values(self, label: str, selector: str = "") -> tuple[str, ...]:
        """Return the values of a label, of the series that match a selector or of all series."""
        return _texts(await self._data(f"/api/v1/label/{label}/values", [("match[]", selector)] if selector else []))

    async def rules(self) -> tuple[Rule, ...]:
        """Return all rules with their active alerts."""
        groups = _items(await self._data("/api/v1/rules"), "groups")
        return tuple(_rule(group, each) for group in groups for each in _items(group, "rules"))

    async def targets(self) -> tuple[Target, ...]:
        """Return the addresses that the source scrapes. Mimir scrapes none."""
        path = "/api/v1/targets"
        answered = await self._client.read(path, [("state", "active")], accepts=_REJECTED | {404})
        if answered.status == 404:
            raise ToolError(f"{self.access.name} does not list scrape targets; query `up` instead")
        data = (await self._parsed(path, answered)).get("data")
        return tuple(_target(each) for each in _items(data, "activeTargets"))

    async def _metadata(self) -> Mapping[str, Metric]:
        try:
            data = await self._data("/api/v1/metadata", [("limit_per_metric", "1")])
        except ToolError:
            return {}
        found = data if isinstance(data, dict) else {}
        first = {name: entries[0] for name, entries in found.items() if isinstance(entries, list) and entries}
        return {
            name: Metric(name=name, type=_text(each, "type"), unit=_text(each, "unit"), help=_text(each, "help"))
            for name, each in first.items()
        }

    async def _query(self, path: str, parameters: Sequence[tuple[str, str]]) -> QueryResult:
        seconds = self.access.timeout_seconds
        answer = await self._answer(path, [*parameters, ("timeout", f"{seconds:g}s")], "POST")
        return await asyncio.to_thread(result_of_answer, answer)

    async def _data(
        self, path: str, parameters: Sequence[tuple[str, str]] = (), *, method: Method = "GET"
    ) -> JsonValue:
        return (await self._answer(path, parameters, method)).get("data")

    async def _answer(self, path: str, parameters: Sequence[tuple[str, str]], method: Method) -> JsonObject:
        answered = await self._client.read(path, parameters, method=method, accepts=_REJECTED)
        return await self._parsed(path, answered)

    async def _parsed(self, path: str, answered: Answered) -> JsonObject:
        try:
            answer = await asyncio.to_thread(json.loads, answered.body)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or answer.get("status") not in {"success", "error"}:
            raise ToolError(
                f"{self.access.name}: {path} did not return JSON of the Prometheus API (HTTP {answered.status}); "
                "check the path of the configured URL"
            )
        if answer["status"] == "error":
            reason = " ".join(_text(answer, "error").split())[:500].removeprefix('invalid parameter "query": ')
            raise QueryRejectedError(reason or "the source gives no reason")
        self._missing |= dict.fromkeys(each for each in _texts(answer.get("warnings")) if not _is_annotation(each))
        if answer.get("isPartial") is True:  # a cluster of VictoriaMetrics answers so while a storage node is down
            self._missing[_PARTIAL] = None
        return answer


def _is_annotation(warning: str) -> bool:
    return warning.startswith(_ANNOTATIONS)


def _described_by_family(name: str, described: Mapping[str, Metric]) -> Metric:
    """Return a metric whose family is described, for example `x_bucket` of the histogram `x`."""
    for suffix in ("_bucket", "_count", "_sum", "_total", "_created"):
        family = described.get(name.removesuffix(suffix)) if name.endswith(suffix) else None
        if family is not None:
            return Metric(name=name, type=family.type, unit=family.unit, help=family.help)
    return Metric(name=name)


def result_of_answer(answer: JsonObject) -> QueryResult:
    """Read the series of a successful response."""
    data = answer.get("data")
    kind, found = (_text(data, "resultType"), data.get("result")) if isinstance(data, dict) else ("", None)
    warnings = (*filter(_is_annotation, _texts(answer.get("warnings"))), *_texts(answer.get("infos")))
    if kind in {"scalar", "string"}:
        return QueryResult(series=(_series({"value": found}),), warnings=warnings)
    rows = found if isinstance(found, list) else []
    return QueryResult(series=tuple(_series(row) for row in rows if isinstance(row, dict)), warnings=warnings)


def _series(row: JsonObject) -> Series:
    labels = _labels(row.get("metric"))
    samples = row.get("values") if "values" in row else [row.get("value")]
    pairs = [_sample(each) for each in samples] if isinstance(samples, list) else []
    kept = [pair for pair in pairs if pair is not None]
    name = next((value for key, value in labels if key == "__name__"), "")
    return Series(
        name=name,
        labels=tuple(pair for pair in labels if pair[0] != "__name__"),
        times=tuple(time for time, _ in kept),
        values=tuple(value for _, value in kept),
    )


def _sample(written: JsonValue) -> tuple[float, float] | None:
    if not isinstance(written, list) or len(written) != 2:
        return None
    try:
        time, value = float(str(written[0])), float(str(written[1]))
    except ValueError:
        return None
    return (time, value) if math.isfinite(time) else None


def _labels(written: JsonValue) -> Labels:
    return tuple(sorted((name, str(value)) for name, value in written.items())) if isinstance(written, dict) else ()


def _rule(group: JsonObject, rule: JsonObject) -> Rule:
    hold = rule.get("duration")
    return Rule(
        name=_text(rule, "name"),
        group=_text(group, "name"),
        query=_text(rule, "query"),
        kind=_text(rule, "type"),
        state=_text(rule, "state"),
        hold_seconds=float(hold) if isinstance(hold, int | float) else 0.0,
        error=_text(rule, "lastError"),
        alerts=tuple(
            ActiveAlert(
                state=_text(each, "state"),
                labels=_labels(each.get("labels")),
                since=_text(each, "activeAt"),
                value=_text(each, "value"),
            )
            for each in _items(rule, "alerts")
        ),
    )


def _target(written: JsonObject) -> Target:
    labels = _labels(written.get("labels"))
    named = dict(labels)
    return Target(
        job=named.get("job", ""),
        instance=named.get("instance", ""),
        state=_text(written, "health"),
        error=_text(written, "lastError"),
        labels=tuple(pair for pair in labels if pair[0] not in {"job", "instance"}),
    )


def _items(written: JsonValue, key: str) -> tuple[JsonObject, ...]:
    found = written.get(key) if isinstance(written, dict) else None
    return tuple(each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()


def _text(written: JsonValue, key: str) -> str:
    value = written.get(key) if isinstance(written, dict) else None
    return value if isinstance(value, str) else ""


def _texts(written: JsonValue) -> tuple[str, ...]:
    return tuple(each for each in written if isinstance(each, str)) if isinstance(written, list) else ()
