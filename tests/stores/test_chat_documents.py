"""Every kind of file becomes the same messages, and what did not change goes back as it came."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.stores.chat_documents import read_chat_document
from holmes.stores.conversation_store import ConversationStore, ConversationStoreError
from holmes.stores.message_codec import message_to_json
from holmes.values.errors import ConfigError
from holmes.values.messages import AssistantMessage, Image, SystemMessage, Text, ToolMessage, UserMessage, user_text
from tests.support.conversations import histories, png

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.messages import Message

PICTURE = png(20, 10)
URL = f"data:image/png;base64,{base64.b64encode(PICTURE.data).decode()}"
CHAT: list[dict[str, Any]] = [
    {"role": "developer", "content": [{"type": "text", "text": "be"}, {"type": "text", "text": "good"}]},
    {
        "role": "user",
        "name": "checkout-team",
        "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": URL}}],
    },
    {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"a": 1}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "output", "cache_control": {"type": "ephemeral"}},
    {"role": "assistant", "content": "done", "annotations": []},
]


def test_the_format_of_openai_is_read() -> None:
    system, user, call, result, reply = read_chat_document(json.dumps(CHAT), "chat.json").messages
    assert system == SystemMessage(text="be\ngood")
    assert user == UserMessage(parts=(Text(text="look"), PICTURE))
    assert isinstance(call, AssistantMessage)
    assert [(c.id, c.name, c.arguments) for c in call.tool_calls] == [("c1", "get", '{"a": 1}')]
    assert isinstance(result, ToolMessage)
    assert (result.call_id, result.tool_name, result.text, result.masked) == ("c1", "get", "output", False)
    assert reply == AssistantMessage(text="done")


@pytest.mark.parametrize("content", [CHAT, {"model": "m", "messages": CHAT}])
def test_what_did_not_change_goes_back_with_every_field(content: object) -> None:
    document = read_chat_document("\ufeff" + json.dumps(content), "chat.json")
    assert list(document.written(document.messages)) == CHAT
    assert list(document.written(document.messages[2:])) == CHAT[2:]


def test_what_changed_is_written_in_the_format_of_the_file() -> None:
    document = read_chat_document(json.dumps(CHAT), "chat.json")
    result = document.messages[3]
    assert isinstance(result, ToolMessage)
    masked = replace(result, parts=(Text(text="gone"),), masked=True)
    written = document.written((document.messages[0], user_text("so far", kind="summary"), masked))
    assert list(written) == [
        CHAT[0],
        {"role": "user", "content": "so far"},
        {"role": "tool", "tool_call_id": "c1", "content": "gone", "cache_control": {"type": "ephemeral"}},
    ]
    own = read_chat_document(json.dumps([message_to_json(message) for message in document.messages]), "own.json")
    assert own.messages == document.messages
    assert own.written((masked,)) == (message_to_json(masked),)


def test_a_message_that_takes_the_place_of_another_keeps_its_other_fields() -> None:
    document = read_chat_document(json.dumps(CHAT), "chat.json")
    user = document.messages[1]
    assert isinstance(user, UserMessage)
    redacted = replace(user, parts=(Text(text="[masked]"), PICTURE))
    changed = document.with_messages((document.messages[0], redacted, *document.messages[2:]))
    expected = {**CHAT[1], "content": [{"type": "text", "text": "[masked]"}, CHAT[1]["content"][1]]}
    assert list(changed.written(changed.messages)) == [CHAT[0], expected, *CHAT[2:]]


def test_a_mask_of_an_earlier_run_is_known_as_one() -> None:
    text = "[Tool output moved to the store — get(a: 1) returned 42 lines, 1.2 KB; full output: 0f1e2d3c4b5a]"
    chat = [*CHAT[:3], {"role": "tool", "tool_call_id": "c1", "content": text}]
    result = read_chat_document(json.dumps(chat), "chat.json").messages[3]
    assert isinstance(result, ToolMessage)
    assert result.masked


def test_content_without_a_word_of_ours_is_kept_as_text() -> None:
    strange = [
        {"type": "input_audio", "input_audio": {"data": "AAAA"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,!!"}},
    ]
    (message,) = read_chat_document(json.dumps([{"role": "user", "content": strange}]), "chat.json").messages
    assert isinstance(message, UserMessage)
    assert not any(isinstance(part, Image) for part in message.parts)
    assert [json.loads(part.text) for part in message.parts if isinstance(part, Text)] == strange


def test_a_kept_conversation_is_read_and_written_as_messages(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path / "conversations", retention_days=1, limit=9)
    messages: tuple[Message, ...] = (SystemMessage(text="s"), user_text("why?"), AssistantMessage(text="so"))
    with store.start() as conversation:
        for message in messages:
            conversation.append(message)
        conversation.replace(messages[:2])
    (path,) = (tmp_path / "conversations").iterdir()
    document = read_chat_document(path.read_text(), str(path))
    assert document.messages == messages[:2]
    assert document.written(document.messages) == tuple(message_to_json(message) for message in messages[:2])
    with pytest.raises(ConversationStoreError, match="damaged at line 2"):
        read_chat_document(path.read_text().replace('{"type":"message"', "{", 1), str(path))


@given(messages=histories(4, max_words=20))
def test_own_messages_come_back_as_they_were(messages: tuple[Message, ...]) -> None:
    items = [message_to_json(message) for message in messages]
    document = read_chat_document(json.dumps({"messages": items}), "report.json")
    assert document.messages == messages
    assert list(document.written(messages)) == items


@given(text=st.text(max_size=60))
def test_no_text_makes_reading_fail_with_anything_but_one_line(text: str) -> None:
    try:
        read_chat_document(text, "a.json")
    except ConfigError as error:
        assert "\n" not in str(error)  # noqa: PT017  most texts are refused, and the rest is fine too


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a.json is empty"),
        ("[1,", "a.json is not valid JSON: Expecting value at line 1, column 4"),
        ("[" * 100_000, "nested too deeply"),
        ("3", "a.json is not a conversation; expected a list of messages"),
        ('{"a": []}', "a.json has no 'messages' list"),
        ("[1]", "message 1: expected an object"),
        ('[{"role": "user", "content": "x"}, 1]', "message 2: a message is not an object"),
        ('[{"content": "x"}]', "message 1: 'role' is missing"),
        ('[{"role": "bot", "content": "x"}]', "message 1: unknown 'role' 'bot'; valid roles: system, developer, user"),
        ('[{"role": "tool", "content": "x"}]', "message 1: 'tool_call_id' is missing"),
        ('[{"role": "tool", "tool_call_id": 3, "content": "x"}]', "message 1: 'tool_call_id' is not a string"),
        ('[{"role": "tool", "tool_call_id": "c"}]', "message 1: 'content' is missing"),
        ('[{"role": "user", "content": 3}]', "message 1: 'content' must be a string or a list of parts"),
        ('[{"role": "user", "content": [3]}]', "message 1: 'content' entry is not an object"),
        ('[{"role": "assistant", "content": "", "tool_calls": 3}]', "message 1: 'tool_calls' is not a list"),
        ('[{"role": "assistant", "content": "", "tool_calls": [{}]}]', "message 1: 'function' of 'tool_calls' is not"),
        ('[{"role": "assistant", "content": "", "tool_calls": [{"function": {}}]}]', "message 1: 'id' is missing"),
        ('[{"role": "user", "parts": 1, "kind": "request"}]', "message 1: 'parts': expected a list"),
        ('[{"role": "assistant"}]', "message 1: 'text': missing"),
    ],
)
def test_mistakes_name_the_file_the_message_and_the_key(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_chat_document(text, "a.json")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_id_that_is_no_text_stays_as_it_is() -> None:
    odd = {"role": "user", "content": "hi", "tool_call_id": [1]}
    document = read_chat_document(json.dumps([odd]), "chat.json")
    assert list(document.written(document.messages)) == [odd]
