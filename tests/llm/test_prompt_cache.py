"""The prefix that a provider has cached stays the same bytes, and the marks are where its cache is looked up."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from typing import Any, NoReturn

import pytest

from holmes.llm.codec import MessageCodec
from holmes.llm.config import LitellmModelConfig
from holmes.llm.litellm_loader import load_litellm
from holmes.llm.model_facts import model_facts
from holmes.llm.request_arguments import CacheMarks, cache_marks, mark_for_cache
from holmes.values.messages import AssistantMessage, Message, Text, ToolMessage, user_text
from holmes.values.model import ModelRequest
from holmes.values.tools import Parameter, ParameterSchema, Tool
from tests.llm.conftest import TOOL, Recorder, provider, request
from tests.support.conversations import png
from tests.support.counting_model import tool_call
from tests.support.openai_server import EventStream, OpenAIServer, Reply, Script

MARK = {"type": "ephemeral"}
BIG_TOOL = Tool(
    name="kubectl_describe",
    description="Describes an object. " * 300,
    parameters=(Parameter(name="kind", schema=ParameterSchema(types=("string",))),),
)
CLAUDE = "anthropic/claude-sonnet-4-5"


def rounds(count: int) -> tuple[Message, ...]:
    """A question and rounds of two parallel calls, now and then with a picture or a note."""
    messages: list[Message] = [user_text("Why does checkout fail?")]
    for number in range(count):
        calls = (tool_call(f"a{number}"), tool_call(f"b{number}"))
        messages.append(AssistantMessage(text=f"Step {number}.", tool_calls=calls))
        for call in calls:
            parts = (Text(text=f"result of {call.id} " * 20), *((png(100, 100),) if number == 1 else ()))
            messages.append(ToolMessage(call_id=call.id, tool_name=call.name, status="success", parts=parts))
        if number == 2:
            messages.append(user_text("Mind the database.", kind="note"))
    return tuple(messages)


def prefixes(messages: tuple[Message, ...]) -> list[ModelRequest]:
    """The requests of a conversation: each ends before a reply."""
    ends = [at for at, message in enumerate(messages) if isinstance(message, AssistantMessage)]
    return [request(*messages[:end], tools=(TOOL, BIG_TOOL)) for end in [*ends, len(messages)]]


async def bodies(model: str, requests: list[ModelRequest], recorder: Recorder, *, caching: bool = True) -> list[str]:
    """What goes over the wire."""
    script: Script = [Reply(text="ok")] * len(requests)
    is_anthropic = model.startswith("anthropic/")
    if is_anthropic:
        script = [EventStream(events=_anthropic_reply())] * len(requests)

    def change(config: LitellmModelConfig) -> LitellmModelConfig:
        address = str(config.api_base)
        return replace(
            config, prompt_caching=caching, api_base=address.removesuffix("/v1") if is_anthropic else address
        )

    with provider(script, model=model, change=change) as parts:
        for one in requests:
            await parts.model.complete(one, recorder.emit)
        return _raw(parts.server)


def _raw(server: OpenAIServer) -> list[str]:
    return [asked.raw_body.decode() for asked in server.requests]


def _anthropic_reply() -> tuple[dict[str, Any], ...]:
    head = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []}
    usage = {"input_tokens": 10, "output_tokens": 1}
    return (
        {"type": "message_start", "message": {**head, "stop_reason": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    )


def without_marks(raw: str) -> str:
    return re.sub(r',\s*"cache_control":\s*\{"type":\s*"ephemeral"\}', "", raw)


def messages_text(raw: str) -> str:
    """The text of the list of messages in the raw body, without the closing bracket."""
    start = raw.index('"messages":') + len('"messages":')
    _, length = json.JSONDecoder().raw_decode(raw[start:].lstrip())
    return raw[start:].lstrip()[: length - 1]


def fixed_text(raw: str) -> str:
    """Everything that comes before the messages in the provider's own order: tools and system."""
    body = json.loads(raw)
    return json.dumps([body.get("tools"), body.get("system")])


