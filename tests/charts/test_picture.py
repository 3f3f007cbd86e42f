"""Pictures: the pixels of each part, the same bytes for the same chart, and nothing of the user's own settings."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holmes.charts import draw_picture
from holmes.charts.picture import (
    BACKGROUND_COLOUR,
    HEIGHT_PIXELS,
    LINE_COLOURS,
    MARK_COLOUR,
    THRESHOLD_COLOUR,
    WIDTH_PIXELS,
)
from holmes.values.charts import Threshold
from tests.support.charts import MEMORY, chart, line
from tests.support.pixels import Pixels

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.charts import Chart


def above_the_legend(pixels: Pixels, colour: str) -> list[tuple[int, int]]:
    return pixels.places(colour, left=74, bottom=300)


def background(pixels: Pixels) -> list[tuple[int, int]]:
    return pixels.places(BACKGROUND_COLOUR, left=74, bottom=300, near=4)


def test_a_picture_has_lines_threshold_marks_background_and_texts() -> None:
    pixels = Pixels.of(draw_picture(MEMORY))
    assert pixels.size == (WIDTH_PIXELS, HEIGHT_PIXELS)
    jump = above_the_legend(pixels, LINE_COLOURS[0])
    left, right = ([y for x, y in jump if x in part] for part in (range(80, 400), range(460, 780)))
    assert min(left) > max(right)  # the line is higher after the jump
    threshold = above_the_legend(pixels, THRESHOLD_COLOUR)
    assert len({y for _, y in threshold}) <= 4
    assert len({x for x, _ in threshold}) > 300
    assert max(right) < min(y for _, y in threshold) < min(left)
    dark = Counter(x for x, _ in above_the_legend(pixels, MARK_COLOUR))
    assert len([x for x, count in dark.items() if count > 60]) in range(2, 7)  # two vertical lines
    assert len(background(pixels)) > 400
    assert pixels.share_of_dark(0, 24) > 0.02  # the title
    assert pixels.share_of_dark(420, 440) > 0.01  # the time zone


def test_parts_that_are_not_known_have_no_pixels() -> None:
    bare = replace(MEMORY, threshold=None, marks=(), background=(), lines=MEMORY.lines[:1])
    pixels = Pixels.of(draw_picture(bare))
    assert not pixels.places(THRESHOLD_COLOUR)
    assert len(background(pixels)) < 200  # the edges of letters
    assert not above_the_legend(pixels, LINE_COLOURS[1])


def test_a_gap_has_no_line() -> None:
    broken = line("a", lambda _: 5.0)
    kept = [place for place in range(61) if not 20 < place < 40]
    gap = replace(
        broken,
        times=tuple(broken.times[place] for place in kept),
        values=tuple(broken.values[place] for place in kept),
    )
    whole, pixels = (
        {x for x, _ in above_the_legend(Pixels.of(draw_picture(chart(each))), LINE_COLOURS[0])}
        for each in (broken, gap)
    )
    missing = whole - pixels
    assert len(missing) in range(215, 240)  # 19 of 60 minutes
    assert missing == set(range(min(missing), max(missing) + 1))


def test_a_far_threshold_does_not_flatten_the_lines() -> None:
    far = replace(MEMORY, threshold=Threshold(value=9e12, text="> 9e12 (Never)"))
    pixels = Pixels.of(draw_picture(far))
    assert not above_the_legend(pixels, THRESHOLD_COLOUR)
    assert len({y for _, y in above_the_legend(pixels, LINE_COLOURS[0])}) > 150


@pytest.mark.parametrize(
    "strange",
    [
        chart(line("one sample", lambda _: 1.0, range(1))),
        chart(line("huge", lambda place: 1e300 if place % 2 else -1e300)),
        chart(line("tiny", lambda place: 1e-300 * place)),
        chart(line("flat", lambda _: 0.0), threshold=Threshold(value=0.0, text="> 0")),
        chart(*(line(f"_line {number} $x^2$ 你好\x1b[2J", lambda _: 3.0) for number in range(8)), series=1_000),
        replace(MEMORY, title="$" * 5_000, unit="bytes per second", marks=MEMORY.marks * 30),
        replace(MEMORY, start=MEMORY.end - 31 * 86_400),
    ],
    ids=["one sample", "huge", "tiny", "flat", "names", "long", "month"],
)
def test_strange_values_and_names_are_drawn(strange: Chart) -> None:
    """Warnings are errors here: a missing glyph, a formula or a label that is left out would be one."""
    pixels = Pixels.of(draw_picture(strange))
    assert pixels.size == (WIDTH_PIXELS, HEIGHT_PIXELS)
    assert pixels.share_of_dark(0, 24) > 0.001


def test_the_same_chart_has_the_same_bytes_whatever_the_user_configured(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("figure.facecolor: black\naxes.facecolor: red\nfont.size: 30\n")
    program = (
        "import sys; from holmes.charts import draw_picture; from tests.support.charts import MEMORY; "
        "sys.stdout.buffer.write(draw_picture(MEMORY)); assert 'matplotlib.pyplot' not in sys.modules"
    )
    other = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join(sys.path), "HOME": str(tmp_path), "MPLBACKEND": "pdf", "PATH": ""},
        capture_output=True,
        check=True,
    )
    assert other.stdout == draw_picture(MEMORY)
    assert other.stderr == b""
