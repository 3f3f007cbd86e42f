"""Reads the expression of an alerting rule: what it measures, the threshold, and what it sums up."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MIRRORED: Final = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "==": "==", "!=": "!="}
_ARITHMETIC: Final[dict[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": operator.pow,
}
_SETS: Final = ("and", "or", "unless")
_ABSENT: Final = ("absent", "absent_over_time")
_ADDING: Final = ("sum", "count", "avg", "max", "min")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The series below an aggregation. `adds` is true for a sum or a count, of which each series has a share."""

    query: str
    by: tuple[str, ...]
    adds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The condition of an alert: `measured` compared with `threshold` or, if that is None, with the query `limit`.

    Without `comparison`, the alert fires for each series of `measured`. With `is_absence`, it fires while `measured`
    has no series. Conditions that are joined with `and`, `or` or `unless` are not part of it.
    """

    measured: str
    comparison: str = ""
    threshold: float | None = None
    limit: str = ""
    is_absence: bool = False
    parts: Parts | None = None


def condition_of(query: str) -> Condition | None:
    """Read the expression of a rule, or return None if it is not PromQL."""
    import promql_parser

    try:
        tree = promql_parser.parse(query)
    except ValueError:
        return None
    return _condition(tree)


def _condition(node: Any) -> Condition:  # noqa: ANN401  the parser has no types
    node = _inside(node)
    name = type(node).__name__
    if name == "BinaryExpr" and str(node.op) in _SETS:
        return _condition(node.lhs)
    if name == "BinaryExpr" and str(node.op) in _MIRRORED:
        return _compared(node)
    if name == "Call" and node.func.name in _ABSENT and node.args:
        return Condition(measured=str(node.args[0]), is_absence=True)
    return Condition(measured=str(node), parts=_parts(node))


def _compared(node: Any) -> Condition:  # noqa: ANN401  the parser has no types
    left, right = _number(node.lhs), _number(node.rhs)
    comparison = str(node.op)
    if left is not None and right is None:
        return Condition(
            measured=str(_inside(node.rhs)), comparison=_MIRRORED[comparison], threshold=left, parts=_parts(node.rhs)
        )
    inner = _inside(node.lhs)
    if type(inner).__name__ == "Call" and inner.func.name in _ABSENT and inner.args:
        return Condition(measured=str(inner.args[0]), is_absence=True)
    limit = "" if right is not None else str(node.rhs)
    return Condition(measured=str(inner), comparison=comparison, threshold=right, limit=limit, parts=_parts(node.lhs))


def _number(node: Any) -> float | None:  # noqa: ANN401  the parser has no types
    """Return the value of a constant such as `80 / 100`, or None."""
    node = _inside(node)
    match type(node).__name__:
        case "NumberLiteral":
            return float(node.val)
        case "UnaryExpr":
            inner = _number(node.expr)
            return None if inner is None else -inner
        case "BinaryExpr" if str(node.op) in _ARITHMETIC:
            left, right = _number(node.lhs), _number(node.rhs)
            if left is None or right is None:
                return None
            try:
                return _ARITHMETIC[str(node.op)](left, right)
            except (ZeroDivisionError, OverflowError):
                return math.nan
    return None


def _parts(node: Any) -> Parts | None:  # noqa: ANN401  the parser has no types
    """Return what the first aggregation sums up: of a quotient, that of its numerator. Histograms have no parts."""
    node = _inside(node)
    name = type(node).__name__
    if name == "BinaryExpr" and str(node.op) in _ARITHMETIC:
        return _parts(node.lhs if _number(node.lhs) is None else node.rhs)
    if name != "AggregateExpr" or str(node.op) not in _ADDING:
        return None
    modifier = node.modifier
    is_by = modifier is not None and str(modifier.type).lower().endswith("by")
    return Parts(
        query=str(node.expr),
        by=tuple(modifier.labels) if is_by and modifier is not None else (),
        adds=str(node.op) in {"sum", "count"},
    )


def _inside(node: Any) -> Any:  # noqa: ANN401  the parser has no types
    while type(node).__name__ == "ParenExpr":
        node = node.expr
    return node
