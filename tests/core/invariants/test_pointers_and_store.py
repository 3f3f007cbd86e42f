"""Pointers stay within their caps whatever a tool wrote, and files stay private, inside their folder and unchanged."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.core.policy import ContextPolicy
from holmes.core.tools_utils.tool_context_window_limiter import (
    SMALLEST_RESULT_TOKENS,
    cap_round,
    spill_oversized_tool_result,
    spill_oversized_user_message,
)
from holmes.core.truncation.mask_texts import looks_masked
from holmes.stores.result_store import FileResultStore
from holmes.tokens import TokenCounter
from holmes.values.messages import Part, StoredResult, Text, ToolCallId, ToolMessage, ToolStatus, UserMessage
from tests.core.invariants.stages import FEW, MANY, MEGABYTES, POLICIES
from tests.support.conversations import LINE_KINDS, one_line, output_text, png
from tests.support.result_stores import FullDisk, MemoryStore

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Generating overly large repr")]
COUNTER = TokenCounter()
STORES = st.sampled_from([MemoryStore, FullDisk, lambda: None])
ODD_TEXTS = st.sampled_from(
    ["", "\n", "\x00\x01\x02" * 3_000, "\ud800" * 2_000, "\udcff\udcfe" * 2_000, "\r\n" * 5_000]
)
TEXTS = st.one_of(
    ODD_TEXTS,
    st.integers(0, 1_000_000).map(lambda seed: output_text(seed, 2_000)),
    st.builds(one_line, st.sampled_from(LINE_KINDS), st.integers(0, 65_536), st.integers(0, 10_000)),
)
GIANT_LINES = st.builds(one_line, st.sampled_from(LINE_KINDS), MEGABYTES)
HOSTILE = st.one_of(
    st.text(max_size=100),
    st.sampled_from(
        ["../../etc/passwd", "/etc/passwd", ".", "..", "", "a" * 5_000, "x\x00y", "C:\\x", "~/.ssh/id", "-rf"]
    ),
)


def result(text: str, *, images: int = 0, error: bool = False) -> ToolMessage:
    """A result with pictures."""
    parts: tuple[Part, ...] = (Text(text=text), *(png(300 + 500 * number, 400) for number in range(images)))
    status: ToolStatus = "error" if error else "success"
    return ToolMessage(call_id=ToolCallId("a"), tool_name="kubectl_get", status=status, parts=parts)


@pytest.mark.timeout(600)
@pytest.mark.row("I7")
@MANY
@given(TEXTS, POLICIES, st.integers(24, 4_000), STORES, st.tuples(st.integers(0, 2), st.booleans(), st.booleans()))
async def test_what_the_spill_leaves_is_within_the_cap(
    text: str, policy: ContextPolicy, cap: int, store: type[MemoryStore], shape: tuple[int, bool, bool]
) -> None:
    images, error, label = shape
    await check_spill(result(text, images=images, error=error), policy, cap, store(), label=label)


@pytest.mark.row("I7")
@FEW
@given(GIANT_LINES, POLICIES, st.integers(24, 4_000), STORES)
async def test_what_the_spill_leaves_of_a_line_of_megabytes_is_within_the_cap(
    text: str, policy: ContextPolicy, cap: int, store: type[MemoryStore]
) -> None:
    await check_spill(result(text), policy, cap, store(), label=True)


@pytest.mark.row("I7")
@pytest.mark.parametrize("kind", LINE_KINDS)
async def test_a_pointer_to_one_line_of_5_mb_is_within_the_cap(kind: str) -> None:
    await check_spill(result(one_line(kind, 5_000_000)), ContextPolicy(), 600, MemoryStore(), label=True)


async def check_spill(
    message: ToolMessage, policy: ContextPolicy, cap: int, store: MemoryStore | None, *, label: bool
) -> None:
    outcome = await spill_oversized_tool_result(
        message, cap_tokens=cap, counter=COUNTER, store=store, policy=policy.spill, label=label
    )
    assert COUNTER.count_message(outcome.message) <= cap
    limit = policy.spill.char_limit
    if outcome.spilled and limit is not None and cap > 200:
        assert len(outcome.message.text) <= limit
    assert outcome.message.call_id == message.call_id
    if not outcome.spilled:
        assert outcome.message.parts[: len(message.parts)] == message.parts


@pytest.mark.timeout(600)
@pytest.mark.row("I7")
@MANY
@given(st.lists(TEXTS, min_size=1, max_size=6), POLICIES, st.integers(100, 4_000), STORES)
async def test_what_the_cap_of_a_round_leaves_is_within_it(
    texts: list[str], policy: ContextPolicy, cap: int, store: type[MemoryStore]
) -> None:
    messages = [replace(result(text), call_id=ToolCallId(f"c{number}")) for number, text in enumerate(texts)]
    capped = await cap_round(messages, cap, COUNTER, policy.spill, store())
    assert sum(map(COUNTER.count_message, capped)) <= max(cap, SMALLEST_RESULT_TOKENS * len(texts))
    assert [message.call_id for message in capped] == [message.call_id for message in messages]


@pytest.mark.timeout(600)
@pytest.mark.row("I7", "I9")
@MANY
@given(TEXTS, st.integers(400, 4_000), st.integers(1_000, 30_000), STORES)
async def test_what_is_left_of_a_large_user_message_is_within_the_cap(
    text: str, cap: int, characters: int, store: type[MemoryStore]
) -> None:
    message = UserMessage(parts=(Text(text=text),))
    admitted = await spill_oversized_user_message(
        message, cap_tokens=cap, char_limit=characters, counter=COUNTER, store=store()
    )
    if admitted is message:
        return
    assert COUNTER.count_message(admitted) <= cap
    assert not looks_masked(admitted.text)
    again = await spill_oversized_user_message(
        admitted, cap_tokens=cap, char_limit=characters, counter=COUNTER, store=MemoryStore()
    )
    assert again is admitted or not admitted.stored


@pytest.fixture(scope="module")
def folders() -> Iterator[Path]:
    """A folder for all examples; each gets its own below it."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.timeout(600)
