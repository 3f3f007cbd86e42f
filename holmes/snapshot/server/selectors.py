"""Parses label and field selectors of the API server.

Examples are `app=web,tier notin (a,b),!legacy` and `status.phase!=Running`. Field selectors can use only the fields
that the API server supports.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.kubernetes.fields import at, children, integer, text, text_map, texts
from holmes.snapshot.server.responses import bad_request
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from holmes.snapshot.discovery import ResourceType
    from holmes.values.json_types import JsonObject, JsonValue

_KEY = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_EXISTS = expression(rf"(!?)\s*({_KEY})")
_EQUALS = expression(rf"({_KEY})\s*(==|=|!=|<|>)\s*({_VALUE})")
_SET = expression(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")
_OUTSIDE_BRACKETS = expression(r",(?![^(]*\))")
_WORDS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One requirement of a label selector. `operator` is in, notin, exists, !, < or >."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels matches."""
        value = labels.get(self.key)
        if self.operator in {"exists", "!"}:
            return (value is None) is (self.operator == "!")
        if self.operator in {"in", "notin"}:
            return (value in self.values) is (self.operator == "in")
        if value is None or not re.fullmatch(r"-?\d+", value):
            return False
        return int(value) > int(self.values[0]) if self.operator == ">" else int(value) < int(self.values[0])

    def __str__(self) -> str:
        if self.operator in {"exists", "!"}:
            return f"{self.operator.removeprefix('exists')}{self.key}"
        return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"


def parse_label_selector(selector: str) -> tuple[Requirement, ...]:
    """Parse a label selector. Raises `ApiFailure` if it is not valid."""
    parts = [part.strip() for part in _OUTSIDE_BRACKETS.split(selector)] if selector.strip() else []
    return tuple(_requirement(part) for part in parts)


def _requirement(part: str) -> Requirement:
    if found := _EXISTS.fullmatch(part):
        return Requirement(key=found[2], operator="!" if found[1] else "exists")
    if found := _EQUALS.fullmatch(part):
        operator = {"=": "in", "==": "in", "!=": "notin"}.get(found[2], found[2])
        if operator in "<>" and not found[3].isdigit():
            raise bad_request(f"unable to parse requirement: {part!r}: for '<' and '>' the value must be an integer")
        return Requirement(key=found[1], operator=operator, values=(found[3],))
    if found := _SET.fullmatch(part):
        values = tuple(value.strip() for value in found[3].split(","))
        return Requirement(key=found[1], operator=found[2], values=values)
    raise bad_request(f"unable to parse requirement: {part!r} is not a label selector")


def shown_selector(selector: JsonValue) -> str:
    """Format the `LabelSelector` of an object like kubectl: `app=web,tier in (cache,db)`, or `<none>` if empty."""
    shown = [(key, f"{key}={value}") for key, value in text_map(selector, "matchLabels").items()]
    for matcher in children(selector, "matchExpressions"):
        key, operator = text(matcher, "key"), _WORDS.get(text(matcher, "operator"), "")
        requirement = Requirement(key=key, operator=operator, values=texts(matcher, "values"))
        shown.append((key, str(requirement)))
    return ",".join(part for _, part in sorted(shown, key=lambda each: each[0])) or "<none>"


def shown_labels(labels: JsonValue) -> str:
    """Format labels like kubectl: `app=web,tier=cache`, or `<none>` if empty."""
    return ",".join(f"{key}={value}" for key, value in sorted(text_map(labels).items())) or "<none>"


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
_PART = expression(r"((?:[^\\=!]|\\.)+)(==|!=|=)((?:[^\\=]|\\.)*)", re.DOTALL)
_COMMA = expression(r"(?<!\\),")
_RENAMED: Final = {"spec.host": "spec.nodeName"}
_FALSE_WHEN_MISSING: Final = ("spec.unschedulable", "spec.hostNetwork")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldTest:
    """One requirement of a field selector."""

    field: str
    value: str
    equal: bool

    def matches(self, item: JsonObject) -> bool:
        return (_value(item, self.field) == self.value) is self.equal


def parse_field_selector(
    selector: str, kind: ResourceType, custom_fields: Collection[str] = ()
) -> tuple[FieldTest, ...]:
    """Parse a field selector for `kind`. `custom_fields` are the selectable fields of its definition.

    Raises `ApiFailure` if the selector is not valid or a field cannot be selected.
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
    """Return the field value in the form that the API server compares."""
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
