"""A conversation with its token counts.

Each message is tokenized at most once. The cost of counting depends on the number of new messages, not on the length of
the history. A history changes only by appending.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from holmes.tokens import CERTAINLY_OVER, TokenCounter, upper_bound_tokens
from holmes.values.messages import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class History(Sequence[Message]):
    """The messages of a conversation, in order. Two histories are equal only if they are the same object.

    If the counter estimates, exact counts replace the estimates when an estimate is not decisive for a limit.
    """

    __slots__ = (
        "_bound_of_uncounted", "_bound_tokens", "_bounds", "_counted_tokens", "_counter", "_counts", "_estimated",
        "_messages", "_uncounted",
    )  # fmt: skip

    def __init__(self, messages: Iterable[Message], counter: TokenCounter) -> None:
        self._counter = counter
        self._messages: list[Message] = []
        self._counts: list[int | None] = []
        self._bounds: list[int] = []  # the exact count or an upper bound of each message
        self._counted_tokens = self._bound_tokens = self._bound_of_uncounted = 0
        self._uncounted: list[int] = []
        self._estimated: list[int] = []
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
        return self._counter

    def append(self, message: Message) -> None:
        """Append `message`, without tokenizing it."""
        self._append(message, None, None)

    def messages(self) -> tuple[Message, ...]:
        """Return a copy of all messages, which later calls to `append` do not change."""
        return tuple(self._messages)

    def tokens(self) -> int:
        """Return the token count of all messages. Counts only the messages that are not counted yet."""
        for index in self._uncounted:
            self._count(index, self._counter)
        if self._estimates:
            self._estimated += self._uncounted
        self._uncounted.clear()
        self._bound_of_uncounted = 0
        return self._counted_tokens

    def token_counts(self) -> tuple[int, ...]:
        """Return the token count of each message, in order."""
        self.tokens()
        return tuple(count for count in self._counts if count is not None)

    def count_exactly(self) -> None:
        """Replace estimates with exact counts, if a tokenizer is installed."""
        self.tokens()
        for index in self._estimated:
            self._count(index, self._counter.exact)
        self._estimated.clear()

    def known_tokens(self) -> int:
        """Return the token count of all messages, with upper bounds for messages that are not counted yet."""
        return self._counted_tokens + self._bound_of_uncounted

    def upper_bound_tokens(self) -> int:
        """Return an upper bound of the exact count, without a tokenizer. Uses exact counts where they are known."""
        return self._bound_tokens

    def exceeds(self, limit_tokens: int) -> bool:
        """Return whether the history has more than `limit_tokens`.

        The upper bound or a high estimate can decide. Otherwise, the messages are counted exactly.
        """
        if self.upper_bound_tokens() <= limit_tokens:
            return False
        if self._estimates and self.tokens() <= CERTAINLY_OVER * limit_tokens:
            self.count_exactly()
        return self.tokens() > limit_tokens

    def replaced(self, messages: Iterable[Message]) -> History:
        """Return a history of `messages`. Message objects from this history keep their counts."""
        known = {id(message): at for at, message in enumerate(self._messages)}
        history = History((), self._counter)
        for message in messages:
            at = known.get(id(message))
            history._append(message, *((None, None) if at is None else (self._counts[at], self._bounds[at])))
        return history

    def with_replaced(self, replacements: Mapping[int, Message]) -> History:
        """Return a history with some messages replaced. All counts are kept, so the new texts must be the same."""
        history = History((), self._counter)
        for index, message in enumerate(self._messages):
            history._append(replacements.get(index, message), self._counts[index], self._bounds[index])
        return history

    @property
    def is_counted(self) -> bool:
        """Whether all messages are counted."""
        return not self._uncounted

    @property
    def _estimates(self) -> bool:
        return self._counter.exact is not self._counter

    def _count(self, index: int, counter: TokenCounter) -> None:
        count = counter.count_message(self._messages[index])
        self._counted_tokens += count - (self._counts[index] or 0)
        self._counts[index] = count
        if counter.exact is counter:
            self._bound_tokens += count - self._bounds[index]
            self._bounds[index] = count

    def _append(self, message: Message, count: int | None, bound: int | None) -> None:
        bound = upper_bound_tokens(message) if bound is None else bound
        if count is None:
            self._uncounted.append(len(self._messages))
            self._bound_of_uncounted += bound
        else:
            self._counted_tokens += count
            if count != bound:
                self._estimated.append(len(self._messages))
        self._bound_tokens += bound
        self._bounds.append(bound)
        self._messages.append(message)
        self._counts.append(count)
