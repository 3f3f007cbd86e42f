"""The settings of `context`: the forms that other systems document, one mistake one line, and the summary's model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holmes.settings.load import load_settings
from holmes.settings.settings import Settings, reveal
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def load(
    home: Path,
    text: str = "",
    *,
    models: str = "mine: {model: ollama/qwen3}\n",
    variables: dict[str, str] | None = None,
) -> Settings:
    folder = home / ".holmes"
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    (folder / "model_list.yaml").write_text(models, encoding="utf-8")
    return load_settings({"HOME": str(home), **(variables or {})})


def complaint(home: Path, text: str = "", **parts: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(home, text, **parts)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(f"{home}/.holmes/", "")


DIGITORN = """\
execution:
  context:
    max_tokens: 0
    output_reserved: 4096
    strategy: summarize
    keep_recent: 10
    compression_trigger: 0.75
    summary_max_tokens: 1024
    auto_compact: true
    summary_brain:
      provider: deepseek
      model: deepseek-chat
      backend: openai_compat
      config:
        api_key: "{{env.DEEPSEEK_API_KEY}}"
  hooks:
    - id: aggressive_compact
      on: turn_end
      condition: {type: context_pressure, threshold: 0.60}
      action: {type: compact_context, strategy: truncate, keep_recent: 4}
      cooldown: 60
    - id: pressure_log
      on: turn_start
      condition: {type: always}
      action: {type: log, message: "Turn {turn}: ~{tokens} tokens, {messages} messages"}
      cooldown: 0