def marked_blocks(raw: str) -> list[str]:
    """The texts of the marked blocks in the provider's order: tools, system, messages."""
    body = json.loads(raw)
    found: list[str] = []

    def walk(value: object) -> None:
        if isinstance(value, dict):
            if value.get("cache_control") == MARK:
                content = value.get("text") or value.get("content") or value.get("name")
                found.append(content if isinstance(content, str) else json.dumps(content))
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    for name in ("tools", "system", "messages"):
        walk(body.get(name))
    return found


@pytest.mark.row("S8")
@pytest.mark.parametrize("model", [CLAUDE, "openai/gpt-4o", "deepseek/deepseek-chat", "groq/llama-3.3-70b-versatile"])
async def test_each_request_is_a_byte_prefix_of_the_next(model: str, recorder: Recorder) -> None:
    raw = [without_marks(body) for body in await bodies(model, prefixes(rounds(5)), recorder)]
    assert len(raw) == 6
    for earlier, later in itertools.pairwise(raw):
        assert fixed_text(earlier) == fixed_text(later)
        assert messages_text(later).startswith(messages_text(earlier))
        assert len(messages_text(later)) > len(messages_text(earlier)) + 100


@pytest.mark.row("S8")
async def test_marks_are_all_that_caching_changes(recorder: Recorder) -> None:
    marked = await bodies(CLAUDE, prefixes(rounds(4)), recorder)
    plain = await bodies(CLAUDE, prefixes(rounds(4)), recorder, caching=False)
    assert [without_marks(body) for body in marked] == plain
    assert all("cache_control" not in body for body in plain)


@pytest.mark.row("S8")
async def test_claude_is_asked_to_cache_its_instructions_and_to_look_up_what_the_request_before_wrote(
    recorder: Recorder,
) -> None:
    marks = [marked_blocks(body) for body in await bodies(CLAUDE, prefixes(rounds(4)), recorder)]
    assert marks[0] == ["Be brief.", "Why does checkout fail?"]
    for earlier, later in itertools.pairwise(marks):
        assert later[0] == "Be brief."
        assert later[1] == earlier[-1], "the last mark of a request is looked up by the next one"
        assert len(later) == 3
    assert "result of b3" in marks[4][-1]


@pytest.mark.row("S8")
@pytest.mark.parametrize(
    "model", ["openai/gpt-4o", "deepseek/deepseek-chat", "groq/llama-3.3-70b-versatile", "hosted_vllm/qwen"]
)
async def test_providers_that_cache_by_themselves_are_sent_no_marks(model: str, recorder: Recorder) -> None:
    for body in await bodies(model, prefixes(rounds(3)), recorder):
        assert "cache" not in body.lower()


@pytest.mark.row("S8")
async def test_claude_behind_openrouter_gets_its_marks_inside_the_content(recorder: Recorder) -> None:
    raw = await bodies("openrouter/anthropic/claude-sonnet-4.5", prefixes(rounds(3))[-2:], recorder)
    for body in raw:
        for message in json.loads(body)["messages"]:
            assert "cache_control" not in message
    earlier, later = map(marked_blocks, raw)
    assert (earlier[0], later[0], len(later)) == ("Be brief.", "Be brief.", 3)
    assert later[1] == earlier[-1]


@pytest.mark.row("S8")
def test_bedrock_turns_the_marks_into_cache_points() -> None:
    load_litellm()
    from litellm.llms.bedrock.chat.converse_transformation import AmazonConverseConfig

    codec = MessageCodec(provider="bedrock", vision=True)
    one = request(*rounds(3), tools=(TOOL, BIG_TOOL))
    messages, tools = codec.encode(one.messages), codec.encode_tools(one.tools)
    mark_for_cache(messages, tools, "conversation")
    body = AmazonConverseConfig()._transform_request(
        model="anthropic.claude-sonnet-4-5-20250929-v1:0", messages=messages, optional_params={}, litellm_params={}
    )
    point = {"cachePoint": {"type": "default"}}
    assert body["system"] == [{"text": "Be brief."}, point]
    positions = [number for number, message in enumerate(body["messages"]) if point in message["content"]]
    assert positions == [4, 6]
    assert body["messages"][6]["content"][-1] == point


