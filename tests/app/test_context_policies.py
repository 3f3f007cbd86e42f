"""Every name that users know from the documents reaches the policy, and the strongest source wins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from holmes.app.context_policies import context_policy
from holmes.core.hooks import (
    AUTO_COMPACT_ID,
    Always,
    CallTool,
    CompactContext,
    ContextPressure,
    Hook,
    InjectMessage,
    Log,
    MessageCount,
    ToolCalls,
    TurnCount,
)
from holmes.core.policies import POLICY_NAMES, named_policy
from holmes.settings.context import ContextSettings
from holmes.settings.load import load_settings
from holmes.settings.setting import setting_of
from holmes.settings.table import settings_tables
from tests.app.context_names import NAMES, Name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from holmes.core.policy import ContextPolicy
    from holmes.settings.settings import Settings


def settings_of(
    home: Path,
    config: object = None,
    *,
    model: object = None,
    variables: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """Settings of a fresh home with this config file, and a model list with one entry that holds `model`."""
    folder = home / ".holmes"
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config or {}), encoding="utf-8")
    entry = {"model": "ollama/qwen3", **(model if isinstance(model, dict) else {})}
    (folder / "model_list.yaml").write_text(yaml.safe_dump({"mine": entry}), encoding="utf-8")
    return load_settings({"HOME": str(home), **(variables or {})}, None, overrides or {})


def policy_of(settings: Settings) -> ContextPolicy:
    return context_policy(settings, settings.model_chain()[0])


def nested(path: str, value: object) -> dict[str, object]:
    """`{"a": {"b": value}}` for `a.b`."""
    for part in reversed(path.split(".")):
        value = {part: list(value) if isinstance(value, tuple) else value}
    assert isinstance(value, dict)
    return value


def paths_of(name: Name) -> tuple[str, ...]:
    return (f"context.{name.key}", f"execution.context.{name.key}", *name.aliases)


def shown(value: object) -> str:
    """A value of the policy as the table shows it."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(value)
        case float():
            return f"{value:g}"
        case _:
            return str(value)


@pytest.mark.row("C9")
@pytest.mark.parametrize(
    ("path", "name"), [(path, name) for name in NAMES for path in paths_of(name)], ids=lambda item: str(item)[:60]
)
def test_every_documented_key_of_the_file_reaches_the_policy(tmp_path: Path, path: str, name: Name) -> None:
    assert name.read(policy_of(settings_of(tmp_path))) != name.value, "the value proves nothing"
    assert name.read(policy_of(settings_of(tmp_path, nested(path, name.value)))) == name.value


@pytest.mark.row("C9")
@pytest.mark.parametrize("name", [name for name in NAMES if name.variable], ids=lambda name: name.variable)
def test_every_documented_variable_reaches_the_policy(tmp_path: Path, name: Name) -> None:
    settings = settings_of(tmp_path, variables={name.variable: str(name.value).lower()})
    assert name.read(policy_of(settings)) == name.value


@pytest.mark.row("C9")
@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.key)
def test_every_key_can_be_set_for_one_model(tmp_path: Path, name: Name) -> None:
    value = list(name.value) if isinstance(name.value, tuple) else name.value
    settings = settings_of(tmp_path, model={"context": {name.key: value}}, overrides={"fallback_models": ("other",)})
    mine, other, _ = settings.model_chain()
    assert name.read(context_policy(settings, mine)) == name.value
    assert context_policy(settings, other) == named_policy("balanced")


def test_the_list_of_names_is_complete() -> None:
    assert {name.key for name in NAMES} == {*ContextSettings.model_fields} - {"summary_model", "hooks"}
    for name in NAMES:
        setting = setting_of(ContextSettings, name.key)
        assert (setting.env or "", setting.aliases) == (name.variable, name.aliases)


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.key)
def test_the_table_shows_the_default_of_balanced(name: Name) -> None:
    row = next(row for row in settings_tables().splitlines() if row.startswith(f"| `context.{name.key}` |"))
    default = row.split("|")[4].strip()
    assert default.strip("`") == shown(name.read(named_policy("balanced")))


@pytest.mark.row("C9")
@pytest.mark.parametrize("name", POLICY_NAMES)
def test_a_named_policy_alone_is_untouched(tmp_path: Path, name: str) -> None:
    assert policy_of(settings_of(tmp_path, {"context_policy": name})) == named_policy(name)


