"""Splits what is removed into groups that are summarised one by one (K10). Called by `summary` and `removed`.

Works on whole rounds, so a call is never separated from its results (K9). Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.core.truncation.plan import split_rounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.messages import Message


def split_groups(
    messages: Sequence[Message], weights: Sequence[int], threshold_tokens: int | None, most_groups: int
) -> tuple[tuple[Message, ...], ...]:
    """Groups of at most `threshold_tokens`, in order; a round above it is its own group.

    None or 0 means one group. `weights` are the tokens of the messages. Where that makes more than `most_groups`, the
    threshold is doubled until it does not: every group costs a request and a share of the summary.
    """
    if not messages:
        return ()
    if not threshold_tokens:
        return (tuple(messages),)
    rounds = split_rounds(messages, range(len(messages)))
    sizes = [sum(weights[position] for position in positions) for positions in rounds]
    while len(groups := _pack(sizes, threshold_tokens)) > max(1, most_groups):
        threshold_tokens *= 2
    return tuple(tuple(messages[position] for number in group for position in rounds[number]) for group in groups)


def _pack(sizes: Sequence[int], threshold_tokens: int) -> list[list[int]]:
    groups: list[list[int]] = []
    left = 0
    for number, size in enumerate(sizes):
        if not groups or size > left:
            groups.append([])
            left = threshold_tokens
        groups[-1].append(number)
        left -= size
    return groups
