"""A model that cannot be asked is one line with the fix, before any request is made."""

from __future__ import annotations

import pytest

from holmes.llm.config import LitellmModelConfig
from holmes.llm.litellm_model import LitellmModel
from holmes.values.errors import ConfigError
from tests.llm.conftest import Recorder, request
from tests.support.openai_server import OpenAIServer, Reply

pytestmark = pytest.mark.usefixtures("no_keys")


def model(name: str, **settings: str) -> LitellmModel:
    return LitellmModel(LitellmModelConfig(name=name, model=name, **settings))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("gpt-4o", "No API key for model 'gpt-4o': set OPENAI_API_KEY or pass --api-key."),
        (
            "anthropic/claude-sonnet-4-5",
            "No API key for model 'anthropic/claude-sonnet-4-5': set ANTHROPIC_API_KEY or pass --api-key.",
        ),
        (
            "gemini/gemini-2.5-pro",
            "No API key for model 'gemini/gemini-2.5-pro': set GOOGLE_API_KEY or GEMINI_API_KEY or pass --api-key.",
        ),
    ],
)
async def test_a_missing_key_names_the_variable(name: str, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        await model(name).check()
    assert str(caught.value) == line


async def test_a_key_without_an_address_is_not_enough_for_azure() -> None:
    with pytest.raises(ConfigError) as caught:
        await model("azure/gpt-4o", api_key="k").check()
    assert str(caught.value) == "Model 'azure/gpt-4o' is not fully configured: set AZURE_API_BASE, AZURE_API_VERSION."
    await model("azure/gpt-4o", api_key="k", api_base="https://x.openai.azure.com", api_version="2024-10-21").check()


async def test_a_misspelt_model_names_its_neighbours() -> None:
    with pytest.raises(ConfigError, match=r"^Unknown model 'gtp-4o': did you mean 'gpt-4o'( or '[^']+')?\?$"):
        await model("gtp-4o").check()


async def test_a_model_unlike_any_other_explains_the_notation() -> None:
    with pytest.raises(
        ConfigError, match=r"^Unknown model 'zzzzqqqq': litellm cannot determine its provider; use PROVIDER/"
    ):
        await model("zzzzqqqq").check()


async def test_nothing_is_printed_about_an_unknown_model(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError):
        await model("nope/foo").check()
    assert capfd.readouterr() == ("", "")


async def test_completing_without_a_check_fails_the_same_way(recorder: Recorder) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        await model("gpt-4o").complete(request(), recorder.emit)


async def test_a_given_key_is_enough() -> None:
    await model("gpt-4o", api_key="k").check()


@pytest.mark.parametrize("name", ["ollama/qwen2.5", "bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0"])
async def test_local_models_and_cloud_credentials_need_no_key(name: str) -> None:
    await model(name).check()


async def test_a_server_on_this_machine_needs_no_key(recorder: Recorder) -> None:
    with OpenAIServer([Reply(text="ok")]) as server:
        reply = await model("openai/qwen", api_base=server.base_url).complete(request(), recorder.emit)
    assert reply.message.text == "ok"
    assert (reply.stats.cost, reply.stats.unpriced_calls) == (0.0, 0), "a local model costs nothing"


def test_secrets_do_not_show() -> None:
    config = LitellmModelConfig(
        name="m", model="gpt-4o", api_key="hush", extra_headers=(("A", "hush"),), extra_arguments=(("token", "hush"),)
    )
    assert "hush" not in repr(config)
    assert "hush" not in repr(LitellmModel(config))


@pytest.mark.parametrize("address", ["http://127.0.0.1:", "http://127.0.0.1:x/v1", "127.0.0.1:8000", "http:///v1"])
async def test_an_address_that_is_none_is_named_before_any_request(address: str) -> None:
    with pytest.raises(ConfigError, match=r"^The api_base '.*' of model 'openai/qwen' .*; correct it\.$") as caught:
        await model("openai/qwen", api_key="k", api_base=address).check()
    assert repr(address) in str(caught.value)
