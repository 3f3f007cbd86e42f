"""Stored values stay readable: `stored.json` was written before there was one codec for all of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from holmes.investigations.records.journal import step_from_bytes, step_to_bytes
from holmes.investigations.records.values import stats_to_json
from holmes.stores.message_codec import message_from_json, message_to_json
from holmes.values.codec import Codec
from holmes.values.stats import RequestStats
from tests.values.stored_values import MESSAGES, STATS, STEPS

STORED = json.loads(Path(__file__).with_name("stored.json").read_text(encoding="utf-8"))


def test_messages_are_written_and_read_as_before() -> None:
    assert [message_to_json(message) for message in MESSAGES] == STORED["messages"]
    assert tuple(message_from_json(raw) for raw in STORED["messages"]) == MESSAGES


def test_steps_are_written_and_read_as_before() -> None:
    written = [json.loads(step_to_bytes(step).decode("utf-8", "surrogatepass")) for step in STEPS]
    outcome = written[1]
    assert outcome.pop("chart") is None  # a field that these steps did not have
    assert written == STORED["steps"]
    assert tuple(step_from_bytes(json.dumps(raw).encode()) for raw in STORED["steps"]) == STEPS


def test_stats_are_written_and_read_as_before() -> None:
    assert json.loads(stats_to_json(STATS)) == STORED["stats"]
    assert Codec().decode(RequestStats, {**STORED["stats"], "of_a_newer_version": 1}) == STATS
    assert Codec().decode(RequestStats, {}) == RequestStats()


@dataclass(frozen=True, kw_only=True)
class Inner:
    name: str
    size: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Outer:
    state: Literal["on", "off"]
    parts: tuple[Inner, ...]
    content: bytes | None = None


VALUE = Outer(state="on", parts=(Inner(name="a"), Inner(name="b", size=2.5)), content=b"\xff")


def test_a_value_comes_back_equal() -> None:
    written = Codec().encode(VALUE)
    assert json.loads(json.dumps(written)) == written
    assert Codec().decode(Outer, written) == VALUE


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ([], "expected an object"),
        ({"parts": []}, "'state': missing"),
        ({"state": "of", "parts": []}, "'state': unknown value 'of'; available values: on, off"),
        ({"state": "on", "parts": "a"}, "'parts': expected a list"),
        ({"state": "on", "parts": [{"name": 3}]}, "'parts': 'name': expected text"),
        ({"state": "on", "parts": [], "content": "?"}, "'content': "),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_place(raw: object, says: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  the message is compared below
        Codec().decode(Outer, raw)
    assert str(refused.value).startswith(says)


def test_a_tolerant_format_replaces_values_of_other_types_by_empty_ones() -> None:
    raw = {"state": 3, "parts": [7, {"name": None, "size": "x"}], "content": 5}
    assert Codec(mismatch="empty").decode(Outer, raw) == Outer(state="off", parts=(Inner(name=""),))


def test_a_type_without_a_format_is_refused_when_written() -> None:
    with pytest.raises(TypeError, match="'set' values cannot be stored"):
        Codec().encode({1, 2})
