"""Hides secrets in what the user typed, piped or attached, before anything is kept. Used by `holmes ask`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from holmes.redaction.redactor import redact_off_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from holmes.cli.commands.inputs import Question
    from holmes.redaction.redactor import Redactor

MaskQuestion: TypeAlias = "Callable[[Question], Coroutine[object, object, Question]]"
"""The same question without secrets."""


def question_mask(redactor: Redactor | None) -> MaskQuestion:
    """What hides the secrets of a question, off the event loop; does nothing when redaction is switched off."""

    async def mask(question: Question) -> Question:
        if redactor is None:
            return question
        attachments = [replace(each, text=await redact_off_loop(redactor, each.text)) for each in question.attachments]
        text = await redact_off_loop(redactor, question.text)
        return replace(question, text=text, attachments=tuple(attachments))

    return mask
