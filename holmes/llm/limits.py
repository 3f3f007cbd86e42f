"""Determines the limits of a model, such as its context window.

The sources, in order of priority, are the user's configuration, the server, litellm's price map and a table of model
families. The default context window is 200,000 tokens. For local models it is 32,768 tokens, because their servers
rarely have a larger context window.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import quote

from holmes.llm.request_arguments import thinking_tokens
from holmes.values.expressions import expression
from holmes.values.model import ModelLimits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import httpx

    from holmes.llm.config import LitellmModelConfig
    from holmes.llm.model_facts import ModelFacts
    from holmes.values.model import ImageFormula

    Probe: TypeAlias = "Callable[[_Server], Awaitable[int | None]]"

_LOCAL_WINDOW_TOKENS = 32_768
_DEFAULT_WINDOW_TOKENS = 200_000
_DEFAULT_OUTPUT_TOKENS = 4_096

# Each entry is (start of a name part, context window, maximum output, vision support). The first match applies.
_KNOWN_FAMILIES: tuple[tuple[str, int, int, bool], ...] = (
    ("claude-3-", 200_000, 8_192, True),
    ("claude", 200_000, 32_000, True),
    ("gpt-5", 272_000, 128_000, True),
    ("gpt-4.1", 1_047_576, 32_768, True),
    ("gpt-4o", 128_000, 16_384, True),
    ("gpt-4-turbo", 128_000, 4_096, True),
    ("gpt-4", 8_192, 4_096, False),
    ("gpt-3.5", 16_385, 4_096, False),
    ("gpt-oss", 131_072, 32_768, False),
    ("o4", 200_000, 100_000, True),
    ("o3", 200_000, 100_000, True),
    ("o1", 200_000, 100_000, True),
    ("gemini-1.5-pro", 2_097_152, 8_192, True),
    ("gemini-2.5", 1_000_000, 65_535, True),
    ("gemini", 1_048_576, 65_535, True),
    ("deepseek", 131_072, 8_192, False),
    ("grok-4", 256_000, 32_768, True),
    ("grok", 131_072, 16_384, False),
    ("llama-4", 131_072, 8_192, True),
    ("llama-3.3-70b-versatile", 128_000, 32_768, False),
    ("llama-3", 131_072, 8_192, False),
    ("mistral-large", 128_000, 8_192, False),
    ("kimi-k2", 262_144, 16_384, False),
    ("qwen3", 131_072, 16_384, False),
    ("command", 128_000, 4_096, False),
)
_OLD_ENCODING_FAMILIES = ("gpt-4-", "gpt-3.5", "claude", "llama", "qwen", "deepseek")


def resolve_limits(
    config: LitellmModelConfig, facts: ModelFacts, *, served_window_tokens: int | None = None
) -> ModelLimits:
    """Take each limit from the first source that provides it. A configured limit of 0 is ignored."""
    family = None if facts.is_local else _family(facts.model)
    window = config.context_window_tokens or served_window_tokens or facts.context_window_tokens
    output = config.max_output_tokens or facts.max_output_tokens
    vision = facts.vision
    if family is not None:
        window, output = window or family[1], output or family[2]
        vision = family[3] if vision is None else vision
    return ModelLimits(
        context_window_tokens=window or (_LOCAL_WINDOW_TOKENS if facts.is_local else _DEFAULT_WINDOW_TOKENS),
        max_output_tokens=output or _DEFAULT_OUTPUT_TOKENS,
        vision=bool(vision),
        encoding=_encoding(facts.model),
        image_formula=_image_formula(facts) if vision else "note",
        thinking_tokens=max(thinking_tokens(config), facts.thinking_tokens),
    )


def _family(model: str) -> tuple[str, int, int, bool] | None:
    name = model.lower()
    return next(
        (family for family in _KNOWN_FAMILIES if re.search(rf"(?<![a-z0-9]){re.escape(family[0])}", name)), None
    )


def _image_formula(facts: ModelFacts) -> ImageFormula:
    """Select the formula for image tokens by the model's vendor, not by the provider that serves the model.

    If the vendor is unknown, the formula with the largest estimate applies.
    """
    name = facts.model.lower()
    if facts.provider == "anthropic" or "claude" in name:
        return "anthropic"
    if "gemini" in name:
        return "gemini"
    return "openai" if re.search(r"(?<![a-z0-9])(gpt-|o[134](?![a-z0-9]))", name) else "largest"


def _encoding(model: str) -> Literal["cl100k_base", "o200k_base"]:
    name = model.lower()
    return "cl100k_base" if name == "gpt-4" or any(part in name for part in _OLD_ENCODING_FAMILIES) else "o200k_base"


TIMEOUT_SECONDS = 2.0
_MIN_WINDOW_TOKENS = 1_000
_MAX_WINDOW_TOKENS = 100_000_000

_MAX_ANSWER_BYTES = 4_000_000
_DEFAULT_ADDRESSES = {
    "ollama": "http://localhost:11434",
    "ollama_chat": "http://localhost:11434",
    "lm_studio": "http://localhost:1234",
    "llamafile": "http://127.0.0.1:8080",
}
_NUM_CTX = expression(r"^\s*num_ctx\s+(\d+)", re.MULTILINE)


async def served_window_tokens(config: LitellmModelConfig, facts: ModelFacts) -> int | None:
    """Ask the server for the context window in tokens.

    Returns None if the context window is already known, if no server can be asked, or if the server does not respond.
    """
    address = address_to_ask(config, facts)
    if address is None:
        return None
    try:
        client = _client(config, address)
    except ValueError:  # the key or the proxy is not valid; the model request reports this error
        return None
    async with client:
        server = _Server(client, address, facts.model)
        answers = await asyncio.gather(*(probe(server) for probe in _probes(facts.provider)))
    asked = next((answer for answer in answers if answer is not None), None)
    return _requested_num_ctx(config, facts) or asked


def _client(config: LitellmModelConfig, address: str) -> httpx.AsyncClient:
    import ssl

    import httpx

    headers = dict(config.extra_headers)
    if config.api_key:
        headers.setdefault("Authorization", f"Bearer {config.api_key}")
    # Loading the system certificates takes longer than the request, so they are loaded only for HTTPS URLs.
    verify = True if address.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.AsyncClient(headers=headers, timeout=TIMEOUT_SECONDS, verify=verify)


def address_to_ask(config: LitellmModelConfig, facts: ModelFacts) -> str | None:
    """Return the URL of the server to ask for the context window, or None.

    Public providers are asked only if the configured context window is 0. Otherwise, litellm's price map is used.
    """
    is_somebodys_server = config.api_base is not None and facts.provider == "openai"
    is_unknown = is_somebodys_server and facts.context_window_tokens is None
    if config.context_window_tokens or (config.context_window_tokens is None and not (facts.is_local or is_unknown)):
        return None
    known = (facts.api_base or _DEFAULT_ADDRESSES.get(facts.provider)) if facts.provider in _PROBES else None
    return config.api_base or known


class _Server:
    """Sends requests to one model server and parses the JSON responses."""

    def __init__(self, client: httpx.AsyncClient, address: str, model: str) -> None:
        self._client = client
        self._root = re.sub(r"/(v1|api)?/*$", "", address.rstrip("/"))
        self.model = model

    async def ask(self, method: str, path: str, body: dict[str, str] | None = None) -> Any:  # noqa: ANN401  any JSON
        """Return the parsed response, or None if it is late, too large or not JSON, or if its status is not 200."""
        import httpx

        try:
            async with (
                asyncio.timeout(TIMEOUT_SECONDS),
                self._client.stream(method, f"{self._root}{path}", json=body) as response,
            ):
                content = bytearray()
                async for piece in response.aiter_bytes():
                    content += piece
                    if response.status_code != 200 or len(content) > _MAX_ANSWER_BYTES:
                        return None
            return json.loads(content)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError, ValueError, RecursionError):
            return None


async def _ollama(server: _Server) -> int | None:
    """Return `num_ctx` from the model file, or the training context length if it is not set.

    Returns None if both are unknown.
    """
    answer = await server.ask("POST", "/api/show", {"model": server.model})
    parameters = _NUM_CTX.search(str(_field(answer, "parameters")))
    if parameters is not None:
        return _window(int(parameters[1]))
    info = _field(answer, "model_info")
    keys = [key for key in info if str(key).endswith(".context_length")] if isinstance(info, dict) else []
    return _window(info[keys[0]]) if keys else None


async def _vllm(server: _Server) -> int | None:
    """Return the context window from the model's entry in the server's list, or None if it is unknown.

    If the list has a single entry, the name of this entry may differ from the model's name.
    """
    entries = _field(await server.ask("GET", "/v1/models"), "data")
    if not isinstance(entries, list):
        return None
    named = [entry for entry in entries if _field(entry, "id") == server.model] or entries
    return _window(_field(named[0], "max_model_len")) if len(named) == 1 else None


async def _llama_cpp(server: _Server) -> int | None:
    """Return the context window of one llama.cpp slot, or None if it is unknown."""
    return _window(_field(await server.ask("GET", "/props"), "default_generation_settings", "n_ctx"))


async def _lm_studio(server: _Server) -> int | None:
    """Return the context length of a loaded model, or else the model's maximum, or None if both are unknown."""
    answer = await server.ask("GET", f"/api/v0/models/{quote(server.model, safe='/')}")
    return _window(_field(answer, "loaded_context_length")) or _window(_field(answer, "max_context_length"))


_PROBES: dict[str, Probe] = {
    "ollama": _ollama,
    "ollama_chat": _ollama,
    "hosted_vllm": _vllm,
    "vllm": _vllm,
    "lm_studio": _lm_studio,
    "llamafile": _llama_cpp,
}


def _probes(provider: str) -> tuple[Probe, ...]:
    """Return the probe for a known server type, or all probes for an OpenAI-compatible address."""
    known = _PROBES.get(provider)
    return (known,) if known is not None else (_lm_studio, _llama_cpp, _ollama, _vllm)


def _requested_num_ctx(config: LitellmModelConfig, facts: ModelFacts) -> int | None:
    """Return the configured `num_ctx` for Ollama, because each request to Ollama sets the context window.

    Returns None for other servers.
    """
    return _window(dict(config.extra_arguments).get("num_ctx")) if _PROBES.get(facts.provider) is _ollama else None


def _field(value: Any, *names: str) -> Any:  # noqa: ANN401  any JSON
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _window(value: object) -> int | None:
    """Return `value` if it is a plausible context window, else None."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if _MIN_WINDOW_TOKENS <= value <= _MAX_WINDOW_TOKENS else None
