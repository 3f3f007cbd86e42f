"""What `holmes investigate` was told to do. Made by `investigate_command`, done by `investigate_run`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from holmes.app.cluster_choice import ClusterChoice
    from holmes.cli.render.event_lines import Detail
    from holmes.settings.settings import Settings
    from holmes.sources.label_matchers import LabelMatcher


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigateOptions:
    """The options that are not settings."""

    alertmanager_limit: int | None
    config: Path | None
    show_tool_output: bool
    log_costs: bool
    refresh_toolsets: bool
    cluster: ClusterChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigateJob:
    """What is to be done, checked as far as that is possible without doing it."""

    settings: Settings
    environment: Mapping[str, str]
    matchers: tuple[LabelMatcher, ...]
    detail: Detail
    options: InvestigateOptions
