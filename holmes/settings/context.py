"""How the conversation is kept inside the model's window: large results, masking, compaction.

Every key stands below `context:`, in the config file for all models and in an entry of the model list for one. None
means: as the named policy says. What other systems call the same thing (a variable in lower case at the top level,
`compaction:`, `execution:`) is accepted as well; docs/configuration.md lists these names.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from holmes.settings.context_compaction import KeepSettings, SummarySettings, TriggerSettings
from holmes.settings.hooks import HookList  # noqa: TC001  pydantic reads it
from holmes.settings.setting import CommaSeparated, Setting, SettingsGroup


class MaskingSettings(SettingsGroup):
    """Masking. All None: as the named policy says."""

    prune: Annotated[bool | None, Setting(aliases=("compaction.prune",), shown_default="true")] = None
    """Whether old tool results are masked: replaced by a line that says what they were and where they are stored."""

    mask_kind: Annotated[Literal["fingerprint", "preview", "path"] | None, Setting(shown_default="fingerprint")] = None
    """What stays of a masked result, and which of the limits below count."""

    mask_every_step: Annotated[bool | None, Setting(shown_default="false")] = None
    """Whether results are masked before every request, instead of in one batch when the provider's prompt cache is
    lost anyway.
    """

    mask_protected_tools: Annotated[CommaSeparated | None, Setting(shown_default="skill, fetch_skill")] = None
    """Tools whose results are never masked."""

    mask_protect_rounds: Annotated[int | None, Setting(shown_default="2"), Field(ge=0)] = None
    """`fingerprint`: results of the newest rounds that are not masked."""

    mask_protect_tokens: Annotated[int | None, Setting(shown_default="40000"), Field(ge=0)] = None
    """`fingerprint`: tokens of the newest results that are not masked; less on a small window."""

    mask_minimum_tokens: Annotated[int | None, Setting(shown_default="20000"), Field(ge=0)] = None
    """`fingerprint`: nothing is masked when fewer tokens come free; less on a small window."""

    max_total_tokens: Annotated[int | None, Setting(shown_default="20000"), Field(ge=0)] = None
    """`preview`: nothing is masked in a conversation of fewer tokens. When it is set, nothing that is smaller is
    summarised either; with `preview`, or with `context_manage_mode`, more than that is.
    """

    max_tool_message_tokens: Annotated[int | None, Setting(shown_default="2000"), Field(ge=0)] = None
    """`preview`: results of fewer tokens are not masked."""

    keep_recent_count: Annotated[int | None, Setting(shown_default="1"), Field(ge=0)] = None
    """`preview`: the newest messages that are not masked. When it is set, they are not summarised either, unless
    `keep_recent` says otherwise.
    """

    mask_older_than_messages: Annotated[int | None, Setting(shown_default="10"), Field(ge=0)] = None
    """`path`: results in the newest messages that are not masked."""

    mask_larger_than_characters: Annotated[int | None, Setting(shown_default="4000"), Field(ge=0)] = None
    """`path`: results of fewer characters are not masked."""


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


PolicyName = Literal["altimate", "balanced", "digitorn", "flowllm", "holmesgpt", "octo"]


class _GeneralSettings(SettingsGroup):
    policy: Annotated[PolicyName | None, Setting("HOLMES_CONTEXT_POLICY", shown_default="balanced")] = None
    """The policy that everything below starts from: our own, or what the documents of another system say."""

    counting: Annotated[Literal["exact", "estimate"] | None, Setting(shown_default="exact")] = None
    """Whether tokens are counted with a tokenizer or estimated from the kind of text, and counted only near a limit."""


class _FeatureSettings(SettingsGroup):
    citations: Annotated[bool | None, Setting(shown_default="true")] = None
    """Whether the model cites lines of stored results, which are checked before the answer shows them."""

    unchanged_answers: Annotated[bool | None, Setting(shown_default="true")] = None
    """Whether a repeated call is answered with what has changed."""

    hooks: Annotated[HookList | None, Setting(aliases=("hooks",))] = None
    """What to do when something is true at the start or end of a turn: a list of `id`, `on`, `condition`, `action` and
    `cooldown` (seconds).
    """


class ContextSettings(
    _FeatureSettings,
    SummarySettings,
    KeepSettings,
    TriggerSettings,
    MaskingSettings,
    ToolResultSettings,
    _GeneralSettings,
):
    """The context window. The table shows the parts from the last base to the first."""

    section: ClassVar[str] = "context"

    def with_overrides(self, own: ContextSettings) -> ContextSettings:
        """These settings with what `own` sets in place of theirs."""
        names = type(own).model_fields
        return self.model_copy(update={name: getattr(own, name) for name in names if getattr(own, name) is not None})
