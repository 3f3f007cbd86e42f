"""Every conversation ends, for any messages, results and callers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.triage import TriageModel
from holmes.triage.answers import last_object, next_step
from holmes.triage.conversation import MAX_TURNS, read_conversation
from holmes.triage.report import NO_LLM
from holmes.values.errors import ModelError
from holmes.values.events import AnswerFinished
from holmes.values.findings_json import report_to_json
from holmes.values.messages import (
    AssistantMessage,
    ResultId,
    StoredResult,
    SystemMessage,
    Text,
    ToolCall,
    ToolCallId,
    ToolMessage,
    user_text,
)
from holmes.values.model import ModelRequest
from holmes.values.tools import ToolResult
from tests.support.conversations import output_text, wild_histories
from tests.support.investigations import build_loop, events_of
from tests.support.result_stores import MemoryStore
from tests.triage.recorded_cluster import TOOLS, RecordedCluster, ask
from tests.triage.reports import SHOP, report
from tests.triage.shop import shop
from tests.triage.test_question import QUESTIONS

if TYPE_CHECKING:
    from holmes.values.messages import Message
    from holmes.values.tools import Tool

MAX_STEPS = 9
QUESTION = st.one_of(st.sampled_from([each[0] for each in QUESTIONS]), st.text(max_size=200))
OFFERED = st.lists(st.sampled_from(sorted(TOOLS)), unique=True).map(lambda names: tuple(TOOLS[name] for name in names))
OUTPUT = st.one_of(
    st.sampled_from(
        [report_to_json(SHOP), report_to_json(report()), "", "{}", '{"incidents": 3, "version": 1}', "[]", "null"]
    ),
    st.integers(0, 10_000).map(lambda seed: output_text(seed, 60)),
    st.sampled_from(["Deployment shop/cart: 1/1 ready", "Error: pods is forbidden", "'x' not found", "NAME\nshop\n"]),
)
RESULT = st.builds(
    lambda status, text: ToolResult(status=status, data=text, error=text or None),
    st.sampled_from(["success", "error", "no_data", "approval_required"]),
    OUTPUT,
)


def request(messages: tuple[Message, ...], tools: tuple[Tool, ...], choice: str) -> ModelRequest:
    return ModelRequest(messages=messages, tools=tools, tool_choice=choice, max_output_tokens=4_096)  # type: ignore[arg-type]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(wild_histories(max_rounds=4, max_words=60), QUESTION, OFFERED, st.sampled_from(["auto", "none"]))
def test_every_request_is_answered_by_calls_or_by_text(
    history: tuple[Message, ...], question: str, tools: tuple[Tool, ...], choice: str
) -> None:
    for messages in ((*history, user_text(question)), history):
        step = next_step(request(messages, tools, choice))
        assert bool(step.calls) != bool(step.text.strip())
        assert not (step.calls and choice == "none")
        assert {call.name for call in step.calls} <= {tool.name for tool in tools}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(QUESTION, OFFERED, st.lists(RESULT, min_size=1, max_size=6))
def test_every_run_ends_before_the_step_limit(
    question: str, tools: tuple[Tool, ...], results: list[ToolResult]
) -> None:
    turn = iter(range(1_000))
    cluster = RecordedCluster(answers={tool.name: lambda _: results[next(turn) % len(results)] for tool in tools})
    told = asyncio.run(ask(cluster, question, max_steps=MAX_STEPS))
    assert told.steps <= MAX_TURNS + 1 < MAX_STEPS
    assert told.text.endswith(NO_LLM)


@pytest.mark.parametrize("question", [each[0] for each in QUESTIONS])
async def test_every_question_of_the_table_is_answered_in_few_steps(question: str) -> None:
    told = await ask(shop(), question)
    assert told.steps <= 6
    assert told.text.endswith(NO_LLM)
    assert not told.unverified


async def test_it_goes_on_where_another_model_broke_off() -> None:
    first = ScriptedModel(
        [
            ScriptedReply(tool_calls=(scripted_call("kubernetes_diagnose"), scripted_call("kubectl_get", kind="pods"))),
            ModelError("over budget", provider="x", model="x", retryable=False),
        ]
    )
    cluster = shop()
    loop = build_loop([first, TriageModel()], [cluster], store=MemoryStore(), max_steps=8)
    events = await events_of(loop, (SystemMessage(text="You are Holmes."), user_text("why is cart failing?")))
    (finished,) = (event for event in events if isinstance(event, AnswerFinished))
    assert "was killed after 40s" in finished.text
    assert [call.partition(" ")[0] for call in cluster.seen].count("kubernetes_diagnose") == 1
    assert finished.model == "builtin/triage"


def tool_round(
    call_id: str, tool: str, arguments: str, *parts: str, stored: str = "", spilled: bool = False
) -> tuple[Message, ...]:
    kept = (StoredResult(id=ResultId(stored), path=None, size_bytes=1, media_type="text/plain"),) if stored else ()
    return (
        AssistantMessage(text="", tool_calls=(ToolCall(id=ToolCallId(call_id), name=tool, arguments=arguments),)),
        ToolMessage(
            call_id=ToolCallId(call_id),
            tool_name=tool,
            status="success",
            parts=tuple(Text(text=part) for part in parts),
            stored=kept,
            spilled=spilled,
        ),
    )


def test_an_unchanged_result_stands_for_the_one_it_refers_to() -> None:
    messages = (
        user_text("how many pods are there?"),
        *tool_round("a", "kubectl_count", '{"kind": "pods", "namespace": "*"}', "12\n"),
        AssistantMessage(text="12"),
        user_text("how many pods are there?"),
        *tool_round(
            "triage-1-0-b", "kubectl_count", '{"namespace":"*","kind":"pods"}', "Unchanged since step 1 (1 line).",
            stored="0123456789ab", spilled=True,
        ),
    )  # fmt: skip
    conversation = read_conversation(request(messages, (), "auto"))
    (outcome,) = conversation.outcomes.values()
    assert outcome.text == "12\n"
    assert conversation.turns == 1
    step = next_step(request(messages, (TOOLS["kubectl_count"],), "auto"))
    assert "There are `12` Pods" in step.text


def test_a_result_of_an_earlier_question_is_not_taken_for_a_new_one() -> None:
    messages = (
        user_text("how many pods are there?"),
        *tool_round("triage-1-0-a", "kubectl_count", '{"kind": "pods", "namespace": "*"}', "12\n"),
        AssistantMessage(text="12"),
        user_text("how many pods are there?"),
    )
    step = next_step(request(messages, (TOOLS["kubectl_count"],), "auto"))
    assert [call.name for call in step.calls] == ["kubectl_count"]


def test_call_ids_differ_between_the_rounds_of_a_conversation() -> None:
    tools = (TOOLS["kubectl_count"],)
    first = next_step(request((user_text("how many pods?"),), tools, "auto")).calls
    again = (user_text("how many pods?"), AssistantMessage(text="12"), user_text("how many pods?"))
    assert first
    assert first != next_step(request(again, tools, "auto")).calls
    assert first == next_step(request((user_text("how many pods?"),), tools, "auto")).calls, "the same request again"


def test_what_it_means_is_the_first_object_of_the_last_answer_that_names_one() -> None:
    said = (
        user_text("why is web failing?"),
        AssistantMessage(text="`ConfigMap shop/settings` is missing for `Deployment shop/web` and `Node worker-1`."),
        user_text("thanks"),
        AssistantMessage(text="You are welcome."),
    )
    it = last_object(said)
    assert it is not None
    assert (it.kind, it.namespace, it.name) == ("ConfigMap", "shop", "settings")
    with_pods = last_object(said, ("Deployment",))
    assert with_pods is not None
    assert with_pods.name == "web"
    assert last_object((user_text("`Deployment shop/web`"),)) is None, "the user's words are no answer"


async def test_names_in_an_attachment_count_when_the_question_has_none() -> None:
    messages = (
        SystemMessage(text="You are Holmes."),
        user_text("Content of alert.json:\n\nKubePodCrashLooping shop/cart-5d8f6bb7c9-qwz7x", "attachment"),
        user_text("what does this alert mean?"),
    )
    loop = build_loop([TriageModel()], [shop()], store=MemoryStore(), max_steps=8)
    events = await events_of(loop, messages)
    (finished,) = (event for event in events if isinstance(event, AnswerFinished))
    assert finished.text.startswith("**Root cause** (critical): The container app of `Deployment shop/cart` was killed")


def test_a_request_with_a_very_long_question_and_report_has_a_next_step() -> None:
    messages = (
        user_text("why is cart failing? " + "shop/cart-x `y` " * 2_000),
        *tool_round("triage-1-0-a", "kubernetes_diagnose", '{"namespace": "shop"}', report_to_json(SHOP)),
    )
    assert next_step(request(messages, tuple(TOOLS.values()), "auto")) is not None