"""


@pytest.mark.row("C9", "C3", "K12")
def test_the_example_of_digitorn_works_as_it_stands(tmp_path: Path) -> None:
    settings = load(tmp_path, DIGITORN, variables={"DEEPSEEK_API_KEY": "k"})
    context = settings.context
    assert settings.model.context_window_tokens == 0
    assert (context.output_reserved, context.strategy, context.keep_recent) == (4_096, "summarize", 10)
    assert (context.compression_trigger, context.summary_max_tokens, context.auto_compact) == (0.75, 1_024, True)
    hooks = [(hook.id, hook.on, hook.cooldown) for hook in context.hooks or ()]
    assert hooks == [("aggressive_compact", "turn_end", 60.0), ("pressure_log", "turn_start", 0.0)]
    summary = settings.summary_model(settings.model_chain()[0])
    assert summary is not None
    assert (summary.name, summary.model) == ("deepseek/deepseek-chat", "deepseek/deepseek-chat")
    assert reveal(summary.api_key) == "k"
    assert summary.extra == {}


@pytest.mark.row("C9")
def test_the_example_of_altimate_works_as_it_stands(tmp_path: Path) -> None:
    context = load(
        tmp_path, '{\n  "compaction": {\n    "auto": true,\n    "prune": false,\n    "reserved": 20000}\n}'
    ).context
    assert (context.enable_conversation_history_compaction, context.prune, context.reserved) == (True, False, 20_000)


@pytest.mark.row("C9")
def test_the_parameters_of_flowllm_work_as_they_stand(tmp_path: Path) -> None:
    text = (
        "context:\n  context_manage_mode: auto\n  max_total_tokens: 20000\n  max_tool_message_tokens: 2000\n"
        "  group_token_threshold: 0\n  keep_recent_count: 2\n  store_dir: ~/offload\n  chat_id: c\n"
    )
    settings = load(tmp_path, text)
    context = settings.context
    assert (context.context_manage_mode, context.max_total_tokens, context.keep_recent_count) == ("auto", 20_000, 2)
    assert (context.max_tool_message_tokens, context.group_token_threshold, context.chat_id) == (2_000, 0, "c")
    assert settings.storage.results_path == tmp_path / "offload"


@pytest.mark.row("C3", "C6")
@pytest.mark.parametrize(
    ("text", "entry", "window"),
    [
        ("", "", None),
        ("override_max_content_size: 0", "", 0),
        ("context: {max_tokens: 9000}", "", 9_000),
        ("context: {max_tokens: 9000}", "context: {max_tokens: 8000}", 8_000),
        ("context: {max_tokens: 9000}", "context: {max_tokens: 0}", 0),
        ("override_max_content_size: 9000", "custom_args: {max_context_size: 0}", 0),
        ("override_max_content_size: 9000", "custom_args: {max_context_size: 7000}", 7_000),
    ],
)
def test_a_window_of_0_asks_the_provider_and_an_unset_one_does_not(
    tmp_path: Path, text: str, entry: str, window: int | None
) -> None:
    settings = load(tmp_path, text, models=f"mine:\n  model: ollama/qwen3\n  {entry}\n")
    assert settings.window_tokens(settings.model_chain()[0]) == window


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "model: x\ncontext:\n  keep_recnt: 3\n",
            "config.yaml:3: unknown key 'context.keep_recnt'; did you mean 'keep_recent'?",
        ),
        (
            "compaction:\n  prune: true\n  reserve: 3\n",
            "config.yaml:3: unknown key 'compaction.reserve'; did you mean 'reserved'?",
        ),
        (
            "execution:\n  max_turns: 5\n",
            "config.yaml:2: unknown key 'execution.max_turns'; valid keys: context, hooks",
        ),
        (
            "execution:\n  context:\n    stratgy: truncate\n",
            "config.yaml:3: unknown key 'execution.context.stratgy'; did you mean 'strategy'?",
        ),
        ("keep_recent: 3\n", "config.yaml:1: unknown key 'keep_recent'; did you mean 'context.keep_recent'?"),
        ("execution:\n  model: x\n", "config.yaml:2: unknown key 'execution.model'; valid keys: context, hooks"),
        ("context: 5\n", "config.yaml:1: 'context' must be an object (keys and values)"),
        (
            "context:\n  strategy: trim\n",
            "config.yaml:2: 'context.strategy'='trim': must be 'summarize' or 'truncate'",
        ),
        (
            "context:\n  keep_recent: -1\n",
            "config.yaml:2: 'context.keep_recent'=-1: must be greater than or equal to 0",
        ),
        ("compaction:\n  reserved: many\n", "config.yaml:2: 'compaction.reserved'='many': must be a whole number"),
        (
            "context:\n  compression_trigger: 75\n",
            ":2: 'context.compression_trigger'=75: must be less than or equal to 1",
        ),
        ("context_policy: octopus\n", "config.yaml:1: 'context_policy'='octopus': must be 'altimate', 'balanced', "),
        ("context:\n  prune: perhaps\n", "config.yaml:2: 'context.prune'='perhaps': must be true or false"),
        (
            "tool_result_limit: 5\ncontext:\n  tool_result_limit: 6\n",
            "config.yaml:3: 'context.tool_result_limit' is an alias of 'tool_result_limit': remove one of them",
        ),
        (
            "tool_result_storage_path: /a\ncontext: {store_dir: /b}\n",
            "config.yaml:2: 'context.store_dir' is an alias of 'tool_result_storage_path': remove one of them",
        ),
        ("context:\n  summary_model: ''\n", "config.yaml:2: 'context.summary_model': must not be empty"),
        ("context:\n  summary_model:\n    api_key: k\n", "config.yaml:2: 'context.summary_model.model': is missing"),
        (
            "context:\n  summary_model:\n    model: m\n    temperature: hot\n",
            "config.yaml:4: 'context.summary_model.temperature': must be a number",
        ),
        (
            "context:\n  summary_brain:\n    model: m\n    extra: {a: 1}\n",
            "config.yaml:4: 'context.summary_brain.extra' is not a key of a model: put arguments for litellm next to",
        ),
    ],
)
def test_a_mistake_below_context_is_one_line_with_place_and_nearest_key(
    tmp_path: Path, text: str, expected: str
) -> None:
    assert expected in complaint(tmp_path, text)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("keep_recnt: 3", "model_list.yaml:4: unknown key 'mine.context.keep_recnt'; did you mean 'keep_recent'?"),
        ("strategy: trim", "model_list.yaml:4: 'mine.context.strategy': must be 'summarize' or 'truncate'"),
        ("max_tokens: -1", "model_list.yaml:4: 'mine.context.max_tokens': must be greater than or equal to 0"),
        ("store_dir: /x", "model_list.yaml:4: 'mine.context.store_dir' cannot be set for one model: set tool_result_"),
        (
            "summary_brain: {provider: ollama, model: q, temperature: hot}",
            "model_list.yaml:4: 'mine.context.summary_brain.temperature': must be a number",
        ),
        (
            "{summary_brain: a, summary_model: b}",
            "model_list.yaml:4: 'summary_brain' is an alias of 'summary_model': remove one of them",
        ),
        ("hooks: [{id: h}]", "model_list.yaml:4: hook 'h': 'condition': is missing"),
        ("5", "model_list.yaml:4: 'mine.context' must be an object (keys and values)"),
    ],
)
def test_a_mistake_below_a_models_context_is_one_line_with_its_place(tmp_path: Path, entry: str, expected: str) -> None:
    message = complaint(tmp_path, models=f"mine:\n  model: m\n  context:\n    {entry}\n")
    assert expected in message.replace(
        "model_list.yaml:3: 'mine.context' must", "model_list.yaml:4: 'mine.context' must"
    )


def test_a_window_that_is_given_twice_for_one_model_is_a_mistake(tmp_path: Path) -> None:
    models = "mine:\n  model: m\n  custom_args: {max_context_size: 5}\n  context:\n    max_tokens: 6\n"
    expected = "model_list.yaml:5: 'max_tokens' is an alias of 'custom_args.max_context_size': remove one of them"
    assert complaint(tmp_path, models=models) == expected


@pytest.mark.parametrize(
    ("hooks", "expected"),
    [
        ("- condition: {type: always}\n  action: {type: log, message: m}", "1: hook number 1: 'id': is missing"),
        ("- id: a\n  condition: {type: sometimes}", "2: hook 'a': 'condition': the type must be one of 'context_press"),
        ("- id: a\n  condition: {threshold: 3}", "2: hook 'a': 'condition': the key 'type' is missing"),
        ("- id: a\n  condition: always", "2: hook 'a': 'condition'='always': must be an object (keys and values)"),
        (
            "- id: a\n  condition:\n    type: turn_count\n    count: x",
            "4: hook 'a': 'condition.count'='x': must be a whole",
        ),
        ("- id: a\n  condition:\n    type: tool_calls", "2: hook 'a': 'condition.threshold': is missing"),
        (
            "- id: a\n  condition:\n    type: message_count\n    treshold: 3\n    threshold: 3",
            "4: hook 'a': 'condition.treshold'=3: unknown key; did you mean 'threshold'?",
        ),
        (
            "- id: a\n  condition: {type: always}\n  action: {type: log, message: m}\n  on: never",
            "4: hook 'a': 'on': must be 'turn_start' or 'turn_end'",
        ),
        (
            "- id: a\n  condition: {type: always}\n  action: {type: shout}",
            "3: hook 'a': 'action': the type must be one of",
        ),
        (
            "- id: a\n  condition: {type: always}\n  action: {type: log, message: m}\n  cooldwn: 3",
            "4: hook 'a': 'cooldwn'=3: unknown key; did you mean 'cooldown'?",
        ),
        ("- 5", "1: hook number 1=5: must be an object (keys and values)"),
    ],
)
@pytest.mark.row("C8")
def test_a_mistake_in_a_hook_names_the_hook_and_the_key(tmp_path: Path, hooks: str, expected: str) -> None:
    message = complaint(
        tmp_path, f"{hooks}\n".replace("- ", "  - ", 1).replace("\n  ", "\n    ").join(("hooks:\n", ""))
    )
    line, _, rest = expected.partition(":")
    assert f"config.yaml:{int(line) + 1}:{rest}" in message


@pytest.mark.row("C8")
def test_two_hooks_with_one_id_and_a_false_automatic_one_are_mistakes(tmp_path: Path) -> None:
    hook = "{id: %s, condition: {type: always}, action: {type: log, message: m}}"
    twice = complaint(tmp_path, f"hooks: [{hook % 'a'}, {hook % 'a'}]")
    assert twice.startswith("config.yaml:1: 'hooks'=")
    assert twice.endswith(": duplicate id 'a'")
    assert complaint(tmp_path, f"hooks: [{hook % '_auto_compact'}]").endswith("a hook with the action compact_context")


MODELS = """\
mine:
  model: anthropic/claude-sonnet-4-5
  context: {summary_model: cheap}
