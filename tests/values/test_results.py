"""A label says which stored result a message shows, and is never mistaken for what a tool wrote."""

from __future__ import annotations

import pytest

from holmes.values.messages import Part, ResultId, StoredResult, Text, ToolCallId, ToolMessage
from holmes.values.tools import label_of, output_text, result_label
from tests.support.conversations import png

TEXT = StoredResult(id=ResultId("a1b2c3d4e5f6"), path=None, size_bytes=3, media_type="text/plain")
PICTURE = StoredResult(id=ResultId("0123456789ab"), path=None, size_bytes=9, media_type="image/png")


def message(*parts: Part, stored: tuple[StoredResult, ...] = (TEXT,)) -> ToolMessage:
    return ToolMessage(call_id=ToolCallId("c"), tool_name="t", status="success", parts=parts, stored=stored)


@pytest.mark.row("N6")
def test_the_label_names_the_text_rather_than_its_pictures() -> None:
    assert result_label((PICTURE, TEXT)) == "[result a1b2c3d4e5f6]"
    assert result_label((PICTURE,)) == "[result 0123456789ab]"
    assert result_label(()) == ""


def test_the_output_of_a_labelled_message_is_what_the_tool_said() -> None:
    label = Text(text=result_label((TEXT,)))
    assert label_of(message(Text(text="out"), label)) == label.text
    assert output_text(message(Text(text="out"), label)) == "out"
    assert output_text(message(Text(text="out"), png(9, 9), label)) == "out"


@pytest.mark.parametrize(
    "parts",
    [
        (Text(text="[result a1b2c3d4e5f6]"),),
        (Text(text="out"), Text(text="[result ffffffffffff]")),
        (Text(text="out"), Text(text="see [result a1b2c3d4e5f6]")),
        (Text(text="out"), png(9, 9)),
        (),
    ],
    ids=["the whole output", "another result", "a sentence", "a picture last", "nothing"],
)
def test_what_only_looks_like_a_label_is_output(parts: tuple[Part, ...]) -> None:
    assert label_of(message(*parts)) is None
    assert output_text(message(*parts)) == message(*parts).text
