"""Puts the values of a dashboard's variables into its queries, as Grafana does in the browser.

Variables such as `$__interval` and `$__rate_interval` stay: Grafana's server knows them.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from holmes.observability.dashboards.dashboard import ALL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holmes.observability.dashboards.dashboard import Variable
    from holmes.values.json_types import JsonValue

_USE: Final = re.compile(r"\$(\w+)|\[\[(\w+)(?::(\w+))?\]\]|\$\{(\w+)(?:\.[^:^}]+)?(?::([^}]+))?\}")
_SPECIAL: Final = re.compile(r"[\\^$.*+?()\[\]{}|/]")
_DEEPEST: Final = 20


def substituted(written: JsonValue, known: Mapping[str, Variable], kind: str, deepest: int = _DEEPEST) -> JsonValue:
    """Return a query with values instead of variables in all of its texts, for a data source of type `kind`."""
    if isinstance(written, str):
        return _USE.sub(lambda found: _value(found, known, kind), written)
    if deepest == 0:
        return written
    if isinstance(written, list):
        return [substituted(each, known, kind, deepest - 1) for each in written]
    if isinstance(written, dict):
        return {key: substituted(each, known, kind, deepest - 1) for key, each in written.items()}
    return written


def missing_variables(written: str, known: Mapping[str, Variable]) -> list[str]:
    """Return the variables of the dashboard in a query that have no value."""
    return [each.name for each in used_variables(written, known) if not each.values]


def unlisted_variables(written: str, known: Mapping[str, Variable]) -> list[Variable]:
    """Return the variables in a query that stand for all values that match a pattern, if the values are not known."""
    return [each for each in used_variables(written, known) if _is_unlisted(each)]


def _is_unlisted(variable: Variable) -> bool:
    is_listed = bool(variable.everything) or (variable.is_fixed and bool(variable.options))
    return ALL in variable.values and bool(variable.pattern) and not is_listed


def used_variables(written: str, known: Mapping[str, Variable]) -> list[Variable]:
    """Return the variables of the dashboard in a query, in their order."""
    used = dict.fromkeys(_name(found) for found in _USE.finditer(written))
    return [known[name] for name in used if name in known]


def everything_of(variable: Variable, kind: str) -> str:
    """Return what stands for all values of a variable, or an empty string if its options are listed."""
    if variable.everything:
        return variable.everything
    if (variable.kind == "custom" and variable.options) or variable.pattern:
        return ""
    # All values of a query match, whatever they are.
    return "*" if kind in {"elasticsearch", "graphite"} else ".*"


def _name(found: re.Match[str]) -> str:
    return found[1] or found[2] or found[4]


def _value(found: re.Match[str], known: Mapping[str, Variable], kind: str) -> str:
    variable = known.get(_name(found))
    if variable is None or not variable.values or _is_unlisted(variable):
        return found[0]
    form = found[3] or found[5] or ""
    if ALL in variable.values:
        return everything_of(variable, kind) or _formatted(variable.options, form, kind, several=True)
    return _formatted(variable.values, form, kind, several=variable.several)


def _formatted(values: Sequence[str], form: str, kind: str, *, several: bool) -> str:  # noqa: PLR0911  one for each form
    match form:
        case "csv" | "raw" | "text":
            return ",".join(values)
        case "pipe":
            return "|".join(values)
        case "json":
            return json.dumps(list(values), ensure_ascii=False)
        case "singlequote":
            return ",".join(f"'{each}'" for each in values)
        case "doublequote":
            return ",".join(f'"{each}"' for each in values)
        case "percentencode":
            return quote(",".join(values), safe="")
        case "glob":
            return values[0] if len(values) == 1 else f"{{{','.join(values)}}}"
        case _:
            pass
    if form != "regex" and not several:
        return values[0]
    # The backslash itself is escaped again, because it is inside a string of the query language.
    escaped = [_SPECIAL.sub(r"\\\\\g<0>" if kind != "graphite" else r"\\\g<0>", each) for each in values]
    return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"
