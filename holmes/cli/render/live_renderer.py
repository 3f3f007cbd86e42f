"""The live view on a terminal: a line for each running tool call, and the answer while it is written.

Finished lines are printed once and scroll away. Only the end of the screen is redrawn: running calls, the status, and
the last lines of the current text. Untrusted text is sanitised first.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from holmes.cli.render.citations import CitedSources, ShortCitations, render_citations
from holmes.cli.render.event_lines import PlotSpace, RunSummary, event_lines
from holmes.cli.render.markdown import MarkdownBlocks, as_renderable, markdown_console, markdown_lines, print_markdown
from holmes.cli.render.terminal import duration, one_line, sanitized, write_line
from holmes.values.events import (
    AnswerFinished,
    AssistantReplied,
    AttemptDiscarded,
    CompactionFailed,
    CompactionStarted,
    HistoryCompacted,
    RunFailed,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    ToolResultsMasked,
    TurnStarted,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console, RenderableType

    from holmes.cli.render.event_lines import Detail, Style
    from holmes.values.events import AgentEvent
    from holmes.values.messages import ToolCallId

_STYLES: dict[Style, str] = {"good": "green", "bad": "red", "warning": "yellow", "dim": "dim"}
_FRAMES_PER_SECOND = 8
_TAIL_CHARACTERS = 8_000


class _Moving:
    """A line with a spinner and its elapsed time."""

    def __init__(self, text: str, style: str, since_seconds: float) -> None:
        self.text = text
        self._style = style
        self._since_seconds = since_seconds
        self._spinner = Spinner("dots")

    def frame(self, now_seconds: float) -> RenderableType:
        """Return the line as it looks at `now_seconds`."""
        text = f"{self.text} · {duration(now_seconds - self._since_seconds)}"
        self._spinner.update(text=Text(text, style=self._style, overflow="ellipsis", no_wrap=True))
        return self._spinner


class LiveRenderer:
    """Draws the live view of a run.

    If `answer_is_live` is true, the view and the answer go to standard output; otherwise, the view goes to standard
    error.
    """

    def __init__(self, detail: Detail, *, answer_is_live: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._detail = detail
        self._answer_is_live = answer_is_live
        self._clock = clock
        self._console: Console = markdown_console(sys.stdout if answer_is_live else sys.stderr)
        self._live: Live | None = None
        self._held: list[AgentEvent] | None = None
        self._calls: dict[ToolCallId, _Moving] = {}
        self._status: _Moving | None = None
        self._thinking = "thinking"
        self._blocks = MarkdownBlocks()
        self._reply_text = ""
        self._reply_is_checked = False
        self._reply_is_on_screen = False
        self._answer_shown = ""
        self._summary = RunSummary(clock())
        self._sources = CitedSources()
        self._citations = ShortCitations(self._sources.by_id, paths=self._detail.paths)

    def start(self) -> None:
        """Show activity before the first event arrives."""
        self._summary = RunSummary(self._clock())
        self._calls.clear()
        self._blocks, self._reply_text, self._answer_shown = MarkdownBlocks(), "", ""
        self._citations = ShortCitations(self._sources.by_id, paths=self._detail.paths)
        self._set_status("starting")
        self._open()

    def show(self, event: AgentEvent) -> None:
        if self._held is not None:
            self._held.append(event)
            return
        self._open()
        self._summary.note(event)
        self._sources.note(event)
        match event:
            case TextDelta():
                self._show_text(event)
            case AttemptDiscarded():
                self._discard_text()
            case AssistantReplied():
                self._finish_reply(event)
            case AnswerFinished():
                self._finish_answer(event)
            case RunFailed():
                self.stop()
                self._print_cost()
            case _:
                self._follow(event)
        plot = PlotSpace(columns=self._console.width, encoding=self._console.encoding)
        if lines := event_lines(event, self._detail, plot):
            # Printed at once, because each print draws the end of the screen again.
            self._console.print(Text("\n").join(Text(line.text, style=_STYLES[line.style]) for line in lines))

    def stop(self) -> None:
        """Remove the live view."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def pause(self) -> None:
        """Remove the live view and hold back events until `resume` is called."""
        self._held = []
        self.stop()

    def resume(self) -> None:
        """Show the events that were held back, and draw the live view again."""
        held, self._held = self._held or (), None
        for event in held:
            self.show(event)
        self._open()

    def notice(self, text: str) -> None:
        """Print a dim line above the live view."""
        self._console.print(Text(sanitized(text), style="dim"))

    def _open(self) -> None:
        if self._live is None and self._held is None:
            self._live = Live(
                console=self._console,
                get_renderable=self._foot,
                refresh_per_second=_FRAMES_PER_SECOND,
                transient=True,
                redirect_stdout=False,
            )
            self._live.start()

    def _follow(self, event: AgentEvent) -> None:
        """Update the live view."""
        match event:
            case TurnStarted():
                self._thinking = "thinking" if event.step == 1 else f"step {event.step} · thinking"
                self._set_status(self._thinking)
            case CompactionStarted():
                self._set_status("compacting the conversation")
            case HistoryCompacted() | CompactionFailed() | ToolResultsMasked():
                self._set_status(self._thinking)
            case ToolCallStarted():
                self._calls[event.call.id] = _Moving(one_line(event.description), "", self._clock())
                self._set_status("")
            case ToolCallFinished():
                self._calls.pop(event.call.id, None)
            case _:
                pass

    def _set_status(self, status: str) -> None:
        if not status:
            self._status = None
        elif self._status is None or self._status.text != status:
            self._status = _Moving(status, "dim", self._clock())

    def _show_text(self, event: TextDelta) -> None:
        self._reply_text += event.text
        self._reply_is_checked = event.checked
        if self._answer_is_live:
            for block in self._blocks.feed(event.text):
                self._reply_is_on_screen = True
                print_markdown(self._console, self._shown(block).strip("\n"))
        self._set_status("writing")

    def _discard_text(self) -> None:
        if self._reply_is_on_screen:
            self.notice("  the text above is incomplete and was discarded")
        self._blocks, self._reply_text, self._reply_is_on_screen = MarkdownBlocks(), "", False
        self._citations = ShortCitations(self._sources.by_id, paths=self._detail.paths)

    def _finish_reply(self, event: AssistantReplied) -> None:
        """Print the rest of the reply, or the complete reply if it was not streamed."""
        rest = self._blocks.finish()
        self._reply_is_checked = event.checked
        if self._answer_is_live:
            if text := self._shown(rest if self._reply_text else event.message.text).strip():
                print_markdown(self._console, text)
        elif event.message.tool_calls and event.message.text.strip():
            self.notice(self._shown(event.message.text.strip()))
        if event.message.tool_calls:
            self._print_evidence()
        self._reply_text, self._reply_is_on_screen = "", False
        self._answer_shown = event.message.text
        self._set_status("")

    def _finish_answer(self, event: AnswerFinished) -> None:
        self.stop()
        if not self._answer_is_live:
            sources, paths = self._sources.by_id, self._detail.paths
            text, evidence = render_citations(sanitized(event.text), sources, event.citations, paths=paths)
            write_line(sys.stdout, "\n".join((text.rstrip(), "", *evidence)) if evidence else text)
        else:
            if missing := event.text.removeprefix(self._answer_shown).strip():
                print_markdown(self._console, self._shown(missing))
            self._print_evidence()
        self._print_cost()

    def _print_evidence(self) -> None:
        """Print the sources of the citations. The citation numbers of the next reply start at 1."""
        for line in self._citations.lines():
            self._console.print(Text(line, style="dim"))
        self._citations = ShortCitations(self._sources.by_id, paths=self._detail.paths)

    def _shown(self, text: str) -> str:
        """Return sanitised text, with short citations if they have been checked."""
        return self._citations.shorten(sanitized(text)) if self._reply_is_checked else sanitized(text)

    def _print_cost(self) -> None:
        if line := self._summary.cost_line(self._clock()):
            self.notice(line)

    def _foot(self) -> RenderableType:
        """Return the live view. It is never taller than the screen, because a taller view cannot be erased."""
        now = self._clock()
        room = max(self._console.height - 2, 1)
        moving = list(self._calls.values())[: max(room - 1, 1)]
        if self._status is not None and not moving:
            moving.append(self._status)
        foot: list[RenderableType] = [item.frame(now) for item in moving]
        if tail := self._text_tail(max(room - len(foot), 1)):
            foot.insert(0, tail)
        return Group(*foot)

    def _text_tail(self, height: int) -> RenderableType | None:
        """Return the last `height` lines of the current block."""
        text = sanitized(self._blocks.rest[-_TAIL_CHARACTERS:])
        text = (self._citations.peek(text) if self._reply_is_checked else text).strip("\n")
        if not text.strip():
            return None
        return as_renderable(markdown_lines(self._console, text)[-height:])
