"""Charts of tools on their way to the model: inline, stored and read back, and never to a model that cannot see."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from holmes.charts.picture import LINE_COLOURS, THRESHOLD_COLOUR
from holmes.core.policy import ContextPolicy, SpillPolicy
from holmes.llm.codec import MessageCodec
from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.stores.result_store import FileResultStore
from holmes.tokens import TokenCounter
from holmes.toolsets.pictured import Pictured
from holmes.toolsets.stored_results import StoredResultsToolset
from holmes.values.events import ToolCallFinished
from holmes.values.messages import ToolMessage
from holmes.values.model import ModelLimits
from holmes.values.tools import ToolResult
from tests.support.charts import MEMORY
from tests.support.investigations import build_loop, events_of
from tests.support.pixels import Pixels
from tests.support.toolsets import FunctionToolset, tool

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.values.model import ModelRequest
    from holmes.values.tools import ToolInvocation

NUMBERS = "- checkout-0: first 2, last 8\n" * 40


async def _range(_: ToolInvocation) -> ToolResult:
    return ToolResult(status="success", data=NUMBERS, chart=MEMORY)


TOOLSET = Pictured(FunctionToolset(bodies=((tool("range"), _range),)))
CALL = ScriptedReply(tool_calls=(scripted_call("range"),))
DONE = ScriptedReply(text="done")


def wire(request: ModelRequest, *, vision: bool) -> str:
    """The messages of a request as a provider gets them."""
    return json.dumps(MessageCodec(provider="openai", vision=vision).encode(request.messages))


def pictures(request: ModelRequest) -> list[Pixels]:
    """The pictures that a provider gets with a request."""
    urls = [part.split('"')[0] for part in wire(request, vision=True).split("data:image/png;base64,")[1:]]
    return [Pixels.of(base64.b64decode(url)) for url in urls]


def shows_memory(pixels: Pixels) -> bool:
    colours = (LINE_COLOURS[0], LINE_COLOURS[1], THRESHOLD_COLOUR)
    return all(len(pixels.places(colour)) > 300 for colour in colours) and pixels.share_of_dark(0, 24) > 0.02


async def test_a_model_that_sees_gets_numbers_and_picture(tmp_path: Path) -> None:
    model = ScriptedModel([CALL, DONE])
    events = await events_of(build_loop([model], [TOOLSET], store=FileResultStore(tmp_path)))
    (picture,) = pictures(model.requests[1])
    assert shows_memory(picture)
    assert NUMBERS.strip().splitlines()[0] in wire(model.requests[1], vision=True)
    (finished,) = [event for event in events if isinstance(event, ToolCallFinished)]
    assert finished.chart is not None
    assert finished.chart.background == ()
    assert [each.media_type for each in finished.message.stored] == ["text/plain", "image/png"]


async def test_a_model_that_cannot_see_gets_the_numbers_and_a_note(tmp_path: Path) -> None:
    limits = ModelLimits(context_window_tokens=128_000, max_output_tokens=4_096, vision=False, image_formula="note")
    model = ScriptedModel([CALL, DONE], limits=limits)
    events = await events_of(build_loop([model], [TOOLSET], store=FileResultStore(tmp_path)))
    sent = wire(model.requests[1], vision=False)
    assert "base64" not in sent
    assert "that this model cannot see]" in sent
    assert "first 2, last 8" in sent
    (message,) = [each for each in model.requests[1].messages if isinstance(each, ToolMessage)]
    seeing, counter = TokenCounter(image_formula="openai"), TokenCounter(image_formula="note")
    assert seeing.count_message(message) - counter.count_message(message) > 350  # it does not pay for what it misses
    (finished,) = [event for event in events if isinstance(event, ToolCallFinished)]
    assert any(each.media_type == "image/png" for each in finished.message.stored)  # people see it


async def test_a_picture_above_the_limit_is_stored_and_read_back(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)

    def read(request: ModelRequest) -> ScriptedReply:
        (message,) = [each for each in request.messages if isinstance(each, ToolMessage)]
        assert message.spilled
        stored = next(each for each in message.stored if each.media_type == "image/png")
        assert stored.id in message.text
        return ScriptedReply(tool_calls=(scripted_call("read_image_file", result=stored.id),))

    model = ScriptedModel([CALL, read, DONE])
    reader = StoredResultsToolset(store=store, counter=TokenCounter(), cap_tokens=700, vision=True)
    policy = ContextPolicy(spill=SpillPolicy(max_tokens=700))
    events = await events_of(build_loop([model], [TOOLSET, reader], store=store, policy=policy))
    assert pictures(model.requests[1]) == []
    (picture,) = pictures(model.requests[2])
    assert shows_memory(picture)
    first = next(event for event in events if isinstance(event, ToolCallFinished))
    assert first.message.spilled
    assert first.chart is not None  # the terminal shows it all the same
