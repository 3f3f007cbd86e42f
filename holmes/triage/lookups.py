"""What a plan asks of the cluster: a result that is there already, or a call to make now.

Plans run from their beginning for every request. `Lookups.ask` gives what was looked up before; what was not becomes a
pending call, and `Waiting` ends the plan until its result is there. So a plan reads as if it had all results at hand,
and nothing has to be remembered between two requests. `want` announces a call that is asked for later, so that calls
which do not depend on each other are made together.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.triage.conversation import CALL_PREFIX, Outcome, call_key, read_turn
from holmes.values.messages import ToolCall, ToolCallId
from holmes.values.tools import LINES_TOOL, QUERY_TOOL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.json_types import JsonValue
    from holmes.values.model import ModelRequest

DIAGNOSE_TOOL: Final = "kubernetes_diagnose"
MAX_ROUNDS: Final = 6
"""Rounds of calls for one question. Four are usual; the others are for results that must be read back."""
_READ_BACK_LINES = 200
_NUMBERED = re.compile(r"^ *\d+: ?", re.MULTILINE)


class Waiting(Exception):
    """The plan cannot go on before `Lookups.pending` was called. Caught in `answers`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    tool: str
    arguments: Mapping[str, JsonValue]


class Lookups:
    """The results of one request and the calls that are wanted next. Made anew for every request."""

    def __init__(self, request: ModelRequest) -> None:
        self.turn = read_turn(request)
        self._tools = {tool.name: frozenset(each.name for each in tool.parameters) for tool in request.tools}
        self._may_call = request.tool_choice == "auto" and self.turn.rounds < MAX_ROUNDS
        self._pending: dict[str, _Pending] = {}
        self._seed = f"{len(request.messages)} {self.turn.question[:200]}"

    def has(self, tool: str) -> bool:
        """Whether `tool` is among those offered."""
        return tool in self._tools

    def want(self, tool: str, **arguments: JsonValue) -> None:
        """Make this call together with the next one that is asked for, unless it was made already."""
        self._find(tool, arguments)

    def ask(self, tool: str, **arguments: JsonValue) -> Outcome:
        """What the call gives. Raises `Waiting` when it has to be made first.

        Arguments that are empty are left out. A tool that is not there, and a call when none can be made any more,
        give an outcome with status `error` that says so.
        """
        found = self._find(tool, arguments)
        if found is None:
            raise Waiting
        return self._whole(found)

    def _find(self, tool: str, arguments: Mapping[str, JsonValue]) -> Outcome | None:
        given = {name: value for name, value in arguments.items() if value not in ("", None)}
        key = call_key(tool, given)
        found = self.turn.outcomes.get(key)
        if found is not None:
            return found
        if tool not in self._tools:
            return Outcome(tool=tool, status="error", text=f"the tool {tool} is not available")
        unknown = given.keys() - self._tools[tool]
        if unknown:
            return Outcome(tool=tool, status="error", text=f"{tool} does not take {', '.join(sorted(unknown))}")
        if not self._may_call:
            return Outcome(tool=tool, status="error", text="not looked up: no more tools can be run for this answer")
        self._pending[key] = _Pending(tool=tool, arguments=given)
        return None

    def query(self, outcome: Outcome, expression: str) -> Outcome:
        """The results of a jq expression over a stored result, one a line, without the heading of the tool."""
        found = self.ask(QUERY_TOOL, result_id=outcome.stored_id, expression=expression)
        if found.failed:
            return found
        return replace(found, text=found.text.partition("\n")[2], result_id=outcome.stored_id)

    def _whole(self, outcome: Outcome) -> Outcome:
        """`outcome` with its output in place of a pointer, as far as it can be read back as lines."""
        if not outcome.partial or not outcome.stored_id or outcome.tool in (QUERY_TOOL, LINES_TOOL):
            return outcome
        if outcome.tool == DIAGNOSE_TOOL:  # lines that are cut are no JSON any more
            return outcome
        lines = self.ask(LINES_TOOL, result_id=outcome.stored_id, first_line=1, last_line=_READ_BACK_LINES)
        if lines.failed:
            return outcome
        text = _NUMBERED.sub("", lines.text.partition("\n")[2])
        return replace(outcome, text=text, result_id=outcome.stored_id)

    @property
    def pending(self) -> tuple[ToolCall, ...]:
        """The calls that are wanted, in the order in which they were asked for."""
        calls: list[ToolCall] = []
        for index, (key, call) in enumerate(self._pending.items()):
            digest = hashlib.sha256(f"{self._seed} {key}".encode("utf-8", "replace")).hexdigest()[:10]
            call_id = ToolCallId(f"{CALL_PREFIX}-{self.turn.rounds + 1}-{index}-{digest}")
            arguments = json.dumps(call.arguments, ensure_ascii=False)
            calls.append(ToolCall(id=call_id, name=call.tool, arguments=arguments))
        return tuple(calls)