@pytest.mark.row("I13")
@MANY
@given(st.lists(st.tuples(HOSTILE, HOSTILE, st.binary(max_size=60)), min_size=1, max_size=4), st.binary(max_size=60))
def test_files_are_private_inside_the_store_and_never_overwritten(
    folders: Path, puts: list[tuple[str, str, bytes]], other: bytes
) -> None:
    check_store(folders, [*puts, (puts[0][0], puts[0][1], other)])


@pytest.mark.row("I13")
@FEW
@given(HOSTILE, HOSTILE, GIANT_LINES)
def test_files_with_lines_of_megabytes_are_private_and_inside_the_store(
    folders: Path, tool_name: str, call_id: str, text: str
) -> None:
    check_store(folders, [(tool_name, call_id, text.encode()), (tool_name, call_id, text[1:].encode())])


def check_store(folders: Path, puts: list[tuple[str, str, bytes]]) -> None:
    with TemporaryDirectory(dir=folders) as folder:
        root = Path(folder) / "store"
        stored, contents = asyncio.run(_stored_and_read(root, puts))
        assert contents == [content for _, _, content in puts]
        assert [path.name for path in Path(folder).iterdir()] == ["store"]
        for path in (root, *root.rglob("*")):
            assert stat.S_IMODE(path.lstat().st_mode) == (0o700 if path.is_dir() else 0o600)
            assert not path.is_symlink()
        for one, content in zip(stored, contents, strict=True):
            assert one.path is not None
            assert Path(one.path).resolve().is_relative_to(root.resolve())
            if one.media_type != "application/json":  # that file is a view
                assert Path(one.path).read_bytes() == content


async def _stored_and_read(root: Path, puts: list[tuple[str, str, bytes]]) -> tuple[list[StoredResult], list[bytes]]:
    kinds = ("text/plain", "application/json", "image/png", "weird/../kind")
    store = FileResultStore(root)
    stored = [
        await store.put(content, tool_name=tool_name, call_id=ToolCallId(call_id), media_type=kinds[index % 4])
        for index, (tool_name, call_id, content) in enumerate(puts)
    ]
    again = FileResultStore(root)
    return stored, [(await again.read(one.id))[0] for one in stored]
