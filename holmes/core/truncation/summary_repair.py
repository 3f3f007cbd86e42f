"""Asks once for what a summary left out (N7).

Costs nothing when nothing important is missing. Refuses an answer that adds nothing of it, or that invents.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from holmes.core.truncation.entity_check import IMPORTANT_SCORE, with_distinct_lines
from holmes.core.truncation.summary_request import LONGEST_SHARE_OF_CAP, ask, shortened
from holmes.values.messages import SystemMessage, user_text
from holmes.values.model import ModelRequest

if TYPE_CHECKING:
    from holmes.core.truncation.entity_check import RankedEntity, SourceSurvey
    from holmes.core.truncation.summary_request import Summary, SummaryJob
    from holmes.values.model import ChatModel

REPAIR_PROMPT = (
    "You are given the summary of an investigation, and names and values that it left out, each with a line in which "
    "it stood. Write what has to be added to the summary: one short line for each of those that matter for the "
    "investigation, saying what it is and what was seen. Leave out what does not matter. Do not repeat the summary, "
    "add nothing that is in neither. Answer with the lines only, in at most {cap_tokens:,} tokens."
)
ADDED_HEADING = "Added:"
_ADDITION_SHARE = 0.25
_SMALLEST_ADDITION_TOKENS = 32
_HEADING_TOKENS = 8
_TOKENS_PER_IMPORTANT_ENTITY = 40
_FEWEST_IMPORTANT, _MOST_IMPORTANT = 6, 100


async def repair_summary(job: SummaryJob, summary: Summary, model: ChatModel, window_tokens: int) -> Summary:
    """`summary` with lines for what was missing, or as it is when nothing was, or the answer does not help.

    Asks for the lines alone, which costs less than a new summary and cannot spoil the one there is. `window_tokens` is
    the window of `model` in our tokens. The cost is in `stats` either way.
    """
    if job.survey is None or summary.text is None:
        return summary
    missing = await asyncio.to_thread(important_missing, job.survey, summary.text, job.cap_tokens)
    cap = addition_cap_tokens(job, summary.text)
    if not missing or cap < _SMALLEST_ADDITION_TOKENS:
        return summary
    output = min(2 * cap, model.limits.max_output_tokens, window_tokens // 4)
    request = await asyncio.to_thread(_request, job, (summary.text, missing), output, window_tokens)
    if request is None:
        return summary
    answer = await ask(model, request, f"{job.context.step_name}/summary-repair", job.context)
    charged = replace(summary, stats=summary.stats + answer.stats)
    if answer.text is None:
        return charged
    better = await asyncio.to_thread(_with_addition, job, job.survey, summary.text, answer.text)
    return replace(charged, text=better)


def addition_cap_tokens(job: SummaryJob, text: str) -> int:
    """The most that may be added: a quarter of the cap, and what the summary leaves of its longest length."""
    left = int(job.cap_tokens * LONGEST_SHARE_OF_CAP) - job.context.counter.count_text(text) - _HEADING_TOKENS
    return min(int(job.cap_tokens * _ADDITION_SHARE), left)


def important_missing(survey: SourceSurvey, text: str, cap_tokens: int) -> tuple[RankedEntity, ...]:
    """What a summary of `cap_tokens` should not have left out."""
    most = max(_FEWEST_IMPORTANT, min(_MOST_IMPORTANT, cap_tokens // _TOKENS_PER_IMPORTANT_ENTITY))
    important = {item.entity for item in survey.ranked[:most] if item.score >= IMPORTANT_SCORE}
    return tuple(item for item in survey.missing_from(text) if item.entity in important)


def _request(
    job: SummaryJob, summary: tuple[str, tuple[RankedEntity, ...]], output_tokens: int, window_tokens: int
) -> ModelRequest | None:
    """The summary and as many of the missing as fit, with their lines; None when not even one does."""
    text, missing = summary
    cap = min(addition_cap_tokens(job, text), output_tokens * 3 // 4)
    system = SystemMessage(text=REPAIR_PROMPT.format(cap_tokens=cap))
    counter = job.context.counter
    lines = [f"- {item.entity.kind} {item.entity.value}: {item.line}" for item in with_distinct_lines(missing)]
    while lines:
        user = user_text(f"Summary:\n{text}\n\nLeft out:\n" + "\n".join(lines))
        if counter.count_message(system) + counter.count_message(user) + output_tokens <= window_tokens:
            return ModelRequest(messages=(system, user), tools=(), tool_choice="none", max_output_tokens=output_tokens)
        lines = lines[: len(lines) // 2]
    return None


def _with_addition(job: SummaryJob, survey: SourceSurvey, text: str, addition: str) -> str:
    """`text` and `addition`, if that has something of what was missing and invents nothing; else `text`."""
    added = shortened(addition, addition_cap_tokens(job, text), job.context.counter)
    if added is None or survey.invented_in(added):
        return text
    repaired = f"{text}\n\n{ADDED_HEADING}\n{added}"
    missing_before, missing_after = (len(important_missing(survey, one, job.cap_tokens)) for one in (text, repaired))
    return repaired if missing_after < missing_before else text