@pytest.mark.row("S8")
@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (CLAUDE, "conversation"),
        ("vertex_ai/claude-sonnet-4-5", "conversation"),
        ("openrouter/anthropic/claude-sonnet-4.5", "conversation"),
        ("bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0", "conversation"),
        ("bedrock/amazon.nova-pro-v1:0", "system"),
        ("bedrock/meta.llama3-70b-instruct-v1:0", "none"),
        ("gpt-4o", "none"),
        ("azure/gpt-4o", "none"),
        ("deepseek/deepseek-chat", "none"),
        ("gemini/gemini-2.5-pro", "none"),
        ("vertex_ai/gemini-2.5-pro", "none"),
        ("ollama_chat/qwen2.5", "none"),
        ("openai/claude-on-a-house-server", "none"),
    ],
)
def test_who_understands_marks(model: str, expected: CacheMarks) -> None:
    config = LitellmModelConfig(name="m", model=model)
    assert cache_marks(model_facts(load_litellm(), config)) == expected


def encoded(*messages: Message, tools: tuple[Tool, ...]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    codec = MessageCodec(provider="anthropic", vision=True)
    one = request(*messages, tools=tools)
    return codec.encode(one.messages), codec.encode_tools(one.tools)


@pytest.mark.row("S8")
def test_a_prefix_too_short_to_be_cached_is_not_marked() -> None:
    messages, tools = encoded(user_text("Why?"), tools=(TOOL,))
    mark_for_cache(messages, tools, "conversation")
    assert "cache_control" not in json.dumps([messages, tools])
    messages, tools = encoded(user_text("Why? " * 1_000), tools=(TOOL,))
    mark_for_cache(messages, tools, "conversation")
    assert ["cache_control" in message for message in messages] == [False, True]


@pytest.mark.row("S8")
class Unreadable(dict[str, Any]):
    """A message in the middle of a long conversation, which nobody needs to read to place the marks."""

    def items(self) -> NoReturn:
        raise AssertionError("the whole history was read")


def test_of_a_long_conversation_only_the_beginning_is_read() -> None:
    def conversation(last: str) -> list[dict[str, Any]]:
        middle = [Unreadable(role="user", content="x" * 5_000) for _ in range(10)]
        first = {"role": "user", "content": "why? " * 400}
        reply = {"role": "assistant", "content": "because " * 300}
        return [{"role": "system", "content": "Be brief."}, first, reply, *middle, {"role": "user", "content": last}]

    messages = conversation("go on")
    mark_for_cache(messages, [], "conversation")
    assert [at for at, message in enumerate(messages) if "cache_control" in message] == [len(messages) - 1]


def test_without_instructions_the_first_message_counts_too() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "x" * 5_000},
        {"role": "assistant", "content": "y"},
        {"role": "user", "content": "z"},
    ]
    mark_for_cache(messages, [], "conversation")
    assert "cache_control" in messages[2]


def test_empty_texts_are_never_marked_because_that_is_refused() -> None:
    call = tool_call("a")
    empty = ToolMessage(call_id=call.id, tool_name="t", status="success", parts=(Text(text=""),))
    history = (user_text("Why? " * 1_000), AssistantMessage(text="", tool_calls=(call,)), empty)
    messages, tools = encoded(*history, tools=(BIG_TOOL,))
    mark_for_cache(messages, tools, "conversation")
    assert [message["role"] for message in messages if "cache_control" in message] == ["system", "user"]
    messages, tools = encoded(*history, user_text(""), tools=(BIG_TOOL,))
    mark_for_cache(messages, tools, "conversation")
    assert [message["role"] for message in messages if "cache_control" in message] == ["system", "user"]


@pytest.mark.row("S8")
async def test_a_picture_after_the_results_carries_the_mark_and_stays_a_picture(recorder: Recorder) -> None:
    one = request(*rounds(2), tools=(TOOL, BIG_TOOL))
    (raw,) = await bodies(CLAUDE, [one], recorder)
    last = json.loads(raw)["messages"][-1]["content"][-1]
    assert (last["type"], last["cache_control"]) == ("image", MARK)
