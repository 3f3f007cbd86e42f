"""Counts are those of the published encodings, bounds hold, large texts stay cheap, and nothing needs a network."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holmes.core.model_chain import LoopModel
from holmes.core.policy import ContextPolicy
from holmes.core.tool_calling_llm import ToolCallingLLM
from holmes.tokens import (
    EstimatingCounter,
    TokenCounter,
    chunks,
    image_tokens,
    load_encoding,
    make_counter,
    message_texts,
    tool_schema_text,
    upper_bound_tokens,
    utf8_bytes,
)
from holmes.tokens.history import History
from holmes.values.errors import HolmesError
from holmes.values.events import AnswerFinished, HistoryCompacted, ToolResultsMasked
from holmes.values.messages import (
    AssistantMessage,
    Image,
    Message,
    SystemMessage,
    Text,
    ToolCallId,
    ToolMessage,
    UserMessage,
    user_text,
)
from holmes.values.model import ImageFormula, ModelRequest
from holmes.values.tools import Parameter, ParameterSchema, Tool, ToolInvocation, ToolResult
from tests.support.conversations import histories, png
from tests.support.counting_model import CountingModel, is_summary_request, tool_call
from tests.support.investigations import build_loop
from tests.support.result_stores import MemoryStore
from tests.support.toolsets import FunctionToolset, tool

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
        "from holmes.tokens import TokenCounter, upper_bound_tokens\n"
        "from holmes.tokens.history import History\n"
        "from holmes.values.messages import user_text\n"
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
def test_repetitive_text_is_counted(text: str) -> None:
    assert 0 < TokenCounter().count_text(text) <= len(text.encode())


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
def test_the_upper_bound_is_never_below_any_count(messages: tuple[SystemMessage, ...]) -> None:
    for counter in (TokenCounter(), TokenCounter(image_formula="gemini"), EstimatingCounter()):
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
    ("size", "anthropic", "openai", "gemini"),
    [
        ((1, 1), 1, 255, 258),
        ((200, 200), 54, 255, 258),
        ((384, 384), 197, 255, 258),
        ((385, 384), 198, 255, 258),
        ((1000, 1000), 1_334, 765, 1_032),
        ((4000, 1000), 820, 765, 1_032),
        ((20_000, 10), 2, 765, 1_032),
    ],
)
def test_pictures_are_counted_by_the_formula_of_the_provider(
    size: tuple[int, int], anthropic: int, openai: int, gemini: int
) -> None:
    expected: dict[ImageFormula, int] = {"anthropic": anthropic, "openai": openai, "gemini": gemini}
    expected["largest"] = max(expected.values())
    for formula, tokens in expected.items():
        assert image_tokens(png(*size), formula) == tokens
        assert TokenCounter(image_formula=formula).image_tokens(png(*size, padding=100_000)) == tokens
        assert EstimatingCounter(image_formula=formula).image_tokens(png(*size)) == tokens


def test_a_picture_of_unknown_size_counts_as_the_largest() -> None:
    assert image_tokens(Image(data=b"?", media_type="image/png")) == 3_279


def test_pictures_are_part_of_a_message() -> None:
    text = ToolMessage(call_id=ToolCallId("a"), tool_name="t", status="success", parts=(Text(text="x"),))
    seen = UserMessage(parts=(Text(text="x"), png(1000, 1000)))
    counter, gemini = TokenCounter(), TokenCounter(image_formula="gemini")
    assert counter.count_message(seen) - counter.count_message(text) == 1334 + 1
    assert gemini.count_message(seen) - gemini.count_message(text) == 1032 + 1


CONTENT_SAMPLES = {
    3.0: "def check(pod):\n    if pod.ready() == (1, 1):\n        return {'ok': (pod.name(),)};\n" * 20,
    3.2: json.dumps([{"name": f"checkout-{index}", "ready": True} for index in range(40)]),
    3.5: "SELECT name, reason FROM events JOIN pods ON events.pod_id = pods.id WHERE reason LIKE 'Back%'\n" * 10,
    4.0: "Checkout fails, as its database (postgres) refuses new connections; OOMKilled since noon.\n" * 20,
    3.7: "2026-11-21T10:00:01Z checkout-7f9c 10.0.0.3:5432 WARN retry=17 took 2041 ms [shop/eu-1]\n" * 20,
}


@pytest.mark.row("S11")
@pytest.mark.parametrize("rate", CONTENT_SAMPLES)
def test_the_estimator_knows_code_json_sql_prose_and_the_rest_by_their_beginning(rate: float) -> None:
    text = CONTENT_SAMPLES[rate]
    counter = make_counter("o200k_base", "estimate")
    assert counter.count_text(text) == math.ceil(len(text) / rate)
    assert counter.count_text_up_to(text, 1) == (math.ceil(len(text) / rate), len(text))
    assert counter.estimate_text(text) == counter.count_text(text)
    exact = make_counter("cl100k_base", "exact").count_text(text)
    assert 0.5 < counter.count_text(text) / exact < 1.6


@pytest.mark.row("S11")
def test_only_the_first_500_characters_decide_and_nothing_is_tokenized() -> None:
    prose = ("why does it fail " * 40)[:500]
    counter = EstimatingCounter()
    assert counter.count_text(prose + "{();=}" * 1_000) == (500 + 6_000) / 4
    assert counter.count_text(prose[:470] + "{();=}" * 1_000) == math.ceil((470 + 6_000) / 3)
    counter.count_message(SystemMessage(text=prose))
    counter.count_tools((TOOL,))
    assert counter.bytes_tokenized == 0


@pytest.mark.row("S11")
@given(st.text(alphabet=st.characters()))
def test_an_estimate_is_within_the_bound_and_only_nothing_is_nothing(text: str) -> None:
    assert min(1, len(text)) <= EstimatingCounter().count_text(text) <= utf8_bytes(text)


@pytest.mark.row("S11")
@pytest.mark.parametrize("text", ["中文字符测试" * 300, "Ошибка подключения " * 300, "😀🚀" * 300])
def test_other_scripts_are_not_taken_for_a_quarter_of_what_they_cost(text: str) -> None:
    assert EstimatingCounter().count_text(text) > 0.6 * TokenCounter().count_text(text)


@pytest.mark.row("S11")
def test_the_estimator_needs_no_tokenizer_at_all() -> None:
    script = (
        "import sys\n"
        "from holmes.tokens import make_counter\n"
        "from holmes.tokens.history import History\n"
        "from holmes.values.messages import user_text\n"
        "assert History([user_text('why? ' * 100)], make_counter('o200k_base', 'estimate')).tokens() == 129\n"
        "assert not {'tiktoken', 'litellm'} & set(sys.modules), 'loaded without need'\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.row("S11")
def test_an_installation_without_the_tokenizer_file_estimates_and_says_so_once(tmp_path: Path) -> None:
    (tmp_path / "litellm").mkdir()
    (tmp_path / "litellm" / "__init__.py").write_text("")
    script = (
        "from holmes.tokens import EstimatingCounter, make_counter\n"
        "counters = [make_counter('o200k_base', 'exact') for _ in range(3)]\n"
        "assert all(isinstance(counter, EstimatingCounter) for counter in counters)\n"
        "print(counters[0].count_text('why? ' * 100))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "125\n"
    assert done.stderr == (
        "the tokenizer 'o200k_base' is missing, so token counts are estimates; reinstall litellm for exact counts\n"
    )


def rounds(count: int) -> list[tuple[Message, ...]]:
    """Rounds of which no two are the same."""
    return [
        (
            AssistantMessage(text=f"step {number}", tool_calls=(tool_call(f"c{number}"),)),
            ToolMessage(
                call_id=ToolCallId(f"c{number}"),
                tool_name="kubectl_get",
                status="success",
                parts=(Text(text=f"pod checkout-{number} restarted {number * 7919} times"),),
            ),
        )
        for number in range(count)
    ]


@pytest.mark.row("N9")
def test_asking_after_each_of_200_rounds_costs_a_fiftieth_of_recounting_everything() -> None:
    history, recounted_bytes = History((), TokenCounter()), 0
    for messages in rounds(200):
        for message in messages:
            history.append(message)
        fresh = TokenCounter()
        assert history.tokens() == sum(map(fresh.count_message, history))
        recounted_bytes += fresh.bytes_tokenized
    assert recounted_bytes > 50 * history.counter.bytes_tokenized


class CountedModel(LoopModel):
    """A model of the chain whose counter the test can read afterwards."""

    def make_counter(self) -> TokenCounter:
        return COUNTERS.setdefault(id(self.model), TokenCounter())


COUNTERS: dict[int, TokenCounter] = {}


@pytest.mark.row("I14")
async def test_a_whole_run_tokenizes_what_was_offered_once_and_what_was_generated_twice_at_most() -> None:
    offered = {"You are Holmes. " * 100, "why?"}

    async def log(invocation: ToolInvocation) -> ToolResult:
        number = str(invocation.arguments["text"])
        data = "".join(f"{number}-{line} GET /cart/{line * 7919} 503\n" for line in range(20 + 70 * (len(number) % 3)))
        offered.add(data)
        return ToolResult(status="success", data=data)

    def respond(asked: ModelRequest) -> AssistantMessage:
        is_last, step = is_summary_request(asked) or len(model.requests) > 30, len(model.requests)
        calls = tuple(tool_call(f"c{step}-{at}", "log", f'{{"text": "{step}{"x" * at}"}}') for at in range(3))
        return AssistantMessage(text=f"what was found in {step} " * 40, tool_calls=() if is_last else calls)

    model = CountingModel(respond, window_tokens=12_000)
    toolset = FunctionToolset(bodies=((tool("log", "text"), log),))
    chosen = CountedModel(model=model, policy=ContextPolicy())
    parts = replace(build_loop([model], [toolset], store=MemoryStore())._parts, models=(chosen,))
    opening = (SystemMessage(text="You are Holmes. " * 100), user_text("why?"))
    events = [event async for event in ToolCallingLLM(parts, max_steps=40).call_stream(opening)]
    assert isinstance(events[-1], AnswerFinished), events[-1]
    made_room = (HistoryCompacted, ToolResultsMasked)
    assert any(isinstance(event, made_room) for event in events)
    offered.update(tool_schema_text(each) for each in toolset.tools)
    sent = {text for messages in model.requests for message in messages for text in message_texts(message)}
    generated = sent - offered | {events[-1].text}
    budget = 1.05 * sum(map(utf8_bytes, offered)) + 2 * sum(map(utf8_bytes, generated))
    assert 0 < COUNTERS[id(model)].bytes_tokenized <= budget
