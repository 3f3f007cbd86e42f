"""Finds the layout of a kind, and makes the `Table` that kubectl shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import text
from holmes.snapshot.discovery import crd_of
from holmes.snapshot.server.tables import cluster, control, network, pods, storage, workloads
from holmes.snapshot.server.tables.custom import custom_layout
from holmes.snapshot.server.tables.layout import Layout, columns, name_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from holmes.snapshot.discovery import ResourceType
    from holmes.snapshot.recording import Recording
    from holmes.values.json_types import JsonObject, JsonValue

_BUILT_IN: Final = {
    **pods.LAYOUTS,
    **workloads.LAYOUTS,
    **network.LAYOUTS,
    **cluster.LAYOUTS,
    **storage.LAYOUTS,
    **control.LAYOUTS,
}
# Kinds without columns of their own: roles, limit ranges, definitions of custom resources.
_PLAIN: Final = Layout(
    columns=columns("Name", "Created At:date"),
    cells=lambda item, _: [name_of(item), text(item, "metadata", "creationTimestamp")],
)


def layout_of(recording: Recording, kind: ResourceType) -> Layout:
    """The columns of `kind` and how to fill them."""
    built_in = _BUILT_IN.get((kind.group, kind.plural))
    if built_in is not None:
        return built_in
    for definition in recording.items("apiextensions.k8s.io", "customresourcedefinitions"):
        if crd_of(definition) == (kind.group, kind.plural):
            return custom_layout(definition, kind.version)
    return _PLAIN


def table(
    layout: Layout, items: Sequence[JsonObject], *, now: datetime, metadata: JsonObject, include: str
) -> JsonObject:
    """The `Table` of `items`. `include` is how much of each object goes with its row: None, Metadata or Object."""
    rows: list[JsonValue] = []
    for item in sorted(items, key=layout.order) if layout.order else items:
        row: dict[str, JsonValue] = {"cells": layout.cells(item, now)}
        if include == "Object":
            row["object"] = item
        elif include != "None":
            row["object"] = partial(item)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [
            {
                "name": column.name,
                "type": column.type,
                "format": column.format,
                "description": "",
                "priority": 1 if column.wide else 0,
            }
            for column in layout.columns
        ],
        "rows": rows,
    }


def partial(item: JsonObject) -> JsonObject:
    """The metadata of an object alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item.get("metadata", {})}