def test_without_a_word_the_policy_is_balanced(tmp_path: Path) -> None:
    assert policy_of(settings_of(tmp_path)) == named_policy("balanced")


@pytest.mark.row("C9")
def test_a_model_beats_the_option_which_beats_the_variable_which_beats_the_file(tmp_path: Path) -> None:
    key, name = "context.summarization_trigger_tokens", "SUMMARIZATION_TRIGGER_TOKENS"
    config = nested(key, 1)
    assert policy_of(settings_of(tmp_path, config)).trigger.tokens == 1
    assert policy_of(settings_of(tmp_path, config, variables={name: "2"})).trigger.tokens == 2
    settings = settings_of(tmp_path, config, variables={name: "2"}, overrides={key: 3})
    assert policy_of(settings).trigger.tokens == 3
    model = {"context": {"summarization_trigger_tokens": 4}}
    settings = settings_of(tmp_path, config, model=model, variables={name: "2"}, overrides={key: 3})
    assert policy_of(settings).trigger.tokens == 4


@pytest.mark.row("C9")
def test_a_models_own_policy_is_below_the_general_keys_and_above_the_general_policy(tmp_path: Path) -> None:
    config = {"context_policy": "digitorn", "context": {"keep_recent": 7}}
    policy = policy_of(settings_of(tmp_path, config, model={"context": {"policy": "octo"}}))
    assert (policy.name, policy.keep.messages, policy.trigger.messages) == ("octo", 7, 100)


@pytest.mark.row("C2")
@pytest.mark.parametrize(
    "key",
    [
        "tool_result_available_share", "tool_result_limit", "round_cap_factor", "summarization_trigger_tokens",
        "summarization_trigger_fraction", "summarization_trigger_messages", "compression_trigger", "reserved",
        "context_window_compaction_threshold_pct", "auto_ratio", "keep_recent", "keep_fraction",
        "group_token_threshold",
    ],
)  # fmt: skip
def test_zero_switches_a_limit_off_whatever_the_policy_says(tmp_path: Path, key: str) -> None:
    name = next(name for name in NAMES if name.key == key)
    for policy in POLICY_NAMES:
        settings = settings_of(tmp_path, {"context_policy": policy, "context": {key: 0}})
        assert name.read(policy_of(settings)) is None


@pytest.mark.row("K10")
def test_flowllms_two_shared_numbers_hold_for_masking_and_for_summaries(tmp_path: Path) -> None:
    policy = policy_of(settings_of(tmp_path, {"context": {"max_total_tokens": 9_000, "keep_recent_count": 3}}))
    assert (policy.masking.max_total_tokens, policy.summary.compress_above_tokens) == (9_000, 9_000)
    assert (policy.masking.keep_recent_messages, policy.keep.messages) == (3, 3)


@pytest.mark.row("K2")
def test_a_tail_that_the_user_sets_may_take_half_of_the_window(tmp_path: Path) -> None:
    policy = policy_of(settings_of(tmp_path, variables={"SUMMARIZATION_KEEP_TOKENS": "60000"}))
    assert (policy.keep.tail_tokens, policy.keep.tail_share) == (60_000, 0.5)


@pytest.mark.row("K2", "P10")
def test_who_counts_messages_does_not_get_a_share_of_the_conversation_unless_asked_for(tmp_path: Path) -> None:
    config: dict[str, dict[str, object]] = {"context": {"keep_recent": 6}}
    assert policy_of(settings_of(tmp_path, config)).keep.fraction is None
    config["context"]["keep_fraction"] = 0.3
    assert policy_of(settings_of(tmp_path, config)).keep.fraction == 0.3


@pytest.mark.row("S1")
def test_no_cooldown_means_none_in_tokens_either(tmp_path: Path) -> None:
    safety = policy_of(settings_of(tmp_path, {"context": {"compaction_cooldown_rounds": 0}})).safety
    assert (safety.cooldown_rounds, safety.cooldown_share) == (0, 0.0)


@pytest.mark.row("C8")
def test_auto_compact_is_a_hook_that_follows_the_policys_own_triggers(tmp_path: Path) -> None:
    expected = Hook(
        id=AUTO_COMPACT_ID,
        on="turn_start",
        condition=ContextPressure(threshold=None),
        action=CompactContext(),
        cooldown=30.0,
    )
    assert policy_of(settings_of(tmp_path, {"context": {"auto_compact": True}})).hooks == (expected,)


