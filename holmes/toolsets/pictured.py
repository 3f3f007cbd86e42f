"""Adds a picture to each result that has a chart. It wraps the masked toolset, so that a picture shows masked names."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.values.charts import thinned
from holmes.values.messages import Image
from holmes.values.tools import WrapperToolset

if TYPE_CHECKING:
    from holmes.values.charts import Chart
    from holmes.values.tools import ToolInvocation, ToolResult

NOT_INSTALLED: Final = "[no picture: the extra `pictures` is not installed]"
NOT_DRAWN: Final = "[no picture: the values cannot be drawn]"


@dataclass(frozen=True, slots=True)
class Pictured(WrapperToolset):
    """Draws the charts of the wrapped toolset, also for a model that cannot see: people read the stored picture.

    The result keeps a chart with few samples, for the terminal and for the description of the picture.
    """

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        result = await self.inner.call(invocation)
        if result.chart is None:
            return result
        image = await asyncio.to_thread(_picture, result.chart)
        if image == NOT_DRAWN:
            return replace(result, chart=None, data=f"{result.data}\n{NOT_DRAWN}")
        result = replace(result, chart=thinned(result.chart))
        if isinstance(image, str):
            return replace(result, data=f"{result.data}\n{image}")
        return replace(result, images=(*result.images, image))


def _picture(chart: Chart) -> Image | str:
    """Draw a chart, or return why it has no picture."""
    from holmes.charts import draw_picture

    try:
        return Image(data=draw_picture(chart), media_type="image/png")
    except ImportError:
        return NOT_INSTALLED
    except (ValueError, OverflowError, OSError):  # values without a scale, or fonts that cannot be read
        return NOT_DRAWN
