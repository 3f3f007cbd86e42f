"""Chooses the next step of `builtin/triage`: the call of the first look, then the answer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.triage.answers import answer_text
from holmes.triage.conversation import read_conversation
from holmes.triage.markdown import plain
from holmes.triage.summary import summarise, summary_request_of
from holmes.values.errors import ClusterUnreachable
from holmes.values.first_look import FIRST_LOOK_TOOL
from holmes.values.messages import ToolCall, ToolCallId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.triage.conversation import Conversation
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
        return Step(text=answer_text(conversation.look, details=details or conversation.details))
    if conversation.failure:
        raise ClusterUnreachable(plain(conversation.failure, 400))
    if not any(tool.name == FIRST_LOOK_TOOL for tool in request.tools):
        raise ClusterUnreachable(_NO_TOOL)
    if request.tool_choice == "none":
        return Step()
    return Step(calls=(_first_look_call(conversation, request.messages),))


def _first_look_call(conversation: Conversation, messages: Sequence[Message]) -> ToolCall:
    """Return the call of the first look. Its id is unique in the conversation."""
    arguments = json.dumps(conversation.arguments(), ensure_ascii=False)
    digest = hashlib.sha256(f"{len(messages)} {arguments}".encode("utf-8", "replace")).hexdigest()[:10]
    return ToolCall(id=ToolCallId(f"first-look-{len(messages)}-{digest}"), name=FIRST_LOOK_TOOL, arguments=arguments)
