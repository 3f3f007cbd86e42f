"""What a log or a pipe sees: golden text for the whole scripted investigation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holmes.cli.render.event_lines import Detail
from holmes.cli.render.rendering import PlainRenderer
from holmes.values.events import AgentEvent, ToolCallFinished
from tests.cli.events import ANSWER, EVENTS, FAILURE, LOGS, PODS, finished, tool_message

if TYPE_CHECKING:
    from collections.abc import Sequence

STORED = "it is stored, and the model sees a preview"
PROGRESS = f"""\
  gpt-4.1 failed, retrying in 2.0 s: 429 slow down
I look at the pods.
→ kubectl_get call-1
→ kubernetes_logs call-2
✓ kubectl_get call-1 · 1.2 s · 2 lines
  result of kubernetes_logs is too large (120k tokens; the limit is 25,000 tokens): {STORED}
  requires approval: read logs
✗ kubernetes_logs call-2 · 1.2 s · pod 'checkout' not found
  gpt-4.1 rejected the conversation as too long: maximum context length
  compacting the conversation: 130k tokens, compacted above 121.6k
  no summary: the summary was empty
  older messages removed: 130k → 9k tokens, 40 → 5 messages
  continuing with claude, because gpt-4.1 failed: 503 overloaded
claude · 2 steps · 2 tool calls · 23.4k tokens (18k cached) · $0.012 · 0.0 s
"""


def show(events: Sequence[AgentEvent], detail: Detail | None = None) -> None:
    renderer = PlainRenderer(detail or Detail(), clock=lambda: 0.0)
    renderer.start()
    for event in events:
        renderer.show(event)
    renderer.stop()


def test_the_answer_alone_is_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    show(EVENTS)
    shown = capsys.readouterr()
    assert shown.out == f"{ANSWER}\n"
    assert shown.err == PROGRESS


def test_costs_of_each_reply_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    show(EVENTS, Detail(reply_costs=True))
    assert "  gpt-4.1 · 900 tokens · $0.0020\n" in capsys.readouterr().err


def test_tool_output_on_demand_and_sanitised(capsys: pytest.CaptureFixture[str]) -> None:
    show([finished(PODS, tool_message(PODS, "a\x1b[2J\nb"))], Detail(tool_output=True))
    assert capsys.readouterr().err == "✓ kubectl_get call-1 · 1.2 s · 2 lines\n  │ a\n  │ b\n"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (finished(PODS, tool_message(PODS, "", "no_data")), "✓ kubectl_get call-1 · 1.2 s · nothing found\n"),
        (finished(LOGS, tool_message(LOGS, "no", "approval_required")), "✗ kubernetes_logs call-2 · not run\n"),
        (
            finished(LOGS, tool_message(LOGS, "line 1\nline 2", "error")),
            "✗ kubernetes_logs call-2 · 1.2 s · line 1 line 2\n",
        ),
    ],
)
def test_every_status_is_told_apart(event: ToolCallFinished, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    show([event])
    assert capsys.readouterr().err == line


def test_a_failure_has_no_answer_but_says_what_it_cost(capsys: pytest.CaptureFixture[str]) -> None:
    show([EVENTS[0], FAILURE])
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "1 step · 0 tool calls · 0 tokens · price unknown · 0.0 s\n"
