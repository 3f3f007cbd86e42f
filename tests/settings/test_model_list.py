"""Named models: what the file may say, and which entry a name leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holmes.settings.load import load_settings
from holmes.settings.settings import Settings, reveal
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

LIST = """\
sonnet:
  model: bedrock/anthropic.claude-sonnet-4
  api_key: "{{ env.MY_KEY }}"
  base_url: https://proxy.test
  api_version: "2025-01-01"
  custom_args: {max_context_size: 150000}
  temperature: 0.5
  thinking: {type: enabled, budget_tokens: 5000}
  reasoning_effort: high
  input_cost_per_token: 0.000003
  output_cost_per_token: 1.5e-5
  cache_read_input_token_cost: 0.0000003
  cache_creation_input_token_cost: 0.00000375
  aws_region_name: eu-west-1
local:
  model: ollama/qwen3
"""


def load(tmp_path: Path, text: str = LIST, variables: dict[str, str] | None = None, **overrides: object) -> Settings:
    folder = tmp_path / ".holmes"
    folder.mkdir(exist_ok=True)
    (folder / "model_list.yaml").write_text(text, encoding="utf-8")
    return load_settings({"HOME": str(tmp_path), "MY_KEY": "k1", **(variables or {})}, None, overrides)


def test_every_documented_key_is_read_and_the_rest_goes_to_litellm(tmp_path: Path) -> None:
    entry = load(tmp_path, model="sonnet").model_chain()[0]
    assert (entry.name, entry.model) == ("sonnet", "bedrock/anthropic.claude-sonnet-4")
    assert reveal(entry.api_key) == "k1"
    assert (entry.api_base, entry.api_version) == ("https://proxy.test", "2025-01-01")
    assert entry.context_window_tokens == 150_000
    assert (entry.temperature, entry.reasoning_effort) == (0.5, "high")
    assert entry.thinking == {"type": "enabled", "budget_tokens": 5000}
    assert (entry.input_cost_per_token, entry.output_cost_per_token) == (3e-6, 1.5e-5)
    assert (entry.cache_read_input_token_cost, entry.cache_creation_input_token_cost) == (3e-7, 3.75e-6)
    assert entry.extra == {"aws_region_name": "eu-west-1"}


def test_without_a_choice_the_first_model_of_the_list_answers(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert [entry.name for entry in settings.model_chain()] == ["sonnet", "builtin/triage"]
    assert settings.model_names() == ("sonnet", "local")


def test_the_chain_is_the_model_and_its_fallbacks_once_each_and_ends_without_an_llm(tmp_path: Path) -> None:
    settings = load(tmp_path, variables={"MODEL": "local", "FALLBACK_MODELS": "sonnet, gpt-4o, local"})
    assert [entry.model for entry in settings.model_chain()] == [
        "ollama/qwen3",
        "bedrock/anthropic.claude-sonnet-4",
        "gpt-4o",
        "builtin/triage",
    ]


def test_the_end_of_the_chain_can_be_switched_off(tmp_path: Path) -> None:
    settings = load(tmp_path, variables={"MODEL": "local", "HOLMES_BUILTIN_FALLBACK": "false"})
    assert [entry.name for entry in settings.model_chain()] == ["local"]


@pytest.mark.parametrize(
    ("variables", "model"),
    [
        ({}, "builtin/triage"),
        ({"OPENAI_API_KEY": "k"}, "gpt-4.1"),
        ({"MODEL": "anthropic/claude", "OPENAI_API_KEY": "k"}, "anthropic/claude"),
    ],
)
def test_without_a_choice_the_model_is_one_that_can_answer(
    tmp_path: Path, variables: dict[str, str], model: str
) -> None:
    assert load_settings({"HOME": str(tmp_path), **variables}).model.model == model


def test_an_address_without_a_model_means_a_model_behind_it(tmp_path: Path) -> None:
    settings = load_settings({"HOME": str(tmp_path)}, None, {"api_base": "http://127.0.0.1:1/v1"})
    assert settings.model.model == "gpt-4.1"


def test_a_key_on_the_command_line_is_for_the_chosen_model_only(tmp_path: Path) -> None:
    chain = load(tmp_path, variables={"FALLBACK_MODELS": "local,gpt-4o"}, api_key="k2").model_chain()
    assert [reveal(entry.api_key) for entry in chain] == ["k2", None, None, None]


def test_the_general_key_does_not_go_to_another_provider(tmp_path: Path) -> None:
    chain = load(
        tmp_path, variables={"MODEL": "gpt-4.1", "FALLBACK_MODELS": "gpt-4o,anthropic/claude"}, api_key="openai"
    ).model_chain()
    assert [reveal(entry.api_key) for entry in chain] == ["openai", "openai", None, None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:\n  api_key: x\n", "model_list.yaml:1: 'a.model': is missing"),
        ("a:\n  model: x\n  temperature: warm\n", "model_list.yaml:3: 'a.temperature': must be a number"),
        ("a: x\n", "model_list.yaml:1: 'a': expected a mapping with at least the key 'model'"),
        ("a:\n  model: x\n  custom_args: {max_context_size: big}\n", ":3: 'a.custom_args.max_context_size': must"),
        (
            "a:\n  model: x\n  custom_args: 32768\n",
            "model_list.yaml:3: 'a.custom_args' must be a mapping with 'max_con",
        ),
        (
            "a:\n  model: x\n  custom_args:\n    max_context_size: 9\n    max_tokens: 5\n",
            "model_list.yaml:5: unknown key 'a.custom_args.max_tokens'; valid key: 'max_context_size'",
        ),
        ("a:\n  model: x\n  name: b\n", "model_list.yaml:3: 'a.name' is not a key of a model: the parent key is"),
        (
            "a:\n  model: x\n  context_window_tokens: 9\n",
            ":3: 'a.context_window_tokens' is not a key of a model: set the context wind",
        ),
        (
            "a:\n  model: x\n  extra: {a: 1}\n",
            "model_list.yaml:3: 'a.extra' is not a key of a model: put argum",
        ),
        ("a:\n  model: x\n  input_cost_per_token: -1\n", ":3: 'a.input_cost_per_token': must be greater than or equal"),
    ],
)
def test_a_mistake_names_file_line_and_key(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert expected in str(caught.value)


def test_a_variable_that_is_not_set_is_a_mistake_only_of_a_model_that_is_chosen(tmp_path: Path) -> None:
    text = "mine:\n  model: a\nother:\n  model: b\n  api_key: '{{ env.MISSING }}'\n"
    assert load(tmp_path, text, model="mine").model_chain()[0].name == "mine"
    expected = r"model_list.yaml:5: 'other.api_key' refers to the unset variable 'MISSING'"
    with pytest.raises(ConfigError, match=expected):
        load(tmp_path, text, model="other")
    with pytest.raises(ConfigError, match=expected):
        load(tmp_path, text, model="mine", fallback_models=("other",))
    with pytest.raises(ConfigError, match=expected):
        load(tmp_path, text + "third:\n  model: c\n  context: {summary_model: other}\n", model="third")


@pytest.mark.parametrize(
    "unusable",
    [
        "api_key: '{{ env.MISSING }}'",
        "temperature: '{{ env.MISSING }}'",
        "custom_args: {max_context_size: '{{ env.MISSING }}'}",
        "context: {summary_model: {model: c, api_key: '{{ env.MISSING }}'}}",
    ],
)
def test_a_variable_that_is_not_set_costs_only_its_model_and_a_warning_says_so(tmp_path: Path, unusable: str) -> None:
    settings = load(tmp_path, f"other:\n  model: b\n  {unusable}\nmine:\n  model: a\n")
    assert settings.model_names() == ("mine",)
    assert settings.model_chain()[0].name == "mine"
    (warning,) = settings.warnings()
    assert warning.startswith(f"model 'other' is skipped: {tmp_path}/.holmes/model_list.yaml:3: ")
    assert "unset variable 'MISSING'" in warning


def test_a_list_without_one_usable_model_leaves_the_rules(tmp_path: Path) -> None:
    settings = load(tmp_path, "other:\n  model: b\n  api_key: '{{ env.MISSING }}'\n")
    assert settings.model.model == "builtin/triage"
    assert len(settings.warnings()) == 1
