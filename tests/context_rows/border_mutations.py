"""Mutations that only move a border or drop a half of a row: what a test with round numbers does not see.

Beside the one mutation of each row in `mutations` and `later_mutations`; a row may have several here.
"""

from __future__ import annotations

from tests.context_rows.mutations import Mutation

_CONTEXT = "holmes/core/truncation/context.py"
_EMERGENCY = "holmes/core/truncation/truncate.py"
_MASK_PLAN = "holmes/core/truncation/masks.py"
_PLAN = "holmes/core/truncation/plan.py"
_POINTERS = "holmes/core/tools_utils/pointers.py"
_NOTE = "holmes/core/truncation/truncate.py"

_BORDERS = "tests/core/truncation/test_borders.py"
_TEST_EMERGENCY = (
    f"{_BORDERS}::test_the_emergency_keeps_half_of_the_window_of_the_tail_of_the_newest_round_and_of_the_messages"
)
_TEST_POINTER = (
    "tests/core/tools_utils/test_tool_context_window_limiter.py::test_the_pointer_says_what_a_model_needs_to_go_on"
)
_RESERVED = "min(max(trigger.reserved, self.max_output_tokens), self.window_tokens // 2)"

BORDER_MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        row="T2",
        what="a share of exactly 100 is none",
        file="holmes/core/policy.py",
        snippet="        if not 0 < self.max_pct <= 100:",
        replacement="        if not 0 < self.max_pct < 100:",
        test=f"{_BORDERS}::test_a_share_of_exactly_100_is_a_share_and_one_beyond_is_none",
    ),
    Mutation(
        row="T15",
        what="the pointer names no pattern, selector or time range",
        file=_POINTERS,
        snippet="(a pattern, a field or label selector, a namespace, a time range)",
        replacement="(a namespace)",
        test=_TEST_POINTER,
    ),
    Mutation(
        row="T15",
        what="the pointer does not send the model to the user",
        file=_POINTERS,
        snippet=", or ask the user",
        replacement="",
        test=_TEST_POINTER,
    ),
    Mutation(
        row="P1",
        what="one message more counts as new",
        file=_MASK_PLAN,
        snippet="            end = len(messages) - policy.older_than_messages\n",
        replacement="            end = len(messages) - policy.older_than_messages - 1\n",
        test=f"{_BORDERS}::test_exactly_the_last_messages_are_not_old_and_the_one_before_is",
    ),
    Mutation(
        row="P1",
        what="exactly 4,000 characters are too large",
        file=_MASK_PLAN,
        snippet="_characters(messages[p]) > policy.larger_than_characters",
        replacement="_characters(messages[p]) >= policy.larger_than_characters",
        test=f"{_BORDERS}::test_exactly_4000_characters_are_not_larger",
    ),
    Mutation(
        row="P4",
        what="one turn less is protected",
        file=_MASK_PLAN,
        snippet="    return replies[-rounds] if len(replies) >= rounds else 0",
        replacement="    return replies[1 - rounds] if len(replies) >= rounds > 1 else 0",
        test=f"{_BORDERS}::test_exactly_two_turns_are_protected",
    ),
    Mutation(
        row="P5",
        what="one token more than the newest is protected",
        file=_MASK_PLAN,
        snippet="newer_tokens >= protected_tokens",
        replacement="newer_tokens > protected_tokens",
        test=f"{_BORDERS}::test_a_result_is_old_when_exactly_the_protected_tokens_are_newer",
    ),
    Mutation(
        row="C2",
        what="exactly so many messages are too many",
        file="holmes/core/truncation/input_context_window_limiter.py",
        snippet="for message in history) > messages:",
        replacement="for message in history) >= messages:",
        test=f"{_BORDERS}::test_the_trigger_by_messages_begins_above_its_number_and_leaves_the_system_prompt_out",
    ),
    Mutation(
        row="C2",
        what="the longest reply does not count as reserved",
        file=_CONTEXT,
        snippet=_RESERVED,
        replacement="min(trigger.reserved, self.window_tokens // 2)",
        test=f"{_BORDERS}::test_what_is_reserved_is_the_larger_of_the_number_and_what_the_model_can_write",
    ),
    Mutation(
        row="C5",
        what="`compress` masks at every step",
        file=_MASK_PLAN,
        snippet=' or policy.mode == "compress"',
        replacement="",
        test="tests/core/test_documented_promises.py::test_compress_only_summarises_and_masks_nothing",
    ),
    Mutation(
        row="K2",
        what="a number of messages is limited by tokens all the same",
        file="holmes/app/context_policies.py",
        snippet="        named = named.counting(messages)",
        replacement="        named = replace(named, messages=messages)",
        test="tests/core/test_documented_promises.py::"
        "test_an_execution_block_keeps_its_own_number_of_messages_under_any_policy",
    ),
    Mutation(
        row="K8",
        what="no reminder after a truncation or an emergency",
        file=_NOTE,
        snippet='    reminder = reminder_text(context.tools) if context.policy.summary.reminder else ""',
        replacement='    reminder = ""',
        test=f"{_BORDERS}::test_the_reminder_follows_a_truncation_and_an_emergency_in_the_same_message",
    ),
    Mutation(
        row="K10",
        what="what fits one request is cut into pieces",
        file="holmes/core/truncation/summary.py",
        snippet="    if sum(weights) <= room_tokens:",
        replacement="    if sum(weights) < 0:",
        test="tests/core/truncation/test_one_summary_request.py::"
        "test_a_group_that_fits_one_request_is_one_request_and_not_cut_into_four",
    ),
    Mutation(
        row="S3",
        what="the emergency fills the whole window",
        file=_EMERGENCY,
        snippet="int(budget.window_tokens * budget.policy.safety.emergency_share)",
        replacement="int(budget.window_tokens)",
        test=_TEST_EMERGENCY,
    ),
    Mutation(
        row="S3",
        what="the emergency keeps as many messages as ever",
        file=_PLAN,
        snippet="else self.tail_messages // 2,",
        replacement="else self.tail_messages,",
        test=_TEST_EMERGENCY,
    ),
    Mutation(
        row="S11",
        what="an estimate decides about a cap",
        file="holmes/tokens/estimator.py",
        snippet="        return self._exact or self",
        replacement="        return self",
        test="tests/core/test_estimates_near_a_limit.py::"
        "test_no_result_and_no_preview_is_above_its_cap_by_the_real_tokenizer",
    ),
)