cheap:
  model: openai/qwen3
  api_key: "{{ env.CHEAP_KEY }}"
  api_base: http://127.0.0.1:8000/v1
  custom_args: {max_context_size: 32768}
own:
  model: anthropic/claude-opus-4-1
  context:
    summary_model: {model: ollama/q, api_base: "http://h:1", custom_args: {max_context_size: 0}, num_ctx: 9}
"""


@pytest.mark.row("K12", "C9")
def test_a_summary_model_has_its_own_key_address_and_window(tmp_path: Path) -> None:
    variables = {"CHEAP_KEY": "k", "FALLBACK_MODELS": "own,gpt-4o"}
    settings = load(tmp_path, "context: {summary_model: gpt-4.1-mini}", models=MODELS, variables=variables)
    first, second, third, last = (settings.summary_model(entry) for entry in settings.model_chain())
    assert last is None  # without an LLM it summarises itself
    assert first is not None
    assert (first.name, first.model, reveal(first.api_key)) == ("cheap", "openai/qwen3", "k")
    assert (first.api_base, settings.window_tokens(first)) == ("http://127.0.0.1:8000/v1", 32_768)
    assert second is not None
    assert (second.name, second.api_base, second.api_key, second.extra) == (
        "ollama/q",
        "http://h:1",
        None,
        {"num_ctx": 9},
    )
    assert settings.window_tokens(second) == 0
    assert third is not None
    assert third.name == "gpt-4.1-mini"


@pytest.mark.row("K12")
@pytest.mark.parametrize("writer", ["small", "{model: ollama/q}"])
def test_the_window_that_the_user_gives_the_model_is_not_the_one_of_the_summary_model(
    tmp_path: Path, writer: str
) -> None:
    settings = load(tmp_path, f"override_max_content_size: 200000\ncontext: {{summary_model: {writer}}}\n")
    summary = settings.summary_model(settings.model_chain()[0])
    assert summary is not None
    assert settings.window_tokens(summary) == 0


def test_without_a_summary_model_the_one_that_answers_writes_the_summary(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.summary_model(settings.model_chain()[0]) is None


def test_a_summary_model_that_needs_a_variable_that_is_not_set_is_a_mistake_when_it_is_chosen(tmp_path: Path) -> None:
    expected = "model_list.yaml:6: 'cheap.api_key' refers to the unset variable 'CHEAP_KEY'"
    assert complaint(tmp_path, models=MODELS).startswith(expected)
    assert load(tmp_path, "model: own", models=MODELS).model.model == "own"


def test_the_key_of_a_summary_model_is_never_shown(tmp_path: Path) -> None:
    text = "context:\n  summary_model: {model: m, api_key: sk-very-secret}\n"
    assert "sk-very-secret" not in repr(load(tmp_path, text))
    message = complaint(tmp_path, "context:\n  summary_model: {model: m, api_key: [sk-very-secret]}\n")
    assert "api_key" in message
    assert "sk-very-secret" not in message
