"""Objects as JSON and as the YAML that kubectl writes."""

from __future__ import annotations

import json
import random
from typing import Any

Object = dict[str, Any]


def conditions(*pairs: tuple[str, str]) -> list[Object]:
    """Of a status, in the order of `pairs`: type and status."""
    return [{"lastTransitionTime": "2026-11-19T07:11:02Z", "status": status, "type": kind} for kind, status in pairs]


def as_json(chance: random.Random, value: Object) -> str:
    return json.dumps(value, indent=chance.choice((None, 4)))


def as_yaml(_: random.Random, value: Object) -> str:
    return "\n".join(yaml_lines(value, "")) + "\n"


def yaml_lines(value: object, indent: str) -> list[str]:
    """Block YAML as kubectl writes it: lists stand at the indentation of their key."""
    lines = []
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, dict | list) and inner:
                lines.append(f"{indent}{key}:")
                lines += yaml_lines(inner, indent + ("  " if isinstance(inner, dict) else ""))
            else:
                lines.append(f"{indent}{key}: {_yaml_scalar(inner)}")
    elif isinstance(value, list):
        for inner in value:
            below = yaml_lines(inner, indent + "  ")
            lines += [f"{indent}- {below[0].lstrip()}", *below[1:]]
    else:
        lines.append(f"{indent}{_yaml_scalar(value)}")
    return lines


def _yaml_scalar(value: object) -> str:
    if isinstance(value, str):
        plain = value and value[0].isalpha() and value not in ("true", "false", "null") and ": " not in value
        return value if plain else json.dumps(value)
    return json.dumps(value)
