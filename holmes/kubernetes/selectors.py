"""Whether labels match a selector, as Kubernetes decides it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.kubernetes.fields import children, text, text_map, texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.json_types import JsonObject


def matches_map(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """A Service's selector. An empty one matches nothing."""
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def matches_selector(selector: JsonObject, labels: Mapping[str, str]) -> bool:
    """A selector with `matchLabels` and `matchExpressions`. An empty one matches everything."""
    if any(labels.get(key) != value for key, value in text_map(selector, "matchLabels").items()):
        return False
    return all(_holds(expression, labels) for expression in children(selector, "matchExpressions"))


def _holds(expression: JsonObject, labels: Mapping[str, str]) -> bool:
    key, values = text(expression, "key"), texts(expression, "values")
    match text(expression, "operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False
