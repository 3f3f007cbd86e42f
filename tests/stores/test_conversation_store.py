"""Conversations survive kills, full disks and neighbours, and do not pile up."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.stores.conversation_store import ConversationStore, ConversationStoreError
from holmes.stores.message_codec import message_from_json, message_to_json
from holmes.values.messages import (
    AssistantMessage,
    Image,
    Message,
    Reasoning,
    ResultId,
    StoredResult,
    SystemMessage,
    Text,
    ToolCall,
    ToolCallId,
    ToolMessage,
    UserMessage,
    user_text,
)

if TYPE_CHECKING:
    from pathlib import Path

CALL = ToolCall(id=ToolCallId("c1"), name="logs", arguments='{"pod": "ü"}', malformed="{oops")
STORED = StoredResult(id=ResultId("r1"), path=None, size_bytes=3, media_type="text/plain")
MESSAGES: tuple[Message, ...] = (
    SystemMessage(text="be thorough"),
    UserMessage(parts=(Text(text="warum? 🔥"), Image(data=b"\x89PNG\x00", media_type="image/png"))),
    AssistantMessage(text="", tool_calls=(CALL,), reasoning=(Reasoning(provider="anthropic", payload='{"a":1}'),)),
    ToolMessage(
        call_id=CALL.id,
        tool_name="logs",
        status="error",
        parts=(Text(text="\ud800"),),
        stored=(STORED,),
        spilled=True,
        masked=True,
    ),
    user_text("what was removed", kind="summary"),
    AssistantMessage(text="done"),
)


def store(tmp_path: Path, *, retention_days: float = 30, limit: int = 200) -> ConversationStore:
    return ConversationStore(tmp_path / "conversations", retention_days=retention_days, limit=limit)


def only_file(tmp_path: Path) -> Path:
    (path,) = (tmp_path / "conversations").iterdir()
    return path


def latest_messages(tmp_path: Path) -> tuple[Message, ...]:
    conversation = store(tmp_path).latest()
    assert conversation is not None
    with conversation:
        return conversation.messages


def fill(tmp_path: Path, *texts: str) -> None:
    with store(tmp_path).start() as conversation:
        for text in texts:
            conversation.append(user_text(text))


def test_the_last_conversation_comes_back_whole(tmp_path: Path) -> None:
    with store(tmp_path).start() as conversation:
        for message in MESSAGES:
            conversation.append(message)
    assert latest_messages(tmp_path) == MESSAGES


@given(
    st.builds(
        AssistantMessage,
        text=st.text(st.characters()),
        tool_calls=st.lists(st.builds(ToolCall, id=st.text(), name=st.text(), arguments=st.text())).map(tuple),
    )
)
def test_any_text_survives_the_codec(message: AssistantMessage) -> None:
    assert message_from_json(message_to_json(message)) == message


def test_files_are_private(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        fill(tmp_path, "secret")
    finally:
        os.umask(previous)
    assert only_file(tmp_path).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "conversations").stat().st_mode & 0o777 == 0o700


def test_nothing_is_written_before_something_is_said(tmp_path: Path) -> None:
    with store(tmp_path).start():
        pass
    assert store(tmp_path).latest() is None


def test_a_conversation_goes_on_about_its_own_cluster(tmp_path: Path) -> None:
    def about(cluster: str | None) -> ConversationStore:
        return ConversationStore(tmp_path, retention_days=1, limit=9, cluster=cluster)

    for cluster in ("eu", "us", None):
        with about(cluster).start() as conversation:
            conversation.append(user_text(f"about {cluster}"))
    for cluster in ("us", None, "eu"):
        with about(cluster).latest() or pytest.fail(f"nothing about {cluster}") as found:
            assert [message.text for message in found.messages] == [f"about {cluster}"]
    assert about("mars").latest() is None


def test_a_kill_loses_nothing_that_was_appended(tmp_path: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from holmes.values.messages import user_text
from holmes.stores.conversation_store import ConversationStore
conversation = ConversationStore(Path({str(tmp_path / "conversations")!r}), retention_days=1, limit=9).start()
conversation.append(user_text("first"))
conversation.append(user_text("second"))
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    assert latest_messages(tmp_path) == (user_text("first"), user_text("second"))


@pytest.mark.parametrize("garbage", [b'{"type":"message","mess', b'{"type":"message","message":{}}\n', b"\x00\xff\n"])
def test_a_half_written_end_is_dropped_and_the_conversation_goes_on(tmp_path: Path, garbage: bytes) -> None:
    fill(tmp_path, "first")
    with only_file(tmp_path).open("ab") as file:
        file.write(garbage)
    conversation = store(tmp_path).latest()
    assert conversation is not None
    with conversation:
        conversation.append(user_text("second"))
    assert latest_messages(tmp_path) == (user_text("first"), user_text("second"))


def test_replacing_the_history_writes_only_what_changed(tmp_path: Path) -> None:
    long = user_text("x" * 100_000)
    with store(tmp_path).start() as conversation:
        conversation.append(long)
        conversation.append(user_text("interrupted"))
        conversation.replace((long, user_text("complete"), user_text("answer")))
        size = only_file(tmp_path).stat().st_size
        conversation.replace((long, user_text("complete"), user_text("answer")))
        assert only_file(tmp_path).stat().st_size == size < 101_000
    assert latest_messages(tmp_path) == (long, user_text("complete"), user_text("answer"))


def test_a_shortened_history_comes_back_shortened(tmp_path: Path) -> None:
    with store(tmp_path).start() as conversation:
        for text in ("a", "b", "c"):
            conversation.append(user_text(text))
        conversation.replace((user_text("a"),))
    assert latest_messages(tmp_path) == (user_text("a"),)


def test_two_at_once_never_write_into_one_file(tmp_path: Path) -> None:
    fill(tmp_path, "shared")
    first, second = store(tmp_path).latest(), store(tmp_path).latest()
    assert first is not None
    assert second is not None
    with first, second:
        first.append(user_text("first"))
        second.append(user_text("second"))
        assert first.id != second.id
        assert first.messages == (user_text("shared"), user_text("first"))
        assert second.messages == (user_text("shared"), user_text("second"))


def test_old_and_surplus_conversations_are_deleted_and_other_files_are_not(tmp_path: Path) -> None:
    for text in ("too old", "a", "b", "c"):
        fill(tmp_path, text)
    folder = tmp_path / "conversations"
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    old = next(path for path in folder.iterdir() if "too old" in path.read_text(encoding="utf-8"))
    os.utime(old, (time.time() - 31 * 86_400,) * 2)
    store(tmp_path).prune()
    assert not old.exists()
    with store(tmp_path, limit=2).start() as conversation:
        conversation.append(user_text("d"))
    assert len(list(folder.glob("*.jsonl"))) == 2
    assert (folder / "notes.txt").exists()


def test_an_open_conversation_is_never_deleted(tmp_path: Path) -> None:
    with store(tmp_path).start() as conversation:
        conversation.append(user_text("running"))
        store(tmp_path, limit=1).prune()
        assert only_file(tmp_path).exists()


def test_a_full_disk_is_an_error_that_leaves_whole_lines(tmp_path: Path) -> None:
    program = f"""
