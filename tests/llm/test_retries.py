"""What happens when the provider fails: who is asked again, after how long, and what it costs."""

from __future__ import annotations

import email.utils
import time
from dataclasses import replace

import pytest

from holmes.llm.errors import retry_after_seconds
from holmes.llm.retries import RetryPolicy
from holmes.values.errors import ModelError
from holmes.values.stats import RequestStats
from tests.llm.conftest import Recorder, provider, request
from tests.support.deadlines import ends_before
from tests.support.openai_server import ErrorReply, Hang, OpenAIServer, Reply, Scripted, Usage, call


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
async def test_passing_troubles_are_retried_until_an_answer_comes(status: int, recorder: Recorder) -> None:
    with provider([ErrorReply(status=status), ErrorReply(status=status), Reply(text="ok")]) as parts:
        reply = await parts.model.complete(request(), recorder.emit)
    assert reply.message.text == "ok"
    assert reply.stats.calls == 1, "an error that answered nothing is not billed"
    assert len(recorder.discarded) == 2


async def test_each_attempt_sends_the_same_bytes(recorder: Recorder) -> None:
    with provider([ErrorReply(status=500), ErrorReply(status=500), Reply(text="ok")]) as parts:
        await parts.model.complete(request(), recorder.emit)
    assert len({sent.raw_body for sent in parts.server.requests}) == 1


async def test_gives_up_after_five_attempts_with_the_reason(recorder: Recorder) -> None:
    with provider(lambda _: ErrorReply(status=503, message="overloaded")) as parts:
        with pytest.raises(ModelError, match=r"'openai' failed for model 'tested' \(HTTP 503: overloaded\)") as caught:
            await parts.model.complete(request(), recorder.emit)
        assert len(parts.server.requests) == 5
    assert caught.value.retryable
    assert len(recorder.discarded) == 4


async def test_retry_after_is_waited_for(recorder: Recorder) -> None:
    with provider([ErrorReply(status=429, headers={"Retry-After": "1"}), Reply(text="ok")]) as parts:
        await parts.model.complete(request(), recorder.emit)
    first, second = parts.server.requests
    assert 1.0 <= second.at_seconds - first.at_seconds < 1.5
    assert recorder.discarded[0].retry_in_seconds == 1.0


async def test_retry_after_beyond_the_cap_is_not_waited_for(recorder: Recorder) -> None:
    with provider([ErrorReply(status=429, headers={"Retry-After": "61"}), Reply(text="ok")]) as parts:
        with pytest.raises(ModelError) as caught:
            await parts.model.complete(request(), recorder.emit)
        assert len(parts.server.requests) == 1
    assert caught.value.retryable


