"""Which tools run, and their limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, JsonValue

from holmes.settings.setting import Setting, SettingsGroup


def _file_list(value: object) -> object:
    """One file may be written without the list around it."""
    return (value,) if isinstance(value, (str, Path)) else value


class ToolSettings(SettingsGroup):
    """Tools."""

    toolsets: Annotated[dict[str, JsonValue], Setting(key="toolsets")] = Field(default_factory=dict)
    """Toolsets by name: switched on or off, configured, or defined here."""

    custom_toolsets: Annotated[
        tuple[Path, ...],
        BeforeValidator(_file_list),
        Setting(key="custom_toolsets", option="--custom-toolsets", adds=True),
    ] = ()
    """Files with more toolsets. The option may be repeated and adds to the files of the config file."""

    redaction: Annotated[bool, Setting("HOLMES_REDACTION")] = True
    """Whether secrets are masked in everything that tools return, before it is stored, summarised or sent."""

    memory_limit_megabytes: Annotated[int, Setting("TOOL_MEMORY_LIMIT_MB"), Field(gt=0)] = 800
    """The memory of one tool process, in MB."""

    prerequisite_timeout_seconds: Annotated[float, Setting("HOLMES_TOOLSET_PREREQ_TIMEOUT_SECONDS"), Field(gt=0)] = 20
    """Seconds that the checks of all toolsets may take together."""

    toolset_retry_seconds: Annotated[float, Setting("HOLMES_TOOLSET_RETRY_SECONDS"), Field(gt=0)] = 30
    """Seconds after which `holmes serve` checks toolsets that failed again. The pause doubles up to 20 times as long,
    which is also how often toolsets that work are checked.
    """

    kubernetes_logs_timeout_seconds: Annotated[
        float, Setting("KUBERNETES_LOGS_TIMEOUT_SECONDS"), Field(gt=0, le=3_600)
    ] = 60
    """Seconds that reading logs of one pod or workload may take."""

    logs_default_tail_lines: Annotated[int, Setting("HOLMES_LOGS_DEFAULT_TAIL_LINES"), Field(ge=1, le=200_000)] = 500
    """Newest lines of each container that reading logs shows when the model does not say how many."""

    logs_max_tail_lines: Annotated[int, Setting("HOLMES_LOGS_MAX_TAIL_LINES"), Field(ge=1, le=200_000)] = 5_000
    """Maximum number of lines of each container that the model may ask for."""
