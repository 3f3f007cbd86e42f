"""Chooses the monitoring sources and MCP servers of one cluster from the configuration.

Every command imports this module, so it does not import the sources.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from holmes.toolsets.registry import ToolsetContext
    from holmes.values.json_types import JsonValue

METRICS_TOOLSET: Final = "prometheus/metrics"
RECORDING: Final = "recording"
"""The value of `cluster` for a source that has the samples of recordings."""


def config_for_cluster(config: Mapping[str, JsonValue], context: ToolsetContext) -> Mapping[str, JsonValue] | None:
    """Leave out the sources of other clusters than the chosen one. Returns None if no source remains.

    Sources without `cluster` belong to all clusters, but not to recordings, because a live source shows another time
    and often another cluster. Without a choice, all sources remain. Raises `ConfigError` for a source of an unknown
    cluster.
    """
    named = config.get("instances")
    if not isinstance(named, dict):
        is_source = any(key == "url" or key.endswith("_url") for key in config)
        return config if not is_source or _belongs(config, context) else None
    kept = {name: keys for name, keys in named.items() if _belongs(keys, context)}
    return {**config, "instances": kept} if kept or not named else None


def configs_for_cluster(
    configs: Mapping[str, Mapping[str, JsonValue]], context: ToolsetContext
) -> dict[str, Mapping[str, JsonValue]]:
    """Return the configurations by toolset without the sources of other clusters. Those with errors are left out."""
    kept: dict[str, Mapping[str, JsonValue]] = {}
    for name, config in configs.items():
        with contextlib.suppress(ConfigError):  # the check of the toolset reports it
            chosen = config_for_cluster(config, context)
            if chosen is not None:
                kept[name] = chosen
    return kept


def serves(server_cluster: str | None, context: ToolsetContext) -> bool:
    """Return whether an MCP server is used for the chosen cluster. Without `cluster` it is, also for recordings.

    Raises `ConfigError` for an unknown cluster.
    """
    return server_cluster is None or _is_chosen(server_cluster, context)


def why_not(context: ToolsetContext) -> str:
    """Return why a toolset has nothing to read for the chosen cluster."""
    if context.is_recorded:
        return f"a recording does not use live sources; set 'cluster: {RECORDING}' for a source to use with recordings"
    return f"not for cluster {context.cluster!r}" if context.cluster else "not for this cluster"


def _belongs(keys: object, context: ToolsetContext) -> bool:
    own = keys.get("cluster") if isinstance(keys, Mapping) else None
    return not context.is_recorded if own is None else _is_chosen(own, context)


def _is_chosen(own: object, context: ToolsetContext) -> bool:
    if own == RECORDING:
        return context.is_recorded
    if own not in context.clusters:
        known = f"configured clusters: {', '.join(context.clusters)}" if context.clusters else "add it below `clusters`"
        raise ConfigError(f"unknown cluster {own!r}; {known}")
    return context.cluster in {None, own}