@pytest.mark.row("C8")
@pytest.mark.parametrize(("trigger", "threshold"), [(None, 0.75), (0.6, 0.6), (0, None)])
def test_the_hook_of_digitorn_follows_compression_trigger(
    tmp_path: Path, trigger: float | None, threshold: float | None
) -> None:
    config = {"context_policy": "digitorn", "context": {"compression_trigger": trigger}}
    (hook,) = policy_of(settings_of(tmp_path, config)).hooks
    assert hook.condition == ContextPressure(threshold=threshold)


@pytest.mark.row("C8", "C4")
@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_auto_compact_false_leaves_only_the_recovery_from_an_overflow(tmp_path: Path, policy: str) -> None:
    config = {"context_policy": policy, "context": {"auto_compact": False}}
    assert (
        policy_of(settings_of(tmp_path, config)).hooks,
        policy_of(settings_of(tmp_path, config)).trigger.enabled,
    ) == (
        (),
        False,
    )
    config["enable_conversation_history_compaction"] = "true"
    assert policy_of(settings_of(tmp_path, config)).trigger.enabled is True


DECLARED = [
    {
        "id": "pressure_log",
        "on": "turn_start",
        "condition": {"type": "always"},
        "action": {"type": "log", "message": "Turn {turn}: ~{tokens} tokens"},
        "cooldown": 0,
    },
    {
        "id": "reminder",
        "condition": {"type": "turn_count", "count": 5},
        "action": {"type": "inject_message", "role": "user", "message": "5 turns"},
        "cooldown": 1.5,
    },
    {
        "id": "look",
        "condition": {"type": "tool_calls", "threshold": 9},
        "action": {"type": "module_action", "module": "m", "action": "kubectl_get", "params": {"kind": "pods"}},
    },
]
COMPACTS = {
    "id": "aggressive_compact",
    "condition": {"type": "message_count", "threshold": 30},
    "action": {"type": "compact_context", "strategy": "truncate", "keep_recent": 4, "summary_max_tokens": 99},
    "cooldown": 60,
}


@pytest.mark.row("C8")
@pytest.mark.parametrize("path", ["hooks", "execution.hooks", "context.hooks"])
def test_declared_hooks_reach_the_policy(tmp_path: Path, path: str) -> None:
    assert policy_of(settings_of(tmp_path, nested(path, [*DECLARED, COMPACTS]))).hooks == (
        Hook(
            id="pressure_log",
            on="turn_start",
            condition=Always(),
            action=Log(message="Turn {turn}: ~{tokens} tokens"),
        ),
        Hook(
            id="reminder",
            on="turn_end",
            condition=TurnCount(count=5),
            action=InjectMessage(message="5 turns", role="user"),
            cooldown=1.5,
        ),
        Hook(
            id="look",
            on="turn_end",
            condition=ToolCalls(threshold=9),
            action=CallTool(action="kubectl_get", module="m", params={"kind": "pods"}),
            cooldown=0.0,
        ),
        Hook(
            id="aggressive_compact",
            on="turn_end",
            condition=MessageCount(threshold=30),
            action=CompactContext(strategy="truncate", keep_recent=4, summary_max_tokens=99),
            cooldown=60.0,
        ),
    )


@pytest.mark.row("C8")
def test_the_automatic_hook_comes_along_unless_a_declared_one_compacts(tmp_path: Path) -> None:
    config: dict[str, object] = {"context_policy": "digitorn", "hooks": DECLARED}
    hooks = policy_of(settings_of(tmp_path, config)).hooks
    assert [hook.id for hook in hooks] == [AUTO_COMPACT_ID, "pressure_log", "reminder", "look"]
    config["hooks"] = [*DECLARED, COMPACTS]
    hooks = policy_of(settings_of(tmp_path, config)).hooks
    assert [hook.id for hook in hooks] == ["pressure_log", "reminder", "look", "aggressive_compact"]


@pytest.mark.row("C8", "C9")
def test_a_model_may_have_hooks_of_its_own(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, {"hooks": DECLARED}, model={"context": {"hooks": [COMPACTS]}})
    assert [hook.id for hook in policy_of(settings).hooks] == ["aggressive_compact"]


def test_a_hook_is_a_plain_pressure_without_a_threshold(tmp_path: Path) -> None:
    hook = {"id": "x", "condition": {"type": "context_pressure"}, "action": {"type": "log", "message": "m"}}
    (declared,) = policy_of(settings_of(tmp_path, {"hooks": [hook]})).hooks
    assert declared.condition == ContextPressure(threshold=None)
