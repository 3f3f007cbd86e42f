"""The conversation with its token counts. Used by the loop and by compaction.

Knows nothing about models or limits. A message is tokenized at most once in its life, and the work of every call grows
with the messages that are new, not with the history. Refuses to be changed except by appending.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from holmes.core.messages import Message
from holmes.core.tokens import TokenCounter, upper_bound_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class History(Sequence[Message]):
    """Messages in order. Two histories are the same only when they are the same object."""

    __slots__ = ("_bound_of_uncounted", "_counted_tokens", "_counter", "_counts", "_messages", "_uncounted")

    def __init__(self, messages: Iterable[Message], counter: TokenCounter) -> None:
        self._counter = counter
        self._messages: list[Message] = []
        self._counts: list[int | None] = []
        self._counted_tokens = 0
        self._uncounted: list[int] = []
        self._bound_of_uncounted = 0
        for message in messages:
            self.append(message)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        return self._messages[index]

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def counter(self) -> TokenCounter:
        """What counts the messages."""
        return self._counter

    def append(self, message: Message) -> None:
        """Add `message` at the end. Nothing is tokenized yet."""
        self._append(message, None)

    def messages(self) -> tuple[Message, ...]:
        """All messages, as a value that later appends do not change."""
        return tuple(self._messages)

    def tokens(self) -> int:
        """Exact tokens of all messages. Tokenizes those that were not counted yet."""
        for index in self._uncounted:
            count = self._counter.count_message(self._messages[index])
            self._counts[index] = count
            self._counted_tokens += count
        self._uncounted.clear()
        self._bound_of_uncounted = 0
        return self._counted_tokens

    def token_counts(self) -> tuple[int, ...]:
        """Exact tokens of each message, in order."""
        self.tokens()
        return tuple(count for count in self._counts if count is not None)

    def upper_bound_tokens(self) -> int:
        """At least `tokens()`, without a tokenizer; exact for the messages that were counted before."""
        return self._counted_tokens + self._bound_of_uncounted

    def exceeds(self, limit_tokens: int) -> bool:
        """Whether `tokens()` is more than `limit_tokens`. The upper bound decides when it can."""
        return self.upper_bound_tokens() > limit_tokens and self.tokens() > limit_tokens

    def replaced(self, messages: Iterable[Message]) -> History:
        """A history of `messages` that keeps the counts of those that were here already (the same objects)."""
        known = {id(message): count for message, count in zip(self._messages, self._counts, strict=True)}
        history = History((), self._counter)
        for message in messages:
            history._append(message, known.get(id(message)))
        return history

    def with_replaced(self, replacements: Mapping[int, Message]) -> History:
        """A history with other messages of the same text at some positions; their counts are kept."""
        history = History((), self._counter)
        for index, message in enumerate(self._messages):
            history._append(replacements.get(index, message), self._counts[index])
        return history

    @property
    def is_counted(self) -> bool:
        """Whether `tokens()` is known without tokenizing anything."""
        return not self._uncounted

    def _append(self, message: Message, count: int | None) -> None:
        if count is None:
            self._uncounted.append(len(self._messages))
            self._bound_of_uncounted += upper_bound_tokens(message)
        else:
            self._counted_tokens += count
        self._messages.append(message)
        self._counts.append(count)
