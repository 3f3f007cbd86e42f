"""Where Ingresses send requests, with the place of each backend. Called by rules about Ingresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import child, children, integer, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.values.json_types import JsonObject

_CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """A Service that an Ingress sends to. `port` is its number or name; `path` is where the backend lies."""

    ingress: ClusterObject
    service: str
    port: int | str
    path: str

    @property
    def port_path(self) -> str:
        """Where the port lies."""
        return f"{self.path}.port.{'number' if isinstance(self.port, int) else 'name'}"


def backends_of(ingress: ClusterObject) -> Iterator[Backend]:
    """The Services behind an Ingress: the default one first, then those of its rules."""
    yield from _backend(ingress, ingress.child("spec", "defaultBackend"), "spec.defaultBackend")
    for index, rule in enumerate(ingress.children("spec", "rules")):
        for position, entry in enumerate(children(rule, "http", "paths")):
            place = f"spec.rules[{index}].http.paths[{position}].backend"
            yield from _backend(ingress, child(entry, "backend"), place)


def _backend(ingress: ClusterObject, backend: JsonObject, path: str) -> Iterator[Backend]:
    """Backends that a controller takes from annotations (`use-annotation`) are no Services."""
    name = text(backend, "service", "name")
    port_name = text(backend, "service", "port", "name")
    if name and port_name != "use-annotation":
        port = integer(backend, "service", "port", "number") or port_name
        yield Backend(ingress=ingress, service=name, port=port, path=f"{path}.service")


def ingress_class(ingress: ClusterObject) -> str:
    """The class of an Ingress, from its field or from the old annotation; empty when it has none."""
    return ingress.text("spec", "ingressClassName") or ingress.annotations.get(_CLASS_ANNOTATION, "")


def has_address(ingress: ClusterObject) -> bool:
    """Whether a controller has given the Ingress an address."""
    return bool(ingress.children("status", "loadBalancer", "ingress"))
