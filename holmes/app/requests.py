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
    """A text attached to a question: a file or piped text. The model sees `name`."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRequest:
    """A question, its attachments, and the conversation that it continues (empty for a new one).

    `instructions` are added to those of the model for this conversation.
    """

    question: str
    attachments: tuple[Attachment, ...] = ()
    images: tuple[Image, ...] = ()
    conversation: tuple[Message, ...] = ()
    instructions: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """The parts of one run. `wrap_model` is applied to every model of the chain, for example for a budget.

    `approver` decides about calls that need approval, if the investigator has a `RunApprover`.
    """

    steps: StepRunner | None = None
    wrap_model: Callable[[ChatModel], ChatModel] | None = None
    approver: Approver | None = None