def test_retry_after_is_read_in_all_three_notations() -> None:
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    assert retry_after_seconds({"retry-after": "2.5"}) == 2.5
    assert retry_after_seconds({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert retry_after_seconds({"retry-after": date}) == pytest.approx(30, abs=2)
    assert retry_after_seconds({"retry-after": "soon"}) is None
    assert retry_after_seconds({}) is None


async def test_waits_grow_and_differ(recorder: Recorder) -> None:
    policy = RetryPolicy(backoff_seconds=0.02, max_backoff_seconds=0.5)
    with provider(lambda _: ErrorReply(status=500), policy=policy) as parts, pytest.raises(ModelError):
        await parts.model.complete(request(), recorder.emit)
    waits = [event.retry_in_seconds for event in recorder.discarded]
    assert all(base <= wait <= base + 0.02 for base, wait in zip((0.02, 0.04, 0.08, 0.16), waits, strict=True))
    assert len({round(wait - base, 9) for base, wait in zip((0.02, 0.04, 0.08, 0.16), waits, strict=True)}) > 1


@pytest.mark.parametrize("stop", ["reset", "clean"])
async def test_text_of_a_cut_stream_is_void_and_its_cost_counted(stop: str, recorder: Recorder) -> None:
    broken = replace(Reply(text="It is the network, I am sure."), stop_after_chunks=3)
    script: list[Scripted] = [
        replace(broken, stop="clean" if stop == "clean" else "reset"),
        Reply(text="It is memory."),
    ]
    with provider(script) as parts:
        reply = await parts.model.complete(request(), recorder.emit)
    kinds = [event.kind for event in recorder.events]
    assert kinds == ["text_delta"] * 2 + ["attempt_discarded"] + ["text_delta"] * 2
    assert reply.message.text == "It is memory."
    assert (reply.stats.calls, reply.stats.estimated) == (2, True)
    assert reply.stats.completion_tokens > 20
    assert reply.context_tokens == Usage().prompt_tokens, "the window is filled by the last attempt alone"
    (failed,) = recorder.discarded
    assert (failed.stats.calls, failed.stats.estimated) == (1, True)
    assert failed.stats.prompt_tokens == reply.stats.prompt_tokens - reply.context_tokens > 0
    assert 0 < failed.stats.cost < reply.stats.cost


async def test_the_last_failure_takes_its_text_back_and_carries_all_costs(recorder: Recorder) -> None:
    with provider(lambda _: Reply(text="It is the network.", stop_after_chunks=2)) as parts:
        with pytest.raises(ModelError, match="Lost the connection to 'openai'") as caught:
            await parts.model.complete(request(), recorder.emit)
        assert len(parts.server.requests) == 5
    assert recorder.events[-1].kind == "attempt_discarded"
    assert caught.value.stats is not None
    assert caught.value.stats.calls == 5
    assert sum((event.stats for event in recorder.discarded), RequestStats()) == caught.value.stats


async def test_a_last_failure_without_text_is_announced_too_when_it_was_billed(recorder: Recorder) -> None:
    silent = Reply(tool_calls=(call("kubectl_get", kind="pod"),), stop_after_chunks=4)
    with provider([silent, ErrorReply(status=401)]) as parts, pytest.raises(ModelError) as caught:
        await parts.model.complete(request(), recorder.emit)
    assert [event.stats.calls for event in recorder.discarded] == [1]
    with provider([silent], policy=RetryPolicy(max_attempts=1)) as parts, pytest.raises(ModelError) as caught:
        await parts.model.complete(request(), recorder.emit)
    assert [event.stats.calls for event in recorder.discarded] == [1, 1]
    assert caught.value.stats == recorder.discarded[1].stats


async def test_errors_that_answered_nothing_cost_nothing(recorder: Recorder) -> None:
    with provider([ErrorReply(status=500), Reply(text="ok")]) as parts:
        reply = await parts.model.complete(request(), recorder.emit)
    assert [event.stats for event in recorder.discarded] == [RequestStats()]
    assert reply.context_tokens == reply.stats.prompt_tokens == Usage().prompt_tokens


async def test_no_first_byte_within_the_timeout_is_retried_and_named(recorder: Recorder) -> None:
    with provider(
        [Hang(), Hang()],
        policy=RetryPolicy(max_attempts=2, backoff_seconds=0.01),
        change=lambda config: replace(config, request_timeout_seconds=0.3),
    ) as parts:
        started = time.monotonic()
        with (
            ends_before(20),
            pytest.raises(ModelError, match=r"No response from 'openai' for model 'tested' within 0\.3 s") as caught,
        ):
            await parts.model.complete(request(), recorder.emit)
        assert time.monotonic() - started >= 0.6
        assert len(parts.server.requests) == 2
    assert caught.value.retryable


async def test_a_stream_that_falls_silent_is_given_up_and_asked_again(recorder: Recorder) -> None:
    with provider(
        [Reply(text="It is the network.", stop_after_chunks=2, stop="hang"), Reply(text="ok")],
        change=lambda config: replace(config, request_timeout_seconds=0.3),
    ) as parts:
        reply = await parts.model.complete(request(), recorder.emit)
    assert reply.message.text == "ok"
    assert len(recorder.discarded) == 1


async def test_a_long_reply_may_take_longer_than_the_timeout(recorder: Recorder) -> None:
    with provider(
        [Reply(text="abcdef", piece_characters=1, pause_seconds=0.15)],
        change=lambda config: replace(config, request_timeout_seconds=0.5),
    ) as parts:
        started = time.monotonic()
        reply = await parts.model.complete(request(), recorder.emit)
    assert reply.message.text == "abcdef"
    assert time.monotonic() - started > 0.8
    assert recorder.discarded == []


async def test_nobody_listening_is_one_line_with_the_address(recorder: Recorder) -> None:
    with OpenAIServer([]) as gone:
        address = gone.base_url
    with (
        provider(
            [], policy=RetryPolicy(max_attempts=2, backoff_seconds=0.01), change=lambda c: replace(c, api_base=address)
        ) as parts,
        pytest.raises(ModelError) as caught,
    ):
        await parts.model.complete(request(), recorder.emit)
    assert str(caught.value).startswith(f"Lost the connection to 'openai' at {address} for model 'tested': ")
    assert "\n" not in str(caught.value)
    assert caught.value.retryable


async def test_an_empty_purse_is_not_retried(recorder: Recorder) -> None:
    reply = ErrorReply(
        status=429, message="You exceeded your current quota, please check your plan and billing details."
    )
    with provider([reply]) as parts:
        with pytest.raises(ModelError) as caught:
            await parts.model.complete(request(), recorder.emit)
        assert len(parts.server.requests) == 1
    assert not caught.value.retryable
