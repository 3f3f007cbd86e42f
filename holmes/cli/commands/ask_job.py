"""What `holmes ask` was told to do. Made by `ask_command`, done by `ask_run`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from holmes.app.cluster_choice import ClusterChoice
    from holmes.cli.commands.inputs import Question
    from holmes.cli.render.event_lines import Detail
    from holmes.settings.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOptions:
    """The options of `holmes ask` that are not settings. `interactive` is None when the user did not say."""

    prompt: str | None
    prompt_file: Path | None
    file: tuple[Path, ...]
    interactive: bool | None
    config: Path | None
    json_output_file: Path | None
    show_tool_output: bool
    log_costs: bool
    refresh_toolsets: bool
    continue_last: bool
    cluster: ClusterChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class AskJob:
    """What is to be done, checked as far as that is possible without doing it."""

    settings: Settings
    environment: Mapping[str, str]
    question: Question
    interactive: bool
    detail: Detail
    options: AskOptions
