"""Calls that wait for a person: all are seen at once, and nothing else waits with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar, cast

from holmes.core.hooks import CallTool, Hook, TurnCount
from holmes.core.loop_run import LoopParts
from holmes.core.model_chain import LoopModel
from holmes.core.policy import ContextPolicy
from holmes.core.tool_calling_llm import ToolCallingLLM
from holmes.core.tools_utils.tool_executor import ApprovalGate, Approver, ToolExecutor
from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.redaction.redactor import Redactor
from holmes.toolsets.wrappers import Redacted
from holmes.values.events import AgentEvent, AnswerFinished, ApprovalRequired, HookFired, ToolCallFinished
from holmes.values.model import ModelRequest
from holmes.values.steps import DirectStepRunner, StepRunner
from holmes.values.tools import ToolInvocation, ToolResult, Toolset
from tests.support.investigations import PROMPTS, QUESTION
from tests.support.toolsets import FunctionToolset, echo, tool

T = TypeVar("T")
ANSWER = ScriptedReply(text="Done.")


@dataclass(slots=True)
class Person:
    """Waits until `quorum` calls are there at once, then gives `answer`; with `hold` not before `answering` is set."""

    quorum: int = 1
    answer: bool | None = True
    hold: bool = False
    waiting: list[str] = field(default_factory=list)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    answering: asyncio.Event = field(default_factory=asyncio.Event)

    async def decide(self, invocation: ToolInvocation, description: str) -> bool | None:
        assert invocation.tool.name in description
        self.waiting.append(str(invocation.arguments["text"]))
        if len(self.waiting) >= self.quorum:
            self.reached.set()
        await (self.answering if self.hold else self.reached).wait()
        return self.answer


@dataclass(slots=True)
class ByFirstWord:
    """The person of each chat."""

    people: dict[str, Person]

    async def decide(self, invocation: ToolInvocation, description: str) -> bool | None:
        return await self.people[str(invocation.arguments["text"]).split()[0]].decide(invocation, description)


def gated(person: Approver | None, inner: Toolset | None = None) -> Toolset:
    """What `holmes.app` builds: redaction outside of the approval."""
    bare = inner or FunctionToolset(bodies=((tool("risky", "text"), echo), (tool("harmless", "text"), echo)))
    return Redacted(ApprovalGate(bare, ("risky",), person), Redactor(key=b"key of the tests"))


def calls(count: int, name: str = "risky", prefix: str = "call") -> ScriptedReply:
    return ScriptedReply(tool_calls=tuple(scripted_call(name, text=f"{prefix} {number}") for number in range(count)))


def loop_over(
    executor: ToolExecutor,
    *replies: ScriptedReply,
    policy: ContextPolicy | None = None,
    steps: StepRunner | None = None,
) -> ToolCallingLLM:
    """A chat of its own; chats that share `executor` share its slots."""
    model = LoopModel(model=ScriptedModel([*replies]), policy=policy or ContextPolicy())
    parts = LoopParts(
        models=(model,), executor=executor, store=None, prompts=PROMPTS, steps=steps or DirectStepRunner()
    )
    return ToolCallingLLM(parts)


async def read(stream: AsyncGenerator[AgentEvent, None]) -> list[AgentEvent]:
    async with asyncio.timeout(20):
        return [event async for event in stream]


async def test_the_seventeenth_call_of_a_reply_reaches_the_person() -> None:
    person = Person(quorum=30)
    events = await read(loop_over(ToolExecutor([gated(person)]), calls(30), ANSWER).call_stream(QUESTION))
    assert person.waiting == [f"call {number}" for number in range(30)]
    assert sum(isinstance(event, ToolCallFinished) for event in events) == 30
    assert isinstance(events[-1], AnswerFinished)


async def test_another_chat_goes_on_while_the_calls_of_one_wait() -> None:
    asleep, awake = Person(quorum=30, hold=True), Person()
    executor = ToolExecutor([gated(ByFirstWord({"one": asleep, "two": awake}))])
    one = asyncio.create_task(read(loop_over(executor, calls(30, prefix="one"), ANSWER).call_stream(QUESTION)))
    await asleep.reached.wait()
    chat = loop_over(executor, calls(3, "harmless", prefix="two"), calls(3, prefix="two"), ANSWER)
    events = await read(chat.call_stream(QUESTION))
    assert isinstance(events[-1], AnswerFinished)
    assert len(awake.waiting) == 3
    assert not one.done()
    one.cancel()
    await asyncio.gather(one, return_exceptions=True)


async def test_the_event_comes_before_the_decision_and_once_for_each_call() -> None:
    person = Person(quorum=20)
    stream = loop_over(ToolExecutor([gated(person)]), calls(20), ANSWER).call_stream(QUESTION)
    announced: list[str] = []
    async with asyncio.timeout(20):
        async for event in stream:
            if isinstance(event, ApprovalRequired):
                announced.append(event.description)
            if isinstance(event, ToolCallFinished):
                assert len(announced) == 20, "a call was decided before all were announced"
    assert announced == [f"risky(call {number})" for number in range(20)]


async def test_a_refused_call_and_one_that_nobody_answers_for_are_announced_once_too() -> None:
    refusing, away = Person(answer=False), Person(answer=None)
    for approver, said in ((refusing, "refused"), (away, "no person is available"), (None, "no person is available")):
        inner = FunctionToolset(bodies=((tool("risky", "text"), echo),))
        executor = ToolExecutor([gated(approver, inner)])
        events = await read(loop_over(executor, calls(1), ANSWER).call_stream(QUESTION))
        kinds = [event.kind for event in events if event.kind.startswith(("tool_call", "approval"))]
        assert kinds == ["tool_call_started", "approval_required", "tool_call_finished"]
        (finished,) = [event for event in events if isinstance(event, ToolCallFinished)]
        assert (finished.message.status, inner.seen) == ("approval_required", [])
        assert said in finished.message.text


async def test_a_call_that_cannot_run_asks_nobody() -> None:
    person = Person()
    reply = ScriptedReply(tool_calls=(scripted_call("risky"), scripted_call("riski", text="x"), *calls(1).tool_calls))
    events = await read(loop_over(ToolExecutor([gated(person)]), reply, ANSWER).call_stream(QUESTION))
    assert person.waiting == ["call 0"]
    assert sum(isinstance(event, ApprovalRequired) for event in events) == 1


async def test_calls_that_were_allowed_run_at_most_sixteen_at_once() -> None:
    running, most = 0, 0

    async def count(invocation: ToolInvocation) -> ToolResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return await echo(invocation)

    person = Person(quorum=32)
    toolset = gated(person, FunctionToolset(bodies=((tool("risky", "text"), count),)))
    other = FunctionToolset(bodies=((tool("harmless", "text"), count),), name="test/other")
    executor = ToolExecutor([toolset, other])
    chats = [loop_over(executor, calls(32), ANSWER), loop_over(executor, calls(32, "harmless"), ANSWER)]
    await asyncio.gather(*(read(chat.call_stream(QUESTION)) for chat in chats))
    assert most == 16


async def test_a_hook_may_call_a_tool_that_needs_a_person_while_all_slots_wait() -> None:
    asleep, awake = Person(quorum=30, hold=True), Person()
    executor = ToolExecutor([gated(ByFirstWord({"call": asleep, "hook": awake}))])
    blocked = asyncio.create_task(read(loop_over(executor, calls(30), ANSWER).call_stream(QUESTION)))
    await asleep.reached.wait()
    action = CallTool(action="risky", params={"text": "hook"})
    policy = ContextPolicy(hooks=(Hook(id="h", on="turn_start", condition=TurnCount(count=1), action=action),))
    events = await read(loop_over(executor, ANSWER, policy=policy).call_stream(QUESTION))
    assert [event.text for event in events if isinstance(event, HookFired)] == ["risky(hook): success"]
    kinds = [event.kind for event in events]
    assert kinds.index("approval_required") < kinds.index("tool_call_finished") < kinds.index("hook_fired")
    asleep.answering.set()
    assert isinstance((await blocked)[-1], AnswerFinished)


class Recorded:
    """Steps that a first run did are not done again: what a server's journal does."""

    def __init__(self) -> None:
        self._direct = DirectStepRunner()
        self.done: dict[str, object] = {}

    async def run(self, name: str, step: Callable[[], Awaitable[T]]) -> T:
        if name not in self.done:
            self.done[name] = await step()
        return cast("T", self.done[name])

    def now_seconds(self) -> float:
        return self._direct.now_seconds()

    def new_id(self) -> str:
        return self._direct.new_id()


