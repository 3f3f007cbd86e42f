"""Defines the tables of volumes, claims, storage classes and drivers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import (
    DEFAULT_STORAGE_CLASS,
    STORAGE_CLASS,
    at,
    boolean,
    child,
    children,
    text,
    text_map,
    texts,
)
from holmes.snapshot.server.table_layout import NONE, UNSET, Cells, Layout, age, columns, name_of, scalar

if TYPE_CHECKING:
    from datetime import datetime

    from holmes.values.json_types import JsonObject, JsonValue

_ACCESS_MODES: Final = (
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
)


def _access_modes(value: JsonValue, *path: str) -> str:
    modes = texts(value, *path)
    return ",".join(short for mode, short in _ACCESS_MODES if mode in modes)


def _phase(item: JsonObject) -> str:
    return "Terminating" if "deletionTimestamp" in child(item, "metadata") else text(item, "status", "phase")


def _class_of(item: JsonObject) -> str:
    annotated = text_map(item, "metadata", "annotations").get(STORAGE_CLASS)
    return annotated if annotated is not None else text(item, "spec", "storageClassName")


def _volume(item: JsonObject, now: datetime) -> Cells:
    claim = child(item, "spec", "claimRef")
    return [
        name_of(item),
        scalar(item, "spec", "capacity", "storage", default="0"),
        _access_modes(item, "spec", "accessModes"),
        text(item, "spec", "persistentVolumeReclaimPolicy"),
        _phase(item),
        f"{text(claim, 'namespace')}/{text(claim, 'name')}" if claim else "",
        _class_of(item),
        text(item, "spec", "volumeAttributesClassName") or UNSET,
        text(item, "status", "reason"),
        age(item, now),
        text(item, "spec", "volumeMode") or UNSET,
    ]


def _claim(item: JsonObject, now: datetime) -> Cells:
    volume = text(item, "spec", "volumeName")
    return [
        name_of(item),
        _phase(item),
        volume,
        scalar(item, "status", "capacity", "storage", default="0") if volume else "",
        _access_modes(item, "status", "accessModes") if volume else "",
        _class_of(item),
        text(item, "spec", "volumeAttributesClassName") or UNSET,
        age(item, now),
        text(item, "spec", "volumeMode") or UNSET,
    ]


def _storage_class(item: JsonObject, now: datetime) -> Cells:
    annotations = text_map(item, "metadata", "annotations")
    default = " (default)" if any(annotations.get(key) == "true" for key in DEFAULT_STORAGE_CLASS) else ""
    return [
        name_of(item) + default,
        text(item, "provisioner"),
        text(item, "reclaimPolicy") or "Delete",
        text(item, "volumeBindingMode") or "Immediate",
        boolean(item, "allowVolumeExpansion"),
        age(item, now),
    ]


def _attachment(item: JsonObject, now: datetime) -> Cells:
    return [
        name_of(item),
        text(item, "spec", "attacher"),
        text(item, "spec", "source", "persistentVolumeName"),
        text(item, "spec", "nodeName"),
        boolean(item, "status", "attached"),
        age(item, now),
    ]


def _driver(item: JsonObject, now: datetime) -> Cells:
    spec = child(item, "spec")
    audiences = ",".join(text(each, "audience") for each in children(spec, "tokenRequests"))
    return [
        name_of(item),
        at(spec, "attachRequired") is not False,
        boolean(spec, "podInfoOnMount"),
        boolean(spec, "storageCapacity"),
        audiences if "tokenRequests" in spec else UNSET,
        boolean(spec, "requiresRepublish"),
        ",".join(texts(spec, "volumeLifecycleModes")) or NONE,
        age(item, now),
    ]


def _csi_node(item: JsonObject, now: datetime) -> Cells:
    return [name_of(item), len(children(item, "spec", "drivers")), age(item, now)]


def _capacity(item: JsonObject, _: datetime) -> Cells:
    return [name_of(item), text(item, "storageClassName"), scalar(item, "capacity", default=UNSET)]


def _attributes_class(item: JsonObject, now: datetime) -> Cells:
    return [name_of(item), text(item, "driverName"), age(item, now)]


LAYOUTS: Final = {
    ("", "persistentvolumes"): Layout(
        columns=columns(
            "Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass",
            "VolumeAttributesClass", "Reason", "Age", wide=("VolumeMode",),
        ),
        cells=_volume,
    ),
    ("", "persistentvolumeclaims"): Layout(
        columns=columns(
            "Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age",
            wide=("VolumeMode",),
        ),
        cells=_claim,
    ),
    ("storage.k8s.io", "storageclasses"): Layout(
        columns=columns(
            "Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"
        ),
        cells=_storage_class,
    ),
    ("storage.k8s.io", "volumeattachments"): Layout(
        columns=columns("Name", "Attacher", "PV", "Node", "Attached:boolean", "Age"), cells=_attachment
    ),
    ("storage.k8s.io", "csidrivers"): Layout(
        columns=columns(
            "Name", "AttachRequired:boolean", "PodInfoOnMount:boolean", "StorageCapacity:boolean", "TokenRequests",
            "RequiresRepublish:boolean", "Modes", "Age",
        ),
        cells=_driver,
    ),
    ("storage.k8s.io", "csinodes"): Layout(columns=columns("Name", "Drivers:integer", "Age"), cells=_csi_node),
    ("storage.k8s.io", "csistoragecapacities"): Layout(
        columns=columns("Name", "StorageClassName", "Capacity"), cells=_capacity
    ),
    ("storage.k8s.io", "volumeattributesclasses"): Layout(
        columns=columns("Name", "DriverName", "Age"), cells=_attributes_class
    ),
}  # fmt: skip
