"""Defines the tools of the MCP server: those of the toolsets that only read, and `ask_holmes`."""

from __future__ import annotations

import json
import uuid
from contextlib import aclosing, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from holmes.app.requests import AskRequest
from holmes.values.events import AnswerFinished, RunFailed, ToolCallStarted
from holmes.values.first_look import ASK_TOOL
from holmes.values.messages import Image, ToolCall, ToolCallId, joined_text
from holmes.values.request_headers import answering
from holmes.values.tools import Parameter, ParameterSchema, Tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holmes.app.investigator import Investigator
    from holmes.core.single_calls import SingleCalls
    from holmes.values.json_types import JsonObject
    from holmes.values.messages import Message
    from holmes.values.request_headers import RequestHeaders

ASK: Final = Tool(
    name=ASK_TOOL,
    description=(
        "Investigate a question about the Kubernetes cluster, e.g. why a workload fails. Holmes reads objects, events, "
        "logs and metrics, and answers with the root cause and its evidence, or says what it could not find out. Takes "
        "seconds to minutes."
    ),
    parameters=(
        Parameter(name="question", schema=ParameterSchema(types=("string",), description="The question, with names")),
    ),
)
Report: TypeAlias = "Callable[[str], Awaitable[None]]"
"""Receives one line about each step of an investigation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The result of a call: its text and images, or an error in `text` if it `failed`.

    `messages` is the conversation behind an answer, whose stored results the client may read.
    """

    text: str
    images: tuple[Image, ...] = ()
    failed: bool = False
    messages: tuple[Message, ...] = ()


class Asker(Protocol):
    """Investigates a question."""

    async def __call__(self, question: str, report: Report) -> Answered: ...


class ServedTools:
    """The tools for one client. `calls` runs those of the toolsets, and `ask` investigates questions.

    `headers` are those of the HTTP request that calls a tool, if there is one.
    """

    def __init__(self, calls: SingleCalls, ask: Asker, headers: RequestHeaders | None = None) -> None:
        self._calls = calls
        self._ask = ask
        self._headers = headers

    @property
    def tools(self) -> tuple[Tool, ...]:
        return (ASK, *self._calls.tools)

    async def call(self, name: str, arguments: JsonObject, report: Report) -> Answered:
        """Run a tool. Every failure, also an unknown name, becomes an answer that `failed`."""
        if name == ASK.name:
            question = str(arguments.get("question") or "").strip()
            if not question:
                return Answered(text="question is empty; ask for example: why is checkout failing?", failed=True)
            answered = await self._ask(question, report)
            self._calls.hand_over(answered.messages)
            return answered
        if name not in {tool.name for tool in self._calls.tools}:
            known = ", ".join(tool.name for tool in self.tools)
            return Answered(text=f"unknown tool {name!r}; available tools: {known}", failed=True)
        call = ToolCall(id=ToolCallId(uuid.uuid4().hex), name=name, arguments=json.dumps(arguments))
        async with answering(self._headers) if self._headers else nullcontext():
            message = await self._calls.run(call)
        images = tuple(part for part in message.parts if isinstance(part, Image))
        return Answered(text=joined_text(message.parts), images=images, failed=message.status == "error")


def asker_of(investigator: Investigator) -> Asker:
    """Return an asker that uses this investigator."""

    async def ask(question: str, report: Report) -> Answered:
        async with aclosing(investigator.ask(AskRequest(question=question))) as events:
            async for event in events:
                match event:
                    case ToolCallStarted():
                        await report(event.description)
                    case AnswerFinished():
                        return Answered(text=event.text, messages=event.messages)
                    case RunFailed():
                        return Answered(text=event.error, failed=True)
                    case _:
                        pass
        return Answered(text="the investigation ended without an answer", failed=True)

    return ask
