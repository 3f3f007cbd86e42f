"""How the conversation is kept inside the model's window. Mapped by `holmes.app` onto a `ContextPolicy` of the core.

Every key stands below `context:`, in the config file for all models and in an entry of the model list for one. None
means: as the named policy says. What other systems call the same thing (a variable in lower case at the top level,
`compaction:`, `execution:`) is accepted as well; docs/configuration.md lists these names.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from holmes.settings.context_compaction import KeepSettings, SummarySettings, TriggerSettings
from holmes.settings.context_masking import MaskingSettings
from holmes.settings.context_results import ToolResultSettings
from holmes.settings.hooks import HookList  # noqa: TC001  pydantic reads it
from holmes.settings.setting import Setting, SettingsGroup

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
