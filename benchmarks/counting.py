"""What knowing the size of the conversation costs at every step: `python benchmarks/counting.py`.

The same conversation grows by one round at a time, and after each round its tokens are asked for: once of `History`,
which counts what is new (N9), and once by counting every message again with the same tokenizer, nothing remembered.
Both run side by side in one process and must agree; the figures are CPU time. Exits with 1 when recounting 200 rounds
is not at least 50 times dearer. Takes about half a minute.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from holmes.tokens import TokenCounter
from holmes.tokens.history import History
from holmes.values.messages import AssistantMessage, Message, SystemMessage, Text, ToolCall, ToolCallId, ToolMessage

ROUNDS = (25, 50, 100, 200, 400)
PROMISED_ROUNDS = 200
PROMISED_RATIO = 50.0
LINES_PER_RESULT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingCost:
    """CPU seconds of asking for the size after each of `rounds` rounds, all of them together."""

    rounds: int
    tokens: int
    history_seconds: float
    recount_seconds: float

    @property
    def ratio(self) -> float:
        """How many times dearer recounting is."""
        return self.recount_seconds / max(self.history_seconds, 1e-9)


def conversation(rounds: int) -> Iterator[tuple[Message, ...]]:
    """A system prompt, then one round after the other; no two texts are the same."""
    yield (SystemMessage(text="You are Holmes. " * 200),)
    for number in range(rounds):
        call = ToolCall(
            id=ToolCallId(f"call-{number}"), name="kubectl_logs", arguments=f'{{"pod": "checkout-{number}"}}'
        )
        lines = (
            f"2026-11-21T10:{number % 60:02d}:{line:02d}Z checkout-{number} GET /cart/{number * 7919 + line} 503"
            for line in range(LINES_PER_RESULT)
        )
        text = Text(text="\n".join(lines))
        yield (
            AssistantMessage(text=f"Step {number}: look at the log.", tool_calls=(call,)),
            ToolMessage(call_id=call.id, tool_name=call.name, status="success", parts=(text,)),
        )


def counting_costs(rounds: Sequence[int] = ROUNDS) -> tuple[CountingCost, ...]:
    """The cost of both ways after each of these numbers of rounds, of one run up to the largest."""
    TokenCounter().count_text("the tokenizer is loaded once, before the clock runs")
    history = History((), TokenCounter())
    history_seconds = recount_seconds = 0.0
    costs: list[CountingCost] = []
    for number, messages in enumerate(conversation(max(rounds))):
        started = time.process_time()
        for message in messages:
            history.append(message)
        tokens = history.tokens()
        between = time.process_time()
        fresh = TokenCounter()  # one that remembers nothing
        recounted = sum(map(fresh.count_message, history))
        history_seconds += between - started
        recount_seconds += time.process_time() - between
        if recounted != tokens:
            raise AssertionError(f"after {number} rounds the history says {tokens} tokens, a recount {recounted}")
        if number in rounds:
            costs.append(
                CountingCost(
                    rounds=number, tokens=tokens, history_seconds=history_seconds, recount_seconds=recount_seconds
                )
            )
    return tuple(costs)


def report(costs: Sequence[CountingCost]) -> str:
    """The table, with the promise as its last line."""
    lines = ["rounds    tokens   History, ms (per step)   recount, ms (per step)    ratio"]
    for cost in costs:
        counted, recounted = cost.history_seconds * 1000, cost.recount_seconds * 1000
        history = f"{counted:9.1f} ({counted / cost.rounds:6.3f})"
        recount = f"{recounted:9.0f} ({recounted / cost.rounds:6.1f})"
        lines.append(f"{cost.rounds:6}  {cost.tokens:8}   {history}     {recount}     {cost.ratio:6.0f}")
    return "\n".join(
        [*lines, f"recounting {PROMISED_ROUNDS} rounds is at least {PROMISED_RATIO:g} times dearer: {holds(costs)}"]
    )


def holds(costs: Sequence[CountingCost]) -> bool:
    """Whether the promise is kept."""
    return all(cost.ratio >= PROMISED_RATIO for cost in costs if cost.rounds == PROMISED_ROUNDS)


def main() -> int:
    """Print the table; 1 when the promise is broken."""
    costs = counting_costs()
    print(report(costs))
    return 0 if holds(costs) else 1


if __name__ == "__main__":
    sys.exit(main())
