"""Derives the unit of a query's values from the names of its metrics, which end in it by convention."""

from __future__ import annotations

from typing import Any, Final

_UNITS: Final = ("bytes", "seconds", "cores", "ratio", "percent", "celsius", "volts", "joules", "meters")
_PARTS: Final = ("_total", "_sum", "_bucket")
_PER_SECOND: Final = ("rate", "irate", "deriv")
_SAME: Final = (
    *("increase", "delta", "idelta", "avg_over_time", "max_over_time", "min_over_time", "sum_over_time"),
    *("last_over_time", "quantile_over_time", "histogram_quantile", "clamp_min", "clamp_max", "sort", "sort_desc"),
    *("abs", "ceil", "floor", "round", "label_replace", "predict_linear"),
)
_KEEPING: Final = ("+", "-", "or", "and", "unless", ">", "<", ">=", "<=", "==", "!=")
_AGGREGATIONS: Final = ("sum", "avg", "min", "max", "topk", "bottomk", "quantile")


def unit_of(query: str) -> str:
    """Return the unit of the values, for example `bytes per second`, or an empty string if it is not known."""
    import promql_parser

    try:
        return _unit(promql_parser.parse(query))
    except ValueError:
        return ""


def _unit(node: Any) -> str:  # noqa: ANN401  the parser has no types
    unit = ""
    match type(node).__name__:
        case "VectorSelector":
            unit = _unit_in(node.name or "")
        case "MatrixSelector":
            unit = _unit_in(node.vector_selector.name or "")
        case "ParenExpr" | "UnaryExpr" | "SubqueryExpr":
            unit = _unit(node.expr)
        case "AggregateExpr" if str(node.op) in _AGGREGATIONS:
            unit = _unit(node.expr)
        case "BinaryExpr" if str(node.op) in _KEEPING:
            unit = _unit(node.lhs)
        case "Call":
            unit = _unit_of_call(node.func.name, [_unit(each) for each in node.args])
        case _:
            pass
    return unit


def _unit_of_call(name: str, units: list[str]) -> str:
    unit = next(filter(None, units), "")
    if name in _PER_SECOND:
        return "seconds per second" if unit == "seconds" else f"{unit} per second".strip()
    if name == "histogram_quantile":
        return unit.removesuffix(" per second")
    return unit if name in _SAME else ""


def _unit_in(metric: str) -> str:
    for part in _PARTS:
        metric = metric.removesuffix(part)
    return next((unit for unit in _UNITS if metric.endswith(f"_{unit}")), "")
