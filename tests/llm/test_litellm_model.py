"""One request through the real litellm to a provider on a real socket, and what comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from holmes.llm.config import Prices
from holmes.values.errors import ContextOverflow, ModelError
from holmes.values.messages import AssistantMessage, Text, ToolCall, ToolCallId, ToolMessage, user_text
from tests.llm.conftest import KEY, Recorder, provider, request
from tests.support.openai_server import Call, ErrorReply, EventStream, Hang, OpenAIServer, Reply, Usage, call

if TYPE_CHECKING:
    from holmes.values.json_types import JsonValue


async def test_text_is_streamed_as_it_arrives_and_returned_whole(recorder: Recorder) -> None:
    with provider([Reply(text="The pod is out of memory.", piece_characters=5)]) as parts:
        reply = await parts.model.complete(request(), recorder.emit)
    assert reply.message == AssistantMessage(text="The pod is out of memory.")
    assert recorder.deltas == ["The p", "od is", " out ", "of me", "mory."]
    assert (reply.finish_reason, reply.model) == ("stop", "tested")


async def test_request_holds_what_the_contract_promises_and_nothing_of_litellm(recorder: Recorder) -> None:
    with provider([Reply(text="ok")]) as parts:
        await parts.model.complete(request(), recorder.emit)
    sent = parts.server.requests[0]
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.body == {
        "model": "gpt-4o",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "kubectl_get",
                    "description": "Gets objects.",
                    "parameters": {
                        "type": "object",
                        "properties": {"kind": {"type": "string", "description": "The kind."}},
                        "required": ["kind"],
                    },
                },
            }
        ],
        "max_tokens": 1000,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_tools_stay_when_the_model_must_not_call_them(recorder: Recorder) -> None:
    with provider([Reply(text="ok")]) as parts:
        await parts.model.complete(replace(request(), tool_choice="none"), recorder.emit)
    body = parts.server.requests[0].body
    assert (body["tool_choice"], len(body["tools"])) == ("none", 1)


async def test_configured_options_reach_the_provider(recorder: Recorder) -> None:
    with provider(
        [Reply(text="ok")],
        change=lambda config: replace(
            config,
            temperature=0.25,
            extra_headers=(("X-Team", "sre"),),
            extra_arguments=(("seed", 7),),
        ),
    ) as parts:
        await parts.model.complete(request(), recorder.emit)
    sent = parts.server.requests[0]
    assert (sent.body["temperature"], sent.body["seed"], sent.headers["x-team"]) == (0.25, 7, "sre")


async def test_tool_calls_split_over_many_chunks_are_put_together(recorder: Recorder) -> None:
    calls = (
        call("kubectl_get", call_id="a", kind="pod", note='ünïcode ✓ and "quotes"'),
        call("kubectl_get", call_id="b", kind="node"),
    )
    with provider([Reply(text="Looking.", tool_calls=calls, piece_characters=1)]) as parts:
        reply = await parts.model.complete(request(), recorder.emit)
    assert reply.finish_reason == "tool_calls"
    assert [(made.id, made.name, made.arguments) for made in reply.message.tool_calls] == [
        ("a", "kubectl_get", calls[0].arguments),
        ("b", "kubectl_get", calls[1].arguments),
    ]


async def test_call_ids_that_the_conversation_has_already_are_replaced(recorder: Recorder) -> None:
    earlier = ToolCall(id=ToolCallId("call_0"), name="kubectl_get", arguments="{}")
    history = (
        user_text("Why?"),
        AssistantMessage(text="", tool_calls=(earlier,)),
        ToolMessage(call_id=earlier.id, tool_name="kubectl_get", status="success", parts=(Text(text="x"),)),
    )
    with provider([Reply(tool_calls=(Call(name="kubectl_get", arguments="{}", id="call_0"),))]) as parts:
        reply = await parts.model.complete(request(*history), recorder.emit)
    assert reply.message.tool_calls[0].id not in {"", "call_0"}


async def test_empty_and_equal_ids_become_unique(recorder: Recorder) -> None:
    def chunk(index: int, name: str) -> dict[str, object]:
        wire = {"index": index, "id": "", "type": "function", "function": {"name": name, "arguments": '{"kind":"pod"}'}}
        return {"choices": [{"index": 0, "delta": {"tool_calls": [wire]}, "finish_reason": None}]}

    end: dict[str, object] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    with provider([Reply(raw_chunks=(chunk(0, "kubectl_get"), chunk(0, "kubectl_get"), end))]) as parts:
        reply = await parts.model.complete(request(), recorder.emit)
    ids = {made.id for made in reply.message.tool_calls}
    assert len(reply.message.tool_calls) == 2
    assert len(ids) == 2
    assert "" not in ids


async def test_broken_arguments_are_repaired_and_hopeless_ones_marked(recorder: Recorder) -> None:
    calls = (
        Call(name="kubectl_get", arguments="{'kind': 'pod',}", id="a"),
        Call(name="kubectl_get", arguments="the pods please", id="b"),
    )
    with provider([Reply(tool_calls=calls)]) as parts:
        reply = await parts.model.complete(request(), recorder.emit)
    first, second = reply.message.tool_calls
    assert (json.loads(first.arguments), first.malformed) == ({"kind": "pod"}, None)
    assert (second.arguments, second.malformed) == ("{}", "the pods please")


async def test_arguments_cut_by_the_token_limit_are_not_guessed(recorder: Recorder) -> None:
    cut = Call(name="kubectl_get", arguments='{"kind": "po', id="a")
    with provider([Reply(tool_calls=(cut,), finish_reason="length")]) as parts:
        reply = await parts.model.complete(request(), recorder.emit)
    assert reply.finish_reason == "length"
    assert reply.message.tool_calls[0].malformed == '{"kind": "po'


WRITTEN = 'Let me look.\n```json\n{"name": "kubectl_get", "arguments": {"kind": "pod"}}\n```'


@pytest.mark.parametrize("model", ["openai/house-model", "hosted_vllm/qwen2.5-1.5b-instruct", "lm_studio/gpt-4o"])
async def test_call_written_into_the_text_is_recognised_and_taken_out(model: str, recorder: Recorder) -> None:
    with provider([Reply(text=WRITTEN)], model=model) as parts:
        reply = await parts.model.complete(request(), recorder.emit)
    assert reply.message.text == "Let me look."
    assert [(made.name, made.arguments) for made in reply.message.tool_calls] == [("kubectl_get", '{"kind": "pod"}')]
    assert reply.finish_reason == "tool_calls"


async def test_text_of_a_model_with_native_calls_is_never_a_call(recorder: Recorder) -> None:
    native = Reply(tool_calls=(Call(name="kubectl_get", arguments="{}", id="a"),))
    with provider([Reply(text=WRITTEN)]) as parts:
        known = await parts.model.complete(request(), recorder.emit)
    with provider([Reply(text=WRITTEN), native, Reply(text=WRITTEN)], model="openai/house-model") as parts:
        replies = [await parts.model.complete(request(), recorder.emit) for _ in range(3)]
    assert (known.message.text, known.message.tool_calls, known.finish_reason) == (WRITTEN, (), "stop")
    assert [len(reply.message.tool_calls) for reply in replies] == [1, 1, 0], "it has shown that it has native calls"


async def test_text_that_was_cut_off_is_never_a_call(recorder: Recorder) -> None:
    cut = '<tool_call>{"name": "kubectl_get", "arguments": {"kind": "pod"}}'
    with provider([Reply(text=cut, finish_reason="length")], model="openai/house-model") as parts:
        reply = await parts.model.complete(request(), recorder.emit)
    assert (reply.message.text, reply.message.tool_calls, reply.finish_reason) == (cut, (), "length")


@pytest.mark.row("S8")
async def test_usage_and_cost_come_from_the_provider_and_the_local_price_map(recorder: Recorder) -> None:
    usage = Usage(prompt_tokens=1000, completion_tokens=100, cached_tokens=400, reasoning_tokens=60)
    with provider([Reply(text="ok", usage=usage)]) as parts:
        reply = await parts.model.complete(request(), recorder.emit)
    stats = reply.stats
    assert reply.reported_prompt_tokens == 1000
    assert (stats.prompt_tokens, stats.completion_tokens, stats.cached_tokens) == (1000, 100, 400)
    assert (stats.reasoning_tokens, stats.calls, stats.unpriced_calls, stats.estimated) == (60, 1, 0, False)
    assert stats.cost == pytest.approx(600 * 2.5e-6 + 400 * 1.25e-6 + 100 * 10e-6)


async def test_custom_prices_win(recorder: Recorder) -> None:
    prices = Prices(input_per_token=1e-3, output_per_token=2e-3, cache_read_per_token=1e-4)
    usage = Usage(prompt_tokens=100, completion_tokens=10, cached_tokens=40)
    with provider([Reply(text="ok", usage=usage)], change=lambda config: replace(config, prices=prices)) as parts:
        stats = (await parts.model.complete(request(), recorder.emit)).stats
    assert stats.cost == pytest.approx(60 * 1e-3 + 40 * 1e-4 + 10 * 2e-3)


async def test_missing_usage_is_estimated_and_marked(recorder: Recorder) -> None:
    question = user_text("Why is the checkout pod failing? " * 100)
    with provider([Reply(text="Because of memory. " * 20, usage=None)]) as parts:
        reply = await parts.model.complete(request(question), recorder.emit)
    stats = reply.stats
    assert (reply.reported_prompt_tokens, reply.context_tokens) == (None, stats.prompt_tokens)
    assert stats.estimated
    assert 600 < stats.prompt_tokens < 1400
    assert 50 < stats.completion_tokens < 200
    assert stats.cost > 0


def anthropic_events() -> tuple[dict[str, Any], ...]:
    """A reply of Anthropic's: thinking with a signature, a redacted block, text, a tool call, cached usage."""

    def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {"type": "content_block_start", "index": index, "content_block": start},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": index},
        ]

    usage = {"input_tokens": 10, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20, "output_tokens": 1}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []}
    return (
        {"type": "message_start", "message": {**head, "stop_reason": None, "usage": usage}},
        *block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "First, "},
            {"type": "thinking_delta", "thinking": "memory."},
            {"type": "signature_delta", "signature": "c2lnbmVk"},
        ),
        *block(1, {"type": "redacted_thinking", "data": "b3BhcXVl"}),
        *block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Looking."}),
        *block(
            3,
            {"type": "tool_use", "id": "toolu_1", "name": "kubectl_get", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"kind": '},
            {"type": "input_json_delta", "partial_json": '"pod"}'},
        ),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 25}},
        {"type": "message_stop"},
    )


