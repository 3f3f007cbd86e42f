"""Chooses the next step of `builtin/triage`: the first look, then the metrics of its subject, then the answer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.triage.answers import answer_text
from holmes.triage.conversation import read_conversation
from holmes.triage.markdown import plain
from holmes.triage.metric_readings import (
    alert_arguments,
    called_arguments,
    measured_lines,
    related_arguments,
    signal_arguments,
)
from holmes.triage.summary import summarise, summary_request_of
from holmes.values.errors import ClusterUnreachable
from holmes.values.first_look import ALERT_TOOL, FIRST_LOOK_TOOL, RELATED_TOOL, SIGNALS_TOOL
from holmes.values.messages import ToolCall, ToolCallId

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holmes.triage.metric_readings import SeenMetrics
    from holmes.values.first_look import FirstLook
    from holmes.values.messages import Message
    from holmes.values.model import ModelRequest

_NO_TOOL: Final = (
    "The cluster was not read, because the toolset `kubernetes/diagnosis` is not available; "
    "`holmes toolset list` shows why."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The next step of the model: either tool calls, or the answer in `text`."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


def next_step(request: ModelRequest, *, details: bool = False) -> Step:
    """Return a summary if the loop requests one, otherwise the call of the first look or the answer.

    Raises `ClusterUnreachable` if nothing could be read, because no answer is possible then. The text is empty if a
    call is necessary and the loop allows none.
    """
    wanted = summary_request_of(request)
    if wanted is not None:
        return Step(text=summarise(wanted))
    conversation = read_conversation(request.messages)
    tools = set() if request.tool_choice == "none" else {tool.name for tool in request.tools}
    if conversation.look is not None:
        wanted_calls = () if conversation.details else _metric_calls(conversation.metrics, conversation.look.look)
        made = tuple(_call(tool, given, request.messages) for tool, given in wanted_calls if tool in tools)
        if made:
            return Step(calls=made)
        measured = measured_lines(conversation.metrics)
        return Step(text=answer_text(conversation.look, details=details or conversation.details, measured=measured))
    if conversation.failure:
        raise ClusterUnreachable(plain(conversation.failure, 400))
    if not any(tool.name == FIRST_LOOK_TOOL for tool in request.tools):
        raise ClusterUnreachable(_NO_TOOL)
    if request.tool_choice == "none":
        return Step()
    calls = [_call(FIRST_LOOK_TOOL, conversation.arguments(), request.messages)]
    if ALERT_TOOL in tools:
        calls += [
            _call(ALERT_TOOL, given, request.messages)
            for given in alert_arguments(conversation.alerts, conversation.firing)
        ]
    return Step(calls=tuple(calls))


def _metric_calls(metrics: SeenMetrics, look: FirstLook) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the next calls: the signals of the subject, then what it calls, then the signals of that."""
    if metrics.signals is None:
        given = signal_arguments(look)
        if given is not None:
            yield SIGNALS_TOOL, given
    elif metrics.related is None:
        given = related_arguments(look, metrics.signals)
        if given is not None:
            yield RELATED_TOOL, given
    elif not metrics.called and not metrics.related.failed:
        yield from ((SIGNALS_TOOL, each) for each in called_arguments(metrics.related))


def _call(tool: str, given: Mapping[str, object], messages: Sequence[Message]) -> ToolCall:
    """Return a call whose id is unique in the conversation."""
    arguments = json.dumps(given, ensure_ascii=False)
    digest = hashlib.sha256(f"{len(messages)} {arguments}".encode("utf-8", "replace")).hexdigest()[:10]
    kinds = {FIRST_LOOK_TOOL: "first-look", ALERT_TOOL: "alert", SIGNALS_TOOL: "signals", RELATED_TOOL: "related"}
    return ToolCall(id=ToolCallId(f"{kinds[tool]}-{len(messages)}-{digest}"), name=tool, arguments=arguments)
