"""Random conversations for property tests: parallel calls, pictures, unicode; and broken ones."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from holmes.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Reasoning,
    ResultId,
    StoredResult,
    SystemMessage,
    Text,
    ToolCallId,
    ToolMessage,
    UserMessage,
    user_text,
)
from tests.support.counting_model import tool_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

WORDS = (
    "pod ",
    "checkout-7f9c ",
    "OOMKilled\n",
    "10.0.3.7:5432 ",
    "中文",
    "😀",
    "deadbeef ",
    '{"a": [1]}',
    "  ",
)


def png(width: int, height: int, padding: int = 0) -> Image:
    """A picture whose header is right; nothing here decodes the rest."""
    header = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x02\0\0\0"
    return Image(data=header + b"\0" * padding, media_type="image/png")


def texts(max_words: int = 400) -> SearchStrategy[str]:
    """Text from a few words, repeated: cheap to draw, up to a few thousand tokens."""
    repeated = st.builds(lambda word, times: word * times, st.sampled_from(WORDS), st.integers(0, max_words))
    return st.one_of(st.text(max_size=40), repeated, st.builds("{}{}".format, repeated, repeated))


def rounds(number: int, max_words: int = 400) -> SearchStrategy[tuple[Message, ...]]:
    """A reply with up to four calls, and their results."""
    return st.lists(_SEEDS, max_size=4).map(lambda seeds: _round(number, seeds, max_words))


def histories(max_rounds: int = 12, max_words: int = 400) -> SearchStrategy[tuple[Message, ...]]:
    """A valid conversation: system prompt, a question, rounds, now and then another question, summary or note."""
    one_round = st.tuples(st.integers(0, 11), st.lists(_SEEDS, max_size=4))
    return st.builds(
        lambda question, drawn: _history(_text(question, 50), drawn, max_words),
        _SEEDS,
        st.lists(one_round, max_size=max_rounds),
    )


# One number makes one text: drawing its parts apart takes most of the time of a test.
_SEEDS = st.integers(0, 1_000_000)


def _text(seed: int, max_words: int) -> str:
    return WORDS[seed % len(WORDS)] * (1 + seed // len(WORDS) % max(1, max_words)) + chr(seed % 0x3000)


def _round(number: int, seeds: Sequence[int], max_words: int) -> tuple[Message, ...]:
    calls = tuple(tool_call(f"c{number}-{index}") for index in range(len(seeds)))
    reasoning = (Reasoning(provider="x", payload='{"thinking": "y"}'),) if number % 2 else ()
    reply = AssistantMessage(text=f"step {number}", tool_calls=calls, reasoning=reasoning)
    results: list[Message] = []
    for call, seed in zip(calls, seeds, strict=True):
        text, picture = Text(text=_text(seed, max_words)), (png(800, 600),) if seed % 10 == 0 else ()
        stored = StoredResult(id=ResultId("abc123abc123"), path=None, size_bytes=9, media_type="text/plain")
        results.append(
            ToolMessage(
                call_id=call.id,
                tool_name=call.name,
                status="success",
                parts=(text, *picture),
                spilled=(stored,) if seed % 7 == 0 else (),
            )
        )
    return (reply, *results)


def _history(question: str, drawn: Sequence[tuple[int, Sequence[int]]], max_words: int) -> tuple[Message, ...]:
    messages: list[Message] = [SystemMessage(text="You find faults."), user_text(question)]
    for number, (extra, seeds) in enumerate(drawn):
        messages.extend(_round(number, seeds, max_words))
        if extra == 0:
            messages.append(user_text(f"and now {number}?"))
        elif extra == 1:
            messages.append(user_text("Answer now.", kind="note"))
        elif extra == 2:
            messages.append(user_text("Summary of before.", kind="summary"))
        elif extra == 3:
            messages.append(UserMessage(parts=(Text(text="a log"), png(300, 300)), kind="attachment"))
    return tuple(messages)


@st.composite
def broken_histories(draw: DrawFn) -> tuple[Message, ...]:
    """What an aborted run, a foreign client or a careless provider may leave: anything after anything."""
    ids = st.sampled_from(["a", "b", "a-2", "c", "b-2"])
    messages: list[Message] = []
    for _ in range(draw(st.integers(0, 14))):
        match draw(st.integers(0, 4)):
            case 0:
                messages.append(user_text("question"))
            case 1:
                messages.append(AssistantMessage(text="thinking"))
            case 2:
                calls = draw(st.lists(ids, min_size=1, max_size=4))
                messages.append(AssistantMessage(text="", tool_calls=tuple(map(tool_call, calls))))
            case _:
                call_id = ToolCallId(draw(ids))
                parts = (Text(text=draw(st.text(max_size=5))),)
                messages.append(ToolMessage(call_id=call_id, tool_name="t", status="success", parts=parts))
    return tuple(messages)
