"""Counts are those of the published encodings, bounds hold, large texts stay cheap, and nothing needs a network."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.core.errors import HolmesError
from holmes.core.messages import Image, SystemMessage, Text, ToolCallId, ToolMessage, UserMessage
from holmes.core.tokens import TokenCounter, chunks, image_tokens, load_encoding, upper_bound_tokens, utf8_bytes
from holmes.core.tools import Parameter, ParameterSchema, Tool
from tests.support.conversations import histories, png

SAMPLES = [
    "Hello, it's the user's 12345 pods: I'LL we've\n\n  indented\t\r\n<|endoftext|> 中文字 naïve ½ ²",
    "CamelCaseHTTPServer // path/to/x.yaml\n/foo !!! \n   \n end   ",
]
BIG_LOG = "\n".join(
    f"2026-11-21T10:{index % 60:02d}:00Z checkout-{index} connection to 10.0.0.{index % 255}:5432 refused: {index:x}"
    for index in range(4_000)
)
NOISE = base64.b64encode(b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(10_000))).decode()
TOOL = Tool(
    name="kubectl_get",
    description="Get a resource.",
    parameters=(Parameter(name="kind", schema=ParameterSchema(types=("string",))),),
)


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_encodings_are_the_published_ones(name: str) -> None:
    # tiktoken's own definition is asked in a fresh process that has no network, with its cache set to litellm's files.
    package = importlib.util.find_spec("litellm")
    assert package is not None
    assert package.submodule_search_locations is not None
    folder = Path(package.submodule_search_locations[0], "litellm_core_utils", "tokenizers")
    script = (
        "import sys, json, tiktoken\n"
        f"encoding = tiktoken.get_encoding({name!r})\n"
        "print(json.dumps([encoding.encode_ordinary(text) for text in json.load(sys.stdin)]))\n"
    )
    environment = {**os.environ, "TIKTOKEN_CACHE_DIR": str(folder)}
    output = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps(SAMPLES), env=environment, capture_output=True, text=True,
        check=True, timeout=60,
    ).stdout  # fmt: skip
    assert json.loads(output) == [load_encoding(name).encode_ordinary(text) for text in SAMPLES]


def test_counting_needs_neither_litellm_nor_tiktoken_before_the_first_exact_count() -> None:
    script = (
        "import sys\n"
        "from holmes.core.tokens import TokenCounter, upper_bound_tokens\n"
        "from holmes.core.history import History\n"
        "from holmes.core.messages import user_text\n"
        "history = History([user_text('why?')], TokenCounter())\n"
        "assert not history.exceeds(100)\n"
        "assert not {'tiktoken', 'litellm'} & set(sys.modules), 'loaded too early'\n"
        "assert history.tokens() == 6, history.tokens()\n"
        "assert 'litellm' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_an_unknown_encoding_is_one_clear_line() -> None:
    with pytest.raises(HolmesError, match=r"'p99k_base' is not available.*o200k_base"):
        TokenCounter("p99k_base").count_text("x")


def test_a_large_log_is_counted_in_pieces_with_the_same_result() -> None:
    assert len(list(chunks(BIG_LOG))) > 4
    assert "".join(chunks(BIG_LOG)) == BIG_LOG
    assert TokenCounter().count_text(BIG_LOG) == len(load_encoding("o200k_base").encode_ordinary(BIG_LOG))


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, " " * 1_000_000, "{" * 500_000, "中" * 300_000, ("A" * 9 + "\n") * 50_000]
)
def test_repetitive_text_is_not_quadratic(text: str) -> None:
    TokenCounter().count_text("warm up")
    started = time.process_time()
    TokenCounter().count_text(text)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "text",
    [BIG_LOG, NOISE, "中文" * 100_000],
    ids=["log", "b64", "cjk"],
)
def test_the_estimate_of_a_large_text_samples_16_kilobytes_and_is_within_3_percent(text: str) -> None:
    counter = TokenCounter()
    estimate = counter.estimate_text(text)
    assert counter.bytes_tokenized <= 16_384 * 4
    assert abs(estimate / TokenCounter().count_text(text) - 1) < 0.03


def test_counting_up_to_a_limit_stops_soon_after_it() -> None:
    counter = TokenCounter()
    tokens, characters = counter.count_text_up_to(BIG_LOG, 1_000)
    assert tokens > 1_000
    assert characters <= 65_536
    assert counter.count_text_up_to("short", 1_000) == (1, 5)


def test_a_text_counted_twice_is_tokenized_once() -> None:
    counter = TokenCounter()
    counter.count_text(BIG_LOG)
    once = counter.bytes_tokenized
    counter.count_message(SystemMessage(text=BIG_LOG))
    counter.count_text_up_to(BIG_LOG[:10], 5)
    assert counter.bytes_tokenized == once + 10


@given(histories(max_rounds=3))
def test_the_upper_bound_is_never_below_the_exact_count(messages: tuple[SystemMessage, ...]) -> None:
    counter = TokenCounter()
    for message in messages:
        assert counter.count_message(message) <= upper_bound_tokens(message)


@given(st.text(alphabet=st.characters()))
def test_lone_surrogates_and_any_other_text_can_be_counted(text: str) -> None:
    assert TokenCounter().count_text(text) <= utf8_bytes(text)


def test_schemas_are_counted_once_and_bounded() -> None:
    counter = TokenCounter()
    assert 20 < counter.count_tools((TOOL,)) <= counter.upper_bound_tools((TOOL,))
    once = counter.bytes_tokenized
    assert counter.count_tools((TOOL,)) == counter.count_tools((TOOL,))
    assert counter.bytes_tokenized == once
    assert counter.count_tools((TOOL, TOOL)) == 2 * counter.count_tools((TOOL,))


@pytest.mark.parametrize(
    ("size", "tokens"), [((200, 200), 255), ((1000, 1000), 1334), ((4000, 1000), 820), ((1, 1), 255)]
)
def test_pictures_are_counted_from_their_size(size: tuple[int, int], tokens: int) -> None:
    assert image_tokens(png(*size)) == tokens
    assert image_tokens(png(*size, padding=100_000)) == tokens


def test_a_picture_of_unknown_size_counts_as_the_largest() -> None:
    assert image_tokens(Image(data=b"?", media_type="image/png")) == 3_279


def test_pictures_are_part_of_a_message() -> None:
    text = ToolMessage(call_id=ToolCallId("a"), tool_name="t", status="success", parts=(Text(text="x"),))
    seen = UserMessage(parts=(Text(text="x"), png(1000, 1000)))
    counter = TokenCounter()
    assert counter.count_message(seen) - counter.count_message(text) == 1334 + 1
