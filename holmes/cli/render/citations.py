"""Shows citations as `[1]`, `[2 cited]` or `[3 not found there: OOMKilled]`, with a list of their sources.

Programs read the original markers in `--json-output-file`. Only citations that the agent loop has checked are
shortened. If citations are disabled, text stays unchanged.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holmes.cli.render.terminal import one_line
from holmes.evidence import OUTCOME_WORDS, MarkerGroup, marker_of, scan_markers
from holmes.values.events import AnswerFinished, ToolCallFinished
from holmes.values.messages import ToolMessage, UserMessage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from holmes.evidence import Marker
    from holmes.values.events import AgentEvent, Citation
    from holmes.values.messages import ResultId, StoredResult

_DESCRIPTION_CHARACTERS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedSource:
    """The source of a citation: the tool call, and the file of its result if the store keeps files."""

    description: str
    path: str | None


class CitedSources:
    """Collects the sources of citations from the events of a session."""

    def __init__(self) -> None:
        self.by_id: dict[ResultId, CitedSource] = {}

    def note(self, event: AgentEvent) -> None:
        if isinstance(event, ToolCallFinished):
            self._add(event.description, event.message.stored)
        elif isinstance(event, AnswerFinished):
            for message in event.messages:
                if isinstance(message, ToolMessage):
                    self._add(message.tool_name, message.stored)
                elif isinstance(message, UserMessage):
                    self._add("your message", message.stored)

    def _add(self, description: str, stored: tuple[StoredResult, ...]) -> None:
        for result in stored:
            self.by_id.setdefault(result.id, CitedSource(description=description, path=result.path))


class ShortCitations:
    """Numbers the markers of one text in the order of their first use.

    With `paths`, each number gets a line with its path and the outcome of its check. Otherwise, each source gets one.
    """

    def __init__(self, sources: Mapping[ResultId, CitedSource], *, paths: bool = False) -> None:
        self._sources = sources
        self._paths = paths
        self._numbers: dict[Marker, int] = {}

    def shorten(self, text: str, checked: Collection[Marker] | None = None) -> str:
        """Return `text` with a number such as `[1]` in place of each marker.

        If `checked` is set, replace only these markers.
        """
        if "[[" not in text:
            return text
        return "".join(
            self._short(piece, checked) if isinstance(piece, MarkerGroup) else piece for piece in scan_markers(text)
        )

    def peek(self, text: str) -> str:
        """Shorten text that may still change, without assigning numbers permanently. This method is thread-safe."""
        draft = ShortCitations(self._sources)
        draft._numbers = dict(self._numbers)
        return draft.shorten(text)

    def lines(self) -> tuple[str, ...]:
        """Return the lines that tell where the numbers lead."""
        if self._paths:
            return tuple(
                f"[{number}] {self._where(marker)} · {OUTCOME_WORDS[marker.outcome]}"
                for marker, number in self._numbers.items()
            )
        grouped: dict[str, list[Marker]] = defaultdict(list)
        for marker in self._numbers:
            grouped[self._name(marker)].append(marker)
        return tuple(
            f"{''.join(f'[{self._numbers[each]}]' for each in markers)} {name} · {_lines_of(markers)}"
            for name, markers in grouped.items()
        )

    def _name(self, marker: Marker) -> str:
        source = self._sources.get(marker.result_id)
        if source is None:
            return f"result {marker.result_id}"
        return one_line(source.description, _DESCRIPTION_CHARACTERS)

    def _short(self, group: MarkerGroup, checked: Collection[Marker] | None) -> str:
        if checked is not None and not any(marker in checked for marker in group.markers):
            return group.text
        return "".join(
            marker.short(self._numbers.setdefault(marker, len(self._numbers) + 1))
            if checked is None or marker in checked
            else str(marker)
            for marker in group.markers
        )

    def _where(self, marker: Marker) -> str:
        lines = _lines_of([marker])
        source = self._sources.get(marker.result_id)
        if source is None:
            return f"result {marker.result_id} · {lines}"
        place = f"result {marker.result_id}" if source.path is None else _with_tilde(source.path)
        return f"{one_line(source.description, _DESCRIPTION_CHARACTERS)} · {lines} · {one_line(place)}"


def render_citations(
    text: str, sources: Mapping[ResultId, CitedSource], checked: Iterable[Citation], *, paths: bool = False
) -> tuple[str, tuple[str, ...]]:
    """Return a complete text with its `checked` citations shortened, and the lines to show below it."""
    citations = ShortCitations(sources, paths=paths)
    return citations.shorten(text, frozenset(map(marker_of, checked))), citations.lines()


def _lines_of(markers: Sequence[Marker]) -> str:
    spans = sorted({(each.first_line, each.last_line) for each in markers})
    said = ", ".join(f"{first:,}" if first == last else f"{first:,}-{last:,}" for first, last in spans)
    return f"line {said}" if len(spans) == 1 and spans[0][0] == spans[0][1] else f"lines {said}"


def _with_tilde(path: str) -> str:
    """Return `path` with `~` in place of the home directory."""
    try:
        return str("~" / Path(path).relative_to(Path("~").expanduser()))
    except (ValueError, RuntimeError):
        return path
