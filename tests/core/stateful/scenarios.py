"""What happens to a conversation: made from a seed, played by `conversation`."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from holmes.values.messages import AssistantMessage, SystemMessage, Text, ToolCallId, ToolMessage, user_text
from tests.core.stateful.provider import SUMMARISERS
from tests.support.conversations import output_text, png
from tests.support.counting_model import tool_call

if TYPE_CHECKING:
    from holmes.values.messages import Message

Trouble: TypeAlias = Literal["none", "overflow", "smaller window", "two overflows", "broken"]
Interlude: TypeAlias = Literal[
    "nothing", "compact", "restart", "disk full", "disk fills up", "small files", "disk back"
]

SYSTEM = SystemMessage(text="You find faults.")
_INTERLUDES: tuple[Interlude, ...] = (
    *("nothing", "compact", "compact", "restart", "restart", "disk back", "disk back", "disk back"),
    *("disk full", "disk fills up", "small files"),
)
_TROUBLES: tuple[Trouble, ...] = (
    *("none", "none", "none", "none", "none"),
    *("overflow", "smaller window", "two overflows", "broken"),
)
_QUESTION_BYTES = (20, 20, 20, 20, 900, 9_000, 50_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """Something between two questions, then a question and how it goes.

    `seeds` make the replies; `trouble` comes before reply number `trouble_at`; after `cancel_after` events the reader
    closes the stream, None means never.
    """

    interlude: Interlude
    question_bytes: int
    seeds: tuple[int, ...]
    trouble: Trouble
    trouble_at: int
    summariser: str
    cancel_after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A whole conversation. `start` is what an older version or another program left, `chapters` what follows."""

    policy: str
    windows_tokens: tuple[int, int]
    factor: float
    hooks: bool
    max_steps: int
    start: tuple[Message, ...]
    chapters: tuple[Chapter, ...]


def scenario_of(policy: str, seed: int) -> Scenario:
    """The conversation of a seed: 2 to 7 questions of up to 9 rounds each."""
    chance = random.Random(f"{policy} {seed}")  # noqa: S311  test data
    return Scenario(
        policy=policy,
        windows_tokens=(
            chance.choice((6_000, 8_000, 12_000, 16_000, 24_000, 64_000)),
            chance.choice((6_000, 9_000, 16_000, 32_000)),
        ),
        factor=chance.choice((0.8, 1.0, 1.0, 1.2, 1.35, 1.5)),
        hooks=chance.random() < 0.3,
        max_steps=chance.choice((5, 12, 30, 30)),
        start=_aborted_start(chance) if chance.random() < 0.3 else (SYSTEM,),
        chapters=tuple(_chapter(chance) for _ in range(chance.randrange(2, 8))),
    )


def _chapter(chance: random.Random) -> Chapter:
    return Chapter(
        interlude=chance.choice(_INTERLUDES),
        question_bytes=chance.choice(_QUESTION_BYTES),
        seeds=tuple(chance.randrange(1_000_000) for _ in range(chance.randrange(1, 10))),
        trouble=chance.choice(_TROUBLES),
        trouble_at=chance.randrange(9),
        summariser=chance.choice(("good",) * 6 + tuple(SUMMARISERS)),
        cancel_after=chance.randrange(1, 60) if chance.random() < 0.25 else None,
    )


def _aborted_start(chance: random.Random) -> tuple[Message, ...]:
    """Rounds with the same ids, results that are missing, foreign or in another order; nothing is stored."""
    messages: list[Message] = [SYSTEM, user_text("why is checkout slow?")]
    for number in range(chance.randrange(1, 8)):
        calls = tuple(tool_call(f"call_{index}") for index in range(chance.randrange(4)))
        messages.append(AssistantMessage(text=f"step {number}", tool_calls=calls))
        results = [_result(call.id, chance) for call in calls] + [_result("foreign", chance)] * (number % 3 == 2)
        chance.shuffle(results)
        messages += results[chance.randrange(2) :]
    return tuple(messages)


def _result(call_id: str, chance: random.Random) -> ToolMessage:
    text, picture = Text(text=output_text(chance.randrange(1_000_000))), png(400, 300)
    parts = (text, picture) if chance.random() < 0.1 else (text,)
    return ToolMessage(call_id=ToolCallId(call_id), tool_name="kubectl_get", status="success", parts=parts)
