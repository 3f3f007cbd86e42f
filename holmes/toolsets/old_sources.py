"""The toolsets of HolmesGPT that configure a source of logs or traces, read as an instance of the toolset here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from holmes.toolsets.yaml.loader import WrittenToolset

LOGS: Final = "logs/sources"
TRACES: Final = "tracing/traces"


@dataclass(frozen=True, slots=True, kw_only=True)
class _OldSource:
    """The toolset and type of a source here, and its keys: those of HolmesGPT with the names here."""

    toolset: str
    type: str
    keys: Mapping[str, str]


_URL: Final = {"api_url": "url", "opensearch_url": "url", "elasticsearch_url": "url"}
_GRAFANA: Final = {**_URL, "api_key": "bearer_token", "additional_headers": "headers"}
_SOURCES: Final = {
    "grafana/loki": _OldSource(toolset=LOGS, type="loki", keys={**_GRAFANA, "labels": "fields"}),
    "elasticsearch/data": _OldSource(toolset=LOGS, type="elasticsearch", keys=_URL),
    "opensearch/logs": _OldSource(
        toolset=LOGS, type="opensearch", keys={**_URL, "index_pattern": "index", "labels": "fields"}
    ),
    "grafana/tempo": _OldSource(toolset=TRACES, type="tempo", keys={**_GRAFANA, "labels": "external_url"}),
}
_FIELDS: Final = {"timestamp": "time"}


def as_instance(written: WrittenToolset) -> WrittenToolset:
    """Return the entry of such a toolset as one that adds an instance to the toolset here, and others unchanged."""
    old, config, enabled = _SOURCES.get(written.name), written.keys.get("config"), written.keys.get("enabled")
    is_off = enabled is not None and enabled.value is False
    if old is None or is_off or config is None or not isinstance(config.value, Mapping):
        return written
    kept = {key: value for key, value in written.keys.items() if key == "enabled"}
    instances = {"instances": {old.type: _current_keys(old, config.value)}}
    return replace(written, name=old.toolset, keys={**kept, "config": replace(config, value=instances)})


def _current_keys(old: _OldSource, config: Mapping[object, object]) -> dict[str, object]:
    renamed = {old.keys.get(str(key), str(key)): value for key, value in config.items()}
    renamed.pop("external_url", None)  # only for links in answers of HolmesGPT
    source, login = renamed.pop("grafana_datasource_uid", None), renamed.pop("opensearch_auth_header", None)
    if source is not None:
        address = str(renamed.get("url", "")).rstrip("/")
        renamed["url"] = f"{address}/api/datasources/proxy/uid/{quote(str(source), safe='')}"
    if login is not None:
        renamed["headers"] = {"Authorization": login}
    if isinstance(names := renamed.get("fields"), Mapping):
        renamed["fields"] = {_FIELDS.get(str(key), str(key)): value for key, value in names.items()}
    return {"type": old.type, **renamed}
