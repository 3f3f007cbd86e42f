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
    "%": operator.mod,
    "^": operator.pow,
}
_NARROWING: Final = ("and", "unless")
_ABSENT: Final = ("absent", "absent_over_time")
_GROUPING: Final = ("sum", "count", "avg", "max", "min")
_NOT_REWRITTEN: Final = ("\\", "`", "'")
"""The parser writes strings with these marks without their escapes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The series below an aggregation. `adds` is true for a sum, of which each series has a share."""

    query: str
    adds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The condition of an alert: `measured` compared with `threshold` or, if that is None, with the query `limit`.

    Without `comparison`, the alert fires for each series of `measured`. With `is_absence`, it fires while `measured`
    has no series. Conditions that are joined with `and` or `unless` are not part of it. One of several that are joined
    with `or` is not chosen: then `measured` is the whole expression.
    """

    measured: str
    comparison: str = ""
    threshold: float | None = None
    limit: str = ""
    is_absence: bool = False
    parts: Parts | None = None


def condition_of(query: str) -> Condition:
    """Read the expression of a rule. One that the parser cannot read, or cannot write again, is measured as a whole."""
    import promql_parser

    whole = Condition(measured=query)
    if any(mark in query for mark in _NOT_REWRITTEN):
        return whole
    try:
        tree = promql_parser.parse(query)
    except ValueError:
        return whole
    return whole if _is_choice(tree) else _condition(tree)


def _is_choice(node: Any) -> bool:  # noqa: ANN401  the parser has no types
    node = _inside(node)
    return type(node).__name__ == "BinaryExpr" and str(node.op) == "or"


def _condition(node: Any) -> Condition:  # noqa: ANN401  the parser has no types
    node = _inside(node)
    name = type(node).__name__
    if name == "BinaryExpr" and str(node.op) in _NARROWING:
        return _condition(node.lhs)
    if name == "BinaryExpr" and str(node.op) in _MIRRORED:
        return _compared(node)
    if name == "Call" and node.func.name in _ABSENT and node.args:
        return Condition(measured=_vector(node.args[0]), is_absence=True)
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
        return Condition(measured=_vector(inner.args[0]), is_absence=True)
    limit = "" if right is not None else str(node.rhs)
    return Condition(measured=str(inner), comparison=comparison, threshold=right, limit=limit, parts=_parts(node.lhs))


def _vector(node: Any) -> str:  # noqa: ANN401  the parser has no types
    """Return a selector without its range, which a query for one time may not have."""
    return str(node.vector_selector if type(node).__name__ == "MatrixSelector" else node)


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
    """Return what the first aggregation sums up: of a quotient, that of its numerator.

    Histograms have no parts. In `1 - sum(…)`, what counts most is what is missing, so that there are none either.
    """
    node = _inside(node)
    name = type(node).__name__
    if name == "BinaryExpr" and str(node.op) in _ARITHMETIC:
        if _number(node.lhs) is None:
            return None if str(node.op) in {"-", "%", "^"} else _parts(node.lhs)
        return _parts(node.rhs) if str(node.op) in {"*", "+"} else None
    if name != "AggregateExpr" or str(node.op) not in _GROUPING:
        return None
    return Parts(query=str(node.expr), adds=str(node.op) == "sum")


def _inside(node: Any) -> Any:  # noqa: ANN401  the parser has no types
    while type(node).__name__ == "ParenExpr":
        node = node.expr
    return node
