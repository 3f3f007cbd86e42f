"""Answers that are no reply: each is one line that says so, is asked again at most once, and never takes all memory."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from holmes.llm.config import LitellmModelConfig
from holmes.llm.errors import model_error
from holmes.llm.litellm_model import LitellmModel
from holmes.llm.watched_answer import AnswerLimits
from holmes.values.errors import ContextOverflow, ModelError
from tests.llm.conftest import QUICK, Recorder, provider, request
from tests.support.openai_server import ErrorReply, Reply, Scripted

EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
END: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def delta(**content: object) -> dict[str, Any]:
    """A chunk whose delta holds anything."""
    return {"choices": [{"index": 0, "delta": content, "finish_reason": None}]}


def usage(**numbers: object) -> dict[str, Any]:
    """The last chunk, with any numbers."""
    return {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, **numbers}}


@contextmanager
def raw_answers(answer: Callable[[socket.socket], None]) -> Iterator[tuple[str, list[int]]]:
    """A server that writes to the socket what it likes: its address, and one entry for each request that came."""
    hits: list[int] = []
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            with suppress(OSError):
                connection, _ = listener.accept()
                connection.settimeout(5)
                with connection, suppress(OSError):
                    connection.recv(65_536)
                    hits.append(len(hits))
                    answer(connection)
                    connection.shutdown(socket.SHUT_WR)
                    connection.recv(65_536)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", hits
        finally:
            ended.set()
            thread.join()


async def failure_of(reply: Scripted, recorder: Recorder) -> tuple[ModelError, int]:
    """How a provider that always says `reply` fails, and how often it was asked."""
    with provider(lambda _: reply) as parts:
        with pytest.raises(ModelError) as caught:
            await parts.model.complete(request(), recorder.emit)
        assert "\n" not in str(caught.value)
        return caught.value, len(parts.server.requests)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "<html><style>a{}</style><h1>Log in</h1> to go &amp; ask</html>",
            "the response is not an event stream (application/json) and starts with 'Log in to go & ask'; check",
        ),
        ('{"error": {"message": "no such deployment"}}', ": no such deployment; check the model settings"),
        ('{"detail": "Not Found"}', ": Not Found; check the model settings and the base URL"),
        ("[" * 20_000, "the response is not an event stream"),
    ],
)
async def test_what_is_no_event_stream_is_told_and_not_asked_again(body: str, reason: str, recorder: Recorder) -> None:
    error, requests = await failure_of(ErrorReply(status=200, body=body), recorder)
    assert reason in str(error)
    assert str(error).startswith("No usable reply from 'openai' at http://127.0.0.1:")
    assert (requests, error.retryable) == (1, False)
    assert recorder.discarded == []


@pytest.mark.parametrize("name", ["anthropic/claude-sonnet-4-5", "mistral/mistral-large-latest"])
async def test_providers_that_litellm_reads_by_itself_are_judged_the_same(name: str, recorder: Recorder) -> None:
    reply = ErrorReply(status=200, body='{"error": {"message": "sold out"}}')
    with (
        provider([reply], model=name) as parts,
        pytest.raises(ModelError, match=r"No usable reply from '\w+' at .*: sold out; check"),
    ):
        await parts.model.complete(request(), recorder.emit)


async def test_an_overflow_that_is_told_with_a_good_status_is_recognised(recorder: Recorder) -> None:
    body = '{"error": {"message": "the request exceeds the available context size (4096 tokens)"}}'
    error, _ = await failure_of(ErrorReply(status=200, body=body), recorder)
    assert isinstance(error, ContextOverflow)
    assert error.window_tokens == 4096


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    "named", [{"code": 404}, {"code": "403"}, {"code": 401}, {"type": "permission_error"}, {"code": 429}]
)
async def test_a_refusal_that_is_told_with_a_good_status_is_no_overflow(
    named: dict[str, Any], streamed: bool, recorder: Recorder
) -> None:
    told = {"error": {"message": "maximum context length is 4096 tokens, requested 5000", **named}}
    reply = Reply(raw_chunks=(told,)) if streamed else ErrorReply(status=200, body=json.dumps(told))
    error, _ = await failure_of(reply, recorder)
    assert not isinstance(error, ContextOverflow)


@pytest.mark.parametrize(
    "chunk",
    [
        delta(tool_calls="x"),
        delta(thinking_blocks="abc", content="hi"),
        delta(reasoning_content=5, content="hi"),
        {"choices": "abc"},
        {"choices": [{"index": 0, "delta": "abc"}]},
        {"error": {"message": "boom " * 1000, "code": 500}},
    ],
)
async def test_chunks_of_a_wrong_shape_are_one_short_line_and_asked_once_more(
    chunk: dict[str, Any], recorder: Recorder
) -> None:
    error, requests = await failure_of(Reply(raw_chunks=(chunk, END)), recorder)
    assert str(error).startswith("No usable reply from 'openai' at ")
    assert len(str(error)) < 500
    assert requests == 2


async def test_overload_that_is_told_inside_the_stream_passes(recorder: Recorder) -> None:
    overloaded = Reply(raw_chunks=({"error": {"message": "busy", "type": "overloaded_error"}},))
    with provider([overloaded, overloaded, Reply(text="ok")]) as parts:
        reply = await parts.model.complete(request(), recorder.emit)
    assert reply.message.text == "ok"


async def test_a_model_that_repeats_itself_is_not_asked_again_and_not_quoted(recorder: Recorder) -> None:
    error, requests = await failure_of(
        Reply(raw_chunks=(*(delta(content="Q" * 400) for _ in range(150)), END)), recorder
    )
    assert "the model repeats the same text endlessly; rephrase the question" in str(error)
    assert ("QQQ" in str(error), requests, error.retryable) == (False, 1, False)


@pytest.mark.parametrize(
    "numbers",
    [
        {"prompt_tokens_details": {"cached_tokens": 1e30}},
        {"prompt_tokens": 1.5},
        {"prompt_tokens": "lots"},
        {"prompt_tokens": -10},
        {"completion_tokens": 10**30},
    ],
)
async def test_broken_numbers_beside_an_answer_do_not_cost_the_answer(
    numbers: dict[str, object], recorder: Recorder
) -> None:
    script = [Reply(raw_chunks=(delta(content="All is well."), END, usage(**numbers)))]
    with provider(script) as parts:
        reply = await parts.model.complete(request(), recorder.emit)
    assert (reply.message.text, reply.finish_reason, reply.stats.estimated) == ("All is well.", "stop", True)
    assert 0 < reply.stats.prompt_tokens < 1000
    assert 0 < reply.stats.cost < 1


@pytest.mark.parametrize("cost", [float("nan"), -1.0, "much"])
async def test_a_bill_that_is_no_sum_is_not_believed(cost: object, recorder: Recorder) -> None:
    with provider([Reply(raw_chunks=(delta(content="ok"), END, usage(cost=cost)))]) as parts:
        stats = (await parts.model.complete(request(), recorder.emit)).stats
    assert stats.cost == pytest.approx(10 * 2.5e-6 + 5 * 10e-6)


async def test_calls_that_share_an_id_are_as_many_calls(recorder: Recorder) -> None:
    def chunk(index: int) -> dict[str, Any]:
        function = {"name": "kubectl_get", "arguments": json.dumps({"kind": f"k{index}"})}
        return delta(tool_calls=[{"index": index, "id": "call_1", "type": "function", "function": function}])

    with provider([Reply(raw_chunks=(*map(chunk, range(3)), END))]) as parts:
        calls = (await parts.model.complete(request(), recorder.emit)).message.tool_calls
    assert [json.loads(made.arguments)["kind"] for made in calls] == ["k0", "k1", "k2"]
    assert len({made.id for made in calls}) == 3


async def test_what_is_not_http_is_asked_once_more(recorder: Recorder) -> None:
    with (
        raw_answers(lambda connection: connection.sendall(b"HTTP/1.1 abc NO\r\n\r\nhello")) as (address, hits),
        provider([], change=lambda config: replace(config, api_base=address)) as parts,
        pytest.raises(
            ModelError, match=r"the response is not valid HTTP \(illegal status line.*\); check the base URL"
        ),
    ):
        await parts.model.complete(request(), recorder.emit)
    assert len(hits) == 2


@pytest.mark.parametrize("name", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5"])
async def test_a_line_without_end_is_given_up_early(name: str, recorder: Recorder) -> None:
    ends: list[type[OSError]] = []

    def endless(connection: socket.socket) -> None:
        connection.sendall(EVENTS + b"data: ")
        try:
            while True:
                connection.sendall(b"A" * 65_536)
        except OSError as error:
            ends.append(type(error))

    with (
        raw_answers(endless) as (address, hits),
        provider([], model=name, change=lambda config: replace(config, api_base=address)) as parts,
        pytest.raises(ModelError, match=r"the server sent 8,\d{3},\d{3} bytes, more than the maximum size of a reply"),
    ):
        await parts.model.complete(request(), recorder.emit)
    assert len(hits) == 1
    assert ends
    assert TimeoutError not in ends, "the connection stayed open"


async def test_few_compressed_bytes_that_stand_for_many_are_given_up_early(recorder: Recorder) -> None:
    import zlib

    def bomb(connection: socket.socket) -> None:
        packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
        connection.sendall(EVENTS.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"))
        connection.sendall(packer.compress(b"data: " + b"A" * 40_000_000) + packer.flush())

    with (
        raw_answers(bomb) as (address, _),
        provider([], change=lambda config: replace(config, api_base=address)) as parts,
        pytest.raises(ModelError, match=r"the server sent 8,\d{3},\d{3} bytes, more than the maximum size of a reply"),
    ):
        await parts.model.complete(request(), recorder.emit)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (AnswerLimits(bytes=3000), "the server sent 3,"),
        (AnswerLimits(characters=100), "the reply did not end after 101 characters in 102 chunks"),
        (AnswerLimits(pieces=50), "the reply did not end after 50 characters in 51 chunks"),
        (AnswerLimits(seconds=0.3), "the reply did not end within 0.3 s"),
    ],
)
async def test_a_reply_that_does_not_end_is_given_up(limits: AnswerLimits, words: str, recorder: Recorder) -> None:
    with provider(lambda _: Reply(text="abc" * 300, piece_characters=1, pause_seconds=0.005)) as parts:
        model = LitellmModel(parts.model._config, retry_policy=QUICK, answer_limits=limits)
        with pytest.raises(ModelError) as caught:
            await model.complete(request(), recorder.emit)
        assert len(parts.server.requests) == 1
    assert words in str(caught.value)
    assert caught.value.stats is not None
    assert caught.value.stats.calls == 1, "what came was paid for"


def test_a_package_that_litellm_misses_is_one_line_and_not_tried_again() -> None:
    missing = ModuleNotFoundError("No module named 'google'", name="google")
    wrapped = RuntimeError("litellm.APIConnectionError: Traceback ...")
    wrapped.__cause__ = missing
    error = model_error(wrapped, LitellmModelConfig(name="v", model="vertex_ai/gemini-2.5-pro"), "vertex_ai")
    assert "the Python package 'google' is missing; run pip install 'holmes[vertex]'" in str(error)
    assert not error.retryable
