"""Chooses the next step of `builtin/triage`: the call of the first look, then the answer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.triage.alert_readings import alert_arguments, measured_lines
from holmes.triage.answers import answer_text
from holmes.triage.conversation import read_conversation
from holmes.triage.markdown import plain
from holmes.triage.summary import summarise, summary_request_of
from holmes.values.errors import ClusterUnreachable
from holmes.values.first_look import ALERT_TOOL, FIRST_LOOK_TOOL
from holmes.values.messages import ToolCall, ToolCallId

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    if conversation.look is not None:
        measured = measured_lines(conversation.readings)
        return Step(text=answer_text(conversation.look, details=details or conversation.details, measured=measured))
    if conversation.failure:
        raise ClusterUnreachable(plain(conversation.failure, 400))
    if not any(tool.name == FIRST_LOOK_TOOL for tool in request.tools):
        raise ClusterUnreachable(_NO_TOOL)
    if request.tool_choice == "none":
        return Step()
    calls = [_call(FIRST_LOOK_TOOL, conversation.arguments(), request.messages)]
    if any(tool.name == ALERT_TOOL for tool in request.tools):
        calls += [_call(ALERT_TOOL, given, request.messages) for given in alert_arguments(conversation)]
    return Step(calls=tuple(calls))


def _call(tool: str, given: Mapping[str, object], messages: Sequence[Message]) -> ToolCall:
    """Return a call whose id is unique in the conversation."""
    arguments = json.dumps(given, ensure_ascii=False)
    digest = hashlib.sha256(f"{len(messages)} {arguments}".encode("utf-8", "replace")).hexdigest()[:10]
    kind = "first-look" if tool == FIRST_LOOK_TOOL else "alert"
    return ToolCall(id=ToolCallId(f"{kind}-{len(messages)}-{digest}"), name=tool, arguments=arguments)
