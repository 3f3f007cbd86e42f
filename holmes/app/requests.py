"""The questions that the terminal and the server pass to an investigator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.core.tools_utils.tool_executor import Approver
    from holmes.values.messages import Image, Message
    from holmes.values.model import ChatModel
    from holmes.values.steps import StepRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """Text from a file or a pipe that is attached to a question. The model receives the text and `name`."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRequest:
    """A question with its attachments. `conversation` contains the earlier messages, if any.

    `instructions` are appended to the system prompt.
    """

    question: str
    attachments: tuple[Attachment, ...] = ()
    images: tuple[Image, ...] = ()
    conversation: tuple[Message, ...] = ()
    instructions: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """The parts that apply to one run. `wrap_model` wraps every model of the chain, for example with a budget.

    `approver` decides on tool calls that require approval, if the investigator has a `RunApprover`.
    """

    steps: StepRunner | None = None
    wrap_model: Callable[[ChatModel], ChatModel] | None = None
    approver: Approver | None = None
