"""Draws a chart as a PNG of 800 x 440 pixels, the same bytes for the same chart.

matplotlib is an extra, and is imported with the first picture. Only the Agg canvas is used, without `pyplot`, so that
no figure stays in memory. matplotlib's settings belong to the process, so that one picture is drawn at a time.
"""

from __future__ import annotations

import io
import logging
import math
import threading
from typing import TYPE_CHECKING, Final

from holmes.charts.scales import span_text, time_ticks, value_scale
from holmes.values.charts import number
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from holmes.charts.scales import ValueScale
    from holmes.values.charts import Chart, ChartLine

WIDTH_PIXELS: Final = 800
HEIGHT_PIXELS: Final = 440
LINE_COLOURS: Final = ("#1f5fb4", "#e07b00", "#2e8b3d", "#8a4fbf", "#0f9aa8", "#a0522d", "#c2187d", "#6b7a00")
THRESHOLD_COLOUR: Final = "#d00000"
MARK_COLOUR: Final = "#444444"
BACKGROUND_COLOUR: Final = "#cccccc"
_DOTS_PER_INCH: Final = 100
_MOST_MARKS: Final = 12
_TITLE_CHARACTERS: Final = 96
_NAME_CHARACTERS: Final = 58
_MARK_CHARACTERS: Final = 28
_DRAWING: Final = threading.Lock()
_SETTINGS: Final = {
    "font.family": ["DejaVu Sans"],  # part of matplotlib, so that a picture is the same on each machine
    "font.size": 8.0,
    "text.parse_math": False,  # a `$` in a label is not a formula
    "axes.unicode_minus": False,
    "path.simplify": True,
}


def draw_picture(chart: Chart) -> bytes:
    """Draw `chart`, which has at least one line. Raises `ImportError` if matplotlib is not installed."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it reports caches and fonts, which concern no user
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    size = WIDTH_PIXELS / _DOTS_PER_INCH, HEIGHT_PIXELS / _DOTS_PER_INCH
    output = io.BytesIO()
    with _DRAWING, mpl.rc_context(fname=None, rc={**mpl.rcParamsDefault, **_SETTINGS}):
        figure = Figure(figsize=size, dpi=_DOTS_PER_INCH, facecolor="white")
        canvas = FigureCanvasAgg(figure)
        _draw(figure, chart)
        canvas.print_png(output, metadata={"Software": None})
    return output.getvalue()


def _draw(figure: Figure, chart: Chart) -> None:
    from matplotlib.collections import LineCollection

    scale = value_scale(chart)
    rows = math.ceil((len(chart.lines) + (chart.threshold is not None)) / 2) + 1
    bottom = 0.1 + 0.036 * rows
    axes = figure.add_axes((0.09, bottom, 0.89, 0.9 - bottom))
    _draw_axes(axes, chart, scale)
    background = [list(zip(*_points(line, chart, scale), strict=True)) for line in chart.background]
    axes.add_collection(LineCollection(background, colors=BACKGROUND_COLOUR, linewidths=0.9, zorder=1))
    drawn = [
        axes.plot(*_points(line, chart, scale), color=colour, linewidth=1.5, zorder=3)[0]
        for line, colour in zip(chart.lines, LINE_COLOURS, strict=False)
    ]
    names = [_readable(line.name, _NAME_CHARACTERS) for line in chart.lines]
    if chart.threshold is not None:
        drawn.append(_threshold_line(axes, chart.threshold.value / scale.divisor))
        outside = "" if scale.shows_threshold else ", outside of the picture"
        names.append(_readable(f"threshold {chart.threshold.text}{outside}", _NAME_CHARACTERS))
    _draw_marks(axes, chart)
    _draw_texts(figure, chart, drawn, names)


def _draw_axes(axes: Axes, chart: Chart, scale: ValueScale) -> None:
    axes.set_xlim(chart.start, max(chart.end, chart.start + 1))
    axes.set_ylim(scale.low / scale.divisor, scale.high / scale.divisor)
    ticks = time_ticks(chart.start, chart.end, 9)
    axes.set_xticks([time for time, _ in ticks], [label for _, label in ticks])
    axes.yaxis.set_major_formatter(lambda value, _place: number(round(value, 10)))
    axes.set_ylabel(_readable(scale.unit, 40))
    axes.grid(visible=True, color="#ececec", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _points(line: ChartLine, chart: Chart, scale: ValueScale) -> tuple[list[float], list[float]]:
    """Return the samples of a line, with a value that is not a number where samples are missing."""
    times, values = list[float](), list[float]()
    for time, value in zip(line.times, line.values, strict=True):
        if times and time - times[-1] > 1.5 * chart.step_seconds:
            times.append(time)
            values.append(math.nan)
        times.append(time)
        values.append(value / scale.divisor)
    return times, values


def _threshold_line(axes: Axes, value: float) -> Line2D:
    return axes.axhline(value, color=THRESHOLD_COLOUR, linewidth=1.4, linestyle=(0, (6, 3)), zorder=4)


def _draw_marks(axes: Axes, chart: Chart) -> None:
    """Draw a vertical line for each event, with its text along it."""
    for mark in chart.marks[:_MOST_MARKS]:
        axes.axvline(mark.time, color=MARK_COLOUR, linewidth=1.0, linestyle=(0, (2, 2)), zorder=2)
        axes.annotate(
            _readable(mark.text, _MARK_CHARACTERS),
            xy=(mark.time, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-3, -3),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="top",
            fontsize=7,
            color=MARK_COLOUR,
            zorder=5,
        )


def _draw_texts(figure: Figure, chart: Chart, drawn: list[Line2D], names: list[str]) -> None:
    figure.text(0.012, 0.985, _readable(chart.title, _TITLE_CHARACTERS), fontsize=10, fontweight="bold", va="top")
    shown = len(chart.lines)
    counted = f"; {shown} of {chart.series:,} series have a colour" if chart.series > shown else ""
    more = len(chart.marks) - _MOST_MARKS
    left_out = f"; {more} more events" if more > 0 else ""
    figure.text(0.988, 0.012, f"{span_text(chart.start, chart.end)}{counted}{left_out}", ha="right", va="bottom")
    # A label that begins with `_` would be left out.
    labels = [f" {name}" if name.startswith("_") else name for name in names]
    figure.legend(drawn, labels, loc="lower left", bbox_to_anchor=(0.0, 0.04), ncols=2, frameon=False, fontsize=7.5)


def _readable(text: str, most_characters: int) -> str:
    """Return a short line with `□` for characters that the font does not have."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    known = get_font(findfont(FontProperties(family="DejaVu Sans"))).get_charmap()
    line = shortened(" ".join(text.split()), most_characters)
    return "".join(character if ord(character) in known else "□" for character in line)
