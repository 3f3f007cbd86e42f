"""Every known "too long" of every provider is recognised, no look-alike is, and the stated window is learned.

The table holds what providers answer: the whole body when it begins with `{` or `<`, else the message that an
OpenAI-compatible server wraps. Each row is sent by a real server and comes through litellm's own client and exception
mapping for that provider. Two providers can only be reached with credentials of a real account (Vertex AI, Copilot):
their rows enter at the exception mapping.
"""

from __future__ import annotations

import csv
import json
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from holmes.llm.config import LitellmModelConfig
from holmes.llm.errors import model_error
from holmes.llm.litellm_loader import load_litellm
from holmes.llm.litellm_model import LitellmModel
from holmes.llm.overflow import Overflow, overflow_window
from holmes.llm.retries import RetryPolicy
from holmes.values.errors import ContextOverflow, ModelError
from tests.llm.conftest import KEY, Recorder, provider, request
from tests.support.openai_server import ErrorReply

TABLE = tuple(
    csv.DictReader(
        (Path(__file__).parent / "data" / "provider_errors.tsv").read_text(encoding="utf-8").splitlines(),
        delimiter="\t",
        quoting=csv.QUOTE_NONE,
    )
)
OF_ROW_S4 = {
    "anthropic", "openai", "azure", "bedrock", "gemini", "vertex_ai", "groq", "openrouter", "deepseek", "xai",
    "github_copilot", "mistral", "cerebras", "cohere_chat", "together_ai", "huggingface", "moonshot", "minimax",
    "hosted_vllm", "llamafile", "lm_studio", "ollama", "ollama_chat",
}  # fmt: skip
WITH_REAL_ACCOUNTS_ONLY = {"vertex_ai", "github_copilot"}
WITHOUT_V1 = {"anthropic", "azure", "bedrock", "gemini", "huggingface", "ollama", "ollama_chat"}
AWS = (("aws_access_key_id", "a"), ("aws_secret_access_key", "b"), ("aws_region_name", "us-east-1"))


class _Provider(ThreadingHTTPServer):
    """Answers every request with one status and body."""

    daemon_threads = True
    status = 500
    body = b""
    requests = 0


class _Handler(BaseHTTPRequestHandler):
    server: _Provider
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", "0")))
        self.server.requests += 1
        self.send_response(self.server.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the parent's parameter
        """Nothing."""


@pytest.fixture(scope="module")
def refusing() -> Iterator[_Provider]:
    server = _Provider(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def _name(row: dict[str, str]) -> str:
    return f"{row['provider']}-{row['model']}-{row['http_status']}-{row['message'][:60]}"


def _body(message: str) -> str:
    if message.endswith("(no body)"):
        return ""
    if message[0] in "{<":
        return message
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}})


def _config(row: dict[str, str], address: str) -> LitellmModelConfig:
    name = row["provider"]
    return LitellmModelConfig(
        name="tested",
        model=f"{name}/{row['model']}",
        api_key=KEY,
        api_base=address if name in WITHOUT_V1 else f"{address}/v1",
        api_version="2024-06-01" if name == "azure" else None,
        request_timeout_seconds=10,
        context_window_tokens=128_000,
        extra_arguments=AWS if name == "bedrock" else (),
    )


def _mapped(row: dict[str, str]) -> BaseException:
    """What litellm's exception mapping makes of the row."""
    load_litellm()
    from litellm.litellm_core_utils.exception_mapping_utils import exception_type
    from litellm.llms.base_llm.chat.transformation import BaseLLMException

    error: Any = BaseLLMException(status_code=int(row["http_status"]), message=_body(row["message"]), headers={})
    try:
        mapped: BaseException = exception_type(row["model"], error, row["provider"])
    except Exception as raised:  # noqa: BLE001  the function raises what it makes
        mapped = raised
    return mapped


async def _outcome(row: dict[str, str], refusing: _Provider, recorder: Recorder) -> ModelError | None:
    """What the loop gets to see; None when litellm makes a reply of the error."""
    address = f"http://127.0.0.1:{refusing.server_port}"
    if row["provider"] in WITH_REAL_ACCOUNTS_ONLY:
        return model_error(_mapped(row), _config(row, address), row["provider"])
    refusing.status, refusing.body, refusing.requests = int(row["http_status"]), _body(row["message"]).encode(), 0
    model = LitellmModel(_config(row, address), retry_policy=RetryPolicy(max_attempts=1))
    try:
        await model.complete(request(tools=()), recorder.emit)
    except ModelError as error:
        return error
    finally:
        assert refusing.requests >= 1, "it never came to the provider"
    return None


@pytest.mark.row("S4")
def test_the_table_has_overflows_and_look_alikes_of_every_provider() -> None:
    kinds = Counter((row["provider"], row["is_overflow"]) for row in TABLE)
    assert len(TABLE) == 185
    assert {name for name in OF_ROW_S4 if not kinds[name, "yes"]} == set()
    assert {name for name in OF_ROW_S4 - {"ollama"} if not kinds[name, "no"]} == set()
    assert {row["is_overflow"] for row in TABLE} == {"yes", "no"}


@pytest.mark.row("S4")
@pytest.mark.parametrize("row", TABLE, ids=_name)
async def test_row_of_the_table_through_litellm(row: dict[str, str], refusing: _Provider, recorder: Recorder) -> None:
    error = await _outcome(row, refusing, recorder)
    assert isinstance(error, ContextOverflow) == (row["is_overflow"] == "yes"), error
    if isinstance(error, ContextOverflow):
        assert error.window_tokens == (int(row["window"]) if row["window"] else None)
        assert not error.retryable


@pytest.mark.row("S4")
async def test_what_the_provider_quotes_of_key_and_headers_is_not_in_the_message(recorder: Recorder) -> None:
    message = f"prompt is too long: 213462 tokens > 200000 maximum (key {KEY}, X-Team: secret-team-token)"

    def with_headers(config: LitellmModelConfig) -> LitellmModelConfig:
        return replace(config, extra_headers=(("X-Team", "secret-team-token"),))

    script = [ErrorReply(status=400, message=message)]
    with provider(script, change=with_headers) as parts, pytest.raises(ContextOverflow) as caught:
        await parts.model.complete(request(), recorder.emit)
    assert KEY not in str(caught.value)
    assert "secret-team-token" not in str(caught.value)
    assert caught.value.window_tokens == 200_000


@pytest.mark.row("S4")
def test_a_very_long_message_is_judged() -> None:
    for filler in ("image " * 50_000, "(" * 300_000):
        assert overflow_window(filler[:4_000], 400) is None


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
        (None, "context length exceeded by 3000 tokens"),
        (None, "This model's maximum context length is 12 tokens"),
        (None, "Input is too long for requested model."),
        (None, "invalid params, context window exceeds limit (2013)"),
        (None, "input length exceeds the context length"),
    ],
)  # fmt: skip
def test_the_window_is_learned_when_the_message_states_it(window: int | None, message: str) -> None:
    assert overflow_window(message, 400) == Overflow(window_tokens=window)


@pytest.mark.row("S4")
@pytest.mark.parametrize(
    ("status", "message"),
    [
        (429, "This request would exceed your organization's rate limit of 40,000 input tokens per minute."),
        (429, "Too many tokens, please wait before trying again."),
        (400, "ThrottlingException: Too many tokens, please wait before trying again."),
        (429, "Rate limit reached: Limit 6000, Used 5900, Requested 500. Please try again in 4s."),
        (429, "Request too large on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Try again in 2s."),
        (429, "The input tokens exceed the limit of 40,000 tokens per minute, please wait."),
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
