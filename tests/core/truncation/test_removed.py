"""What is removed lies in the store word for word before it goes, and a broken store stops nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from holmes.core.policy import ContextPolicy, SummaryPolicy
from holmes.core.truncation.context import CompactionContext
from holmes.core.truncation.summary_message import store_groups, store_removed
from holmes.stores.result_store import FileResultStore
from holmes.values.messages import AssistantMessage, Message, ResultId, Text, UserMessage, user_text
from tests.core.truncation.summaries import RecordingSteps, context_for, round_of
from tests.support.conversations import png
from tests.support.counting_model import CountingModel, tool_call

MODEL = CountingModel(lambda _: AssistantMessage(text="x"))
MESSAGES: tuple[Message, ...] = (
    user_text("Why?\r\n\ttabs and 中文 stay"),
    AssistantMessage(text="I look.", tool_calls=(tool_call("a", "kubectl_get", '{"kind": "pod"}'),)),
    *round_of("a", "web-1   0/1\x00\n  CrashLoopBackOff")[1:],
    *round_of("b", "this lies in the store already", stored="abc123abc123"),
)


async def text_of(context: CompactionContext, messages: tuple[Message, ...] = MESSAGES) -> str:
    stored = await store_removed(messages, context)
    assert stored is not None
    assert context.store is not None
    return (await context.store.read(stored.id))[0].decode()


@pytest.mark.row("K11")
async def test_every_removed_text_is_there_verbatim_and_stored_results_are_named(tmp_path: Path) -> None:
    text = await text_of(context_for(MODEL, store=FileResultStore(tmp_path)))
    for part in (
        "Why?\r\n\ttabs and 中文 stay",
        'calls kubectl_get (a) with {"kind": "pod"}',
        "web-1   0/1\x00\n  Crash",
    ):
        assert part in text
    assert "this lies in the store already" not in text
    assert "## result of kubectl_get (b), success\n[stored as result abc123abc123, text/plain]" in text


@pytest.mark.row("K11", "K14")
async def test_pictures_that_lie_nowhere_else_are_stored_too(tmp_path: Path) -> None:
    store, picture = FileResultStore(tmp_path), png(40, 30)
    text = await text_of(context_for(MODEL, store=store), (UserMessage(parts=(Text(text="see"), picture)),))
    named = text.partition("[stored as result ")[2].partition(",")[0]
    content, stored = await store.read(ResultId(named))
    assert (content, stored.media_type) == (picture.data, "image/png")


@pytest.mark.row("K11")
@pytest.mark.parametrize("broken", ["off", "unwritable"])
async def test_without_a_working_store_nothing_fails_and_nothing_is_claimed(broken: str, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    store = None if broken == "off" else FileResultStore(blocked / "results")
    assert await store_removed(MESSAGES, context_for(MODEL, store=store)) is None


async def test_storing_is_one_named_step(tmp_path: Path) -> None:
    context = context_for(MODEL, store=FileResultStore(tmp_path))
    await store_removed(MESSAGES, context)
    assert isinstance(context.steps, RecordingSteps)
    assert context.steps.names == ["step-7/compaction-0/removed"]


@pytest.mark.row("K10")
@pytest.mark.parametrize("chat_id", ["chat-1", None])
async def test_groups_are_files_named_by_the_chat(chat_id: str | None, tmp_path: Path) -> None:
    policy = ContextPolicy(summary=SummaryPolicy(chat_id=chat_id))
    await store_groups((MESSAGES[:3], MESSAGES[3:]), context_for(MODEL, store=FileResultStore(tmp_path), policy=policy))
    texts = groups_below(tmp_path)
    assert [name[-6:] for name in texts] == ["-1.txt", "-2.txt"]
    first = next(iter(texts))
    assert first == "group_chat-1-1.txt" if chat_id else len(first) > 36
    assert "I look." in texts[first]


def groups_below(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.glob("group_*"))}
