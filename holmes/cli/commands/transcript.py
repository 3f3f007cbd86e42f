"""Remembers one run: its tool calls and its end. A reader of the event stream, used for `--json-output-file`.

Keeps the conversation on disk while it grows, so that a kill loses at most the running message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.stores.conversation_store import ConversationStoreError
from holmes.values.events import (
    AnswerFinished,
    AssistantReplied,
    HistoryCompacted,
    RunFailed,
    ToolCallFinished,
    ToolResultsMasked,
    TurnStarted,
    total_cost,
)
from holmes.values.stats import NOTHING_SPENT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holmes.stores.conversation_store import Conversation
    from holmes.values.events import AgentEvent, Citation
    from holmes.values.messages import Message, UserMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run ended. `answer` is None when it failed or was interrupted; `error` then says why."""

    answer: str | None
    error: str | None
    exit_code: int
    citations: tuple[Citation, ...] = ()


class Transcript:
    """One question and what came of it."""

    def __init__(self, conversation: Conversation, warn: Callable[[str], None]) -> None:
        self._conversation = conversation
        self._warn = warn
        self._warned = False
        self.tool_calls: list[ToolCallFinished] = []
        self.steps = 0
        self.model = ""
        self.end: RunEnd | None = None
        self.stats = NOTHING_SPENT

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far."""
        return self._conversation.messages

    def begin(self, question: UserMessage) -> None:
        """The user has asked."""
        self._keep(lambda: self._conversation.append(question))

    def note(self, event: AgentEvent) -> None:
        """Take account of an event."""
        self.stats = total_cost(event, self.stats)
        match event:
            case TurnStarted():
                self.steps = event.step
            case AssistantReplied():
                self.model = event.model
                self._keep(lambda: self._conversation.append(event.message))
            case ToolCallFinished():
                self.tool_calls.append(event)
                self._keep(lambda: self._conversation.append(event.message))
            case HistoryCompacted() | ToolResultsMasked():
                self._go_on_with(event.messages)  # so that what follows an interruption does not pay for it again
            case AnswerFinished():
                self._finish(
                    event.messages, RunEnd(answer=event.text, error=None, exit_code=0, citations=event.citations)
                )
            case RunFailed():
                self._finish(event.messages, RunEnd(answer=None, error=event.error, exit_code=event.exit_code))
            case _:
                pass

    def interrupted(self, exit_code: int) -> None:
        """The run was cancelled, unless it had just ended by itself."""
        if self.end is None:
            self.end = RunEnd(answer=None, error="interrupted", exit_code=exit_code)

    def _finish(self, messages: Sequence[Message], end: RunEnd) -> None:
        self.end = end
        self._go_on_with(messages)

    def _go_on_with(self, messages: Sequence[Message]) -> None:
        if messages:
            self._keep(lambda: self._conversation.replace(messages))

    def _keep(self, write: Callable[[], None]) -> None:
        """A conversation that cannot be kept is a warning, once: the answer matters more."""
        try:
            write()
        except ConversationStoreError as error:
            if not self._warned:
                self._warned = True
                self._warn(f"warning: {error}")
