"""What a face hands over with a question."""

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
    """A text that goes along with the question: a file, or what was piped in. `name` is what the model is told."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRequest:
    """A question, what goes along with it, and the conversation it continues (empty for a new one).

    `instructions` are added to those of the model for this conversation.
    """

    question: str
    attachments: tuple[Attachment, ...] = ()
    images: tuple[Image, ...] = ()
    conversation: tuple[Message, ...] = ()
    instructions: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """What one run has of its own. `wrap_model` is applied to every model of the chain, for example to a budget.

    `approver` answers for calls that need a person, where the investigator was opened with a `RunApprover`.
    """

    steps: StepRunner | None = None
    wrap_model: Callable[[ChatModel], ChatModel] | None = None
    approver: Approver | None = None
