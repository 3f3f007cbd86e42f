"""Chooses how an investigation is shown. Called by the commands.

The answer belongs to standard output, everything else to standard error, so `holmes ask … | less` is the answer only.
On a terminal both are one picture: spinners, then the answer as it is written.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

from holmes.cli.render.streams import is_terminal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.cli.render.event_lines import Detail
    from holmes.values.events import AgentEvent


class Renderer(Protocol):
    """Shows one investigation after the other."""

    def start(self) -> None:
        """A question is being asked."""
        ...

    def show(self, event: AgentEvent) -> None:
        """Show an event."""
        ...

    def stop(self) -> None:
        """The question is answered, or its investigation is over; may be called twice."""
        ...

    def notice(self, text: str) -> None:
        """Say one line that is not part of the stream."""
        ...

    def pause(self) -> None:
        """Leave the terminal alone: a person is being asked."""
        ...

    def resume(self) -> None:
        """The person has answered."""
        ...


def choose_renderer(detail: Detail, environment: Mapping[str, str]) -> Renderer:
    """The renderer for the streams of this process."""
    dumb = environment.get("TERM") in {"dumb", "unknown"}
    if is_terminal(sys.stderr) and not dumb:
        from holmes.cli.render.live_renderer import LiveRenderer

        return LiveRenderer(detail, answer_is_live=is_terminal(sys.stdout))
    from holmes.cli.render.plain_renderer import PlainRenderer

    return PlainRenderer(detail, pretty_answer=is_terminal(sys.stdout) and not dumb)
