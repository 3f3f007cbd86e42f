"""Streamed tool calls of providers that disagree about ids and indexes become the same calls."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.llm.reply_assembler import ReplyAssembler

Piece = tuple[int | None, str | None, str | None, str | None]


def assembled(pieces: list[Piece]) -> list[tuple[str, str, str]]:
    assembler = ReplyAssembler()
    for index, call_id, name, arguments in pieces:
        assembler.add_tool_call(index=index, call_id=call_id, name=name, arguments=arguments)
    return [(call.id, call.name, call.arguments_text) for call in assembler.calls]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(
            [
                (0, "a", "get", ""),
                (0, None, None, '{"k":'),
                (0, None, None, "1}"),
                (1, "b", "top", ""),
                (1, None, None, "{}"),
            ],
            id="openai: id and name once",
        ),
        pytest.param(
            [(0, "a", "get", '{"k":'), (0, "a", "get", "1}"), (1, "b", "top", "{}")],
            id="id and name in every piece",
        ),
        pytest.param([(0, "a", "get", '{"k":1}'), (0, "b", "top", "{}")], id="all calls at index 0, whole"),
        pytest.param(
            [(0, "a", "get", '{"k":'), (0, "", None, "1}"), (0, "b", "top", ""), (0, "", None, "{}")],
            id="all calls at index 0, empty ids in between",
        ),
        pytest.param([(None, "a", "get", '{"k":1}'), (None, "b", "top", "{}")], id="no index"),
        pytest.param(
            [(0, "a", "get", ""), (1, "b", "top", ""), (1, None, None, "{}"), (0, None, None, '{"k":1}')],
            id="interleaved",
        ),
        pytest.param([(0, None, "get", ""), (0, "a", None, '{"k":1}'), (1, "b", "top", "{}")], id="id after the name"),
    ],
)
def test_calls_come_out_whole_and_in_order(pieces: list[Piece]) -> None:
    assert assembled(pieces) == [("a", "get", '{"k":1}'), ("b", "top", "{}")]


def test_calls_with_one_id_at_different_indexes_stay_apart() -> None:
    pieces: list[Piece] = [
        (0, "a", "get", '{"k":'),
        (1, "a", "get", '{"k":'),
        (2, "a", "get", ""),
        (0, "a", None, "1}"),
        (1, None, None, "2}"),
        (2, "a", None, "{}"),
    ]
    assert assembled(pieces) == [("a", "get", '{"k":1}'), ("a", "get", '{"k":2}'), ("a", "get", "{}")]


def test_a_piece_with_a_known_id_and_no_index_or_name_belongs_to_its_call() -> None:
    pieces: list[Piece] = [(0, "a", "get", '{"k":'), (1, "b", "top", ""), (None, "a", None, "1}"), (5, "b", None, "{}")]
    assert assembled(pieces) == [("a", "get", '{"k":1}'), ("b", "top", "{}")]


def test_many_pieces_that_repeat_their_name_are_put_together_quickly() -> None:
    piece: Piece = (0, None, "get", ',"a":{}')
    (call,) = assembled([(0, None, "get", '{"b":1'), *[piece] * 50_000])
    assert len(call[2]) == 6 + 7 * 50_000


def test_two_calls_of_the_same_tool_without_ids_at_one_index_stay_two() -> None:
    pieces: list[Piece] = [(0, "", "get", '{"k":1}'), (0, "", "get", '{"k":2}')]
    assert assembled(pieces) == [("", "get", '{"k":1}'), ("", "get", '{"k":2}')]


@settings(max_examples=40)
@given(
    st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=3), min_size=1, max_size=3), st.data()
)
def test_any_split_into_pieces_gives_the_same_arguments(objects: list[dict[str, str]], data: st.DataObject) -> None:
    pieces: list[Piece] = []
    for index, value in enumerate(objects):
        text = json.dumps(value)
        cut = data.draw(st.integers(0, len(text)))
        pieces += [(index, f"id{index}", "get", text[:cut]), (index, None, None, text[cut:])]
    assert [json.loads(arguments) for _, _, arguments in assembled(pieces)] == objects


def test_thinking_blocks_end_with_their_signature() -> None:
    assembler = ReplyAssembler()
    assembler.add_thinking_blocks([{"type": "thinking", "thinking": "a", "signature": None}])
    assembler.add_thinking_blocks([{"type": "thinking", "thinking": "b"}])
    assembler.add_thinking_blocks([{"type": "thinking", "thinking": "", "signature": "s1"}])
    assembler.add_thinking_blocks([{"type": "thinking", "thinking": "c", "signature": "s2"}])
    assembler.add_thinking_blocks([{"type": "redacted_thinking", "data": "d", "thinking": None}])
    assert json.loads(assembler.reasoning_payload() or "") == {
        "thinking_blocks": [
            {"type": "thinking", "thinking": "ab", "signature": "s1"},
            {"type": "thinking", "thinking": "c", "signature": "s2"},
            {"type": "redacted_thinking", "data": "d"},
        ]
    }


def test_no_reasoning_is_no_payload() -> None:
    assert ReplyAssembler().reasoning_payload() is None
