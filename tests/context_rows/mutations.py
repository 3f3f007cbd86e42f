"""One mutation for each row: a change of one snippet of the sources that switches it off, and the test that sees it.

Read by `tests.context_rows.test_mutations`. Written by hand: a snippet must occur exactly once in its file, and the
changed file must still run, so that what turns red is the behaviour. Rows of the invariants are not here: they are
properties of the whole and have tests of their own. Rows of tool results, masking and triggers are in this file, those
of compaction, safety and what goes beyond the seeds in `later_mutations`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """Row `row` does not hold when `snippet` of `file` (from the root) reads `replacement`; `test` is to see that.

    `what` says in a few words what is switched off.
    """

    row: str
    what: str
    file: str
    snippet: str
    replacement: str
    test: str


_LIMITER = "holmes/core/tools_utils/tool_context_window_limiter.py"
_POINTERS = "holmes/core/tools_utils/pointers.py"
_MASK_PLAN = "holmes/core/truncation/masks.py"
_WINDOW_LIMITER = "holmes/core/truncation/input_context_window_limiter.py"

_TEST_LIMITER = "tests/core/tools_utils/test_tool_context_window_limiter.py"
_TEST_STORAGE = "tests/core/tools_utils/test_result_storage.py"
_TEST_MASK_PLAN = "tests/core/truncation/masking/test_plan.py"
_TEST_WINDOW_LIMITER = "tests/core/truncation/test_input_context_window_limiter.py"
_TEST_POLICIES = "tests/app/test_context_policies.py"

RESULT_MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        row="T1",
        what="results join the history unlooked at",
        file="holmes/core/tool_calling_llm.py",
        snippet="    if result.spillable:",
        replacement="    if not result.spillable:",
        test="tests/core/test_spilled_results.py::"
        "test_a_picture_is_spilled_with_its_text_and_comes_back_through_read_image_file",
    ),
    Mutation(
        row="T2",
        what="no cap in tokens",
        file=_LIMITER,
        snippet="    if over or measure.tokens > cap_tokens:",
        replacement="    if over:",
        test=f"{_TEST_LIMITER}::test_a_result_of_exactly_the_cap_passes_untouched",
    ),
    Mutation(
        row="T3",
        what="no cap in characters",
        file=_LIMITER,
        snippet="    over = policy.char_limit is not None and len(message.text) > policy.char_limit",
        replacement="    over = False",
        test=f"{_TEST_STORAGE}::test_the_cap_in_characters_spills_what_the_tokens_would_let_pass",
    ),
    Mutation(
        row="T5",
        what="JSON of one line gets no readable file",
        file="holmes/stores/result_store.py",
        snippet="            view = json_view(content, media_type)",
        replacement="            view = None",
        test="tests/stores/test_result_store.py::test_one_line_json_gets_a_readable_file_and_keeps_its_bytes",
    ),
    Mutation(
        row="T7",
        what="pictures are not stored",
        file=_LIMITER,
        snippet="        if isinstance(image, Image)",
        replacement="        if isinstance(image, Image) and not image.data",
        test=f"{_TEST_LIMITER}::test_pictures_alone_can_be_over_the_cap",
    ),
    Mutation(
        row="T8",
        what="the pointer does not say how to read the result back",
        file=_POINTERS,
        snippet="*_how_to_read(self.stored, json=self.json), NARROW)",
        replacement="NARROW)",
        test=f"{_TEST_LIMITER}::test_the_pointer_says_what_a_model_needs_to_go_on",
    ),
    Mutation(
        row="T10",
        what="what cannot be stored stays, however large",
        file=_LIMITER,
        snippet='        dropped = replace(message, status="error", parts=(Text(text=text),))',
        replacement="        dropped = message",
        test=f"{_TEST_LIMITER}::test_without_storage_the_data_is_dropped_and_the_model_asked_to_narrow",
    ),
    Mutation(
        row="T11",
        what="nothing of an error stays inline",
        file=_POINTERS,
        snippet='    if message.status != "error" or not message.text:',
        replacement="    if message.status:",
        test=f"{_TEST_LIMITER}::test_the_first_500_characters_of_an_error_stay_inline",
    ),
    Mutation(
        row="T12",
        what="a picture of any size is read back",
        file="holmes/toolsets/stored_results/toolset.py",
        snippet="    if tokens > cap:",
        replacement="    if tokens < 0:",
        test="tests/toolsets/test_stored_results.py::test_a_picture_above_the_cap_is_an_error_and_never_spilled_again",
    ),
    Mutation(
        row="T14",
        what="no first items after the outline",
        file="holmes/previews/outlines.py",
        snippet="_blocks(tree, cap_tokens) + _first_items(walk.first_items, cap_tokens)",
        replacement="_blocks(tree, cap_tokens)",
        test="tests/previews/test_structured.py::test_a_json_array_ends_with_its_first_items_as_valid_json",
    ),
    Mutation(
        row="T15",
        what="the pointer neither advises to narrow nor forbids to guess",
        file=_POINTERS,
        snippet="*_how_to_read(self.stored, json=self.json), NARROW)",
        replacement="*_how_to_read(self.stored, json=self.json))",
        test=f"{_TEST_LIMITER}::test_the_pointer_says_what_a_model_needs_to_go_on",
    ),
    Mutation(
        row="T16",
        what="a long user message stays whole",
        file=_LIMITER,
        snippet="    too_long = len(message.text) > char_limit",
        replacement="    too_long = False",
        test=f"{_TEST_LIMITER}::test_a_long_user_message_is_spilled_by_characters_or_tokens_and_keeps_both_ends",
    ),
    Mutation(
        row="T17",
        what="reading lines does not say where to go on",
        file="holmes/toolsets/stored_results/lines.py",
        snippet='    more = f"; {left:,} more lines follow; continue with first_line={end + 1}" if left else ""',
        replacement='    more = ""',
        test="tests/toolsets/test_stored_results.py::test_lines_of_a_range_say_where_to_go_on",
    ),
)

MASKING_MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        row="P1",
        what="old, large results leave no path",
        file=_MASK_PLAN,
        snippet="            return [p for p in candidates if p < end and"
        " _characters(messages[p]) > policy.larger_than_characters]",
        replacement="            return [p for p in candidates if p < end - len(messages)]",
        test=f"{_TEST_MASK_PLAN}::test_paths_replace_what_is_older_than_the_last_messages_and_larger_than_the_limit",
    ),
    Mutation(
        row="P2",
        what="no previews, however long the conversation",
        file=_MASK_PLAN,
        snippet="    if sum(weights) <= policy.max_total_tokens:",
        replacement="    if sum(weights) >= 0:",
        test=f"{_TEST_MASK_PLAN}::test_previews_begin_above_the_total_and_spare_small_and_recent_results",
    ),
    Mutation(
        row="P3",
        what="a fingerprint without the first line",
        file="holmes/core/truncation/mask_texts.py",
        snippet='    first_line = f\' — "{facts.first_line}"\' if facts.first_line else ""',
        replacement='    first_line = ""',
        test="tests/core/truncation/masking/test_texts.py::"
        "test_the_fingerprint_names_call_amount_first_line_and_where_the_output_is",
    ),
    Mutation(
        row="P4",
        what="the newest rounds are masked too",
        file=_MASK_PLAN,
        snippet="    return replies[-rounds] if len(replies) >= rounds else 0",
        replacement="    return len(messages)",
        test=f"{_TEST_MASK_PLAN}::test_the_most_recent_rounds_are_never_masked",
    ),
    Mutation(
        row="P5",
        what="no newest tokens stay",
        file=_MASK_PLAN,
        snippet="        if position < end and newer_tokens >= protected_tokens:",
        replacement="        if position < end:",
        test=f"{_TEST_MASK_PLAN}::test_the_newest_tokens_of_tool_output_always_stay",
    ),
    Mutation(
        row="P6",
        what="results are masked for the least gain",
        file=_MASK_PLAN,
        snippet="    return max(1, min(policy.minimum_tokens, int(budget.usable_tokens * policy.minimum_share)))",
        replacement="    return 1",
        test=f"{_TEST_MASK_PLAN}::test_nothing_is_masked_unless_enough_comes_free",
    ),
    Mutation(
        row="P7",
        what="protected tools are masked",
        file=_MASK_PLAN,
        snippet="    return not message.masked and message.tool_name not in policy.protected_tools",
        replacement="    return not message.masked",
        test=f"{_TEST_MASK_PLAN}::test_protected_tools_are_never_masked_and_do_not_use_up_what_stays_of_the_others",
    ),
    Mutation(
        row="P8",
        what="masks are masked again",
        file=_MASK_PLAN,
        snippet="    return not message.masked and message.tool_name not in policy.protected_tools",
        replacement="    return message.tool_name not in policy.protected_tools",
        test=f"{_TEST_MASK_PLAN}::test_a_mask_is_not_masked_again",
    ),
    Mutation(
        row="P9",
        what="masking cannot be switched off",
        file=_MASK_PLAN,
        snippet="    if not policy.masking.enabled or",
        replacement="    if policy.masking is None or",
        test=f"{_TEST_MASK_PLAN}::test_masking_can_be_switched_off",
    ),
    Mutation(
        row="P10",
        what="a truncation keeps no share of the conversation",
        file="holmes/core/truncation/truncate.py",
        snippet="    if fraction is None:",
        replacement="    if fraction is None or fraction > 0:",
        test="tests/core/truncation/test_truncate.py::test_a_truncation_keeps_the_newest_share_of_the_conversation",
    ),
)

TRIGGER_MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        row="C1",
        what="compaction is never considered",
        file="holmes/core/tool_calling_llm.py",
        snippet="        await run.compact_if_necessary(step)\n",
        replacement="",
        test="tests/core/test_tool_calling_llm.py::"
        "test_a_long_conversation_never_exceeds_the_window_and_ends_with_an_answer[8000]",
    ),
    Mutation(
        row="C2",
        what="the trigger does not count the reserve",
        file="holmes/core/truncation/context.py",
        snippet="int(self.window_tokens * trigger.threshold_pct / 100) - self.reserve_tokens",
        replacement="int(self.window_tokens * trigger.threshold_pct / 100)",
        test=f"{_TEST_WINDOW_LIMITER}::test_the_trigger_counts_reserve_system_prompt_and_schemas",
    ),
    Mutation(
        row="C3",
        what="the provider's answer is not used",
        file="holmes/llm/limits.py",
        snippet="    return _requested_num_ctx(config, facts) or asked",
        replacement="    return _requested_num_ctx(config, facts)",
        test="tests/llm/test_served_window.py::test_every_kind_of_server_tells_its_window",
    ),
    Mutation(
        row="C4",
        what="compaction cannot be switched off",
        file=_WINDOW_LIMITER,
        snippet="    if not context.policy.trigger.enabled or _surely_below(",
        replacement="    if _surely_below(",
        test=f"{_TEST_WINDOW_LIMITER}::test_switched_off_it_never_compacts_but_overflow_recovery_still_does",
    ),
    Mutation(
        row="C5",
        what="the strategy `truncate` summarises",
        file=_WINDOW_LIMITER,
        snippet='    if policy.strategy == "truncate" or policy.mode == "compact":',
        replacement='    if policy.mode == "compact":',
        test="tests/core/test_hook_runner.py::test_a_hook_compacts_with_its_own_strategy_and_tail[truncate]",
    ),
    Mutation(
        row="C6",
        what="no table of known models",
        file="holmes/llm/limits.py",
        snippet="    family = None if facts.is_local else _family(facts.model)",
        replacement="    family = _family(facts.model) if facts.is_local else None",
        test="tests/llm/test_limits.py::test_the_tables_of_octo_and_digitorn_are_the_fallback",
    ),
    Mutation(
        row="C8",
        what="conditions of hooks do not count",
        file="holmes/core/hooks.py",
        snippet=" and _is_due(hook.condition, state)",
        replacement="",
        test="tests/core/test_hook_runner.py::test_a_condition_holds_at_its_turns",
    ),
    Mutation(
        row="C9",
        what="what is set for one model does not count",
        file="holmes/settings/settings.py",
        snippet="        return self.context.with_overrides(entry.context)",
        replacement="        return self.context",
        test=f"{_TEST_POLICIES}::test_a_model_beats_the_option_which_beats_the_variable_which_beats_the_file",
    ),
    Mutation(
        row="C10",
        what="what is asked for is not compacted",
        file=_WINDOW_LIMITER,
        snippet="        return await _compact_now(history, wanted, request)",
        replacement="        return CompactionOutcome(history=history)",
        test="tests/core/test_context_usage.py::test_compact_makes_a_conversation_shorter_long_before_the_trigger",
    ),
    Mutation(
        row="C11",
        what="the bar is never green",
        file="holmes/cli/render/terminal.py",
        snippet="        return _LEVELS[0][1:]",
        replacement="        return _FULL",
        test="tests/cli/test_context_bar.py::test_the_bar_has_the_word_and_the_colour_of_its_level",
    ),
)
