"""Matchers of labels as Alertmanager and `amtool` write them. Used by the command line for alerts of any origin."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import regex

from holmes.toolsets.patterns import LONGEST_OF_USERS, bounded_pattern
from holmes.values.errors import ConfigError, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Operator: TypeAlias = Literal["=", "!=", "=~", "!~"]
_MATCHER = re.compile(r"\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(.*?)\s*", re.DOTALL)
_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMatcher:
    """One condition. A label that is missing is empty; an expression must match the whole value."""

    label: str
    operator: Operator
    value: str

    def __str__(self) -> str:
        """As Alertmanager's API takes it."""
        return f"{self.label}{self.operator}{json.dumps(self.value, ensure_ascii=False)}"

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the condition holds."""
        value = labels.get(self.label, "")
        if self.operator in {"=", "!="}:
            return (value == self.value) is (self.operator == "=")
        found = regex.fullmatch(self.value, value, timeout=_SECONDS) is not None
        return found is (self.operator == "=~")


def matches_all(matchers: Iterable[LabelMatcher], labels: Mapping[str, str]) -> bool:
    """Whether all conditions hold. Raises `ConfigError` for an expression that takes for ever."""
    try:
        return all(matcher.matches(labels) for matcher in matchers)
    except TimeoutError:
        raise ConfigError("a regular expression of --alertmanager-label takes too long; write a simpler one") from None


def parse_matcher(text: str) -> LabelMatcher:
    """A matcher such as `severity=critical` or `namespace=~"shop|legacy"`. Raises `ConfigError`."""
    match = _MATCHER.fullmatch(text)
    if match is None:
        message = f'{text!r} is no matcher of labels: write for example severity=critical or namespace=~"shop|legacy"'
        raise ConfigError(message)
    operator: Operator = match[2]  # type: ignore[assignment]  # the expression allows nothing else
    value = _unquoted(match[3], text)
    if operator in {"=~", "!~"}:
        try:
            bounded_pattern(value, name=match[1], longest=LONGEST_OF_USERS)
        except ToolError as error:
            raise ConfigError(f"--alertmanager-label {text!r}: {error}") from None
    return LabelMatcher(label=match[1], operator=operator, value=value)


def _unquoted(value: str, text: str) -> str:
    if not value.startswith('"'):
        return value
    try:
        unquoted = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        unquoted = None
    if not isinstance(unquoted, str):
        raise ConfigError(f"{text!r}: the quotation marks do not close")
    return unquoted
