"""Citations and the tools for stored results use the same line numbers."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.evidence import NumberedText
from holmes.tokens import TokenCounter
from holmes.toolsets.stored_results import StoredResultsToolset
from holmes.values.json_types import JsonObject
from holmes.values.messages import HandedOver, ToolCallId
from holmes.values.tools import LINES_TOOL, ToolInvocation
from tests.evidence.stores import Conversation

pytestmark = pytest.mark.row("N6")

PIECES = st.sampled_from(
    [b"a", b"\n", b"\r\n", b"\xff", b"\xc3", b"\xa9", "中".encode(), b'{"a": [1, 2]}', b" ", b"\t"]
)
CONTENTS = st.lists(st.one_of(PIECES, PIECES.map(lambda piece: piece * 70_000)), max_size=8).map(b"".join)


@settings(max_examples=60)
@given(CONTENTS, st.data())
def test_lines_and_numbers_are_those_of_the_whole_text_cut_at_line_feeds(content: bytes, data: st.DataObject) -> None:
    text = NumberedText(content)
    lines = text.text.split("\n")
    if lines[-1] == "" and len(lines) > 1:
        lines.pop()
    assert text.total_lines == len(lines)
    if not content.startswith(b"{"):
        assert text.text == content.decode("utf-8", "replace")
    first = data.draw(st.integers(1, len(lines)))
    last = data.draw(st.integers(first, min(len(lines), first + 1_000)))
    assert text.lines(first, last) == [line.rstrip("\r") for line in lines[first - 1 : last]]
    start, end = text.span(first, last)
    assert (text.line_at(start), text.line_at(end)) == (first, last)


async def test_the_read_back_tool_shows_the_same_line_under_the_same_number(tmp_path: Path) -> None:
    conversation = Conversation.below(tmp_path)
    tools = StoredResultsToolset(store=conversation.store, counter=TokenCounter(), cap_tokens=20_000, vision=False)
    tool = next(tool for tool in tools.tools if tool.name == LINES_TOOL)
    contents = (
        b"one\r\ntwo\n\nfour",
        b"\n\n",
        b"only",
        json.dumps({"items": [{"name": "checkout", "ready": False}], "kind": "List", "empty": []}).encode(),
        json.dumps([1, 2, {"a": "b\nc"}], indent=2).encode() + b"\n",
        b"caf\xe9\n\xff\xfe\n",
    )
    for content in contents:
        result_id = await conversation.bytes_result(content)
        arguments: JsonObject = {"result_id": result_id, "first_line": 1, "last_line": 2_000}
        handed_over = HandedOver(ids=frozenset({result_id}))
        invocation = ToolInvocation(tool=tool, arguments=arguments, call_id=ToolCallId("read"), handed_over=handed_over)
        answer = await tools.call(invocation)
        numbered = dict(re.findall(r"^(\d+): (.*)$", answer.data, re.MULTILINE))
        text = NumberedText(content)
        expected = {str(number): line for number, line in enumerate(text.lines(1, text.total_lines), start=1)}
        if len(expected) > 1:
            assert numbered == expected


def test_twenty_megabytes_are_numbered_and_searched() -> None:
    content = b"2026-11-22T01:00:00Z info request handled in 12ms\n" * 400_000 + b"panic: out of memory\n"
    text = NumberedText(content)
    found = list(text.find(re.compile("panic"), (0, len(text.text)), contains="panic"))
    assert found == [(400_001, 400_001)]
    assert text.lines(400_001, 400_009) == ["panic: out of memory"]


def test_a_match_across_two_pieces_is_found_once() -> None:
    text = NumberedText(b"x" * 16_380 + b" needle in\n  the hay " + b"x" * 40_000)
    assert list(text.find(re.compile(r"needle\s+in\s+the"), (0, len(text.text)), contains="needle")) == [(1, 2)]


def test_a_search_ends_at_its_deadline() -> None:
    text = NumberedText(b"a\n" * 1_000_000)
    with pytest.raises(TimeoutError):
        list(text.find(re.compile("b"), (0, len(text.text)), deadline=time.monotonic() - 1))
