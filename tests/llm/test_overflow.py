"""Every known "too long" of every provider is recognised, no look-alike is, and the stated window is learned."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from holmes.core.errors import ContextOverflow, ModelError
from holmes.llm.overflow import Overflow, overflow_window
from tests.llm.conftest import Recorder, provider, request
from tests.support.openai_server import ErrorReply

TABLE = tuple(
    csv.DictReader(
        (Path(__file__).parent / "data" / "provider_errors.tsv").read_text(encoding="utf-8").splitlines(),
        delimiter="\t",
        quoting=csv.QUOTE_NONE,
    )
)


def test_the_table_is_whole() -> None:
    assert len(TABLE) == 20
    assert {row["is_overflow"] for row in TABLE} == {"yes", "no"}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['provider']}-{row['model']}")
def test_row_of_the_table(row: dict[str, str]) -> None:
    found = overflow_window(row["message"], int(row["http_status"]))
    assert (found is not None) == (row["is_overflow"] == "yes")


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['provider']}-{row['model']}")
async def test_row_of_the_table_through_litellm(row: dict[str, str], recorder: Recorder) -> None:
    status = int(row["http_status"])
    bare = row["message"].endswith("(no body)")
    body = "" if bare else row["message"] if row["message"].startswith("{") else None
    reply = ErrorReply(status=status, message=row["message"], body=body, headers={"retry-after": "600"})
    with provider(lambda _: reply) as parts, pytest.raises(ModelError) as caught:
        await parts.model.complete(request(), recorder.emit)
    assert isinstance(caught.value, ContextOverflow) == (row["is_overflow"] == "yes")


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (200000, "prompt is too long: 213462 tokens > 200000 maximum"),
        (200000, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length"),
        (272000, "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens."),
        (128000, "This model's maximum context length is 128,000 tokens. However, you sent 130000."),
        (1048575, "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)."),
        (131072, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
        (8192, "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192"),
        (8193, "`inputs` tokens + `max_new_tokens` must be <= 8193"),
        (32768, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
        (32768, "The decoder prompt (length 40000) is longer than the maximum model length of 32768."),
        (32768, "The input (40000 tokens) is longer than the model's context length (32768 tokens)."),
        (4096, "the request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it"),
        (4096, "Trying to keep the first 5000 tokens. However, it is loaded with context length of only 4096 tokens"),
        (4081, "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000."),
        (8192, "Invalid request: Your request exceeded model token limit: 8192"),
        (128000, "prompt token count of 140000 exceeds the limit of 128000"),
        (None, "Input is too long for requested model."),
        (None, "invalid params, context window exceeds limit (2013)"),
        (None, "input length exceeds the context length"),
    ],
)  # fmt: skip
def test_the_window_is_learned_when_the_message_states_it(window: int | None, message: str) -> None:
    assert overflow_window(message, 400) == Overflow(window_tokens=window)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (429, "This request would exceed your organization's rate limit of 40,000 input tokens per minute."),
        (429, "Too many tokens, please wait before trying again."),
        (400, "ThrottlingException: Too many tokens, please wait before trying again."),
        (429, "Rate limit reached: Limit 6000, Used 5900, Requested 500. Please try again in 4s."),
        (400, "messages: text content blocks must be non-empty"),
        (400, "Invalid value for 'tools[0].function.name'"),
        (500, "The server had an error while processing your request"),
        (401, "Incorrect API key provided"),
        (None, "Connection reset by peer"),
    ],
)
def test_other_errors_are_no_overflow(status: int | None, message: str) -> None:
    assert overflow_window(message, status) is None


def test_a_request_larger_than_a_minutes_allowance_is_one_because_waiting_never_helps() -> None:
    message = "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000."
    assert overflow_window(message, 429) == Overflow(window_tokens=30000)
