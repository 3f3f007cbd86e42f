"""Notices a model that is of no use: replies in a row without an answer and without a call that can run.

A call that runs and fails is of use: the model reads why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.values.errors import ModelError
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from holmes.values.model import ModelReply

MAX_EMPTY_REPLIES = 2
MAX_USELESS_REPLIES = 5
_LONGEST_PROBLEM_CHARACTERS = 300


class ReplyUse:
    """Counts for one model of one run."""

    def __init__(self) -> None:
        self._useless = 0
        self._empty = 0

    def useful(self) -> None:
        """A call could run."""
        self._useless = self._empty = 0

    def useless(self, reply: ModelReply, problem: str | None) -> None:
        """Count a reply whose calls all have a problem, `problem` for example, or that is empty (None).

        Raises `ModelError` for the third empty reply and for the fifth useless one since the last that was useful.
        """
        self._useless += 1
        self._empty += problem is None
        if self._empty > MAX_EMPTY_REPLIES:
            raise _given_up(
                reply,
                f"answered {self._empty} times with nothing (finish reason {reply.finish_reason!r}). "
                "Try again, another model, or a larger OVERRIDE_MAX_OUTPUT_TOKEN.",
            )
        if self._useless >= MAX_USELESS_REPLIES:
            last = "The last one was empty." if problem is None else shortened(problem, _LONGEST_PROBLEM_CHARACTERS)
            raise _given_up(
                reply,
                f"replied {self._useless} times in a row with neither an answer nor a call that can run. "
                f"{last} Try again, or use another model.",
            )


def _given_up(reply: ModelReply, what: str) -> ModelError:
    return ModelError(f"The model {reply.model!r} {what}", provider="", model=reply.model, retryable=True)
