"""What a face hands over with a question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holmes.core.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A text that goes along with the question: a file, or what was piped in. `name` is what the model is told."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRequest:
    """A question, what goes along with it, and the conversation it continues (empty for a new one)."""

    question: str
    attachments: tuple[Attachment, ...] = ()
    conversation: tuple[Message, ...] = ()
