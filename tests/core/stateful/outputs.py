"""What the tools of a played cluster answer: 0 to 300 KB of logs, tables, JSON, pictures, errors; or they raise."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

from holmes.values.tools import ToolResult
from tests.support.conversations import LINE_KINDS, one_line, png

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST_BYTES = 300_000
_LINE_BYTES = 64


def tool_output(seed: int) -> ToolResult:
    """The answer of one call. Raises for some seeds, as a broken toolset does. Equal seeds give equal answers."""
    chance = random.Random(seed)  # noqa: S311  test data
    size_bytes = chance.choice((0, 40, 300, 1_500, 1_500, 4_000, 4_000, 12_000, 40_000, LARGEST_BYTES))
    makers: tuple[Callable[[random.Random, int, int], ToolResult], ...] = (
        _logs,
        _logs,
        _table,
        _json,
        _json,
        _one_line,
        _error,
        _pictures,
        _no_data,
        _approval,
        _exception,
    )
    return chance.choice(makers)(chance, seed, size_bytes)


def _logs(chance: random.Random, seed: int, size_bytes: int) -> ToolResult:
    said = ("GET /cart 200 12ms", "连接被拒绝 dial tcp 10.0.3.7:5432", "😀 retry", "OOMKilled exit code 137")
    lines = (
        f"2026-11-22T02:{number % 60:02}:00Z INFO [{seed}] {chance.choice(said)} {number}"
        for number in range(size_bytes // _LINE_BYTES + 1)
    )
    return ToolResult(status="success", data="\n".join(lines))


def _table(chance: random.Random, seed: int, size_bytes: int) -> ToolResult:
    states = ("Running", "Running", "CrashLoopBackOff", "Pending")
    rows = (
        f"shop        web-{seed % 10_000}-{number}   1/1     {chance.choice(states)}   {number % 9}          {number}h"
        for number in range(size_bytes // _LINE_BYTES + 1)
    )
    header = "NAMESPACE   NAME   READY   STATUS   RESTARTS   AGE"
    return ToolResult(status="success", data="\n".join((header, *rows)))


def _json(chance: random.Random, seed: int, size_bytes: int) -> ToolResult:
    items = [
        {"name": f"web-{number}", "restarts": chance.randrange(9), "phase": "Running"}
        for number in range(size_bytes // _LINE_BYTES + 1)
    ]
    indent = chance.choice((None, 2))
    return ToolResult(
        status="success", data=json.dumps({"kind": "List", "uid": str(seed), "items": items}, indent=indent)
    )


def _one_line(chance: random.Random, seed: int, size_bytes: int) -> ToolResult:
    return ToolResult(status="success", data=f"#{seed} " + one_line(chance.choice(LINE_KINDS), size_bytes // 2, seed))


def _error(chance: random.Random, seed: int, size_bytes: int) -> ToolResult:
    output = _logs(chance, seed, size_bytes // 2).data
    return ToolResult(
        status="error", error="kubectl ended with 1", data=output, return_code=1, invocation="kubectl get"
    )


def _pictures(chance: random.Random, seed: int, size_bytes: int) -> ToolResult:
    pictures = tuple(
        png(chance.randrange(50, 1_600), 400, padding=seed % 97 + number) for number in range(chance.randrange(1, 4))
    )
    return ToolResult(status="success", data=f"graph {seed}" * (size_bytes > 0), images=pictures)


def _no_data(chance: random.Random, seed: int, size_bytes: int) -> ToolResult:  # noqa: ARG001  as the others
    return ToolResult(
        status="no_data", data=chance.choice(("", "\n", "\r\n\x00\x1b[31m", f"\udcff{seed}", f"\ud800{seed}"))
    )


def _approval(chance: random.Random, seed: int, size_bytes: int) -> ToolResult:  # noqa: ARG001  as the others
    return ToolResult(status="approval_required", error="kubectl delete needs the approval of a person")


def _exception(chance: random.Random, seed: int, size_bytes: int) -> ToolResult:
    message = f"broken toolset {seed} " + "x" * (size_bytes // chance.choice((1, 10)))
    raise RuntimeError(message)
