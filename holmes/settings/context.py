"""Defines the keys under `context:`, which control how the conversation is kept within the model's context window.

`CONTEXT_KEYS` gives each field of the context policy its key and its documentation. The type, the bounds and the
default come from the field in `holmes.core.policy`. If a key is unset, the value of the chosen policy applies. The
config file sets keys for all models, and an entry of the model list sets keys for one model. Names that other systems
document are also accepted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    create_model,
)

from holmes.core.hooks import AUTO_COMPACT_ID, Action, CallTool, CompactContext, Condition, Hook
from holmes.core.policy import ContextPolicy
from holmes.settings.model import ModelAccess
from holmes.settings.setting import CommaSeparated, Setting, SettingsGroup

if TYPE_CHECKING:
    from typing import Self

Name = Annotated[str, Field(min_length=1)]
ModelChoice = Annotated[
    Annotated[Name, Tag("<name>")] | Annotated[ModelAccess, Tag("<mapping>")],
    Discriminator(lambda raw: "<mapping>" if isinstance(raw, (Mapping, ModelAccess)) else "<name>"),
]
PolicyName = Literal["altimate", "balanced", "digitorn", "flowllm", "holmesgpt", "octo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextKey:
    """The policy field that a key sets. If `zero_is_off` is true, the value 0 means None."""

    field: str
    meaning: str
    env: str | None = None
    aliases: tuple[str, ...] = ()
    zero_is_off: bool = False


def _key(field: str, meaning: str, *aliases: str, env: str | None = None, zero_is_off: bool = False) -> ContextKey:
    return ContextKey(field=field, meaning=meaning, env=env, aliases=aliases, zero_is_off=zero_is_off)


CONTEXT_KEYS: Final[Mapping[str, ContextKey]] = {
    "counting": _key(
        "counting", "`exact` counts tokens with a tokenizer. `estimate` estimates them, and counts only near a limit."
    ),
    "tool_max_allocated_context_window_pct": _key(
        "spill.max_pct",
        "Maximum size of a tool result in the conversation, as a percentage of the context window. For a value outside "
        "(0, 100], only the limit in tokens applies.",
        env="TOOL_MAX_ALLOCATED_CONTEXT_WINDOW_PCT",
    ),
    "tool_max_allocated_context_window_tokens": _key(
        "spill.max_tokens",
        "Maximum size of a tool result in the conversation, in tokens. Larger results are stored, and a preview "
        "replaces them.",
        env="TOOL_MAX_ALLOCATED_CONTEXT_WINDOW_TOKENS",
    ),
    "tool_result_available_share": _key(
        "spill.available_share",
        "Additional limit for a tool result, as a share of the free context window. 0 disables this limit.",
        zero_is_off=True,
    ),
    "tool_result_limit": _key(
        "spill.char_limit",
        "Additional limit for a tool result, in characters. 0 disables this limit.",
        env="TOOL_RESULT_LIMIT",
        zero_is_off=True,
    ),
    "round_cap_factor": _key(
        "spill.round_factor",
        "Maximum total size of the tool results of one turn, as a multiple of the limit for one result. 0 disables "
        "this limit.",
        zero_is_off=True,
    ),
    "preview_max_tokens": _key(
        "spill.preview_max_tokens",
        "Maximum size of the preview of a stored result, in tokens. The limit is lower for a small context window.",
    ),
    "supervisor_msg_char_limit": _key(
        "spill.user_message_char_limit",
        "Maximum size of a question, file or piped text in the conversation, in characters.",
        env="SUPERVISOR_MSG_CHAR_LIMIT",
    ),
    "prune": _key(
        "masking.enabled",
        "Mask old tool results. A masked result is replaced with a short form that names the stored result.",
        "compaction.prune",
    ),
    "mask_kind": _key(
        "masking.kind",
        "Form of a masked result: `fingerprint` (one line), `preview` or `path`. Each form has its own limits below.",
    ),
    "mask_every_step": _key(
        "masking.every_step",
        "Mask before every request. If false, mask only when the prompt cache of the provider becomes invalid anyway.",
    ),
    "mask_protected_tools": _key("masking.protected_tools", "Never mask results of these tools."),
    "mask_protect_rounds": _key(
        "masking.protect_rounds", "For `fingerprint`: number of newest turns that are not masked."
    ),
    "mask_protect_tokens": _key(
        "masking.protect_tokens",
        "For `fingerprint`: total size of the newest results that are not masked, in tokens. The size is lower for a "
        "small context window.",
    ),
    "mask_minimum_tokens": _key(
        "masking.minimum_tokens",
        "For `fingerprint`: minimum number of tokens that masking must free. The number is lower for a small context "
        "window.",
    ),
    "max_total_tokens": _key(
        "masking.max_total_tokens",
        "For `preview`: mask only in conversations above this size, in tokens. If set, smaller conversations are also "
        "not summarised. If `mask_kind` is `preview`, or if `context_manage_mode` is `compress` or `auto`, exceeding "
        "this size also triggers summaries.",
    ),
    "max_tool_message_tokens": _key(
        "masking.max_tool_message_tokens", "For `preview`: mask only results above this size, in tokens."
    ),
    "keep_recent_count": _key(
        "masking.keep_recent_messages",
        "For `preview`: number of newest messages that are not masked. If set, summaries also leave these messages "
        "unchanged, unless `keep_recent` is set.",
    ),
    "mask_older_than_messages": _key(
        "masking.older_than_messages", "For `path`: number of newest messages that are not masked."
    ),
    "mask_larger_than_characters": _key(
        "masking.larger_than_characters", "For `path`: mask only results above this size, in characters."
    ),
    "enable_conversation_history_compaction": _key(
        "trigger.enabled",
        "Compact a long conversation before it exceeds the context window. If false, compact only after the provider "
        "rejects a request as too long.",
        "compaction.auto",
        env="ENABLE_CONVERSATION_HISTORY_COMPACTION",
    ),
    "context_window_compaction_threshold_pct": _key(
        "trigger.threshold_pct",
        "Compact if the conversation and the reserve for the reply exceed this percentage of the context window. "
        "0 disables this trigger.",
        env="CONTEXT_WINDOW_COMPACTION_THRESHOLD_PCT",
        zero_is_off=True,
    ),
    "summarization_trigger_tokens": _key(
        "trigger.tokens",
        "Compact if the conversation exceeds this number of tokens. 0 disables this trigger.",
        env="SUMMARIZATION_TRIGGER_TOKENS",
        zero_is_off=True,
    ),
    "summarization_trigger_fraction": _key(
        "trigger.fraction",
        "Compact if the conversation exceeds this share (0 to 1) of the context window. 0 disables this trigger.",
        env="SUMMARIZATION_TRIGGER_FRACTION",
        zero_is_off=True,
    ),
    "summarization_trigger_messages": _key(
        "trigger.messages",
        "Compact if the conversation exceeds this number of messages. 0 disables this trigger.",
        zero_is_off=True,
    ),
    "compression_trigger": _key(
        "trigger.pressure",
        "Compact if the conversation exceeds this share (0 to 1) of the context window minus `output_reserved`. "
        "0 disables this trigger.",
        zero_is_off=True,
    ),
    "output_reserved": _key(
        "trigger.output_reserved",
        "Number of tokens that are reserved for a reply, which is also the maximum size of a reply. At most a quarter "
        "of the context window is reserved. Default: the model's output limit. A thinking budget is added to this "
        "number.",
    ),
    "reserved": _key(
        "trigger.reserved",
        "Compact if fewer tokens are free than this number or the model's output limit, whichever is larger. "
        "0 disables this trigger.",
        "compaction.reserved",
        zero_is_off=True,
    ),
    "strategy": _key("strategy", "`summarize` summarises old messages. `truncate` removes them."),
    "context_manage_mode": _key(
        "mode", "`compact` only masks, `compress` only summarises, and `auto` masks and then summarises if necessary."
    ),
    "auto_ratio": _key(
        "safety.auto_ratio",
        "For `auto`: do not summarise if masking leaves at most this share of the tokens. 0 means that masking is "
        "enough when it frees enough of the context window.",
        zero_is_off=True,
    ),
    "keep_recent": _key(
        "keep.messages",
        "Number of newest messages to keep verbatim, in whole turns and regardless of their size. If 0, only the "
        "limit in tokens applies.",
    ),
    "summarization_keep_tokens": _key(
        "keep.tail_tokens",
        "Maximum number of tokens to keep verbatim. The number is limited to half of the context window, or to a fifth "
        "of it if this key is unset.",
        env="SUMMARIZATION_KEEP_TOKENS",
    ),
    "keep_fraction": _key(
        "keep.fraction",
        "For `truncate`: share of the conversation to keep. If 0, or if unset while `keep_recent` is set, "
        "`truncate` keeps as many tokens as a compaction with a summary.",
        zero_is_off=True,
    ),
    "compaction_cooldown_rounds": _key(
        "safety.cooldown_rounds",
        "Number of turns to wait after a compaction before the next one, unless the context window is full.",
    ),
    "compaction_max_attempts": _key(
        "safety.max_attempts",
        "Maximum number of consecutive compactions. After that, the user must start a new conversation.",
    ),
    "emergency_share": _key(
        "safety.emergency_share",
        "After the provider rejects a conversation, cut it to this share of the context window.",
    ),
    "summary_max_tokens": _key(
        "summary.max_tokens",
        "Maximum size of a summary, in tokens. Default: an eighth of the context window, at most 4096.",
    ),
    "group_token_threshold": _key(
        "summary.group_token_threshold",
        "Summarise a history above this size in groups of this size, in tokens. 0 summarises all messages at once.",
        zero_is_off=True,
    ),
    "chat_id": _key(
        "summary.chat_id", "Name under which summarised groups are stored. Default: a new name for each conversation."
    ),
    "verify_entities": _key("summary.verify_entities", "Check summaries for lost or invented names."),
    "citations": _key(
        "evidence.citations",
        "Let the model cite lines of stored results, and check the citations before the answer is shown.",
    ),
    "unchanged_answers": _key(
        "evidence.unchanged_answers", "Return only the changes when the model repeats a tool call."
    ),
}
"""The keys that each set one field of the policy, in the order of docs/configuration.md."""


class _HookParts(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True, defer_build=True)

    condition: Annotated[Condition, Field(discriminator="type")]
    action: Annotated[Action, Field(discriminator="type")]


def _hook_parts(raw: object) -> object:
    """Validate the condition and the action of a hook. Restores the key `on`, which YAML reads as true."""
    if not isinstance(raw, Mapping):
        return raw
    spelled = {"on" if key is True else str(key): value for key, value in raw.items()}
    parts = _HookParts.model_validate({name: spelled[name] for name in _HookParts.model_fields if name in spelled})
    return {**spelled, "condition": parts.condition, "action": parts.action}


def _checked_hooks(hooks: tuple[Hook, ...]) -> tuple[Hook, ...]:
    ids = [hook.id for hook in hooks]
    for hook in hooks:
        if ids.count(hook.id) > 1:
            message = f"duplicate id {hook.id!r}"
            raise ValueError(message)
        if hook.id == AUTO_COMPACT_ID and not isinstance(hook.action, CompactContext):
            message = f"the id {hook.id!r} is reserved for a hook with the action compact_context"
            raise ValueError(message)
        if isinstance(hook.action, CallTool) and not _is_json(hook.action.params):
            message = f"the params of {hook.id!r} must be JSON: strings, numbers, true, false, null, lists and objects"
            raise ValueError(message)
    return hooks


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


HookList = Annotated[tuple[Annotated[Hook, BeforeValidator(_hook_parts)], ...], AfterValidator(_checked_hooks)]


class _ContextSettings(SettingsGroup):
    section: ClassVar[str] = "context"

    policy: Annotated[PolicyName | None, Setting("HOLMES_CONTEXT_POLICY", shown_default="balanced")] = None
    """Policy that sets the defaults of this table: `balanced`, or the documented policy of another system."""

    auto_compact: Annotated[bool | None, Setting()] = None
    """If true, a hook compacts at the start of a turn, at most every 30 seconds, unless one of `hooks` compacts. If
    false, this hook is disabled, and the triggers are disabled unless `enable_conversation_history_compaction` is true.
    If unset, the triggers are enabled, and the hook is enabled only with the policy `digitorn`.
    """

    summary_model: Annotated[ModelChoice | None, Setting(aliases=("context.summary_brain",))] = None
    """Model that writes summaries: a model name, or the keys of an entry in the model list. Default: the model that
    answers.
    """

    hooks: Annotated[HookList | None, Setting(aliases=("hooks",))] = None
    """Actions at the start or the end of a turn: a list of objects with `id`, `on`, `condition`, `action` and
    `cooldown` (in seconds).
    """

    if TYPE_CHECKING:

        def __init__(self, **values: object) -> None: ...

        def __getattr__(self, key: str) -> Any: ...  # noqa: ANN401  the fields of CONTEXT_KEYS

    def with_overrides(self, own: Self) -> Self:
        """Return these settings, overridden by the keys that `own` sets."""
        names = type(own).model_fields
        return self.model_copy(update={name: getattr(own, name) for name in names if getattr(own, name) is not None})


def policy_field(policy: ContextPolicy, path: str) -> object:
    """Return the value of a policy field. `path` is `part.field`, or the name of a field at the top level."""
    value: object = policy
    for name in path.split("."):
        value = getattr(value, name)
    return value


def _shown(value: object) -> str | None:
    """Return a default as the documentation shows it."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(value)
        case float():
            return f"{value:g}"
        case _:
            return str(value)


@cache
def _types_of(part: str) -> dict[str, Any]:
    """Return the types of the fields of a part of the policy. `part` is empty for the policy itself."""
    owner = type(policy_field(ContextPolicy(), part)) if part else ContextPolicy
    return get_type_hints(owner, include_extras=True)


def _field(key: ContextKey) -> tuple[Any, Any]:
    part, _, name = key.field.rpartition(".")
    kind = _types_of(part)[name]
    if kind == tuple[str, ...]:
        kind = CommaSeparated
    default = _shown(policy_field(ContextPolicy(), key.field))
    setting = Setting(key.env, aliases=key.aliases, shown_default=default)
    return Annotated[kind | None, setting], Field(default=None, description=key.meaning)


if TYPE_CHECKING:
    ContextSettings = _ContextSettings
else:
    ContextSettings = create_model(
        "ContextSettings",
        __base__=_ContextSettings,
        **{name: _field(key) for name, key in CONTEXT_KEYS.items()},
    )
