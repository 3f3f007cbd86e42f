"""The scripted side of a conversation: a chain of strict models that play along, fail, refuse and fabricate."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holmes.values.errors import ContextOverflow, ModelError
from holmes.values.messages import AssistantMessage, ToolMessage
from holmes.values.stats import RequestStats
from tests.core.invariants.failures import FAILURES
from tests.core.invariants.stages import SUMMARY
from tests.support.counting_model import CountingModel, tool_call
from tests.support.investigations import PROMPTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.messages import Message
    from holmes.values.model import ModelReply, ModelRequest
    from tests.support.counting_model import Answer

REFUSED = RequestStats(prompt_tokens=7, cost=0.03, calls=1)
PAID = RequestStats(prompt_tokens=50, cost=0.02, calls=1)
SUMMARISERS: dict[str, Answer] = {"good": lambda _: SUMMARY, **FAILURES}
BROKEN = "the provider is broken"
TOO_LONG = "prompt is too long"


@dataclass(slots=True)
class Script:
    """What the models say to one question: replies made of `seeds`, then the answer. `troubles` come before replies."""

    seeds: tuple[int, ...] = ()
    troubles: dict[int, list[ModelError]] = field(default_factory=dict)
    summarise: Answer = SUMMARISERS["good"]
    spoken: int = 0
    troubled: int = 0


class Provider:
    """Two models that follow one script. The first is asked until it fails for good."""

    def __init__(self, windows_tokens: tuple[int, int], factor: float) -> None:
        self.script = Script()
        self.models = tuple(
            CountingModel(
                self._answer,
                window_tokens=window,
                max_output_tokens=window // 8,
                factor=factor,
                refusal_stats=REFUSED,
            )
            for window in windows_tokens
        )

    @property
    def charged(self) -> list[tuple[ModelRequest, RequestStats]]:
        """Everything that was billed, by both."""
        return [charge for model in self.models for charge in model.charged]

    def forget(self) -> None:
        """The run is over: its bills are paid."""
        for model in self.models:
            model.charged.clear()
            model.requests.clear()
            model.raw_requests.clear()

    def _answer(self, request: ModelRequest) -> AssistantMessage | ModelReply | ModelError:
        if is_for_summary(request):
            return self.script.summarise(request)
        script = self.script
        waiting = script.troubles.get(script.spoken)
        if waiting:
            script.troubled += 1
            return waiting.pop(0)
        number, script.spoken = script.spoken, script.spoken + 1
        if number >= len(script.seeds) or request.tool_choice == "none":
            return AssistantMessage(text="The database refuses connections.")
        return _reply(script.seeds[number], request)


def is_for_summary(request: ModelRequest) -> bool:
    """Whether Holmes asks for a summary; the last step of a run has no tools to call either."""
    last = [message for message in request.messages if not isinstance(message, AssistantMessage | ToolMessage)][-1]
    return request.tool_choice == "none" and last.text != PROMPTS.last_step


def overflow(window_tokens: int | None) -> ContextOverflow:
    """The provider says that the request is too long, and perhaps how long it may be."""
    return ContextOverflow(TOO_LONG, provider="test", model="counting", window_tokens=window_tokens, stats=PAID)


def broken() -> ModelError:
    """The provider fails for good."""
    return ModelError(BROKEN, provider="test", model="counting", retryable=False, stats=PAID)


def _reply(seed: int, request: ModelRequest) -> AssistantMessage:
    """Up to four calls, some of them again or of stored results; now and then nothing, or a citation."""
    chance = random.Random(seed)  # noqa: S311  test data
    if seed % 29 == 0:
        return AssistantMessage(text="")
    shown = [message for message in request.messages if isinstance(message, ToolMessage) and message.stored]
    text = "The pod web-1 is not ready. " * chance.choice((0, 1, 1, 30))
    if shown and chance.random() < 0.3:
        text += f" It failed [[{chance.choice(shown).stored[0].id}:1-1]]."
    known = _ids(request.messages)
    calls = []
    for index in range(chance.choice((1, 1, 2, 3, 4))):
        number = chance.choice((seed * 31 + index, 7_000_001, 7_000_004))
        call_id = f"call_{index}"
        while call_id in known:  # as the codec of a provider makes them unique
            call_id += "x"
        known.add(call_id)
        if shown and chance.random() < 0.2:
            stored = chance.choice(shown).stored[0].id
            calls.append(tool_call(call_id, "read_stored_result_lines", f'{{"result_id": "{stored}"}}'))
        else:
            name = chance.choice(("kubectl_get", "kubectl_logs", "fetch_skill", "no_such_tool"))
            calls.append(tool_call(call_id, name, f'{{"seed": "{number}"}}'))
    return AssistantMessage(text=text, tool_calls=tuple(calls))


def _ids(messages: Sequence[Message]) -> set[str]:
    return {call.id for message in messages if isinstance(message, AssistantMessage) for call in message.tool_calls}
