"""Adds the first look to a conversation, and reviews each answer before the user receives it.

The model gets at most one request for a better answer. Without a reviewer, each answer stays as the model wrote it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from holmes.core.hooks import hook_call_id, hook_note
from holmes.core.reviewer import Draft, Review
from holmes.values.errors import StepLimitReached
from holmes.values.events import AnswerFinished
from holmes.values.messages import AssistantMessage, ToolCall, user_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holmes.core.loop_run import LoopParts, LoopRun
    from holmes.core.reviewer import FactsCall
    from holmes.values.errors import HolmesError
    from holmes.values.events import Citation
    from holmes.values.messages import Message, ToolMessage, UserMessage
    from holmes.values.model import ModelReply

Invoke: TypeAlias = "Callable[[ToolCall, str], Awaitable[ToolMessage]]"
_STUCK: Final = "the last three turns brought nothing new"
_MOST_CALLS: Final = 2
"""Maximum number of tool calls for one review."""


class AnswerReview:
    """The reviews of one run."""

    def __init__(self, run: LoopRun, parts: LoopParts, invoke: Invoke) -> None:
        """`invoke` runs a tool as the step with the given name and fits the result into the context window."""
        self._run = run
        self._parts = parts
        self._invoke = invoke
        self._asked = False
        self._spare: tuple[UserMessage, ...] = ()

    async def open(self) -> None:
        """Take the first look, and add its results to the conversation if they are useful for the model."""
        reviewer, history = self._parts.reviewer, self._run.history
        if reviewer is None:
            return
        spare: tuple[UserMessage, ...] = ()
        for call in reviewer.opening(history.messages()):
            for note in await self._notes(call, 1):
                if reviewer.is_useful(note, history.messages()):
                    self._join((note,))
                else:
                    spare = (*spare, note)
        self._spare = spare

    async def finish(self, text: str, step: int, *, is_final: bool) -> AnswerFinished | None:
        """Return the reviewed answer, or None after a request to the model for a better answer."""
        citations = (await self._run.verified(text)).citations
        draft = self._draft(text=text, citations=citations, is_final=is_final or self._asked)
        review, notes = await self._reviewed(draft, step)
        if review.request:
            self._asked = True
            self._join((*notes, user_text(review.request, kind="note")))
            return None
        return await self._finished(draft, review, notes, step)

    async def stuck(self, step: int) -> AnswerFinished | None:
        """Return the answer of the facts after turns that brought nothing new, or None if the model should answer."""
        return await self._without_model(_STUCK, step, is_final=False)

    async def stopped(self, error: HolmesError, step: int) -> AnswerFinished:
        """Return the answer of the facts after a run without an answer. Raises `error` if the facts give no answer."""
        answer = await self._without_model(_first_sentence(str(error)), step, is_final=True)
        if answer is None:
            raise error
        return answer

    async def unanswered(self, step: int, max_steps: int) -> AnswerFinished:
        """Return the answer of the facts after the last step. Raises `StepLimitReached` if the facts give no answer.

        The error message includes the model's last text.
        """
        found = next((text for text in map(_assistant_text, reversed(self._run.history)) if text), None)
        last_words = f" Last reply of the model: {found}" if found else ""
        limit = f"{max_steps} step{'s' if max_steps > 1 else ''}"
        text = f"No answer within {limit}: increase --max-steps or ask a narrower question."
        if step < max_steps:
            text = f"No answer after {step} steps: {_STUCK}. Use a larger model."
        return await self.stopped(StepLimitReached(text + last_words), step)

    async def _without_model(self, reason: str, step: int, *, is_final: bool) -> AnswerFinished | None:
        if self._parts.reviewer is None:
            return None
        draft = self._draft(is_final=is_final, stopped=reason)
        review, notes = await self._reviewed(draft, step)
        return await self._finished(draft, review, notes, step) if review.text else None

    def _draft(
        self, *, text: str = "", citations: tuple[Citation, ...] = (), is_final: bool, stopped: str = ""
    ) -> Draft:
        return Draft(
            text=text,
            messages=self._run.history.messages(),
            model=self._run.models.current.model.name,
            citations=citations,
            is_final=is_final,
            stopped=stopped,
        )

    def _join(self, notes: tuple[UserMessage, ...]) -> None:
        for note in notes:
            self._run.history.append(note)
        self._run.note_citable(notes)
        self._spare = ()

    async def _reviewed(self, draft: Draft, step: int) -> tuple[Review, tuple[UserMessage, ...]]:
        """Return the review, and the notes with the results of its tool calls."""
        reviewer, notes = self._parts.reviewer, self._spare
        if reviewer is None:
            return Review(text=draft.text), ()
        for _ in range(_MOST_CALLS):
            review = reviewer.review(replace(draft, messages=(*draft.messages, *notes)))
            if review.call is None:
                return review, notes
            notes = (*notes, *await self._notes(review.call, step))
        return reviewer.review(replace(draft, messages=(*draft.messages, *notes), may_call=False)), notes

    async def _notes(self, call: FactsCall, step: int) -> tuple[UserMessage, ...]:
        """Run a call of the reviewer. Returns its result as a note, or nothing if the tool is missing."""
        written = json.dumps(call.arguments, ensure_ascii=False)
        made = ToolCall(id=hook_call_id(call.name, step), name=call.tool, arguments=written)
        if self._parts.executor.toolset_name(made) is None:
            return ()
        return (hook_note(call.name, await self._invoke(made, f"step-{step}/{call.name}")),)

    async def _finished(
        self, draft: Draft, review: Review, notes: tuple[UserMessage, ...], step: int
    ) -> AnswerFinished:
        """Return the answer. The conversation ends with the text that the user receives."""
        changed = review.text != draft.text
        if changed:
            self._run.note_citable(notes)
        found = await self._run.verified(review.text)
        messages: tuple[Message, ...] = draft.messages
        if changed:
            last = messages[-1] if draft.text else AssistantMessage(text="")
            earlier = messages[:-1] if draft.text else messages
            if isinstance(last, AssistantMessage):
                messages = (*earlier, *notes, replace(last, text=found.text))
        return AnswerFinished(
            text=found.text if changed else draft.text,
            messages=messages,
            stats=self._run.stats,
            steps=step,
            model=draft.model,
            citations=found.citations,
            verdict=review.verdict,
        )


def written(reply: ModelReply, run: LoopRun) -> str:
    """Return the text of the reply, with a remark if the provider cut it off."""
    if reply.finish_reason != "length":
        return reply.message.text
    limit = run.models.output_tokens
    return f"{reply.message.text}\n\n*(The answer was cut off at the model's output limit of {limit} tokens.)*"


def _assistant_text(message: Message) -> str:
    return message.text.strip() if isinstance(message, AssistantMessage) else ""


def _first_sentence(text: str) -> str:
    return text.split(":", maxsplit=1)[0].split(". ", maxsplit=1)[0].rstrip(".")
