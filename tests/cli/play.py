"""A program that plays scripted events through a real session: `python -m tests.cli.play MODE FOLDER`.

Modes: `answer` plays the whole investigation, `fail` ends it with an error, `hang` waits for ever in the middle,
`stubborn` does not even end when it is cancelled, `hostile` has terminal sequences everywhere, `whole` does
not stream its text, `approve` asks the person once, `flood` has a real loop with 20 calls that need a person, `loop`
is interactive.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from holmes.cli.commands.inputs import Question
from holmes.cli.commands.interactive import COMMANDS, InteractiveLoop
from holmes.cli.commands.interrupts import Interrupts
from holmes.cli.commands.session import Session, SessionParts, question_mask
from holmes.cli.commands.terminal_input import TerminalApprover, make_line_reader
from holmes.cli.render.event_lines import Detail
from holmes.cli.render.rendering import choose_renderer
from holmes.core.context_usage import ContextUsage
from holmes.core.tools_utils.tool_executor import ApprovalGate
from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.stores.conversation_store import ConversationStore
from holmes.values.events import (
    AnswerFinished,
    AssistantReplied,
    CompactionStarted,
    HistoryCompacted,
    HistoryReplaced,
    TextDelta,
)
from holmes.values.messages import AssistantMessage
from holmes.values.stats import RequestStats
from holmes.values.tools import Tool, ToolInvocation
from tests.cli.events import ANSWER, EVENTS, FAILURE, PODS, STATS, finished, started, tool_message
from tests.support.investigations import QUESTION, build_loop
from tests.support.toolsets import FunctionToolset, echo, tool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from holmes.values.events import AgentEvent
    from holmes.values.messages import Message

COMPACTION_STATS = RequestStats(
    prompt_tokens=9_000,
    completion_tokens=500,
    cost=0.02,
    calls=1,
    compactions=1,
    compaction_cost=0.02,
    compaction_tokens=9_500,
)
HOSTILE = "\x1b]0;owned\x07\x1b[2Jred\x1b[31m \u202eabc\x9b5n"


async def play(mode: str, folder: Path, approver: TerminalApprover) -> AsyncGenerator[AgentEvent, None]:
    try:
        if mode in {"hang", "stubborn"}:
            for event in EVENTS[:8]:
                yield event
            (folder / "hanging").touch()
            await asyncio.Event().wait()
        elif mode == "fail":
            yield EVENTS[0]
            yield FAILURE
        elif mode == "hostile":
            yield started(PODS)
            yield finished(PODS, tool_message(PODS, HOSTILE), error=HOSTILE)
            yield TextDelta(text=HOSTILE)
            message = AssistantMessage(text=HOSTILE)
            yield AssistantReplied(message=message, stats=STATS, model=HOSTILE)
            yield AnswerFinished(text=HOSTILE, messages=(message,), stats=STATS, steps=1, model="m")
        elif mode == "whole":
            message = AssistantMessage(text=ANSWER)
            yield AssistantReplied(message=message, stats=STATS, model="m")
            text = f"{ANSWER}\n*(cut off)*"
            yield AnswerFinished(text=text, messages=(message,), stats=STATS, steps=1, model="m")
        elif mode == "approve":
            yield started(PODS)
            invocation = ToolInvocation(call_id=PODS.id, tool=Tool(name="rm", description=""), arguments={"a": 1})
            allowed = await approver.decide(invocation, "delete it")
            yield finished(PODS, tool_message(PODS, "ALLOWED" if allowed else "REFUSED"))
            yield EVENTS[-1]
        else:
            for event in EVENTS:
                await asyncio.sleep(0.005)
                yield event
    finally:
        (folder / "closed").touch()
        if mode == "stubborn":
            await asyncio.sleep(60)


def flood(approver: TerminalApprover) -> AsyncGenerator[AgentEvent, None]:
    """A real loop whose model calls 20 tools at once that a person must allow."""
    gate = ApprovalGate(FunctionToolset(bodies=((tool("rm", "text"), echo),)), ("*",), approver)
    calls = tuple(scripted_call("rm", text=f"/data/{number}") for number in range(20))
    model = ScriptedModel([ScriptedReply(tool_calls=calls), ScriptedReply(text=ANSWER)])
    return build_loop([model], [gate]).call_stream(QUESTION)


async def compact(messages: tuple[Message, ...]) -> AsyncGenerator[AgentEvent, None]:
    """A compaction that leaves the last message."""
    yield CompactionStarted(tokens=9_000, trigger_tokens=8_000)
    yield HistoryCompacted(
        strategy="summarize",
        tokens_before=9_000,
        tokens_after=1_000,
        messages_before=len(messages),
        messages_after=1,
        summary="short",
        stats=COMPACTION_STATS,
        total=COMPACTION_STATS,
    )
    yield HistoryReplaced(messages=messages[-1:], stats=COMPACTION_STATS)


async def measure(messages: tuple[Message, ...]) -> ContextUsage:
    """Half of a window of 32k, and as many messages as there are."""
    return ContextUsage(
        model="claude",
        policy="balanced",
        window_tokens=32_000,
        reserve_tokens=8_000,
        trigger_tokens=22_400,
        schema_tokens=3_000,
        by_role=(("system", 1_000), ("tool", 12_000)),
        messages=len(messages),
    )


async def main(mode: str, folder: Path) -> int:
    environment = dict(os.environ)
    renderer = choose_renderer(Detail(tool_output="SHOW_OUTPUT" in environment), environment)
    store = ConversationStore(folder / "conversations", retention_days=30, limit=200)
    approver = TerminalApprover(renderer)

    def ask(question: Question, _earlier: tuple[Message, ...]) -> AsyncGenerator[AgentEvent, None]:
        if mode == "flood":
            return flood(approver)
        return play("hang" if question.text == "hang" else mode, folder, approver)

    interrupts = Interrupts()
    with interrupts:
        parts = SessionParts(
            ask=ask,
            compact=compact,
            measure=measure,
            mask=question_mask(None),
            renderer=renderer,
            interrupts=interrupts,
            store=store,
            kept_attachment_characters=30_000,
            report_path=folder / "report.json",
        )
        session = Session(parts, store.start())
        if mode == "loop":
            reader = make_line_reader(environment, folder / "history", COMMANDS)
            first = Question(text="", attachments=())

            async def list_tools() -> str:
                return "TOOLS"

            return await InteractiveLoop(session, reader, renderer, list_tools).run(first)
        end = await session.ask(Question(text="why?", attachments=()))
        return end.exit_code


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1], Path(sys.argv[2]))))
