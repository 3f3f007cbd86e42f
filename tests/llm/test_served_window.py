"""Servers that report their window are asked for it, and none of them can hold Holmes up or lead it astray."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

import pytest

from holmes.llm.config import LitellmModelConfig
from holmes.llm.limits import address_to_ask
from holmes.llm.litellm_loader import load_litellm
from holmes.llm.litellm_model import LitellmModel
from holmes.llm.model_facts import model_facts
from tests.support.deadlines import ends_before

Routes: TypeAlias = Mapping[str, Any]

OLLAMA: Routes = {
    "POST /api/show": {
        "parameters": 'num_ctx                        16384\nstop                           "<|im_end|>"',
        "model_info": {"general.architecture": "qwen2", "qwen2.context_length": 131072, "qwen2.block_count": 48},
    }
}
OLLAMA_DEFAULTS: Routes = {"POST /api/show": {"model_info": {"qwen2.context_length": 40960}}}
VLLM: Routes = {
    "GET /v1/models": {
        "object": "list",
        "data": [{"id": "other", "max_model_len": 4096}, {"id": "qwen", "max_model_len": 20480}],
    }
}
VLLM_RENAMED: Routes = {"GET /v1/models": {"data": [{"id": "qwen-from-a-file", "max_model_len": 20480}]}}
LLAMA_CPP: Routes = {"GET /props": {"default_generation_settings": {"n_ctx": 12288}, "total_slots": 4}}
LM_STUDIO: Routes = {
    "GET /api/v0/models/qwen": {"id": "qwen", "loaded_context_length": 8192, "max_context_length": 131072}
}
LM_STUDIO_UNLOADED: Routes = {"GET /api/v0/models/qwen": {"id": "qwen", "max_context_length": 65536}}


class _Servers:
    """What was asked, and by whom."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[tuple[str, str | None, str]] = []


@contextmanager
def server(routes: Routes | Callable[[BaseHTTPRequestHandler], None]) -> Iterator[_Servers]:
    """A server that answers `routes` with JSON and everything else with 404, or does what the function does."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            servers.asked.append((f"{self.command} {self.path}", self.headers.get("authorization"), body.decode()))
            if callable(routes):
                routes(self)
                return
            content = routes.get(f"{self.command} {self.path}")
            data = b"not here" if content is None else json.dumps(content).encode()
            self.send_response(404 if content is None else 200)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that loses patience is what some tests want."""

    httpd = Server(("127.0.0.1", 0), Handler)
    servers = _Servers(f"http://127.0.0.1:{httpd.server_port}")
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield servers
    finally:
        httpd.shutdown()
        httpd.server_close()


async def window(
    model: str,
    api_base: str,
    *,
    configured_tokens: int | None = None,
    num_ctx: int | None = None,
    api_key: str = "sk-1",
) -> int:
    config = LitellmModelConfig(
        name="m",
        model=model,
        api_base=api_base,
        api_key=api_key,
        context_window_tokens=configured_tokens,
        extra_arguments=() if num_ctx is None else (("num_ctx", num_ctx),),
    )
    asked = LitellmModel(config)
    await asked.check()
    return asked.limits.context_window_tokens


@pytest.mark.row("C3")
@pytest.mark.parametrize(
    ("model", "path", "routes", "expected"),
    [
        ("ollama/qwen", "", OLLAMA, 16_384),
        ("ollama_chat/qwen", "", OLLAMA_DEFAULTS, 40_960),
        ("hosted_vllm/qwen", "/v1", VLLM, 20_480),
        ("hosted_vllm/qwen", "/v1", VLLM_RENAMED, 20_480),
        ("lm_studio/qwen", "/v1", LM_STUDIO, 8_192),
        ("lm_studio/qwen", "/v1/", LM_STUDIO_UNLOADED, 65_536),
        ("llamafile/qwen", "/v1", LLAMA_CPP, 12_288),
        ("openai/qwen", "/v1", OLLAMA, 16_384),
        ("openai/qwen", "/v1", VLLM, 20_480),
        ("openai/qwen", "/v1", LLAMA_CPP, 12_288),
        ("openai/qwen", "/v1", LM_STUDIO, 8_192),
        # llama.cpp also lists its model the way vLLM does, without a length.
        ("openai/qwen", "", {**LLAMA_CPP, "GET /v1/models": {"data": [{"id": "qwen", "meta": {}}]}}, 12_288),
    ],
)
async def test_every_kind_of_server_tells_its_window(model: str, path: str, routes: Routes, expected: int) -> None:
    with server(routes) as asked:
        assert await window(model, asked.url + path) == expected
    assert {key for _, key, _ in asked.asked} == {"Bearer sk-1"}
    assert all(json.loads(body) == {"model": "qwen"} for call, _, body in asked.asked if call.startswith("POST"))


