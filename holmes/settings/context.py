"""How much of the model's window may be used for what. Mapped by `holmes.app` onto the limit objects of the core."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from holmes.settings.setting import Setting, SettingsGroup


class ContextSettings(SettingsGroup):
    """The context window."""

    tool_result_cap_pct: Annotated[float, Setting("TOOL_MAX_ALLOCATED_CONTEXT_WINDOW_PCT")] = 15
    """The largest tool result that stays in the conversation, in percent of the window. Outside (0, 100]: only the
    next limit counts.
    """

    tool_result_cap_tokens: Annotated[int, Setting("TOOL_MAX_ALLOCATED_CONTEXT_WINDOW_TOKENS"), Field(gt=0)] = 25_000
    """The largest tool result that stays in the conversation, in tokens. Larger ones are stored and previewed."""

    user_message_cap_characters: Annotated[int, Setting("SUPERVISOR_MSG_CHAR_LIMIT"), Field(gt=0)] = 30_000
    """The longest question, file or piped text that stays in the conversation, in characters."""

    compaction_enabled: Annotated[bool, Setting("ENABLE_CONVERSATION_HISTORY_COMPACTION")] = True
    """Whether a long conversation is summarised before it outgrows the window."""

    compaction_threshold_pct: Annotated[
        float, Setting("CONTEXT_WINDOW_COMPACTION_THRESHOLD_PCT"), Field(gt=0, le=100)
    ] = 95
    """How full the window may be, in percent and including the reply, before the conversation is summarised."""
