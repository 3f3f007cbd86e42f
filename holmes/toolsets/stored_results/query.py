"""Runs `query_stored_result`, which applies a jq expression to stored JSON or JSON Lines.

libjq cannot be interrupted and has no memory limit, so the expression runs in a separate process with `jq_program`. The
process ends after a time limit, or when the call or Holmes ends. Results that are not JSON are rejected.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holmes.toolsets.process import ProcessLimits, run_process
from holmes.toolsets.stored_results.reader import number
from holmes.values.environment import Environment
from holmes.values.errors import ToolError
from holmes.values.tools import SEARCH_TOOL, ToolResult

if TYPE_CHECKING:
    from holmes.toolsets.process import ProcessOutcome
    from holmes.toolsets.stored_results.reader import Reader
    from holmes.values.json_types import JsonObject
    from holmes.values.messages import StoredResult

_MAX_EXPRESSION_CHARACTERS: Final = 4_000
_PROGRAM = Path(__file__).with_name("jq_program.py")
_SHOWN_BYTES_PER_TOKEN = 8
_WAIT_FACTOR = 2  # on a busy machine, a process gets about half of a CPU
_SIMPLER = "use a simpler expression, or select less"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """The first results as text, the total number of results, and the error that ended the program, if any."""

    results: tuple[str, ...]
    total: int
    error: str | None
    at_least: bool


async def run_query(reader: Reader, arguments: JsonObject) -> ToolResult:
    """Run `expression` and return its results, one per line.

    Raises `ResultStoreError`, and `ToolError` for a failing expression.
    """
    expression = str(arguments["expression"])
    if len(expression) > _MAX_EXPRESSION_CHARACTERS or "\0" in expression:
        raise ToolError(
            f"the expression is longer than {_MAX_EXPRESSION_CHARACTERS:,} characters or contains NUL; correct it"
        )
    content, stored = await reader.text(str(arguments["result_id"]))
    shown_bytes = _SHOWN_BYTES_PER_TOKEN * reader.room_tokens
    outcome = await run_process(
        (sys.executable, "-I", str(_PROGRAM), expression, str(shown_bytes), str(reader.query_seconds)),
        environment=Environment(),
        limits=ProcessLimits(timeout_seconds=_WAIT_FACTOR * reader.query_seconds),
        stdin=content,
    )
    if outcome.timed_out or outcome.return_code in {-signal.SIGXCPU, -signal.SIGKILL}:
        raise ToolError(f"the expression {expression!r} took longer than {reader.query_seconds} seconds; {_SIMPLER}")
    answer = _answer(outcome, expression, stored)
    return await asyncio.to_thread(_shown, reader, stored, expression, answer)


def _answer(outcome: ProcessOutcome, expression: str, stored: StoredResult) -> _Answer:
    fields = _fields(outcome.stdout)
    results = fields.get("results")
    if not isinstance(results, list):
        reason = "exceeded the memory limit" if _took_all_memory(outcome) else "could not run"
        raise ToolError(f"the expression {expression!r} {reason}; {_SIMPLER}")
    failure = fields.get("error")
    answer = _Answer(
        results=tuple(str(result) for result in results),
        total=number(fields, "total", 0),
        error=None if failure is None else str(failure),
        at_least=bool(fields.get("at_least")),
    )
    if answer.error is not None and not answer.total:
        hint = f"; the result is not JSON: use {SEARCH_TOOL}" if "parse error" in answer.error else ""
        raise ToolError(f"jq failed on result {stored.id}: {answer.error}{hint}")
    return answer


def _fields(output: str) -> JsonObject:
    """Parse the output of the program. The object is empty if the program did not finish."""
    try:
        fields: JsonObject = json.loads(output)
    except ValueError:
        return {}
    return fields


def _took_all_memory(outcome: ProcessOutcome) -> bool:
    return outcome.return_code == -signal.SIGABRT or "memory" in outcome.stderr.lower()


def _shown(reader: Reader, stored: StoredResult, expression: str, answer: _Answer) -> ToolResult:
    if not answer.total:
        text = f"The expression {expression!r} returns nothing for result {stored.id}."
        return ToolResult(status="no_data", error=text, spillable=False)
    shown = reader.fitting(answer.results)
    left = answer.total - shown
    count = f"{'at least ' if answer.at_least else ''}{answer.total:,} results"
    more = f", showing 1-{shown}; {left:,} more: select less, or slice with [{shown}:]" if left else ""
    stopped = f"; stopped by an error: {answer.error}" if answer.error is not None else ""
    heading = f"Result {stored.id}: {count} of {expression!r}{more}{stopped}."
    return reader.bounded("\n".join((heading, *answer.results[:shown])))
