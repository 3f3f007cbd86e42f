"""The objects that a pod's spec refers to: ConfigMaps, Secrets, claims, accounts and classes, each with its place.

Called by rules about missing references. Works on the spec of a pod and on that of a template.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.diagnosis.facts.spec_places import is_optional
from holmes.kubernetes.fields import child, children, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.values.json_types import JsonObject

Use: TypeAlias = Literal["variable", "variables", "volume", "account", "pull secret", "class"]
_ENV: Final = (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret"))
_ENV_FROM: Final = (("configMapRef", "ConfigMap"), ("secretRef", "Secret"))
_FIELDS: Final[tuple[tuple[str, str, Use], ...]] = (
    ("serviceAccountName", "ServiceAccount", "account"),
    ("priorityClassName", "PriorityClass", "class"),
    ("runtimeClassName", "RuntimeClass", "class"),
)
_CLUSTER_WIDE: Final = frozenset({"PriorityClass", "RuntimeClass"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A reference. `path` is that of the name below the pod's spec, `key_path` that of the key, empty without one.

    `user` says in words who refers: `variable PORT of container web`, `volume settings`.
    """

    kind: str
    name: str
    path: str
    use: Use
    user: str
    optional: bool = False
    key: str = ""
    key_path: str = ""
    container: str = ""

    @property
    def namespaced(self) -> bool:
        """Whether the object lies in the pod's namespace."""
        return self.kind not in _CLUSTER_WIDE


def references_of(spec: JsonObject) -> Iterator[Reference]:
    """Every reference of a pod's spec, in its order; empty names are left out."""
    for each in _references(spec):
        if each.name:
            yield each


def _references(spec: JsonObject) -> Iterator[Reference]:
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(children(spec, kind)):
            yield from _of_container(container, f"{kind}[{index}]")
    for index, volume in enumerate(children(spec, "volumes")):
        yield from _of_volume(volume, f"volumes[{index}]")
    for index, secret in enumerate(children(spec, "imagePullSecrets")):
        path = f"imagePullSecrets[{index}].name"
        yield Reference(kind="Secret", name=text(secret, "name"), path=path, use="pull secret", user="the pull secrets")
    for field, kind, use in _FIELDS:
        yield Reference(kind=kind, name=text(spec, field), path=field, use=use, user=f"the field {field}")


def _of_container(container: JsonObject, path: str) -> Iterator[Reference]:
    name = text(container, "name")
    for index, variable in enumerate(children(container, "env")):
        for field, kind in _ENV:
            source = child(variable, "valueFrom", field)
            place = f"{path}.env[{index}].valueFrom.{field}"
            yield Reference(
                kind=kind,
                name=text(source, "name"),
                path=f"{place}.name",
                use="variable",
                user=f"variable {text(variable, 'name')} of container {name}",
                optional=is_optional(source),
                key=text(source, "key"),
                key_path=f"{place}.key",
                container=name,
            )
    for index, entry in enumerate(children(container, "envFrom")):
        for field, kind in _ENV_FROM:
            source = child(entry, field)
            yield Reference(
                kind=kind,
                name=text(source, "name"),
                path=f"{path}.envFrom[{index}].{field}.name",
                use="variables",
                user=f"container {name}",
                optional=is_optional(source),
                container=name,
            )


def _of_volume(volume: JsonObject, path: str) -> Iterator[Reference]:
    user = f"volume {text(volume, 'name')}"
    yield from _of_source(child(volume, "configMap"), "ConfigMap", "name", (f"{path}.configMap", user))
    yield from _of_source(child(volume, "secret"), "Secret", "secretName", (f"{path}.secret", user))
    for index, source in enumerate(children(volume, "projected", "sources")):
        place = f"{path}.projected.sources[{index}]"
        yield from _of_source(child(source, "configMap"), "ConfigMap", "name", (f"{place}.configMap", user))
        yield from _of_source(child(source, "secret"), "Secret", "name", (f"{place}.secret", user))
    yield Reference(
        kind="PersistentVolumeClaim",
        name=text(volume, "persistentVolumeClaim", "claimName"),
        path=f"{path}.persistentVolumeClaim.claimName",
        use="volume",
        user=user,
    )


def _of_source(source: JsonObject, kind: str, name_field: str, place: tuple[str, str]) -> Iterator[Reference]:
    """The object of a volume and each key that the volume picks."""
    path, user = place
    name, optional = text(source, name_field), is_optional(source)
    where = f"{path}.{name_field}"
    yield Reference(kind=kind, name=name, path=where, use="volume", user=user, optional=optional)
    for index, item in enumerate(children(source, "items")):
        yield Reference(
            kind=kind,
            name=name,
            path=where,
            use="volume",
            user=user,
            optional=optional,
            key=text(item, "key"),
            key_path=f"{path}.items[{index}].key",
        )