@pytest.mark.row("C3")
async def test_the_server_is_asked_once_and_the_user_is_believed_without_asking() -> None:
    with server(VLLM) as asked:
        model = LitellmModel(LitellmModelConfig(name="m", model="hosted_vllm/qwen", api_base=f"{asked.url}/v1"))
        assert model.limits.context_window_tokens == 32_768, "nothing is asked before the check"
        await model.check()
        await model.check()
        assert model.limits.context_window_tokens == 20_480
        assert await window("hosted_vllm/qwen", f"{asked.url}/v1", configured_tokens=9_000) == 9_000
    assert len(asked.asked) == 1


@pytest.mark.row("C3")
async def test_zero_asks_even_for_a_model_that_the_price_map_knows() -> None:
    with server(VLLM_RENAMED) as asked:
        assert await window("openai/gpt-4o", asked.url, configured_tokens=0) == 20_480


@pytest.mark.row("C3")
@pytest.mark.parametrize(
    ("model", "api_base", "configured_tokens", "expected"),
    [
        ("gpt-4o", None, None, None),
        ("gpt-4o", None, 0, None),
        ("deepseek/deepseek-chat", None, 0, None),
        ("openai/gpt-4o", "http://gateway.example/v1", None, None),
        ("openai/gpt-4o", "http://gateway.example/v1", 0, "http://gateway.example/v1"),
        ("openai/qwen", "http://vllm.llm.svc:8000/v1", None, "http://vllm.llm.svc:8000/v1"),
        ("openai/qwen", "http://vllm.llm.svc:8000/v1", 9_000, None),
        ("ollama_chat/qwen", None, None, "http://localhost:11434"),
        ("ollama_chat/qwen", "http://gpu.lan:11434", None, "http://gpu.lan:11434"),
    ],
)
def test_who_is_asked(model: str, api_base: str | None, configured_tokens: int | None, expected: str | None) -> None:
    config = LitellmModelConfig(name="m", model=model, api_base=api_base, context_window_tokens=configured_tokens)
    assert address_to_ask(config, model_facts(load_litellm(), config)) == expected


@pytest.mark.row("C3")
async def test_ollama_serves_the_window_that_the_requests_ask_for() -> None:
    with server(OLLAMA_DEFAULTS) as asked:
        assert await window("ollama_chat/qwen", asked.url, num_ctx=10_000) == 10_000


def _silent(_: BaseHTTPRequestHandler) -> None:
    time.sleep(6)


def _drips(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(60):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.1)


def _endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(2_000):
        handler.wfile.write(b"[" * 100_000)


def _redirects(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(302)
    handler.send_header("location", "http://192.0.2.1/steal")
    handler.end_headers()


@pytest.mark.row("C3")
@pytest.mark.parametrize("answer", [_silent, _drips, _endless, _redirects])
async def test_a_server_that_wastes_time_or_space_is_left_after_two_seconds(
    answer: Callable[[BaseHTTPRequestHandler], None],
) -> None:
    with server({}) as quick:
        await window("openai/qwen", quick.url)  # litellm is loaded now
    with server(answer) as asked, ends_before(30):
        assert await window("openai/qwen", asked.url) == 32_768


@pytest.mark.row("C3")
@pytest.mark.parametrize(
    "content",
    [
        None, [], "x", 3, {"data": []}, {"data": [None]}, {"data": [{"max_model_len": True}]},
        {"data": [{"max_model_len": "8192"}]}, {"data": [{"max_model_len": -5}]}, {"data": [{"max_model_len": 10**30}]},
        {"data": [{"id": "a", "max_model_len": 4096}, {"id": "b", "max_model_len": 8192}]},
        {"model_info": 7, "parameters": ["num_ctx 7"]}, {"parameters": "num_ctx 12"},
        {"default_generation_settings": [1]}, {"default_generation_settings": {"n_ctx": 0}},
    ],
)  # fmt: skip
async def test_garbage_is_no_window(content: object) -> None:
    paths = ("POST /api/show", "GET /v1/models", "GET /props", "GET /api/v0/models/qwen")
    with server(dict.fromkeys(paths, content)) as asked:
        assert await window("openai/qwen", asked.url) == 32_768
    assert len(asked.asked) == 4


@pytest.mark.row("C3")
async def test_a_key_that_cannot_be_sent_is_no_error_here() -> None:
    with server(VLLM) as asked:
        assert await window("hosted_vllm/qwen", asked.url, api_key="ключ") == 32_768
    assert asked.asked == []


@pytest.mark.row("C3")
async def test_nobody_there_is_no_error() -> None:
    with server({}) as gone:
        pass
    assert await window("hosted_vllm/qwen", gone.url) == 32_768
