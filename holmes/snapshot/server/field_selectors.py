"""Field selectors: `status.phase!=Running,spec.nodeName=node-1`, for the fields that the API server supports.

Called by the lists of the server. Any other field is refused, as there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import at, children, integer, text
from holmes.snapshot.server.failures import bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from holmes.snapshot.discovery import ResourceType
    from holmes.values.json_types import JsonObject

_COMMON: Final = ("metadata.name", "metadata.namespace")
_EVENT: Final = (
    *(f"involvedObject.{field}" for field in (
        "kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"
    )),
    "reason", "reportingComponent", "source", "type",
)  # fmt: skip
_SUPPORTED: Final[Mapping[tuple[str, str], Collection[str]]] = {
    ("", "pods"): (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
    ),
    ("", "nodes"): ("spec.unschedulable",),
    ("", "replicationcontrollers"): ("status.replicas",),
    ("", "events"): _EVENT,
    ("", "namespaces"): ("status.phase",),
    ("", "secrets"): ("type",),
    ("", "services"): ("spec.clusterIP", "spec.type"),
    ("events.k8s.io", "events"): (
        *(field.replace("involvedObject", "regarding") for field in _EVENT if field.startswith("involvedObject.")),
        "reason", "reportingController", "type",
    ),
    ("batch", "jobs"): ("status.successful",),
    ("certificates.k8s.io", "certificatesigningrequests"): ("spec.signerName",),
    ("resource.k8s.io", "resourceslices"): ("spec.nodeName", "spec.driver"),
}  # fmt: skip
_PART = re.compile(r"((?:[^\\=!]|\\.)+)(==|!=|=)((?:[^\\=]|\\.)*)", re.DOTALL)
_COMMA = re.compile(r"(?<!\\),")
_RENAMED: Final = {"spec.host": "spec.nodeName"}
_FALSE_WHEN_MISSING: Final = ("spec.unschedulable", "spec.hostNetwork")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldTest:
    """One part of a field selector."""

    field: str
    value: str
    equal: bool

    def matches(self, item: JsonObject) -> bool:
        """Whether `item` passes."""
        return (_value(item, self.field) == self.value) is self.equal


def parse_field_selector(
    selector: str, kind: ResourceType, custom_fields: Collection[str] = ()
) -> tuple[FieldTest, ...]:
    """The tests of a selector over objects of `kind`; `custom_fields` are those that its definition adds.

    Raises `ApiFailure` for what is no selector and for fields that cannot be selected.
    """
    supported = {*_COMMON, *_SUPPORTED.get((kind.group, kind.plural), ()), *custom_fields}
    tests = []
    for part in _COMMA.split(selector):
        if not part:
            continue
        found = _PART.fullmatch(part)
        if found is None:
            raise bad_request(f"invalid field selector: {part!r} is not of the form field=value")
        field = _RENAMED.get(found[1], found[1])
        if field not in supported:
            raise bad_request(f"field label not supported: {field}")
        tests.append(FieldTest(field=field, value=re.sub(r"\\(.)", r"\1", found[3]), equal=found[2] != "!="))
    return tuple(tests)


def _value(item: JsonObject, field: str) -> str:
    """What the API server compares."""
    if field in _DERIVED:
        return _DERIVED[field](item)
    found = at(item, *field.split("."))
    if found is None and field in _FALSE_WHEN_MISSING:
        return "false"
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found) if isinstance(found, str | int | float) else ""


_DERIVED: Final[Mapping[str, Callable[[JsonObject], str]]] = {
    "status.podIPs": lambda item: ",".join(text(each, "ip") for each in children(item, "status", "podIPs")),
    "status.successful": lambda item: str(integer(item, "status", "succeeded")),
    "source": lambda item: text(item, "source", "component") or text(item, "reportingComponent"),
    "reportingComponent": lambda item: text(item, "reportingComponent") or text(item, "source", "component"),
}