async def test_a_replayed_run_says_the_same_and_asks_nobody_again() -> None:
    person, steps = Person(quorum=3), Recorded()
    replies = (calls(3), calls(2, "harmless"), ANSWER)
    first = await read(loop_over(ToolExecutor([gated(person)]), *replies, steps=steps).call_stream(QUESTION))
    again = await read(loop_over(ToolExecutor([gated(person)]), steps=steps).call_stream(QUESTION))
    assert len(person.waiting) == 3

    def told(events: list[AgentEvent]) -> list[str]:
        return sorted(
            f"{event.kind} {getattr(event, 'description', '')}" for event in events if "text" not in event.kind
        )

    assert told(first) == told(again)
    assert sum(isinstance(event, ApprovalRequired) for event in again) == 3


async def test_without_the_gate_nothing_changes_for_the_model() -> None:
    seen: list[ModelRequest] = []

    def answer(request: ModelRequest) -> ScriptedReply:
        seen.append(request)
        return ANSWER

    bare = FunctionToolset(bodies=((tool("risky", "text"), echo),))
    for toolset in (bare, gated(None, bare)):
        parts = LoopParts(
            models=(LoopModel(model=ScriptedModel(answer), policy=ContextPolicy()),),
            executor=ToolExecutor([toolset]),
            store=None,
            prompts=PROMPTS,
            steps=DirectStepRunner(),
        )
        await read(ToolCallingLLM(parts).call_stream(QUESTION))
    assert seen[0].tools == seen[1].tools
