"""Chooses a renderer, and defines the plain renderer for logs, pipes and dumb terminals.

The answer goes to standard output and all other text to standard error, so that `holmes ask … | less` shows only the
answer. On a terminal, `live_renderer` shows both.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol

from holmes.cli.render.citations import CitedSources, ShortCitations, render_citations
from holmes.cli.render.event_lines import PlotSpace, RunSummary, event_lines
from holmes.cli.render.terminal import is_terminal, one_line, sanitized, write_line
from holmes.values.events import AnswerFinished, AssistantReplied, RunFailed, ToolCallStarted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holmes.cli.render.event_lines import Detail
    from holmes.values.events import AgentEvent


_PLOT_COLUMNS = 80


class PlainRenderer:
    """Shows progress on standard error, and the complete answer on standard output."""

    def __init__(
        self, detail: Detail, *, pretty_answer: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._detail = detail
        self._pretty_answer = pretty_answer
        self._clock = clock
        self._summary = RunSummary(clock())
        self._sources = CitedSources()
        self._held: list[AgentEvent] | None = None
        encoding = getattr(sys.stderr, "encoding", None) or "ascii"
        self._plot = PlotSpace(columns=_PLOT_COLUMNS, encoding=encoding) if detail.tool_output else None

    def start(self) -> None:
        self._summary = RunSummary(self._clock())

    def show(self, event: AgentEvent) -> None:
        if self._held is not None:
            self._held.append(event)
            return
        self._summary.note(event)
        self._sources.note(event)
        for line in event_lines(event, self._detail, self._plot):
            self.notice(line.text)
        match event:
            case ToolCallStarted():
                self.notice(f"→ {one_line(event.description)}")
            case AssistantReplied() if event.message.tool_calls and event.message.text.strip():
                self._print_thought(sanitized(event.message.text.strip()), checked=event.checked)
            case AnswerFinished():
                self._print_answer(*self._short(event))
                self._print_cost()
            case RunFailed():
                self._print_cost()
            case _:
                pass

    def stop(self) -> None: ...

    def pause(self) -> None:
        """Hold back events until `resume` is called."""
        self._held = []

    def resume(self) -> None:
        """Show the events that were held back."""
        held, self._held = self._held or (), None
        for event in held:
            self.show(event)

    def notice(self, text: str) -> None:
        write_line(sys.stderr, sanitized(text))

    def _short(self, event: AnswerFinished) -> tuple[str, tuple[str, ...]]:
        text, sources = sanitized(event.text), self._sources.by_id
        return render_citations(text, sources, event.citations, paths=self._detail.paths)

    def _print_thought(self, text: str, *, checked: bool) -> None:
        """Print the model's text before its tool calls, with the sources of its citations."""
        citations = ShortCitations(self._sources.by_id, paths=self._detail.paths)
        self.notice(citations.shorten(text) if checked else text)
        for line in citations.lines():
            self.notice(f"  {line}")

    def _print_answer(self, text: str, evidence: tuple[str, ...]) -> None:
        if self._pretty_answer:
            from holmes.cli.render.markdown import markdown_console, print_markdown

            print_markdown(markdown_console(sys.stdout), text)
        else:
            write_line(sys.stdout, f"{text.rstrip()}\n" if evidence else text)
        if evidence:
            write_line(sys.stdout, "\n".join(evidence))

    def _print_cost(self) -> None:
        if line := self._summary.cost_line(self._clock()):
            self.notice(line)


class Renderer(Protocol):
    """Shows the runs of a command, one after another."""

    def start(self) -> None:
        """Prepare for a new run."""
        ...

    def show(self, event: AgentEvent) -> None: ...

    def stop(self) -> None:
        """End the display of a run. May be called twice."""
        ...

    def notice(self, text: str) -> None:
        """Show a line that does not belong to the event stream."""
        ...

    def pause(self) -> None:
        """Stop drawing while the user decides about a call."""
        ...

    def resume(self) -> None:
        """Continue after the user has decided."""
        ...


def choose_renderer(detail: Detail, environment: Mapping[str, str]) -> Renderer:
    """Return the renderer for the streams of this process."""
    dumb = environment.get("TERM") in {"dumb", "unknown"}
    if is_terminal(sys.stderr) and not dumb:
        from holmes.cli.render.live_renderer import LiveRenderer

        return LiveRenderer(detail, answer_is_live=is_terminal(sys.stdout))

    return PlainRenderer(detail, pretty_answer=is_terminal(sys.stdout) and not dumb)
