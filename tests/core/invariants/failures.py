"""Every way in which a summary can fail, as answers of a scripted model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.values.errors import ContextOverflow, ModelError
from holmes.values.messages import AssistantMessage
from holmes.values.stats import RequestStats
from tests.core.invariants.stages import SUMMARY
from tests.support.counting_model import model_reply, tool_call

if TYPE_CHECKING:
    from tests.support.counting_model import Answer

REFUSAL_TEXT = "I'm sorry, but I can't help with that."
FABRICATION = (
    "payments-5d6f7c8b9d-abcde was OOMKilled with exit code 137 on node-17; ImagePullBackOff of "
    "registry.example.com/other/api:9.9.9; ECONNRESET from 192.168.77.3:8443; NodeNotReady."
)
PAID = RequestStats(prompt_tokens=100, completion_tokens=1, cost=0.5, calls=1)

FAILURES: dict[str, Answer] = {
    "exception": lambda _: ModelError("boom of the provider", provider="p", model="m", retryable=False),
    "billed exception": lambda _: ModelError(
        "boom of the provider", provider="p", model="m", retryable=True, stats=PAID
    ),
    "overflow": lambda _: ContextOverflow("too long, says the provider", provider="p", model="m", window_tokens=2_000),
    "empty": lambda _: AssistantMessage(text=" \n"),
    "tool call": lambda _: AssistantMessage(text="let me see", tool_calls=(tool_call("z"),)),
    "cut off": lambda _: replace(model_reply(AssistantMessage(text="half a summ")), finish_reason="length"),
    "filter": lambda _: replace(model_reply(SUMMARY), finish_reason="content_filter"),
    "refusal": lambda _: AssistantMessage(text=REFUSAL_TEXT),
    "fabrication": lambda _: AssistantMessage(text=FABRICATION),
    "endless": lambda _: AssistantMessage(text="blah " * 20_000),
    "endless line": lambda _: AssistantMessage(text="b" * 50_000),
    "alternating": lambda request: SUMMARY if len(request.messages) % 2 else AssistantMessage(text=""),
}
NEVER_STORED = ("boom of the provider", "too long, says the provider", REFUSAL_TEXT, "half a summ", "let me see")
