"""The wrapper that draws charts: with masked names, and one short line instead if matplotlib is not installed."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from holmes.charts.picture import LINE_COLOURS
from holmes.redaction.redactor import Redactor
from holmes.toolsets.pictured import NOT_INSTALLED, Pictured
from holmes.toolsets.wrappers import Redacted
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation, ToolResult
from tests.support.charts import MEMORY
from tests.support.pixels import Pixels
from tests.support.toolsets import FunctionToolset, tool

CALL = ToolInvocation(call_id=ToolCallId("1"), tool=tool("run"), arguments={})
SECRET = 'up{db_password="hunter2-hunter2"}'


def pictured(result: ToolResult, redactor: Redactor | None = None) -> Pictured:
    async def body(_: ToolInvocation) -> ToolResult:
        return result

    return Pictured(Redacted(FunctionToolset(bodies=((tool("run"), body),)), redactor))


async def test_a_result_with_a_chart_gets_a_picture_and_keeps_its_numbers() -> None:
    result = await pictured(ToolResult(status="success", data="numbers", chart=MEMORY)).call(CALL)
    assert result.data == "numbers"
    (image,) = result.images
    assert image.media_type == "image/png"
    assert len(image.data) < 200_000
    assert len(Pixels.of(image.data).places(LINE_COLOURS[0])) > 500


async def test_a_result_without_a_chart_stays_as_it_is() -> None:
    result = ToolResult(status="success", data="numbers")
    assert await pictured(result).call(CALL) is result


async def test_a_picture_shows_masked_names_only() -> None:
    redactor = Redactor(b"a key of the tests, 32 bytes long")
    chart = replace(MEMORY, title=SECRET, lines=(replace(MEMORY.lines[0], name=SECRET), MEMORY.lines[1]))
    masked = await pictured(ToolResult(status="success", data="numbers", chart=chart), redactor).call(CALL)
    assert masked.chart is not None
    assert "hunter2" not in str(masked.chart)
    assert masked.chart.title.startswith("up{db_password=")
    drawn = replace(masked.chart, background=MEMORY.background)
    same = await pictured(ToolResult(status="success", data="numbers", chart=drawn)).call(CALL)
    assert same.images == masked.images  # drawn from what is masked


async def test_without_the_extra_there_is_a_line_and_the_numbers_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as Python marks a module that cannot be imported
    result = await pictured(ToolResult(status="success", data="numbers", chart=MEMORY)).call(CALL)
    assert result.data == f"numbers\n{NOT_INSTALLED}"
    assert result.images == ()
    assert result.chart == replace(MEMORY, background=())  # the terminal needs no matplotlib
