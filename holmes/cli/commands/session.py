"""Runs one conversation: asks questions, and shows, stores and reports each run.

Masks secrets in typed, piped and attached text before any of it is stored.
"""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from holmes.cli.commands.inputs import Question
from holmes.cli.commands.interrupts import Interrupted
from holmes.cli.commands.report_file import RunEnd, Transcript, make_report, write_report
from holmes.redaction.redactor import redact_off_loop
from holmes.values.errors import HolmesError
from holmes.values.events import (
    CompactionFailed,
    HistoryCompacted,
    HistoryReplaced,
    RunFailed,
    ToolResultsMasked,
    total_cost,
)
from holmes.values.messages import Text, UserMessage
from holmes.values.stats import NOTHING_SPENT
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
    from contextlib import AbstractContextManager
    from pathlib import Path

    from holmes.cli.commands.interrupts import Interrupts
    from holmes.cli.render.rendering import Renderer
    from holmes.core.context_usage import ContextUsage
    from holmes.redaction.redactor import Redactor
    from holmes.stores.conversation_store import Conversation, ConversationStore
    from holmes.values.events import AgentEvent
    from holmes.values.messages import Message

MaskQuestion: TypeAlias = "Callable[[Question], Coroutine[object, object, Question]]"
"""Function that masks the secrets in a question."""


def question_mask(redactor: Redactor | None) -> MaskQuestion:
    """Return a function that masks the secrets in a question.

    The function does not block the event loop. If redaction is disabled, it returns the question unchanged.
    """

    async def mask(question: Question) -> Question:
        if redactor is None:
            return question
        attachments = [replace(each, text=await redact_off_loop(redactor, each.text)) for each in question.attachments]
        text = await redact_off_loop(redactor, question.text)
        return replace(question, text=text, attachments=tuple(attachments))

    return mask


Ask: TypeAlias = "Callable[[Question, tuple[Message, ...]], AsyncGenerator[AgentEvent, None]]"
"""Function that investigates a question after the given messages of the same conversation."""

Compact: TypeAlias = "Callable[[tuple[Message, ...]], AsyncGenerator[AgentEvent, None]]"
"""Function that compacts the given messages."""

Measure: TypeAlias = "Callable[[tuple[Message, ...]], Awaitable[ContextUsage]]"
"""Function that measures how much of the context window the given messages use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionParts:
    """Dependencies of a session.

    During a run, only the first `kept_attachment_characters` characters of each attachment are stored. The report of
    the last question is written to `report_path`, with the name of the `cluster`.
    """

    ask: Ask
    compact: Compact
    measure: Measure
    renderer: Renderer
    interrupts: Interrupts
    store: ConversationStore
    kept_attachment_characters: int
    mask: MaskQuestion
    report_path: Path | None = None
    cluster: str | None = None


class Session:
    """Asks the questions of one conversation."""

    def __init__(self, parts: SessionParts, conversation: Conversation) -> None:
        self._parts = parts
        self._conversation = conversation
        self.stats = NOTHING_SPENT

    def start_over(self) -> None:
        """Start a new conversation. The old conversation stays on disk."""
        self._conversation.close()
        self._conversation = self._parts.store.start()

    def close(self) -> None:
        self._conversation.close()

    async def ask(self, question: Question) -> RunEnd:
        """Investigate `question` until the run succeeds, fails or is interrupted, then write the report.

        Raises `HolmesError` if the report cannot be written, or for an error outside the event stream.
        """
        started_at = time.monotonic()
        renderer, interrupts = self._parts.renderer, self._parts.interrupts
        earlier = self._conversation.messages
        transcript = Transcript(self._conversation, renderer.notice)
        masked = Question(text="", attachments=())  # used in the report if masking is interrupted
        renderer.start()
        try:
            masked = await interrupts.run(self._parts.mask(question))
            transcript.begin(self._as_message(masked))
            await interrupts.run(self._follow(masked, earlier, transcript))
        except Interrupted as interrupted:
            transcript.interrupted(interrupted.exit_code)
        except HolmesError as error:
            transcript.end = RunEnd(answer=None, error=str(error), exit_code=error.exit_code)
            raise
        finally:
            renderer.stop()
            self.stats += transcript.stats
            self._report(masked, transcript, time.monotonic() - started_at)
        return transcript.end or RunEnd(answer=None, error="the investigation ended without an answer", exit_code=1)

    def staying(self) -> AbstractContextManager[None]:
        """Let Ctrl-C end a question or a command within this context, but not the session."""
        return self._parts.interrupts.staying()

    async def interruptible(self, work: Coroutine[object, object, None]) -> None:
        """Run `work`. Raises `Interrupted` after a signal, and any exception from `work`."""
        await self._parts.interrupts.run(work)

    async def compact(self) -> None:
        """Compact the conversation now, and show the result and its cost. Raises `HolmesError` on failure."""
        if not self._conversation.messages:
            raise HolmesError("nothing to compact yet")
        self._parts.renderer.start()
        try:
            await self._compact()
        finally:
            self._parts.renderer.stop()

    async def _compact(self) -> None:
        cost, shorter, end, failure = NOTHING_SPENT, False, None, None
        try:
            async with aclosing(self._parts.compact(self._conversation.messages)) as events:
                async for event in events:
                    cost = total_cost(event, cost)
                    if isinstance(event, CompactionFailed):
                        failure = event  # the error is shown below
                        continue
                    self._parts.renderer.show(event)
                    shorter = shorter or isinstance(event, HistoryCompacted | ToolResultsMasked)
                    end = event
        finally:
            self.stats += cost
        if isinstance(end, RunFailed):
            raise HolmesError(end.error)
        if not isinstance(end, HistoryReplaced) or not shorter:
            if failure is not None:
                raise HolmesError(f"not compacted: {failure.reason}")
            raise HolmesError("not compacted: the conversation cannot become shorter")
        if failure is not None:
            self._parts.renderer.show(failure)
        self._conversation.replace(end.messages)

    async def context_usage(self) -> ContextUsage:
        """Measure how much of the context window the conversation uses."""
        return await self._parts.measure(self._conversation.messages)

    async def _follow(self, question: Question, earlier: tuple[Message, ...], transcript: Transcript) -> None:
        """Pass each event to the renderer and the transcript. Closing the stream cancels the run."""
        async with aclosing(self._parts.ask(question, earlier)) as events:
            async for event in events:
                transcript.note(event)
                self._parts.renderer.show(event)

    def _report(self, question: Question, transcript: Transcript, elapsed_seconds: float) -> None:
        if self._parts.report_path is not None:
            report = make_report(question.text, transcript, elapsed_seconds, self._parts.cluster)
            write_report(self._parts.report_path, report)

    def _as_message(self, question: Question) -> UserMessage:
        """Return the message that is stored for a question until the loop replaces it at the end of the run."""
        room = self._parts.kept_attachment_characters
        attachments = [
            Text(text=f"{attachment.name}:\n{shortened(attachment.text, room, mark='')}")
            for attachment in question.attachments
        ]
        return UserMessage(parts=(Text(text=question.text), *attachments))
