"""Evidence in a whole run: stream, history and answer agree; repeated calls are cheap and survive a restart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holmes.core.policy import ContextPolicy, EvidencePolicy
from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.stores.result_store import FileResultStore
from holmes.values.errors import HolmesError
from holmes.values.events import AnswerFinished, AssistantReplied, TextDelta
from holmes.values.messages import AssistantMessage, Message, ToolMessage, UserMessage, user_text
from holmes.values.model import ModelRequest
from holmes.values.tools import ToolInvocation, ToolResult
from tests.evidence.stores import PODS, shown
from tests.support.investigations import QUESTION, build_loop, events_of
from tests.support.toolsets import FunctionToolset, tool

TABLE = PODS + "".join(f"worker-{number:04d}     1/1     Running            0             3d\n" for number in range(30))


async def get_pods(_: ToolInvocation) -> ToolResult:
    return ToolResult(status="success", data=TABLE)


def poll_and_answer(answer: str, polls: int) -> ScriptedModel:
    """Calls `get_pods` several times, then answers. `ID` in the answer is the id of the last result."""

    def reply(request: ModelRequest) -> ScriptedReply | HolmesError:
        asked = max(index for index, message in enumerate(request.messages) if isinstance(message, UserMessage))
        results = [message for message in request.messages[asked:] if isinstance(message, ToolMessage)]
        if len(results) < polls:
            return ScriptedReply(tool_calls=(scripted_call("get_pods"),))
        found = re.findall(r"\[result (\w+)\]$", results[-1].text)
        return ScriptedReply(text=answer.replace("ID", found[0] if found else "0123456789ab"))

    return ScriptedModel(reply)


async def run(
    folder: Path,
    answer: str,
    polls: int,
    messages: tuple[Message, ...] = QUESTION,
    *,
    policy: ContextPolicy | None = None,
) -> tuple[AnswerFinished, str]:
    toolset = FunctionToolset(bodies=((tool("get_pods"), get_pods),))
    loop = build_loop([poll_and_answer(answer, polls)], [toolset], store=FileResultStore(folder), policy=policy)
    events = await events_of(loop, messages)
    finished = events[-1]
    assert isinstance(finished, AnswerFinished)
    replied = max(index for index, event in enumerate(events) if isinstance(event, AssistantReplied))
    return finished, "".join(event.text for event in events[:replied] if isinstance(event, TextDelta))


@pytest.mark.row("N6")
async def test_an_answer_streams_is_kept_and_is_given_with_the_same_checked_citations(tmp_path: Path) -> None:
    answer = (
        "`inventory-9b2` is `OOMKilled` [[ID:2]], `payment-55d4` is `Evicted` [[ID:3]], and it is overloaded [[ID:3]]."
    )
    finished, streamed = await run(tmp_path, answer, 1)
    result_id = next(message for message in finished.messages if isinstance(message, ToolMessage)).stored[0].id
    markers = [f"[[{result_id}:4 cited]]", f"[[{result_id}:3 not found there: Evicted]]", f"[[{result_id}:3 cited]]"]
    assert finished.text == (
        f"`inventory-9b2` is `OOMKilled` {markers[0]}, `payment-55d4` is `Evicted` {markers[1]}, "
        f"and it is overloaded {markers[2]}."
    )
    assert shown(finished.citations) == markers
    assert finished.messages[-1] == AssistantMessage(text=finished.text)
    assert streamed == finished.text


@pytest.mark.row("N4")
async def test_a_poll_is_answered_in_a_line_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    finished, _ = await run(tmp_path, "done", 3)
    first, *polls = [message for message in finished.messages if isinstance(message, ToolMessage)]
    assert first.text.startswith(TABLE)
    assert [poll.text.split("\n")[0] for poll in polls] == ["Unchanged since step 1 (34 lines)."] * 2
    finished, _ = await run(tmp_path, "It is `OOMKilled` [[ID:4]].", 1, (*finished.messages, user_text("and now?")))
    last = [message for message in finished.messages if isinstance(message, ToolMessage)][-1]
    assert last.text.startswith("Unchanged since step 1 ")
    assert len(finished.citations) == 1


@pytest.mark.row("N4", "N6")
async def test_both_can_be_switched_off(tmp_path: Path) -> None:
    off = ContextPolicy(evidence=EvidencePolicy(citations=False, unchanged_answers=False))
    finished, _ = await run(tmp_path, "It is `Evicted` [[ID:3]].", 2, policy=off)
    texts = [message.text for message in finished.messages if isinstance(message, ToolMessage)]
    assert texts == [TABLE, TABLE]
    assert finished.text == "It is `Evicted` [[0123456789ab:3]]."
    assert finished.citations == ()
