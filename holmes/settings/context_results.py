"""How large a tool result or a question may be before it is stored and previewed. Part of `context`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from holmes.settings.setting import Setting, SettingsGroup


class ToolResultSettings(SettingsGroup):
    """What happens to one large result. All None: as the named policy says."""

    tool_max_allocated_context_window_pct: Annotated[
        float | None, Setting("TOOL_MAX_ALLOCATED_CONTEXT_WINDOW_PCT", shown_default="15")
    ] = None
    """The largest tool result that stays in the conversation, in percent of the window. Outside (0, 100]: only the
    next limit counts.
    """

    tool_max_allocated_context_window_tokens: Annotated[
        int | None, Setting("TOOL_MAX_ALLOCATED_CONTEXT_WINDOW_TOKENS", shown_default="25000"), Field(gt=0)
    ] = None
    """The largest tool result that stays in the conversation, in tokens. Larger ones are stored and previewed."""

    tool_result_available_share: Annotated[float | None, Setting(), Field(ge=0, le=1)] = None
    """A further limit for a tool result: this share of what is still free in the window. 0: no such limit."""

    tool_result_limit: Annotated[int | None, Setting("TOOL_RESULT_LIMIT"), Field(ge=0)] = None
    """A further limit for a tool result, in characters. 0: no such limit."""

    round_cap_factor: Annotated[float | None, Setting(shown_default="2"), Field(ge=0)] = None
    """All results of one round together may take this many times what one may take. 0: no limit for the round."""

    preview_max_tokens: Annotated[int | None, Setting(shown_default="1500"), Field(gt=0)] = None
    """The largest preview of a stored result, in tokens; a small window gets a smaller one."""

    supervisor_msg_char_limit: Annotated[
        int | None, Setting("SUPERVISOR_MSG_CHAR_LIMIT", shown_default="30000"), Field(gt=0)
    ] = None
    """The longest question, file or piped text that stays in the conversation, in characters."""
