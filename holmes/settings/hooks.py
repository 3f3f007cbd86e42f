"""Declared hooks, as `hooks:` of the config file has them.

Refuses unknown conditions, actions and keys, a hook without an id, and an id that is there twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

AUTO_COMPACT_ID = "_auto_compact"

Count = Annotated[int, Field(ge=0)]


class _HookPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class ContextPressureSettings(_HookPart):
    """Tokens / (window - reserve) is above `threshold`. Without one: the triggers of the policy."""

    type: Literal["context_pressure"]
    threshold: float | None = Field(default=None, gt=0, le=1)


class TurnCountSettings(_HookPart):
    """It is turn number `count`, from 1."""

    type: Literal["turn_count"]
    count: int = Field(ge=1)


class ToolCallsSettings(_HookPart):
    """More than `threshold` tools were called."""

    type: Literal["tool_calls"]
    threshold: Count


class MessageCountSettings(_HookPart):
    """The conversation has more than `threshold` messages."""

    type: Literal["message_count"]
    threshold: Count


class AlwaysSettings(_HookPart):
    """Every time."""

    type: Literal["always"]


class CompactContextSettings(_HookPart):
    """Compact the conversation; what is not given is as the policy says."""

    type: Literal["compact_context"]
    strategy: Literal["summarize", "truncate"] | None = None
    keep_recent: int | None = Field(default=None, ge=0)
    summary_max_tokens: int | None = Field(default=None, ge=1)


class InjectMessageSettings(_HookPart):
    """Add a message to the conversation."""

    type: Literal["inject_message"]
    message: str = Field(min_length=1)
    role: Literal["system", "user"] = "system"


class ModuleActionSettings(_HookPart):
    """Call the tool `action`, of the toolset `module` if one is given."""

    type: Literal["module_action"]
    action: str = Field(min_length=1)
    module: str = ""
    params: dict[str, JsonValue] = Field(default_factory=dict)


class LogSettings(_HookPart):
    """Say a line; `{turn}`, `{tokens}` and `{messages}` are filled in."""

    type: Literal["log"]
    message: str = Field(min_length=1)


ConditionSettings = Annotated[
    ContextPressureSettings | TurnCountSettings | ToolCallsSettings | MessageCountSettings | AlwaysSettings,
    Field(discriminator="type"),
]
ActionSettings = Annotated[
    CompactContextSettings | InjectMessageSettings | ModuleActionSettings | LogSettings,
    Field(discriminator="type"),
]


class HookSettings(_HookPart):
    """One hook. `cooldown` is the least time between two firings, in seconds."""

    id: str = Field(min_length=1)
    condition: ConditionSettings
    action: ActionSettings
    on: Literal["turn_start", "turn_end"] = "turn_end"
    cooldown: float = Field(default=0.0, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _spell_on(cls, raw: object) -> object:
        """YAML reads the key `on` as true."""
        if isinstance(raw, Mapping):
            return {"on" if key is True else key: value for key, value in raw.items()}
        return raw


def _distinct(hooks: tuple[HookSettings, ...]) -> tuple[HookSettings, ...]:
    ids = [hook.id for hook in hooks]
    for hook in hooks:
        if ids.count(hook.id) > 1:
            message = f"the id {hook.id!r} is there twice"
            raise ValueError(message)
        if hook.id == AUTO_COMPACT_ID and hook.action.type != "compact_context":
            message = f"the id {hook.id!r} is for a hook whose action is compact_context"
            raise ValueError(message)
    return hooks


HookList = Annotated[tuple[HookSettings, ...], AfterValidator(_distinct)]

_PARTS: tuple[type[_HookPart], ...] = (
    ContextPressureSettings,
    TurnCountSettings,
    ToolCallsSettings,
    MessageCountSettings,
    AlwaysSettings,
    CompactContextSettings,
    InjectMessageSettings,
    ModuleActionSettings,
    LogSettings,
)


def hook_keys(types: tuple[str | int, ...]) -> tuple[str, ...]:
    """The keys of the condition or action whose type is among `types`; of a hook when there is none."""
    for part in _PARTS:
        if set(get_args(part.model_fields["type"].annotation)) & set(types):
            return tuple(part.model_fields)
    return tuple(HookSettings.model_fields)
