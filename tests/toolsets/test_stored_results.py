"""Reading back: every answer is bounded, says what is missing, and pages reach every byte."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.stores.result_store import FileResultStore
from holmes.tokens import TokenCounter
from holmes.toolsets.stored_results import StoredResultsToolset
from holmes.toolsets.stored_results.lines import SearchQuery, search_lines
from holmes.values.errors import ToolError
from holmes.values.json_types import JsonValue
from holmes.values.messages import HandedOver, Part, ResultId, Text, ToolCallId, ToolMessage
from holmes.values.tools import ToolInvocation, ToolResult
from tests.support.conversations import png, texts
from tests.support.deadlines import ends_before

COUNTER = TokenCounter()
PUT: set[ResultId] = set()
"""What `stored` has stored: the results of the conversation that calls."""
LOG = "".join(f"line {number}: {'ERROR' if number % 100 == 0 else 'ok'} checkout\r\n" for number in range(1, 3_001))


def toolset_of(store: FileResultStore, cap: int = 4_000, *, vision: bool = True) -> StoredResultsToolset:
    return StoredResultsToolset(store=store, counter=COUNTER, cap_tokens=cap, vision=vision)


async def stored(store: FileResultStore, content: bytes | str, media_type: str = "text/plain") -> ResultId:
    raw = content.encode() if isinstance(content, str) else content
    put = await store.put(raw, tool_name="t", call_id=ToolCallId("c"), media_type=media_type)
    PUT.add(put.id)
    return put.id


def handed_over() -> HandedOver:
    return HandedOver(ids=frozenset(PUT))


async def call(toolset: StoredResultsToolset, name: str, **arguments: JsonValue) -> ToolResult:
    tool = next(tool for tool in toolset.tools if tool.name == name)
    defaults = {parameter.name: parameter.default for parameter in tool.parameters if not parameter.required}
    result = await toolset.call(
        ToolInvocation(
            call_id=ToolCallId("x"),
            tool=tool,
            arguments={**defaults, **arguments},
            handed_over=handed_over(),
        )
    )
    assert not result.spillable
    return result


def tokens_of(result: ToolResult) -> int:
    parts: tuple[Part, ...] = (Text(text=result.data), *result.images)
    return COUNTER.count_message(ToolMessage(call_id=ToolCallId("x"), tool_name="t", status="success", parts=parts))


@pytest.mark.row("T17", "N2")
async def test_a_search_shows_line_numbers_context_and_how_many_there_are(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    toolset, result_id = toolset_of(store), await stored(store, LOG)
    result = await call(toolset, "search_stored_result", result_id=result_id, pattern="error", ignore_case=True)
    lines = result.data.splitlines()
    assert lines[0] == f"Result {result_id}, 3,000 lines: 30 matches of 'error', showing 1-30."
    assert lines[1:7] == [
        "98- line 98: ok checkout",
        "99- line 99: ok checkout",
        "100: line 100: ERROR checkout",
        "101- line 101: ok checkout",
        "102- line 102: ok checkout",
        "--",
    ]


@pytest.mark.row("N2")
async def test_a_search_with_too_many_matches_says_how_many_more_and_pages(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    toolset, result_id = toolset_of(store, cap=400), await stored(store, LOG)
    seen: list[int] = []
    skip = 0
    while True:
        result = await call(
            toolset, "search_stored_result", result_id=result_id, pattern="ERROR", context_lines=0, skip_matches=skip
        )
        assert tokens_of(result) <= 400
        seen.extend(int(number) for number in re.findall(r"^(\d+): ", result.data, re.MULTILINE))
        more = re.search(r"([\d,]+) more matches: narrow the pattern or use skip_matches=(\d+)", result.data)
        if not more:
            break
        skip = int(more[2])
        assert skip == len(seen)
    assert skip > 0
    assert seen == [*range(100, 3_001, 100)]


async def test_every_match_of_one_long_line_is_found_with_its_column(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    line = "x" * 70_000 + "NEEDLE" + "y" * 70_000 + "NEEDLE" + "z" * 100
    toolset, result_id = toolset_of(store), await stored(store, line)
    result = await call(toolset, "search_stored_result", result_id=result_id, pattern="NEEDLE")
    assert "2 matches" in result.data
    assert "1: (columns 69,841-70,166 of 140,112) x" in result.data
    page = await call(
        toolset, "read_stored_result_lines", result_id=result_id, first_line=1, last_line=1, start_column=70_001
    )
    assert page.data.splitlines()[1].startswith("NEEDLEyyy")


async def test_no_match_is_no_data_and_a_bad_pattern_a_clear_error(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    toolset, result_id = toolset_of(store), await stored(store, LOG)
    nothing = await call(toolset, "search_stored_result", result_id=result_id, pattern="panic")
    assert (nothing.status, nothing.error) == (
        "no_data",
        f"No line of result {result_id} (3,000 lines) matches 'panic'.",
    )
    bad = await call(toolset, "search_stored_result", result_id=result_id, pattern="(")
    assert bad.status == "error"
    assert bad.error is not None
    assert bad.error.startswith("pattern '(' is not a valid regular expression: missing )")


@pytest.mark.parametrize("lines", [["a" * 400 + "!"], ["a" * 600 + "!"]], ids=["normal line", "long line"])
def test_a_pattern_that_explodes_ends_in_an_error(lines: list[str]) -> None:
    query = SearchQuery(
        pattern=r"(a|a)*$b|^(a|aa)+$",
        ignore_case=False,
        context_lines=0,
        skip_matches=0,
        max_matches=1,
        timeout_seconds=0.5,
    )
    with ends_before(30), pytest.raises(ToolError, match=r"took longer than 0.5 seconds; use a simpler pattern"):
        search_lines(lines, query)


@pytest.mark.row("T17", "N2")
async def test_lines_of_a_range_say_where_to_go_on(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    toolset, result_id = toolset_of(store), await stored(store, LOG)
    result = await call(toolset, "read_stored_result_lines", result_id=result_id, first_line=99, last_line=101)
    assert result.data.splitlines() == [
        f"Result {result_id}, lines 99-101 of 3,000; 2,899 more lines follow; continue with first_line=102.",
        "99: line 99: ok checkout",
        "100: line 100: ERROR checkout",
        "101: line 101: ok checkout",
    ]
    end = await call(toolset, "read_stored_result_lines", result_id=result_id, first_line=2_999, last_line=9_999)
    assert end.data.splitlines()[0] == f"Result {result_id}, lines 2,999-3,000 of 3,000."
    default = await call(toolset, "read_stored_result_lines", result_id=result_id)
    assert "lines 1-200 of 3,000" in default.data


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"first_line": 4_000, "last_line": 4_001}, "has 3,000 lines; first_line 4,000 is beyond its end"),
        ({"first_line": 5, "last_line": 4}, "last_line 4 is before first_line 5"),
        ({"first_line": 1, "last_line": 1, "start_column": 900}, "start_column 900 is beyond its end"),
        ({"result_id": "nope"}, "stored result 'nope' not found in this conversation; results of this conversation: "),
    ],
)
async def test_wrong_arguments_are_errors_that_help(
    tmp_path: Path, arguments: dict[str, JsonValue], error: str
) -> None:
    store = FileResultStore(tmp_path)
    toolset, result_id = toolset_of(store), await stored(store, LOG)
    result = await call(toolset, "read_stored_result_lines", **{"result_id": result_id, **arguments})
    assert result.status == "error"
    assert result.error is not None
    assert error in result.error


@pytest.mark.row("N2", "I6")
@settings(max_examples=50, deadline=None)
@given(texts(3_000).filter(bool), st.integers(150, 1_500))
async def test_pages_reach_every_character_of_a_text_and_each_is_within_the_cap(text: str, cap: int) -> None:
    text = text.replace("\r", "").encode("utf-8", "replace").decode()
    with tempfile.TemporaryDirectory() as folder:
        store = FileResultStore(Path(folder))
        toolset, result_id = toolset_of(store, cap), await stored(store, text)
        lines = text.removesuffix("\n").split("\n")
        for number in (1, len(lines)):
            read, column = "", 1
            while True:
                page = await call(
                    toolset, "read_stored_result_lines", result_id=result_id, first_line=number, last_line=number,
                    start_column=column,
                )  # fmt: skip
                assert tokens_of(page) <= cap
                read += page.data.partition("\n")[2]
                more = re.search(r"start_column=(\d+)\.", page.data.partition("\n")[0])
                if not more:
                    break
                column = int(more[1])
            assert read == lines[number - 1]
        whole = await call(toolset, "read_stored_result_lines", result_id=result_id, first_line=1, last_line=10**6)
        found = await call(toolset, "search_stored_result", result_id=result_id, pattern=".", context_lines=5)
        assert max(tokens_of(whole), tokens_of(found)) <= cap


@pytest.mark.row("N2")
async def test_one_line_json_is_searched_one_value_per_line(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    toolset, result_id = toolset_of(store), await stored(store, '{"a":{"phase":"Failed"},"b":1}', "application/json")
    result = await call(toolset, "search_stored_result", result_id=result_id, pattern="Failed", context_lines=1)
    assert result.data.splitlines()[1:] == ['2-   "a": {', '3:     "phase": "Failed"', "4-   },"]


@pytest.mark.row("T17")
async def test_a_picture_comes_back_by_id_and_by_path(tmp_path: Path) -> None:
    store, picture = FileResultStore(tmp_path), png(800, 600)
    toolset, result_id = toolset_of(store), await stored(store, picture.data, "image/png")
    for reference in (result_id, str(tmp_path / "t_c.png")):
        result = await call(toolset, "read_image_file", result=reference)
        assert result.status == "success"
        assert result.images == (picture,)


@pytest.mark.row("T12")
async def test_a_picture_above_the_cap_is_an_error_and_never_spilled_again(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path)
    toolset, result_id = toolset_of(store, cap=900), await stored(store, png(1_000, 1_000).data, "image/png")
    result = await call(toolset, "read_image_file", result=result_id)
    assert (result.status, result.images) == ("error", ())
    assert result.error is not None
    assert "about 1,334 tokens; the limit for a result is 900" in result.error


async def test_text_and_pictures_are_not_confused_and_nothing_outside_is_read(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path / "results")
    toolset = toolset_of(store)
    text, picture = await stored(store, LOG), await stored(store, png(10, 10).data, "image/png")
    for name, arguments, error in (
        ("read_image_file", {"result": text}, "not an image; use read_stored_result_lines"),
        (
            "search_stored_result",
            {"result_id": picture, "pattern": "x"},
            "is an image (image/png); use read_",
        ),
        ("read_image_file", {"result": "/etc/passwd"}, "is outside the stored results"),
    ):
        result = await call(toolset, name, **arguments)
        assert result.status == "error"
        assert result.error is not None
        assert error in result.error


def test_a_model_that_cannot_see_is_not_offered_the_picture_tool(tmp_path: Path) -> None:
    names = [tool.name for tool in toolset_of(FileResultStore(tmp_path), vision=False).tools]
    assert names == [
        "search_stored_result",
        "read_stored_result_lines",
        "query_stored_result",
        "summarize_stored_result",
    ]


def test_people_read_what_a_call_does(tmp_path: Path) -> None:
    toolset = toolset_of(FileResultStore(tmp_path))
    calls: list[dict[str, JsonValue]] = [
        {"result_id": "a1", "pattern": "x"},
        {"result_id": "a1", "first_line": 5},
        {"result_id": "a1", "expression": ".items"},
        {"result_id": "a1"},
        {"result": "a1"},
    ]
    lines = [
        toolset.describe(ToolInvocation(call_id=ToolCallId("x"), tool=tool, arguments=arguments))
        for tool, arguments in zip(toolset.tools, calls, strict=True)
    ]
    assert lines == [
        "Search stored result a1 for 'x'",
        "Read lines 5-... of stored result a1",
        "Query stored result a1 with jq '.items'",
        "Show statistics of stored result a1",
        "View stored image a1",
    ]