@pytest.mark.row("S8")
async def test_signed_thinking_of_anthropic_goes_back_untouched_and_its_cache_is_counted(recorder: Recorder) -> None:
    with provider(
        [EventStream(events=anthropic_events())] * 2,
        model="anthropic/claude-sonnet-4-5",
        change=lambda config: replace(
            config,
            api_base=str(config.api_base).removesuffix("/v1"),
            thinking={"type": "enabled", "budget_tokens": 1024},
        ),
    ) as parts:
        reply = await parts.model.complete(request(), recorder.emit)
        result = ToolMessage(
            call_id=ToolCallId("toolu_1"), tool_name="kubectl_get", status="success", parts=(Text(text="x"),)
        )
        await parts.model.complete(request(user_text("Why?"), reply.message, result), recorder.emit)
    sent = parts.server.requests[1].body
    assert sent["messages"][1]["content"][:2] == [
        {"type": "thinking", "thinking": "First, memory.", "signature": "c2lnbmVk"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
    ]
    assert "thinking" not in sent, "the budget is larger than what the request leaves for the reply"
    assert reply.message.text == "Looking."
    assert [(made.id, made.arguments) for made in reply.message.tool_calls] == [("toolu_1", '{"kind": "pod"}')]
    stats = reply.stats
    assert (stats.prompt_tokens, stats.cached_tokens, stats.cache_creation_tokens) == (100, 70, 20)
    assert (stats.completion_tokens, stats.estimated, reply.reported_prompt_tokens) == (25, False, 100)
    assert stats.cost == pytest.approx(10 * 3e-6 + 70 * 0.3e-6 + 20 * 3.75e-6 + 25 * 15e-6)


@pytest.mark.row("C2")
@pytest.mark.parametrize(("max_tokens", "thinks"), [(1_025, True), (14_096, True), (1_024, False), (300, False)])
async def test_max_tokens_is_what_was_kept_free_and_a_thinking_budget_never_adds_to_it(
    recorder: Recorder, max_tokens: int, thinks: bool
) -> None:
    thinking: JsonValue = {"type": "enabled", "budget_tokens": 1024}
    with provider(
        [EventStream(events=anthropic_events())],
        model="anthropic/claude-sonnet-4-5",
        change=lambda config: replace(
            config, api_base=str(config.api_base).removesuffix("/v1"), thinking=thinking, temperature=None
        ),
    ) as parts:
        await parts.model.complete(replace(request(), max_output_tokens=max_tokens), recorder.emit)
        assert parts.model.limits.thinking_tokens == 1_024
    sent = parts.server.requests[0].body
    assert (sent["max_tokens"], sent.get("thinking")) == (max_tokens, thinking if thinks else None)


async def test_readable_reasoning_goes_back_only_to_its_provider(recorder: Recorder) -> None:
    with provider([Reply(text="Memory.", reasoning="First, memory."), Reply(text="ok"), Reply(text="ok")]) as parts:
        reply = await parts.model.complete(request(), recorder.emit)
        await parts.model.complete(request(user_text("Why?"), reply.message, user_text("More.")), recorder.emit)
        foreign = replace(reply.message, reasoning=(replace(reply.message.reasoning[0], provider="anthropic"),))
        await parts.model.complete(request(user_text("Why?"), foreign, user_text("More.")), recorder.emit)
    sent = [asked.body["messages"][2] for asked in parts.server.requests[1:]]
    assert sent == [
        {"role": "assistant", "content": "Memory.", "reasoning_content": "First, memory."},
        {"role": "assistant", "content": "Memory."},
    ]


async def test_cancelling_a_waiting_request_closes_the_connection(recorder: Recorder) -> None:
    with provider([Hang()]) as parts:
        await _cancel_when_received(parts.server, parts.model.complete(request(), recorder.emit))
        assert await asyncio.to_thread(parts.server.wait_for_disconnect, 1.0)


async def test_cancelling_in_the_middle_of_a_stream_closes_the_connection(recorder: Recorder) -> None:
    with provider([Reply(text="some text", stop_after_chunks=2, stop="hang")]) as parts:
        await _cancel_when_received(parts.server, parts.model.complete(request(), recorder.emit))
        assert await asyncio.to_thread(parts.server.wait_for_disconnect, 1.0)


async def _cancel_when_received(server: OpenAIServer, call: Coroutine[Any, Any, object]) -> None:
    task = asyncio.create_task(call)
    assert await asyncio.to_thread(server.wait_for_request, 5.0)
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_two_conversations_at_the_same_time_do_not_mix(recorder: Recorder) -> None:
    def echo(body: dict[str, object]) -> Reply:
        messages = body["messages"]
        assert isinstance(messages, list)
        return Reply(text=f"echo {messages[-1]['content']}", delay_seconds=0.05)

    with provider(echo) as parts:
        replies = await asyncio.gather(
            *(parts.model.complete(request(user_text(str(number))), recorder.emit) for number in range(5))
        )
    assert [reply.message.text for reply in replies] == [f"echo {number}" for number in range(5)]


async def test_overflow_tells_the_window_and_is_not_retried(recorder: Recorder) -> None:
    message = "This model's maximum context length is 32768 tokens. However, you requested 40000 tokens"
    with provider([ErrorReply(status=400, message=message)]) as parts:
        with pytest.raises(ContextOverflow) as caught:
            await parts.model.complete(request(), recorder.emit)
        assert len(parts.server.requests) == 1
    assert (caught.value.window_tokens, caught.value.model, caught.value.provider) == (32768, "tested", "openai")


async def test_overflow_that_only_the_error_code_tells_is_recognised(recorder: Recorder) -> None:
    reply = ErrorReply(status=400, message="Bad request.", code="context_length_exceeded")
    with provider([reply]) as parts, pytest.raises(ContextOverflow):
        await parts.model.complete(request(), recorder.emit)


@pytest.mark.parametrize(
    ("status", "what", "advice"),
    [
        (400, "rejected the request for model 'tested'", "check the model settings"),
        (401, "rejected the API key for model 'tested'", "check the key or pass --api-key"),
        (403, "denies this key access to model 'tested'", "check the plan and the permissions of the account"),
        (404, "cannot find model 'tested'", "check the model name and the base URL"),
    ],
)
async def test_final_refusals_are_one_line_and_not_retried(
    status: int, what: str, advice: str, recorder: Recorder
) -> None:
    with provider([ErrorReply(status=status, message="no good")]) as parts:
        with pytest.raises(ModelError) as caught:
            await parts.model.complete(request(), recorder.emit)
        assert len(parts.server.requests) == 1
    assert str(caught.value) == f"'openai' {what} (HTTP {status}: no good): {advice}."
    assert not caught.value.retryable
    assert not isinstance(caught.value, ContextOverflow)


@pytest.mark.parametrize("key", [KEY, "hunter2", "open-sesame", "opensesameopensesame"])
async def test_a_provider_that_quotes_the_key_does_not_show_it(key: str, recorder: Recorder) -> None:
    reply = ErrorReply(status=401, message=f"Incorrect API key provided: {key}")
    with (
        provider([reply], change=lambda config: replace(config, api_key=key)) as parts,
        pytest.raises(ModelError) as caught,
    ):
        await parts.model.complete(request(), recorder.emit)
    assert key not in str(caught.value)
    assert key not in repr(parts.model)


@pytest.mark.parametrize("key", ["no", "none", "EMPTY", "model", "anything", "x1"])
async def test_a_key_of_common_letters_masks_no_words(key: str, recorder: Recorder) -> None:
    said = f"the EMPTY model knows nothing, anything else is x12: {key}"
    reply = ErrorReply(status=400, message=said)
    with (
        provider([reply], change=lambda config: replace(config, api_key=key)) as parts,
        pytest.raises(ModelError, match=said),
    ):
        await parts.model.complete(request(), recorder.emit)


async def test_an_error_of_anthropic_is_told_in_its_own_words(recorder: Recorder) -> None:
    body = '{"type":"error","error":{"type":"invalid_request_error","message":"messages: roles must alternate"}}'
    with (
        provider([ErrorReply(status=400, body=body)], model="anthropic/claude-sonnet-4-5") as parts,
        pytest.raises(ModelError) as caught,
    ):
        await parts.model.complete(request(), recorder.emit)
    assert "(HTTP 400: messages: roles must alternate): check" in str(caught.value)


async def test_an_overflow_that_is_told_inside_the_stream_is_recognised(recorder: Recorder) -> None:
    error = {"error": {"message": "the request exceeds the available context size (4096 tokens)", "code": 400}}
    with provider(lambda _: Reply(raw_chunks=(error,))) as parts, pytest.raises(ContextOverflow) as caught:
        await parts.model.complete(request(), recorder.emit)
    assert caught.value.window_tokens == 4096


async def test_a_very_long_reason_is_shortened(recorder: Recorder) -> None:
    with provider([ErrorReply(status=400, message="no " * 5000)]) as parts, pytest.raises(ModelError) as caught:
        await parts.model.complete(request(), recorder.emit)
    assert len(str(caught.value)) < 500
