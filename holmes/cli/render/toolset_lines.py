"""Toolsets and their states as lines of text. Used by `holmes toolset` and by `/tools`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.cli.render.sanitize import one_line
from holmes.cli.render.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.app.toolsets import ToolsetReport
    from holmes.toolsets.statuses import ToolsetStatus


def report_lines(report: ToolsetReport) -> str:
    """The warnings, then the toolsets."""
    warnings = (f"warning: {one_line(warning, limit=1_000)}" for warning in report.warnings)
    return "\n".join((*warnings, toolset_lines(report.statuses)))


def toolset_lines(states: Sequence[ToolsetStatus]) -> str:
    """One line for each toolset, in columns, by name."""
    if not states:
        return "no toolsets"
    rows = sorted(states, key=lambda status: status.name)
    width = max(len(status.name) for status in rows)
    return "\n".join(_line(status, width) for status in rows)


def _line(status: ToolsetStatus, width: int) -> str:
    detail = one_line(status.reason or "") if status.state != "enabled" else counted(status.tool_count, "tool")
    return f"{one_line(status.name):<{width}}  {status.state:<8}  {detail}".rstrip()
