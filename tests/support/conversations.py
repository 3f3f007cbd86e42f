"""Random conversations for property tests: parallel calls, pictures, unicode, long lines; and broken ones."""

from __future__ import annotations

import base64
import random
import struct
from functools import lru_cache
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from holmes.values.messages import (
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
    from collections.abc import Callable, Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

    from holmes.values.messages import Part, ToolStatus

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
                stored=(stored,) if seed % 7 == 0 else (),
                spilled=seed % 7 == 0,
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


# --- outputs of tools, and conversations as they are in the wild --------------------------------------------------

LONGEST_LINE_BYTES = 65_536
LINE_KINDS = ("hex", "base64", "cjk", "emoji", "json", "words", "digits", "blanks", "mixed")
_POOL_CHARACTERS = 1 << 16


def one_line(kind: str, size_bytes: int, seed: int = 0) -> str:
    """A single line of about `size_bytes` of UTF-8 that nothing compresses well."""
    pool = _pool(kind)
    per_character = max(1, len(pool[:100].encode()) // 100)
    characters = max(1, size_bytes // per_character)
    start = seed % len(pool)
    return (pool * (characters // len(pool) + 2))[start : start + characters]


@lru_cache(maxsize=len(LINE_KINDS))
def _pool(kind: str) -> str:
    """64 K characters of a kind, without line ends."""
    chance = random.Random(kind)  # noqa: S311  test data
    many = range(_POOL_CHARACTERS)
    makers: dict[str, Callable[[], str]] = {
        "hex": lambda: chance.randbytes(_POOL_CHARACTERS // 2).hex(),
        "base64": lambda: base64.b64encode(chance.randbytes(_POOL_CHARACTERS * 3 // 4)).decode(),
        "cjk": lambda: "".join(chr(chance.randrange(0x4E00, 0x9FA0)) for _ in many),
        "emoji": lambda: "".join(chr(chance.randrange(0x1F300, 0x1F650)) for _ in many),
        "json": lambda: "".join(f'{{"pod": "web-{chance.randrange(999)}", "n": {n}}}, ' for n in range(2_400)),
        "digits": lambda: "".join(chance.choices("0123456789", k=_POOL_CHARACTERS)),
        "blanks": lambda: " " * _POOL_CHARACTERS,
        "words": lambda: " ".join(chance.choices(("checkout", "pod", "10.0.3.7:5432", "OOMKilled"), k=9_000)),
        # Far more tokens at the end than at the beginning.
        "mixed": lambda: " " * 32_768 + "".join(chr(chance.randrange(0x1F300, 0x1F650)) for _ in range(32_768)),
    }
    return makers[kind]()


def output_text(seed: int, most_words: int = 300) -> str:
    """The output of a tool: mostly short, one in sixteen a line of up to 64 KiB. Deterministic, hardly ever equal."""
    chance = random.Random(seed)  # noqa: S311  test data
    size = 1 + int(most_words * chance.random() ** 2)
    match seed % 16:
        case 0:
            kind, most = LINE_KINDS[seed // 16 % len(LINE_KINDS)], chance.choice((2_000, 8_000, LONGEST_LINE_BYTES))
            text = f"#{seed}" + one_line(kind, chance.randrange(500, most), seed)
        case 1 | 2 | 3:
            rows = (f"shop   web-{seed}-{n}   1/1   Running   {n % 3}   {n}h" for n in range(size // 8 + 1))
            text = "NAMESPACE   NAME   READY   STATUS   RESTARTS   AGE\n" + "\n".join(rows)
        case 4 | 5 | 6:
            lines = (f"2026-11-22T02:{n % 60:02}:00Z ERROR [{seed}] dial 10.0.3.{n}\n" for n in range(size // 12 + 1))
            text = "".join(lines)
        case 7:
            items = ", ".join(f'{{"name": "web-{n}", "restarts": {n * seed % 7}}}' for n in range(size // 8 + 1))
            text = f'{{"kind": "List", "uid": "{seed}", "items": [{items}]}}'
        case 8:
            text = f"#{seed}" + one_line(chance.choice(LINE_KINDS), size * 4, seed)
        case 9:
            text = chance.choice(("", "\n", "ok", "\r\n\x00\x1b[31m", "\ud800", "\udcff\udcfe"))
        case _:
            text = f"#{seed} " + WORDS[seed // 16 % len(WORDS)] * (size // 2)
    return text


def wild_histories(max_rounds: int = 10, max_words: int = 200) -> SearchStrategy[tuple[Message, ...]]:
    """What a continued conversation may look like: valid, or with duplicate ids, missing or foreign results, aborted.

    Nothing in it is stored yet. Texts are those of `output_text`.
    """
    return st.builds(lambda seed, drawn: _wild(seed, drawn, max_words), _SEEDS, st.lists(_SEEDS, max_size=max_rounds))


def whole_histories(max_rounds: int = 12, max_words: int = 200) -> SearchStrategy[tuple[Message, ...]]:
    """The same without defects."""
    return st.builds(
        lambda seed, drawn: _wild(seed, drawn, max_words, broken=False), _SEEDS, st.lists(_SEEDS, max_size=max_rounds)
    )


def _wild(first: int, drawn: Sequence[int], max_words: int, *, broken: bool = True) -> tuple[Message, ...]:
    messages: list[Message] = [SystemMessage(text="You find faults."), user_text(_text(first, 40))]
    for number, seed in enumerate(drawn):
        messages.extend(_wild_round(number, seed, max_words, broken=broken))
        messages.extend(_said_between(number, seed))
    if broken and first % 4 == 0 and len(messages) > 3:
        del messages[-1 - first // 4 % 3 :]  # the run was aborted there
    if broken and first % 9 == 0:
        messages.append(_result("foreign", first, max_words))
    return tuple(messages)


def _wild_round(number: int, seed: int, max_words: int, *, broken: bool) -> list[Message]:
    defect = seed // 7 % 8 if broken else 7
    ids = [f"r{number}-{index}" for index in range(seed % 5)]
    if defect == 0:
        ids = ["call_0"] * len(ids)
    if defect == 1:
        ids = [f"call_{index}" for index in range(len(ids))]  # as every round of some providers
    results: list[Message] = [_result(call_id, seed * 31 + index, max_words) for index, call_id in enumerate(ids)]
    if defect == 2:
        results = results[1:]
    if defect == 3:
        results.reverse()
    reasoning = (Reasoning(provider="x", payload='{"thinking": "y"}'),) if number % 2 else ()
    said = AssistantMessage(text=f"step {number}", tool_calls=tuple(map(tool_call, ids)), reasoning=reasoning)
    return [said, *results]


def _said_between(number: int, seed: int) -> list[Message]:
    match seed // 56 % 12:
        case 0:
            return [user_text(f"and now {number}?")]
        case 1:
            return [user_text("Answer now.", kind="note")]
        case 2:
            return [user_text(f"Summary of before {number}.", kind="summary")]
        case 3:
            return [UserMessage(parts=(Text(text=_text(seed, 60)), png(300, 300)), kind="attachment")]
        case _:
            return []


def _result(call_id: str, seed: int, max_words: int) -> ToolMessage:
    parts: tuple[Part, ...] = (Text(text=output_text(seed, max_words)),)
    if seed % 13 == 0:
        parts = (*parts, png(200 + seed % 700, 300, padding=seed % 50))
    status: ToolStatus = "error" if seed % 11 == 0 else "success"
    return ToolMessage(call_id=ToolCallId(call_id), tool_name="kubectl_get", status=status, parts=parts)
