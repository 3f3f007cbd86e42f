"""Builds the context policy of a model from a named policy, the general settings and the model's own settings.

A setting that is None keeps the value of the named policy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.core.hooks import AUTO_COMPACT_ID, CompactContext, auto_compact_hook
from holmes.core.policies import named_policy
from holmes.core.policy import UNLIMITED_TOKENS, KeepPolicy
from holmes.settings.context import CONTEXT_KEYS

if TYPE_CHECKING:
    from holmes.core.hooks import Hook
    from holmes.core.policy import ContextPolicy
    from holmes.settings.context import ContextSettings
    from holmes.settings.model_list import ModelEntry
    from holmes.settings.settings import Settings

_DEFAULT_POLICY = "balanced"
_LARGEST_SET_TAIL_SHARE = 0.50


def context_policy(settings: Settings, entry: ModelEntry) -> ContextPolicy:
    """Build the context policy for the model `entry`."""
    own = settings.context_of(entry)
    named = named_policy(own.policy or _DEFAULT_POLICY)
    policy = _with_keys(_with_shared_numbers(named, own), own)
    return replace(policy, hooks=_hooks(named.hooks, own, enabled=policy.trigger.enabled))


def _with_keys(policy: ContextPolicy, own: ContextSettings) -> ContextPolicy:
    """Replace the policy fields for which a setting is configured."""
    changes: dict[str, dict[str, object]] = {}
    for name, key in CONTEXT_KEYS.items():
        value = getattr(own, name)
        if value is not None:
            part, _, field = key.field.rpartition(".")
            changes.setdefault(part, {})[field] = None if key.zero_is_off and not value else value
    if own.keep_recent is not None:  # `_keep` applies this number of messages
        changes["keep"].pop("messages")
    top: dict[str, object] = changes.pop("", {})
    parts = {part: replace(getattr(policy, part), **fields) for part, fields in changes.items()}
    return replace(policy, **top, **parts)  # type: ignore[arg-type]  # validated by the settings


def _with_shared_numbers(policy: ContextPolicy, own: ContextSettings) -> ContextPolicy:
    """Replace the policy fields that depend on several settings or on another field's setting."""
    trigger, safety, summary = policy.trigger, policy.safety, policy.summary
    one_number = policy.masking.kind == "preview" or own.context_manage_mode in {"compress", "auto"}
    if own.max_total_tokens is not None:
        summary = replace(summary, compress_above_tokens=own.max_total_tokens or None)
        if one_number:  # one setting limits masking and summaries
            trigger = replace(trigger, tokens=own.max_total_tokens or None)
    if any(isinstance(hook.action, CompactContext) for hook in own.hooks or ()):
        trigger = replace(trigger, pressure=None)  # a user-defined hook replaces the automatic hook
    if own.auto_compact is False:
        trigger = replace(trigger, enabled=False)
    if own.compaction_cooldown_rounds == 0:
        safety = replace(safety, cooldown_share=0.0)
    return replace(policy, trigger=trigger, safety=safety, summary=summary, keep=_keep(policy.keep, own))


def _keep(keep: KeepPolicy, own: ContextSettings) -> KeepPolicy:
    named = keep
    messages = own.keep_recent_count if own.keep_recent is None else own.keep_recent
    if messages:  # a number of messages overrides the token counts and shares in the policy
        named = named.counting(messages)
    elif messages == 0 and named.tail_tokens == UNLIMITED_TOKENS:  # if no message limit is set, limit the tokens
        named = replace(KeepPolicy(), fraction=named.fraction)
    elif messages == 0:
        named = replace(named, messages=None)
    return named if own.summarization_keep_tokens is None else replace(named, tail_share=_LARGEST_SET_TAIL_SHARE)


def _hooks(named: tuple[Hook, ...], own: ContextSettings, *, enabled: bool) -> tuple[Hook, ...]:
    """Return the automatic hook, followed by the user-defined hooks.

    The automatic hook is omitted if a user-defined hook compacts the conversation, or if compaction is disabled.
    """
    declared = own.hooks or ()
    if any(isinstance(hook.action, CompactContext) for hook in declared):
        return declared
    automatic = tuple(hook for hook in named if hook.id == AUTO_COMPACT_ID)
    if own.auto_compact is False or not enabled:
        automatic = ()
    elif own.auto_compact or automatic:
        known = automatic[0] if automatic else auto_compact_hook(None)
        automatic = (known if own.compression_trigger is None else auto_compact_hook(own.compression_trigger or None),)
    return (*automatic, *declared)
