"""What the scripted server answers, and how that looks on the wire. Used by `openai_server`, which is its door."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call on the wire. `arguments` is sent as it is, valid JSON or not."""

    name: str
    arguments: str
    id: str | None = None


def call(tool_name: str, /, *, call_id: str | None = None, **arguments: object) -> Call:
    """A call with valid JSON arguments."""
    return Call(name=tool_name, arguments=json.dumps(arguments), id=call_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the provider says the request used. Zero leaves the details out."""

    prompt_tokens: int = 100
    completion_tokens: int = 20
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def to_wire(self) -> Body:
        wire: Body = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
        }
        if self.cached_tokens:
            wire["prompt_tokens_details"] = {"cached_tokens": self.cached_tokens}
        if self.reasoning_tokens:
            wire["completion_tokens_details"] = {"reasoning_tokens": self.reasoning_tokens}
        return wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply, streamed in pieces of `piece_characters` when the request asks for a stream.

    `stop_after_chunks` ends the stream early in the way `stop` says: `reset` breaks the connection, `clean` ends the
    body properly but without finish reason, `hang` sends nothing more until the client goes away. `raw_chunks` replaces
    the chunks altogether, for what odd providers send. `usage=None` reports none. `delay_seconds` pass before the
    reply, `pause_seconds` before each chunk.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[Call, ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = field(default_factory=Usage)
    piece_characters: int = 8
    delay_seconds: float = 0.0
    pause_seconds: float = 0.0
    stop_after_chunks: int | None = None
    stop: Literal["reset", "clean", "hang"] = "reset"
    raw_chunks: tuple[Body, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReply:
    """An error. `body` replaces the usual JSON around `message`."""

    status: int
    message: str = "scripted error"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """Accept the request and never answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStream:
    """Server-sent events as they are, for providers that do not speak OpenAI's language: Anthropic's `/v1/messages`."""

    events: tuple[Body, ...]


Scripted: TypeAlias = Reply | ErrorReply | Hang | EventStream


def _finish_reason(reply: Reply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def _wire_call(index: int, wire: Call) -> Body:
    call_id = f"call_{index}" if wire.id is None else wire.id
    return {"id": call_id, "type": "function", "function": {"name": wire.name, "arguments": wire.arguments}}


def whole_reply(reply: Reply, model: str) -> Body:
    """The body of an answer that is not streamed."""
    message: Body = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = [_wire_call(index, wire) for index, wire in enumerate(reply.tool_calls)]
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply)}
    usage = {} if reply.usage is None else {"usage": reply.usage.to_wire()}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice], **usage}


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _deltas(reply: Reply) -> Iterator[Body]:
    yield {"role": "assistant", "content": ""}
    for piece in _pieces(reply.reasoning, reply.piece_characters):
        yield {"reasoning_content": piece}
    for piece in _pieces(reply.text, reply.piece_characters):
        yield {"content": piece}
    for index, wire in enumerate(reply.tool_calls):
        head = _wire_call(index, wire)
        head["function"]["arguments"] = ""
        yield {"tool_calls": [{"index": index, **head}]}
        for piece in _pieces(wire.arguments, reply.piece_characters):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def chunks(reply: Reply, model: str, *, wants_usage: bool) -> Iterator[Body]:
    """The chunks of a streamed answer."""
    head: Body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
    if reply.raw_chunks is not None:
        yield from ({**head, **chunk} for chunk in reply.raw_chunks)
        return
    for delta in _deltas(reply):
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish_reason(reply)}]}
    if wants_usage and reply.usage is not None:
        yield {**head, "choices": [], "usage": reply.usage.to_wire()}


def read_entry(entry: Body) -> Scripted:
    """A reply as it stands in the file of a script."""
    if "status" in entry:
        return ErrorReply(**entry)
    calls = tuple(call(item["name"], **item.get("arguments", {})) for item in entry.get("tool_calls", ()))
    usage = Usage(**entry["usage"]) if entry.get("usage") else None if "usage" in entry else Usage()
    return Reply(**{**entry, "tool_calls": calls, "usage": usage})
