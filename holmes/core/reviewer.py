"""The interface of the reviewer, which compares answers with facts that do not come from a model.

The loop asks the reviewer for a first look before the first reply, and for a review of each answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.events import Citation
    from holmes.values.messages import Message, UserMessage
    from holmes.values.verdicts import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsCall:
    """A tool call of the reviewer. `name` is part of its call id and of the note with its result."""

    name: str
    tool: str
    arguments: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An answer before its review. `text` is empty if the model gave no answer, and `stopped` is then the reason.

    `messages` is the whole conversation, and `citations` are the checked citations in `text`. `is_final` is true if the
    model gets no further reply. `may_call` is false if the review can get no more tool calls.
    """

    text: str
    messages: tuple[Message, ...]
    model: str
    citations: tuple[Citation, ...] = ()
    is_final: bool = False
    may_call: bool = True
    stopped: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The result of a review.

    `call` is a tool call that the review needs first. `request` asks the model for one more reply. Without both, `text`
    is the answer that the user receives, and is empty if the facts give no answer.
    """

    text: str = ""
    verdict: Verdict | None = None
    call: FactsCall | None = None
    request: str = ""


class Reviewer(Protocol):
    """Reviews the answers of a run. Must be deterministic, because a resumed run repeats its steps."""

    @property
    def reviews(self) -> bool:
        """Whether answers are reviewed. If not, the loop does not end a search that makes no progress either."""
        ...

    def opening(self, messages: Sequence[Message]) -> tuple[FactsCall, ...]:
        """Return the calls whose results the model should see before its first reply."""
        ...

    def is_useful(self, note: UserMessage, messages: Sequence[Message]) -> bool:
        """Return whether the model should see `note`, a result of `opening`, after `messages`."""
        ...

    def alternative(self, messages: Sequence[Message]) -> str:
        """Return advice for a model that repeats a failed call, or an empty string."""
        ...

    def review(self, draft: Draft) -> Review:
        """Review an answer.

        The loop runs `call` and repeats the review with its result, or its error, as the last message.
        """
        ...
