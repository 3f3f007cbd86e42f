"""From the settings to the context policy of one model.

A named policy, then what the user sets for all models, then what the user sets for this one (C9). A setting that is
None leaves the value as it is; where 0 stands for "off", the policy has None.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

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
    auto_compact_hook,
)
from holmes.core.policies import named_policy
from holmes.core.policy import UNLIMITED_TOKENS, KeepPolicy
from holmes.settings.hooks import (
    AlwaysSettings,
    CompactContextSettings,
    ContextPressureSettings,
    InjectMessageSettings,
    LogSettings,
    MessageCountSettings,
    ModuleActionSettings,
    ToolCallsSettings,
    TurnCountSettings,
)

if TYPE_CHECKING:
    from holmes.core.hooks import Action, Condition
    from holmes.core.policy import (
        ContextPolicy,
        EvidencePolicy,
        MaskingPolicy,
        SafetyPolicy,
        SpillPolicy,
        SummaryPolicy,
        TriggerPolicy,
    )
    from holmes.settings.context import ContextSettings
    from holmes.settings.hooks import ActionSettings, ConditionSettings, HookSettings
    from holmes.settings.model_list import ModelEntry
    from holmes.settings.settings import Settings

Value = TypeVar("Value")
Number = TypeVar("Number", int, float)

_DEFAULT_POLICY = "balanced"
_LARGEST_SET_TAIL_SHARE = 0.50


def context_policy(settings: Settings, entry: ModelEntry) -> ContextPolicy:
    """How the window of `entry` is managed."""
    own = settings.context_of(entry)
    named = named_policy(own.policy or _DEFAULT_POLICY)
    trigger = _trigger(named, own)
    return replace(
        named,
        spill=_spill(named.spill, own),
        masking=_masking(named.masking, own),
        trigger=trigger,
        strategy=_or(own.strategy, named.strategy),
        mode=_or(own.context_manage_mode, named.mode),
        keep=_keep(named.keep, own),
        summary=_summary(named.summary, own),
        safety=_safety(named.safety, own),
        evidence=_evidence(named.evidence, own),
        hooks=_hooks(named.hooks, own, enabled=trigger.enabled),
        counting=_or(own.counting, named.counting),
    )


def _or(value: Value | None, otherwise: Value) -> Value:
    return otherwise if value is None else value


def _or_off(value: Number | None, otherwise: Number | None) -> Number | None:
    """Like `_or`, for what 0 switches off."""
    return otherwise if value is None else value or None


def _spill(named: SpillPolicy, own: ContextSettings) -> SpillPolicy:
    return replace(
        named,
        max_pct=_or(own.tool_max_allocated_context_window_pct, named.max_pct),
        max_tokens=_or(own.tool_max_allocated_context_window_tokens, named.max_tokens),
        available_share=_or_off(own.tool_result_available_share, named.available_share),
        char_limit=_or_off(own.tool_result_limit, named.char_limit),
        round_factor=_or_off(own.round_cap_factor, named.round_factor),
        preview_max_tokens=_or(own.preview_max_tokens, named.preview_max_tokens),
        user_message_char_limit=_or(own.supervisor_msg_char_limit, named.user_message_char_limit),
    )


def _masking(named: MaskingPolicy, own: ContextSettings) -> MaskingPolicy:
    return replace(
        named,
        enabled=_or(own.prune, named.enabled),
        kind=_or(own.mask_kind, named.kind),
        every_step=_or(own.mask_every_step, named.every_step),
        protected_tools=_or(own.mask_protected_tools, named.protected_tools),
        protect_rounds=_or(own.mask_protect_rounds, named.protect_rounds),
        protect_tokens=_or(own.mask_protect_tokens, named.protect_tokens),
        minimum_tokens=_or(own.mask_minimum_tokens, named.minimum_tokens),
        max_total_tokens=_or(own.max_total_tokens, named.max_total_tokens),
        max_tool_message_tokens=_or(own.max_tool_message_tokens, named.max_tool_message_tokens),
        keep_recent_messages=_or(own.keep_recent_count, named.keep_recent_messages),
        older_than_messages=_or(own.mask_older_than_messages, named.older_than_messages),
        larger_than_characters=_or(own.mask_larger_than_characters, named.larger_than_characters),
    )


def _trigger(policy: ContextPolicy, own: ContextSettings) -> TriggerPolicy:
    named = policy.trigger
    one_number = policy.masking.kind == "preview" or own.context_manage_mode in {"compress", "auto"}
    if one_number and own.max_total_tokens is not None:  # it decides about masks and summaries
        named = replace(named, tokens=own.max_total_tokens or None)
    if any(isinstance(hook.action, CompactContextSettings) for hook in own.hooks or ()):
        named = replace(named, pressure=None)  # a hook of the user takes the place of the automatic one
    enabled = own.enable_conversation_history_compaction
    if enabled is None and own.auto_compact is False:
        enabled = False
    return replace(
        named,
        enabled=_or(enabled, named.enabled),
        threshold_pct=_or_off(own.context_window_compaction_threshold_pct, named.threshold_pct),
        tokens=_or_off(own.summarization_trigger_tokens, named.tokens),
        fraction=_or_off(own.summarization_trigger_fraction, named.fraction),
        messages=_or_off(own.summarization_trigger_messages, named.messages),
        pressure=_or_off(own.compression_trigger, named.pressure),
        output_reserved=_or(own.output_reserved, named.output_reserved),
        reserved=_or_off(own.reserved, named.reserved),
    )


def _keep(named: KeepPolicy, own: ContextSettings) -> KeepPolicy:
    messages = own.keep_recent_count if own.keep_recent is None else own.keep_recent
    tokens = own.summarization_keep_tokens
    if messages:  # who counts messages wants that many, whatever the policy says about tokens and shares
        named = named.counting(messages)
    elif messages == 0 and named.tail_tokens == UNLIMITED_TOKENS:  # only tokens count: then they must be limited
        named = replace(KeepPolicy(), fraction=named.fraction)
    elif messages == 0:
        named = replace(named, messages=None)
    return replace(
        named,
        tail_share=named.tail_share if tokens is None else _LARGEST_SET_TAIL_SHARE,
        tail_tokens=_or(tokens, named.tail_tokens),
        fraction=_or_off(own.keep_fraction, named.fraction),
    )


def _summary(named: SummaryPolicy, own: ContextSettings) -> SummaryPolicy:
    return replace(
        named,
        max_tokens=_or(own.summary_max_tokens, named.max_tokens),
        group_token_threshold=_or_off(own.group_token_threshold, named.group_token_threshold),
        compress_above_tokens=_or_off(own.max_total_tokens, named.compress_above_tokens),
        chat_id=_or(own.chat_id, named.chat_id),
        verify_entities=_or(own.verify_entities, named.verify_entities),
    )


def _safety(named: SafetyPolicy, own: ContextSettings) -> SafetyPolicy:
    rounds = own.compaction_cooldown_rounds
    return replace(
        named,
        cooldown_rounds=_or(rounds, named.cooldown_rounds),
        cooldown_share=0.0 if rounds == 0 else named.cooldown_share,
        max_attempts=_or(own.compaction_max_attempts, named.max_attempts),
        auto_ratio=_or_off(own.auto_ratio, named.auto_ratio),
        emergency_share=_or(own.emergency_share, named.emergency_share),
    )


def _evidence(named: EvidencePolicy, own: ContextSettings) -> EvidencePolicy:
    return replace(
        named,
        citations=_or(own.citations, named.citations),
        unchanged_answers=_or(own.unchanged_answers, named.unchanged_answers),
    )


def _hooks(named: tuple[Hook, ...], own: ContextSettings, *, enabled: bool) -> tuple[Hook, ...]:
    """The user's hooks, and before them the automatic one unless one of them compacts or compaction is off (C4, C8)."""
    declared = tuple(_hook(hook) for hook in own.hooks or ())
    if any(isinstance(hook.action, CompactContext) for hook in declared):
        return declared
    automatic = tuple(hook for hook in named if hook.id == AUTO_COMPACT_ID)
    if own.auto_compact is False or not enabled:
        automatic = ()
    elif own.auto_compact or automatic:
        known = automatic[0] if automatic else auto_compact_hook(None)
        automatic = (known if own.compression_trigger is None else auto_compact_hook(own.compression_trigger or None),)
    return (*automatic, *declared)


def _hook(hook: HookSettings) -> Hook:
    return Hook(
        id=hook.id,
        on=hook.on,
        condition=_condition(hook.condition),
        action=_action(hook.action),
        cooldown_seconds=hook.cooldown,
    )


def _condition(condition: ConditionSettings) -> Condition:
    match condition:
        case ContextPressureSettings(threshold=threshold):
            return ContextPressure(threshold=threshold)
        case TurnCountSettings(count=count):
            return TurnCount(count=count)
        case ToolCallsSettings(threshold=calls):
            return ToolCalls(threshold=calls)
        case MessageCountSettings(threshold=messages):
            return MessageCount(threshold=messages)
        case AlwaysSettings():
            return Always()


def _action(action: ActionSettings) -> Action:
    match action:
        case CompactContextSettings(strategy=strategy, keep_recent=keep, summary_max_tokens=tokens):
            return CompactContext(strategy=strategy, keep_recent=keep, summary_max_tokens=tokens)
        case InjectMessageSettings(message=message, role=role):
            return InjectMessage(message=message, role=role)
        case ModuleActionSettings(action=name, module=module, params=params):
            return CallTool(action=name, module=module, params=params)
        case LogSettings(message=message):
            return Log(message=message)
