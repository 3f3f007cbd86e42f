"""Plots for the terminal: the cells of each part, also without Unicode, and never wider than the terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.charts import draw_plot
from holmes.values.charts import ChartLine, ChartMark, Threshold
from tests.support.charts import END, MEMORY, START, chart, line


def test_a_plot_of_sixty_columns() -> None:
    lines = draw_plot(MEMORY, 60)
    assert max(map(len, lines)) <= 60
    rows = [row.partition("┤")[2].ljust(49) for row in lines[1:11]]
    first = [next(place for place, row in enumerate(rows) if row[column] == "●") for column in (0, 48)]
    threshold = next(place for place, row in enumerate(rows) if "╌╌╌" in row)
    assert first[1] < threshold < first[0]  # the line is over the threshold at its end
    assert sum(row[24] == "┊" for row in rows) >= 5  # the rollout
    assert any("▲" in row for row in rows)
    assert lines[12].split() == ["11:30", "12:00"]
    assert lines[13].endswith("UTC, in MiB, 2 of 12 series")
    assert lines[14] == '● 190.7 to 762.9: {pod="checkout-0"}'
    assert lines[16] == "╌ threshold > 600,000,000 (MemoryHigh)"
    assert lines[17].endswith("rollout checkout")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "no such encoding"])
def test_a_terminal_without_unicode_gets_the_same_plot_in_ascii(encoding: str) -> None:
    named = replace(MEMORY, lines=(replace(MEMORY.lines[0], name="größe"), MEMORY.lines[1]))
    lines, unicode_lines = draw_plot(named, 60, encoding=encoding), draw_plot(named, 60)
    assert len(lines) == len(unicode_lines)
    for plain, full in zip(lines[1:11], unicode_lines[1:11], strict=True):
        assert plain == full.translate(str.maketrans("┤●▲╌┊", "|*x-:"))
    assert lines[14].startswith("* 190.7 to 762.9: gr")
    "\n".join(lines).encode("latin-1" if encoding == "latin-1" else "ascii")


def test_a_gap_has_no_cells_and_a_spike_keeps_its_height() -> None:
    kept = [place for place in range(61) if not 20 < place < 40]
    spiky = ChartLine(
        name="a",
        times=tuple(START + 60 * place for place in kept),
        values=tuple(100.0 if place == 50 else 1.0 for place in kept),
    )
    rows = [row.partition("┤")[2].ljust(60) for row in draw_plot(chart(spiky), 71)[1:11]]
    assert all(row[25:35].strip() == "" for row in rows)
    assert "●" in rows[0][48:52]


@given(
    st.lists(
        st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=80),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 200),
    st.text(max_size=200),
    st.none() | st.floats(-1e6, 1e6),
    st.sampled_from(["utf-8", "ascii"]),
)
def test_no_values_or_names_break_a_plot(
    values: list[list[float]], columns: int, name: str, threshold: float | None, encoding: str
) -> None:
    lines = tuple(
        ChartLine(name=name, times=tuple(START + 45.0 * place for place in range(len(each))), values=tuple(each))
        for each in values
    )
    drawn = draw_plot(
        chart(
            *lines,
            threshold=None if threshold is None else Threshold(value=threshold, text=name),
            marks=(ChartMark(time=END + 5, text=name),),
        ),
        columns,
        encoding=encoding,
    )
    assert all(len(each) <= max(40, columns) for each in drawn)
    assert all("\n" not in each for each in drawn)
    "\n".join(drawn).encode(encoding, "surrogatepass")


def test_a_single_sample_is_one_cell() -> None:
    rows = draw_plot(chart(line("a", lambda _: 7.0, range(30, 31))), 60)[1:11]
    assert sum(row.count("●") for row in rows) == 1
