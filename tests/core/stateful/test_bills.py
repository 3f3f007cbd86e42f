"""What a run paid before it had to give up is in its bill."""

from __future__ import annotations

import pytest

from holmes.core.policy import ContextPolicy, SpillPolicy
from holmes.tokens import TokenCounter
from holmes.values.events import RunFailed
from holmes.values.messages import AssistantMessage, SystemMessage, user_text
from holmes.values.stats import RequestStats
from tests.core.invariants.stages import SUMMARY
from tests.support.counting_model import CountingModel
from tests.support.investigations import build_loop, events_of

WINDOW_TOKENS = 4_000
REPLY_TOKENS = 500


@pytest.mark.row("S7", "I12")
async def test_a_summary_that_was_paid_for_in_vain_is_in_the_stats_of_the_run_that_failed() -> None:
    model = CountingModel(lambda _: SUMMARY, window_tokens=WINDOW_TOKENS, max_output_tokens=REPLY_TOKENS)
    counter, system, last = TokenCounter(), SystemMessage(text="You find faults."), user_text("and now?")
    room = WINDOW_TOKENS - REPLY_TOKENS - counter.count_message(system) - counter.count_message(last)
    task = next(
        message
        for words in range(room, 0, -1)
        if counter.count_message(message := user_text("why " * words)) <= room - 2
    )
    said = [AssistantMessage(text=f"The pod web-{number} is not ready. " * 9) for number in range(12)]
    loop = build_loop([model], policy=_never_spilling())
    end = (await events_of(loop, (system, task, *said, last)))[-1]
    assert isinstance(end, RunFailed)
    assert "does not fit in the model's context window" in end.error
    paid = sum((stats for _, stats in model.charged), RequestStats())
    assert paid.calls > 0
    assert end.stats.calls == paid.calls
    assert end.stats.cost == pytest.approx(paid.cost)


def _never_spilling() -> ContextPolicy:
    return ContextPolicy(spill=SpillPolicy(max_pct=0, max_tokens=1_000_000))