import resource, signal, sys
from pathlib import Path
from holmes.values.messages import user_text
from holmes.stores.conversation_store import ConversationStore, ConversationStoreError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
conversation = ConversationStore(Path({str(tmp_path / "conversations")!r}), retention_days=1, limit=9).start()
conversation.append(user_text("fits"))
try:
    conversation.append(user_text("x" * 5000))
except ConversationStoreError as error:
    sys.exit(str(error))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "could not be saved" in done.stderr
    assert "File too large" in done.stderr
    assert latest_messages(tmp_path) == (user_text("fits"),)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 2000


def test_a_file_in_place_of_the_folder_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "conversations").touch()
    with pytest.raises(ConversationStoreError, match="could not be saved"):
        store(tmp_path).start().append(user_text("x"))


def test_a_conversation_of_a_newer_holmes_is_refused_and_kept(tmp_path: Path) -> None:
    fill(tmp_path, "x")
    path = only_file(tmp_path)
    newer = path.read_bytes().replace(b'"version":1', b'"version":2')
    path.write_bytes(newer)
    with pytest.raises(ConversationStoreError, match="newer version of Holmes"):
        store(tmp_path).latest()
    assert path.read_bytes() == newer


def test_a_line_broken_in_the_middle_refuses_to_go_on_and_loses_nothing(tmp_path: Path) -> None:
    fill(tmp_path, "one", "two", "three")
    path = only_file(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = b"".join([*lines[:2], b'{"type":"note","x":' + b"[" * 20_000 + b"\n", *lines[2:]])
    path.write_bytes(damaged)
    with pytest.raises(ConversationStoreError, match="is damaged at line 3"):
        store(tmp_path).latest()
    assert path.read_bytes() == damaged


def test_an_empty_file_and_a_pipe_are_not_the_last_conversation(tmp_path: Path) -> None:
    fill(tmp_path, "one")
    (tmp_path / "conversations" / "20990101T000000-00000000.jsonl").touch()
    os.mkfifo(tmp_path / "conversations" / "20990101T000001-00000000.jsonl")
    assert latest_messages(tmp_path) == (user_text("one"),)


def test_what_a_full_disk_refused_is_written_with_the_next_message(tmp_path: Path) -> None:
    conversations = store(tmp_path)
    said = [user_text(f"line {number}") for number in range(4)]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with conversations.start() as conversation:
        conversation.append(said[0])
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
            with pytest.raises(ConversationStoreError, match="File too large"):
                conversation.append(said[1])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        conversation.append(said[2])
        conversation.replace([*said[:2], said[3]])
    assert latest_messages(tmp_path) == (*said[:2], said[3])


def test_stored_results_of_conversations_of_earlier_builds_are_still_known() -> None:
    earlier = message_to_json(MESSAGES[3])
    stored = earlier.pop("stored")  # type: ignore[attr-defined]
    assert message_from_json({**earlier, "spilled": stored}) == MESSAGES[3]


def test_a_history_line_that_keeps_what_is_not_there_counts_as_damaged(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path, retention_days=1, limit=9)
    with store.start() as conversation:
        conversation.append(MESSAGES[0])
        conversation.append(MESSAGES[1])
    (path,) = tmp_path.glob("*.jsonl")
    with path.open("a", encoding="utf-8") as file:
        file.write('{"type": "history", "keep": -1, "messages": []}\n')
    latest = store.latest()
    assert latest is not None
    with latest:
        assert latest.messages == MESSAGES[:2]


ENDS = [
    b"\x00" * 4_096,
    b"\x00" * 100 + b"\n" + b"\x00" * 100,
    b"\xff\xfe garbage\nof several\n\nlines\n",
    b"null\n",
    b"[1, 2]\n{}\n42\n",
    b'{"type": "message"}\n{"type": "message", "message": 7}\n',
    b'{"type": "history", "keep": 0}\nhalf',
    b'{"type": "note", "text": "of somebody else"}\n',
    b'{"type": "message", "message": ' + b"[" * 100_000,
    b"\n\n\n",
    b'{"type": "history", "keep": 1' + b"0" * 5_000 + b', "messages": []}\n',
]


@pytest.mark.parametrize("garbage", ENDS, ids=range(len(ENDS)))
def test_garbage_at_the_end_is_set_aside_and_told(tmp_path: Path, garbage: bytes) -> None:
    fill(tmp_path, "first", "second")
    path = only_file(tmp_path)
    with path.open("ab") as file:
        file.write(garbage)
    conversation = store(tmp_path).latest()
    assert conversation is not None
    with conversation:
        assert conversation.messages == (user_text("first"), user_text("second"))
        aside = path.with_suffix(".damaged")
        assert aside.read_bytes() == garbage
        assert aside.stat().st_mode & 0o777 == 0o600
        assert str(aside) in str(conversation.notice)
        assert f"{len(garbage):,} bytes" in str(conversation.notice)
        assert "\n" not in str(conversation.notice)
        conversation.append(user_text("third"))
    again = store(tmp_path).latest()
    assert again is not None
    with again:
        assert again.messages == (user_text("first"), user_text("second"), user_text("third"))
        assert again.notice is None


def test_what_was_set_aside_before_is_kept_and_goes_with_its_conversation(tmp_path: Path) -> None:
    fill(tmp_path, "first")
    path = only_file(tmp_path)
    for garbage in (b"one\n", b"two\n"):
        with path.open("ab") as file:
            file.write(garbage)
        latest = store(tmp_path).latest()
        assert latest is not None
        latest.close()
    assert path.with_suffix(".damaged").read_bytes() == b"one\ntwo\n"
    os.utime(path, (0, 0))
    store(tmp_path, retention_days=1).prune()
    assert list(path.parent.iterdir()) == []


def test_a_whole_last_line_without_its_end_is_no_garbage(tmp_path: Path) -> None:
    fill(tmp_path, "first", "second")
    path = only_file(tmp_path)
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    conversation = store(tmp_path).latest()
    assert conversation is not None
    with conversation:
        assert conversation.notice is None
        conversation.append(user_text("third"))
    assert latest_messages(tmp_path) == (user_text("first"), user_text("second"), user_text("third"))


def test_zero_bytes_of_a_power_cut_before_a_line_hide_nothing(tmp_path: Path) -> None:
    fill(tmp_path, "first", "second")
    path = only_file(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"\x00" * 512, *lines[2:]]))
    assert latest_messages(tmp_path) == (user_text("first"), user_text("second"))


def test_a_message_after_garbage_is_never_lost(tmp_path: Path) -> None:
    fill(tmp_path, "first", "second")
    path = only_file(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = b"".join([*lines[:2], b"garbage\nmore of it\n", *lines[2:], b"half"])
    path.write_bytes(damaged)
    with pytest.raises(ConversationStoreError, match="is damaged at line 3"):
        store(tmp_path).latest()
    assert path.read_bytes() == damaged
    assert not path.with_suffix(".damaged").exists()
