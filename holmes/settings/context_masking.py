"""How old tool results leave the conversation without a model. Part of `context`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

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
