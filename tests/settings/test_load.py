"""Where values come from, and what a user is told about a wrong one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from holmes.settings.config_keys import config_keys
from holmes.settings.load import load_settings
from holmes.settings.settings import GROUPS, Settings, reveal
from holmes.settings.table import meanings
from holmes.values.errors import ConfigError


def load(
    tmp_path: Path, text: str | None = None, variables: dict[str, str] | None = None, **overrides: object
) -> Settings:
    """Settings of a fresh home with `text` as its config file."""
    if text is not None:
        folder = tmp_path / ".holmes"
        folder.mkdir(exist_ok=True)
        (folder / "config.yaml").write_text(text, encoding="utf-8")
    return load_settings({"HOME": str(tmp_path), **(variables or {})}, None, overrides)


def complaint(
    tmp_path: Path, text: str | None = None, variables: dict[str, str] | None = None, **overrides: object
) -> str:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, variables, **overrides)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(str(tmp_path), "~")


def test_without_any_file_or_variable_the_documented_defaults_hold(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.tools.redaction is True
    assert settings.storage.results_retention_days == 30
    assert settings.storage.results_quota_megabytes == 2_000
    assert settings.model.request_timeout_seconds == 600
    assert settings.tools.memory_limit_megabytes == 800
    assert settings.tools.prerequisite_timeout_seconds == 20
    assert settings.investigation.max_steps == 100
    assert settings.storage.results_path == tmp_path / ".holmes/results"
    assert settings.config_file is None


def test_command_line_beats_environment_beats_file(tmp_path: Path) -> None:
    text, variables = "model: from-file\nmax_steps: 7\ncluster_name: file", {"MODEL": "from-env", "CLUSTER_NAME": "env"}
    settings = load(tmp_path, text, variables, model="from-option")
    assert settings.model.model == "from-option"
    assert settings.investigation.cluster_name == "env"
    assert settings.investigation.max_steps == 7


def test_an_option_that_was_not_given_and_an_empty_variable_do_not_hide_the_file(tmp_path: Path) -> None:
    settings = load(tmp_path, "model: from-file", {"MODEL": " "}, model=None, custom_toolsets=())
    assert settings.model.model == "from-file"


def test_toolset_files_of_the_command_line_are_added_to_those_of_the_file(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).touch()
    settings = load(tmp_path, "custom_toolsets: ['~/a.yaml']", custom_toolsets=(str(tmp_path / "b.yaml"),))
    assert settings.tools.custom_toolsets == (tmp_path / "a.yaml", tmp_path / "b.yaml")


def test_one_toolset_file_may_be_written_without_a_list(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").touch()
    assert load(tmp_path, "custom_toolsets: ~/a.yaml").tools.custom_toolsets == (tmp_path / "a.yaml",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model: x\nmax_step: 3\n", "~/.holmes/config.yaml:2: unknown key 'max_step'; did you mean 'max_steps'?"),
        ("max_steps: many\n", "~/.holmes/config.yaml:1: 'max_steps'='many': must be a whole number"),
        ("model: x\nmax_steps: 0\n", "~/.holmes/config.yaml:2: 'max_steps'=0: must be greater than or equal to 1"),
        ("model: [x\n", "~/.holmes/config.yaml:2: the file is not valid YAML"),
        ("a: b: c\n", "~/.holmes/config.yaml:1: the file is not valid YAML: mapping values are not allowed"),
        ("- model\n", "~/.holmes/config.yaml: the top level must be an object (keys and values), not a list"),
        ("model: x\nmodel: y\n", "~/.holmes/config.yaml:2: duplicate key 'model'; first defined in line 1"),
        ("toolsets: [a]\n", "~/.holmes/config.yaml:1: 'toolsets'=['a']: must be an object (keys and values)"),
        (
            "max_steps: 5\nextra_headers:\n  X-Team: '{{ env.MISSING }}'\n",
            "~/.holmes/config.yaml:3: 'extra_headers.X-Team' refers to the unset variable 'MISSING'",
        ),
        ("extra_headers: {X: [1]}\n", "~/.holmes/config.yaml:1: 'extra_headers.X': must be a string"),
        ("cache_path: 5\n", "~/.holmes/config.yaml:1: 'cache_path'=5: must be a path"),
        (
            "alertmanager_url: am\n",
            "~/.holmes/config.yaml:1: 'alertmanager_url'='am': must match the pattern '^https?://'",
        ),
        (
            "alerts:\n  destinations: {a: {type: webhook, url: 'http://x', headers: {}}}\n",
            "~/.holmes/config.yaml:2: 'alerts.destinations.a.headers': unknown key",
        ),
        ("model: \0\n", "~/.holmes/config.yaml: the file is not valid YAML: unacceptable character #x0000"),
        ("custom_toolsets: [~/gone.yaml]\n", "custom toolset file '~/gone.yaml': file not found"),
    ],
)
def test_a_mistake_in_the_file_is_one_line_with_the_place(tmp_path: Path, text: str, expected: str) -> None:
    found = complaint(tmp_path, text)
    assert found.startswith(expected)
    assert "\n" not in found


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"TOOL_MEMORY_LIMIT_MB": "lots"}, "TOOL_MEMORY_LIMIT_MB='lots': must be a whole number"),
        ({"LLM_REQUEST_TIMEOUT": "-1"}, "LLM_REQUEST_TIMEOUT='-1': must be greater than 0"),
        ({"ENABLE_CONVERSATION_HISTORY_COMPACTION": "perhaps"}, "must be true or false"),
        ({"TEMPERATURE": "hot"}, "TEMPERATURE='hot': must be a number"),
        ({"THINKING": "{oops"}, "THINKING='{oops': not valid JSON"),
        ({"THINKING": "[]"}, "THINKING='[]': must be an object"),
        ({"MODEL_LIST_FILE_LOCATION": "/nowhere/models.yaml"}, "/nowhere/models.yaml: file not found"),
    ],
)
def test_a_bad_variable_is_named_with_its_value_and_what_is_valid(
    tmp_path: Path, variables: dict[str, str], expected: str
) -> None:
    assert expected in complaint(tmp_path, None, variables)


def test_a_bad_option_is_named_as_the_user_typed_it(tmp_path: Path) -> None:
    assert complaint(tmp_path, max_steps=0) == "--max-steps=0: must be greater than or equal to 1"


def test_a_config_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="file not found"):
        load_settings({"HOME": str(tmp_path)}, tmp_path / "mine.yaml")


def test_a_binary_config_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_bytes(b"model: \xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        load_settings({"HOME": str(tmp_path)}, tmp_path / "mine.yaml")


def test_variables_are_put_in_place_but_not_below_toolsets_whose_engine_does_it(tmp_path: Path) -> None:
    text = "model: '{{ env.NAME }}'\ntoolsets:\n  mine:\n    config: {url: '{{ env.HOST }}'}\n"
    settings = load(tmp_path, text, {"NAME": "gpt", "HOST": "a secret"})
    assert settings.model.model == "gpt"
    assert settings.tools.toolsets == {"mine": {"config": {"url": "{{ env.HOST }}"}}}
    assert settings.config_lines["toolsets", "mine", "config"] == 4


def test_what_only_holmesgpt_knows_is_ignored_and_no_error(tmp_path: Path) -> None:
    settings = load(tmp_path, "opsgenie_query: x\nmodel: m\njira_url: y\n", {"CUSTOM_SKILL_PATHS": "/skills"})
    assert settings.ignored_keys == ("opsgenie_query", "jira_url", "CUSTOM_SKILL_PATHS")


def test_keys_and_variables_of_holmesgpt_without_effect_are_one_warning(tmp_path: Path) -> None:
    text = (
        "skill_repos: [a]\nanchors: {x: 1}\nadditional_toolsets: []\ncustom_toolsets_from_cli: []\nslack_channel: ops\n"
    )
    names = (
        "ENABLED_BY_DEFAULT_TOOLSETS MAX_OUTPUT_TOKEN_RESERVATION AZURE_AD_TOKEN_AUTH AZURE_AD_TOKEN "
        "TOOL_CALL_SAFEGUARDS_ENABLED DISABLE_PROMETHEUS_TOOLSET USE_LEGACY_KUBERNETES_LOGS SLACK_TOKEN SLACK_CHANNEL "
        "SENTRY_DSN ROBUSTA_ACCOUNT_ID CUSTOM_SKILL_PATHS"
    )
    variables = dict.fromkeys(names.split(), "x")
    (warning,) = load(tmp_path, text, variables).warnings()
    for name in ("skill_repos", "anchors", "additional_toolsets", "custom_toolsets_from_cli", *variables):
        assert name in warning
    assert load(tmp_path, "", dict.fromkeys(variables, " ")).warnings() == ()


def test_a_variable_that_the_configuration_refers_to_is_not_ignored(tmp_path: Path) -> None:
    text = "slack_token: '{{ env.SLACK_TOKEN }}'\ntoolsets: {mine: {config: {url: '{{ env.SENTRY_DSN }}'}}}\n"
    assert load(tmp_path, text, {"SLACK_TOKEN": "x", "SENTRY_DSN": "http://p"}).warnings() == ()


def test_another_folder_has_the_configuration_and_the_model_list(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "config.yaml").write_text("max_steps: 7\n")
    (folder / "model_list.yaml").write_text("mine: {model: gpt-4o}\n")
    settings = load(tmp_path, None, {"HOLMES_CONFIGPATH_DIR": str(folder)})
    assert (settings.investigation.max_steps, settings.model.model) == (7, "mine")
    assert load(tmp_path, None, {"HOLMES_CONFIGPATH_DIR": "~/elsewhere"}).model_names() == ("mine",)
    expected = "HOLMES_CONFIGPATH_DIR='/nowhere': folder not found"
    assert complaint(tmp_path, None, {"HOLMES_CONFIGPATH_DIR": "/nowhere"}) == expected


def test_a_configuration_that_works_warns_of_nothing(tmp_path: Path) -> None:
    assert load(tmp_path, "model: m").ignored_keys == ()


def test_secrets_are_neither_in_the_representation_nor_in_errors(tmp_path: Path) -> None:
    secret = "sk-very-secret"
    (tmp_path / "models.yaml").write_text(f"a: {{model: x, api_key: {secret}, aws_secret_access_key: {secret}}}")
    variables = {
        "MODEL_LIST_FILE_LOCATION": str(tmp_path / "models.yaml"),
        "EXTRA_HEADERS": f'{{"Authorization": "{secret}"}}',
    }
    settings = load(tmp_path, f"api_key: {secret}\nmodel: b", variables)
    assert secret not in repr(settings)
    assert secret not in repr(settings.model_chain())
    assert reveal(settings.model.api_key) == secret
    assert secret not in complaint(tmp_path, f"api_key: [{secret}]")
    assert secret not in complaint(tmp_path, None, {"EXTRA_HEADERS": f'{{"Authorization": ["{secret}"]}}'})
    assert secret not in complaint(tmp_path, None, {"EXTRA_HEADERS": f"Authorization: {secret}"})


def test_settings_cannot_be_changed(tmp_path: Path) -> None:
    settings = load(tmp_path)
    with pytest.raises(Exception, match="frozen"):
        settings.model.model = "other"


def test_every_setting_has_a_unique_name_and_an_explanation() -> None:
    keys = config_keys()
    assert len(keys) == len(set(keys))
    for group in GROUPS.values():
        assert issubclass(group, BaseModel)
        for name, meaning in meanings(group).items():
            assert meaning, f"{group.__name__}.{name} has no docstring"
            assert re.search(r"[.]$", meaning.strip()), f"{group.__name__}.{name} is not a sentence"
