"""The conversation on the wire: stable bytes, images after the results of a round, nothing for those who cannot see."""

from __future__ import annotations

import base64
import json

from hypothesis import given
from hypothesis import strategies as st

from holmes.llm.codec import MessageCodec
from holmes.tokens import TokenCounter, image_tokens
from holmes.values.messages import (
    AssistantMessage,
    Image,
    Message,
    Part,
    Reasoning,
    SystemMessage,
    Text,
    ToolCall,
    ToolCallId,
    ToolMessage,
    UserMessage,
    user_text,
)
from holmes.values.tools import Parameter, ParameterSchema, Tool

PNG = Image(data=b"\x89PNG" + bytes(2000), media_type="image/png")
PNG_URL = f"data:image/png;base64,{base64.b64encode(PNG.data).decode()}"


def seeing() -> MessageCodec:
    return MessageCodec(provider="openai", vision=True)


def blind() -> MessageCodec:
    return MessageCodec(provider="openai", vision=False)


def round_of(*results: tuple[Part, ...], start: int = 0) -> tuple[Message, ...]:
    """An assistant message that calls once per result, and the results."""
    ids = [ToolCallId(f"call_{start + number}") for number in range(len(results))]
    calls = tuple(ToolCall(id=call_id, name="read", arguments='{"a": 1}') for call_id in ids)
    messages = (
        ToolMessage(call_id=call_id, tool_name="read", status="success", parts=parts)
        for call_id, parts in zip(ids, results, strict=True)
    )
    return (AssistantMessage(text="", tool_calls=calls), *messages)


def test_halves_of_characters_are_replaced_because_no_request_can_hold_them() -> None:
    half = "caf\udce9 \ud83d\ude00"
    call = ToolCall(id=ToolCallId("call_0"), name="read", arguments=f'{{"a": "{half}"}}')
    reasoning = Reasoning(provider="openai", payload=json.dumps({"reasoning_content": half}))
    said = AssistantMessage(text=half, tool_calls=(call,), reasoning=(reasoning,))
    result = ToolMessage(call_id=call.id, tool_name="read", status="success", parts=(Text(text=half), PNG))
    wire = seeing().encode((SystemMessage(text=half), user_text(half), said, result))
    assert json.dumps(wire, ensure_ascii=False).encode().decode().count("caf\N{REPLACEMENT CHARACTER} \U0001f600") == 6


def test_images_of_a_round_follow_all_its_results_in_one_user_message() -> None:
    history = round_of((Text(text="first"), PNG), (Text(text="second"),), (PNG,))
    wire = seeing().encode((SystemMessage(text="s"), user_text("q"), *history, AssistantMessage(text="done")))
    assert [message["role"] for message in wire] == [
        "system", "user", "assistant", "tool", "tool", "tool", "user", "assistant",
    ]  # fmt: skip
    assert [message["content"] for message in wire[3:6]] == ["first", "second", ""]
    assert wire[6]["content"] == [
        {"type": "text", "text": "Images of the tool results above:"},
        {"type": "text", "text": "read (call call_0):"},
        {"type": "image_url", "image_url": {"url": PNG_URL}},
        {"type": "text", "text": "read (call call_2):"},
        {"type": "image_url", "image_url": {"url": PNG_URL}},
    ]


def test_images_of_the_last_round_are_sent_with_it() -> None:
    wire = seeing().encode((user_text("q"), *round_of((PNG,))))
    assert [message["role"] for message in wire] == ["user", "assistant", "tool", "user"]


def test_a_model_that_cannot_see_gets_a_text_in_place_of_each_image() -> None:
    question = UserMessage(parts=(Text(text="What is this?"), PNG))
    wire = blind().encode((question, *round_of((Text(text="a chart"), PNG))))
    note = "[An image (image/png, 2.0 KB) that this model cannot see]"
    assert wire[0] == {"role": "user", "content": f"What is this?\n{note}"}
    assert wire[2]["content"] == f"a chart\n{note}"
    assert len(wire) == 3
    assert "base64" not in json.dumps(wire)
    assert TokenCounter().count_text(note) <= image_tokens(PNG, "note")


def test_reasoning_goes_back_as_it_came_and_only_to_its_provider() -> None:
    payload = '{"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "abc"}]}'
    message = AssistantMessage(text="x", reasoning=(Reasoning(provider="anthropic", payload=payload),))
    for_anthropic = MessageCodec(provider="anthropic", vision=True).encode((message,))[0]
    assert for_anthropic == {"role": "assistant", "content": "x", **json.loads(payload)}
    assert seeing().encode((message,))[0] == {"role": "assistant", "content": "x"}


def test_arguments_go_back_byte_for_byte() -> None:
    odd = '{ "kind":"pod" ,"a":1.0}'
    call = ToolCall(id=ToolCallId("a"), name="read", arguments=odd)
    wire = seeing().encode((AssistantMessage(text="", tool_calls=(call,)),))[0]
    assert wire["tool_calls"] == [{"id": "a", "type": "function", "function": {"name": "read", "arguments": odd}}]
    assert wire["content"] is None


def test_an_assistant_message_is_never_empty() -> None:
    assert seeing().encode((AssistantMessage(text=""),))[0]["content"] == "(empty reply)"


texts = st.text(max_size=20)
parts = st.lists(st.one_of(st.builds(Text, text=texts), st.just(PNG)), min_size=1, max_size=3).map(tuple)
rounds = st.lists(parts, min_size=1, max_size=3).map(lambda results: round_of(*results))
steps = st.one_of(rounds, st.builds(lambda text: (user_text(text), AssistantMessage(text=text)), texts))


@given(st.lists(steps, min_size=1, max_size=6), st.booleans())
def test_a_longer_conversation_starts_with_the_bytes_of_the_shorter_one(
    history: list[tuple[Message, ...]], sees: bool
) -> None:
    codec = MessageCodec(provider="openai", vision=sees)
    messages: tuple[Message, ...] = (SystemMessage(text="s"), user_text("q"))
    sent = json.dumps(codec.encode(messages))
    for step in history:
        messages += step
        longer = json.dumps(codec.encode(messages))
        assert longer.startswith(sent[:-1])
        assert longer == json.dumps(MessageCodec(provider="openai", vision=sees).encode(messages))
        sent = longer


def test_what_the_caller_does_to_the_result_changes_no_later_request() -> None:
    codec = seeing()
    messages = (user_text("q"), *round_of((Text(text="x"), PNG)))
    tools = (Tool(name="t", description="d", parameters=(Parameter(name="p", schema=ParameterSchema()),)),)
    first, first_tools = json.dumps(codec.encode(messages)), json.dumps(codec.encode_tools(tools))
    spoiled, spoiled_tools = codec.encode(messages), codec.encode_tools(tools)
    spoiled[1]["tool_calls"][0]["function"].clear()
    spoiled[3]["content"].clear()
    spoiled_tools[0]["function"]["parameters"]["properties"].clear()
    assert json.dumps(codec.encode(messages)) == first
    assert json.dumps(codec.encode_tools(tools)) == first_tools
