"""Values of every stored type; `stored.json` has them as the first version of Holmes wrote them."""

from __future__ import annotations

from typing import Final

from holmes.core.tools_utils.tool_context_window_limiter import SpillOutcome, ToolOutcome
from holmes.values.messages import (
    AssistantMessage,
    CompactionMark,
    Image,
    Message,
    Reasoning,
    ResultId,
    StoredResult,
    SystemMessage,
    Text,
    ToolCall,
    ToolCallId,
    ToolMessage,
    UserMessage,
)
from holmes.values.model import ModelReply
from holmes.values.stats import ModelSpend, RequestStats

_STORED: Final = StoredResult(id=ResultId("0123456789ab"), path="/r/a.txt", size_bytes=70_000, media_type="text/plain")
_IN_DATABASE: Final = StoredResult(id=ResultId("abcdef012345"), path=None, size_bytes=3, media_type="image/png")
_IMAGE: Final = Image(data=b"\x89PNG\x00", media_type="image/png")
_RESULT: Final = ToolMessage(
    call_id=ToolCallId("c1"),
    tool_name="kubectl_get",
    status="no_data",
    parts=(Text(text="NAME  READY\nä \ud800"), _IMAGE),
    stored=(_STORED, _IN_DATABASE),
    spilled=True,
    masked=True,
)
_REPLY: Final = AssistantMessage(
    text="I look.",
    tool_calls=(
        ToolCall(id=ToolCallId("c1"), name="kubectl_get", arguments='{"kind": "pod"}'),
        ToolCall(id=ToolCallId("c2"), name="fetch", arguments="{}", malformed="{"),
    ),
    reasoning=(Reasoning(provider="anthropic", payload='{"signature": "x"}'),),
)
STATS: Final = RequestStats(
    prompt_tokens=1200,
    completion_tokens=80,
    cached_tokens=1000,
    cost=0.0125,
    calls=2,
    unpriced_calls=1,
    compactions=1,
    compaction_cost=0.005,
    compaction_tokens=300,
    estimated=True,
    summaries=(ModelSpend(model="openai/gpt-5-mini", stats=RequestStats(prompt_tokens=250, cost=0.005, calls=1)),),
)
MESSAGES: Final[tuple[Message, ...]] = (
    SystemMessage(text="You are Holmes."),
    UserMessage(parts=(Text(text="Why?"),)),
    UserMessage(parts=(Text(text="a"), _IMAGE), kind="attachment", stored=(_STORED,)),
    UserMessage(parts=(Text(text="Summary"),), kind="summary", mark=CompactionMark(kept_rounds=3, tokens=9000)),
    _REPLY,
    AssistantMessage(text=""),
    _RESULT,
    ToolMessage(call_id=ToolCallId("c2"), tool_name="fetch", status="success", parts=()),
)
STEPS: Final[tuple[object, ...]] = (
    ModelReply(
        message=_REPLY,
        finish_reason="tool_calls",
        stats=RequestStats(prompt_tokens=7, cost=0.25),
        model="openai/gpt-5",
        context_tokens=7,
        reported_prompt_tokens=7,
    ),
    ToolOutcome(
        spill=SpillOutcome(message=_RESULT, tokens=90_000, spilled=True, stored=True, limit="the cap"),
        cap_tokens=10_000,
        invocation="kubectl get pod",
        error=None,
        elapsed_seconds=0.5,
    ),
    (_STORED, _IN_DATABASE),
    "text",
    None,
)
