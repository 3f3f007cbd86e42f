"""Where results and conversations are kept, and for how long.

Everything of one user is below `~/.holmes`, next to the configuration: one folder to look at, back up or delete.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from holmes.settings.setting import Setting, SettingsGroup


class StorageSettings(SettingsGroup):
    """Files that Holmes keeps."""

    results_enabled: Annotated[bool, Setting("HOLMES_TOOL_RESULT_STORAGE_ENABLED")] = True
    """Whether tool results are kept on disk. If not, those that are too large for the conversation are dropped and the
    model must ask for less.
    """

    results_path: Annotated[Path, Setting("HOLMES_TOOL_RESULT_STORAGE_PATH", aliases=("context.store_dir",))] = Path(
        "~/.holmes/results"
    )
    """The folder of stored tool results."""

    results_retention_days: Annotated[float, Setting("HOLMES_TOOL_RESULT_RETENTION_DAYS"), Field(gt=0)] = 30
    """Days after which a stored tool result is deleted."""

    results_quota_megabytes: Annotated[int, Setting("HOLMES_TOOL_RESULT_QUOTA_MEGABYTES"), Field(gt=0)] = 2_000
    """The most that stored tool results take on disk, in MB; the oldest are deleted first."""

    conversations_path: Annotated[Path, Setting("HOLMES_CONVERSATIONS_PATH")] = Path("~/.holmes/conversations")
    """The folder of conversations, for `holmes ask --continue`."""

    conversation_retention_days: Annotated[float, Setting("HOLMES_CONVERSATION_RETENTION_DAYS"), Field(gt=0)] = 30
    """Days after which a conversation is deleted."""

    conversation_limit: Annotated[int, Setting("HOLMES_CONVERSATION_LIMIT"), Field(ge=1)] = 200
    """How many conversations are kept; the oldest are deleted first."""

    cache_path: Annotated[Path, Setting("HOLMES_CACHE_PATH")] = Path("~/.holmes/cache")
    """The folder that remembers for an hour which toolsets work; it can be deleted at any time."""

    prompt_history_file: Annotated[Path, Setting("HOLMES_PROMPT_HISTORY_FILE")] = Path("~/.holmes/history")
    """What was typed at the interactive prompt."""
