"""When a conversation is compacted, what stays, and who writes the summary. Part of `context`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from holmes.settings.model_access import ModelAccess
from holmes.settings.setting import Setting, SettingsGroup

Name = Annotated[str, Field(min_length=1)]
ModelChoice = Annotated[
    Annotated[Name, Tag("<name>")] | Annotated[ModelAccess, Tag("<mapping>")],
    Discriminator(lambda raw: "<mapping>" if isinstance(raw, (Mapping, ModelAccess)) else "<name>"),
]
Whole = Annotated[int | None, Field(ge=0)]
Share = Annotated[float | None, Field(ge=0, le=1)]


class TriggerSettings(SettingsGroup):
    """When. All None: as the named policy says. Whichever is reached first counts."""

    enable_conversation_history_compaction: Annotated[
        bool | None,
        Setting("ENABLE_CONVERSATION_HISTORY_COMPACTION", aliases=("compaction.auto",), shown_default="true"),
    ] = None
    """Whether a long conversation is compacted before it outgrows the window. If not, only after the provider has
    refused it.
    """

    context_window_compaction_threshold_pct: Annotated[
        float | None, Setting("CONTEXT_WINDOW_COMPACTION_THRESHOLD_PCT", shown_default="95"), Field(ge=0, le=100)
    ] = None
    """How full the window may be, in percent and including the reply. 0: no such trigger."""

    summarization_trigger_tokens: Annotated[Whole, Setting("SUMMARIZATION_TRIGGER_TOKENS")] = None
    """How many tokens the conversation may have. 0: no such trigger."""

    summarization_trigger_fraction: Annotated[Share, Setting("SUMMARIZATION_TRIGGER_FRACTION")] = None
    """How full the window may be, 0 to 1 and without the reply. 0: no such trigger."""

    summarization_trigger_messages: Annotated[Whole, Setting()] = None
    """How many messages the conversation may have. 0: no such trigger."""

    compression_trigger: Annotated[Share, Setting()] = None
    """How full the window without `output_reserved` may be, 0 to 1. 0: no such trigger."""

    output_reserved: Annotated[Whole, Setting()] = None
    """Tokens that are kept free for the reply, and the most that a reply may have; at most a quarter of the window.
    Unset: what the model can write at most. A thinking budget comes on top.
    """

    reserved: Annotated[Whole, Setting(aliases=("compaction.reserved",))] = None
    """Tokens that must stay free, or as many as the model can write if that is more. 0: no such trigger."""

    auto_compact: Annotated[bool | None, Setting()] = None
    """True: a hook compacts at the start of a turn, at most every 30 seconds, unless one of `hooks` compacts. False:
    no such hook, and none of the triggers above, unless `enable_conversation_history_compaction` is true. Unset: the
    triggers, and only with the policy `digitorn` the hook.
    """


class KeepSettings(SettingsGroup):
    """How, and what stays. All None: as the named policy says."""

    strategy: Annotated[Literal["summarize", "truncate"] | None, Setting(shown_default="summarize")] = None
    """Whether old messages become a summary or are left out."""

    context_manage_mode: Annotated[Literal["compact", "compress", "auto"] | None, Setting(shown_default="auto")] = None
    """`compact` only masks, `compress` only summarises, `auto` masks first and summarises if that is not enough."""

    auto_ratio: Annotated[Share, Setting()] = None
    """`auto`: masking is enough when at most this share of the tokens is left. 0: when the window has room again."""

    keep_recent: Annotated[Whole, Setting()] = None
    """The newest messages that stay verbatim, however long they are, in whole rounds. 0: only tokens count."""

    summarization_keep_tokens: Annotated[Whole, Setting("SUMMARIZATION_KEEP_TOKENS", shown_default="20000")] = None
    """The most tokens that stay verbatim. Unset: at most a fifth of the window; set: at most half of it."""

    keep_fraction: Annotated[Share, Setting(shown_default="0.4")] = None
    """`truncate`: the share of the conversation that stays. 0, or unset with `keep_recent`: as much as after a summary.
    """

    compaction_cooldown_rounds: Annotated[Whole, Setting(shown_default="2")] = None
    """Rounds after a compaction without another one, unless the window is full."""

    compaction_max_attempts: Annotated[int | None, Setting(shown_default="3"), Field(ge=1)] = None
    """Compactions in a row after which the user is asked to start a new conversation."""

    emergency_share: Annotated[float | None, Setting(shown_default="0.5"), Field(gt=0, le=1)] = None
    """The share of the window that a conversation is cut to when the provider has refused it."""


class SummarySettings(SettingsGroup):
    """The summary. All None: as the named policy says."""

    summary_model: Annotated[ModelChoice | None, Setting(aliases=("context.summary_brain",))] = None
    """The model that writes summaries: a name, or the keys of an entry of the model list. Unset: the one that answers.
    """

    summary_max_tokens: Annotated[int | None, Setting(), Field(ge=1)] = None
    """The longest summary, in tokens. Unset: an eighth of the window, at most 4096."""

    group_token_threshold: Annotated[Whole, Setting()] = None
    """A longer history is summarised in groups of so many tokens. 0: all at once."""

    chat_id: Annotated[str | None, Setting(), Field(min_length=1)] = None
    """The name under which summarised groups are stored. Unset: a new one for each conversation."""

    verify_entities: Annotated[bool | None, Setting(shown_default="true")] = None
    """Whether a summary is checked for the names of the history that it lost or invented."""
