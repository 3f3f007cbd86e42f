"""Label selectors: `app=web,tier notin (cache,db),!legacy`, as the API server reads and writes them.

Called by the lists of the server, and by tables, which show the selector of an object.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.kubernetes.fields import children, text, text_map, texts
from holmes.snapshot.server.failures import bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.json_types import JsonValue

_KEY = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_EXISTS = re.compile(rf"(!?)\s*({_KEY})")
_EQUALS = re.compile(rf"({_KEY})\s*(==|=|!=|<|>)\s*({_VALUE})")
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")
_OUTSIDE_BRACKETS = re.compile(r",(?![^(]*\))")
_WORDS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One part of a selector. `operator` is one of in, notin, exists, !, < and >."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels meets it."""
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
    """The requirements of a selector. Raises `ApiFailure` when it is none."""
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
    """The `LabelSelector` of an object as kubectl shows it: `app=web,tier in (cache,db)`; `<none>` when it is empty."""
    shown = [(key, f"{key}={value}") for key, value in text_map(selector, "matchLabels").items()]
    for expression in children(selector, "matchExpressions"):
        key, operator = text(expression, "key"), _WORDS.get(text(expression, "operator"), "")
        requirement = Requirement(key=key, operator=operator, values=texts(expression, "values"))
        shown.append((key, str(requirement)))
    return ",".join(part for _, part in sorted(shown, key=lambda each: each[0])) or "<none>"


def shown_labels(labels: JsonValue) -> str:
    """A plain map of labels: `app=web,tier=cache`; `<none>` when it is empty."""
    return ",".join(f"{key}={value}" for key, value in sorted(text_map(labels).items())) or "<none>"
