"""The mutations of compaction, safety and what goes beyond the seeds; the rest, and what one is, are in `mutations`."""

from __future__ import annotations

from tests.context_rows.mutations import MASKING_MUTATIONS, RESULT_MUTATIONS, TRIGGER_MUTATIONS, Mutation

_COMPACTION = "holmes/core/truncation/compaction.py"
_SUMMARY = "holmes/core/truncation/summary.py"
_WINDOW_LIMITER = "holmes/core/truncation/input_context_window_limiter.py"

_TEST_COMPACTION = "tests/core/truncation/test_compaction.py"
_TEST_SUMMARY = "tests/core/truncation/test_summary.py"
_TEST_OFFLOAD = "tests/core/truncation/test_offload.py"
_TEST_GUARD = "tests/core/truncation/test_guard.py"
_TEST_LOOP = "tests/core/test_tool_calling_llm.py"
_TEST_WINDOW_LIMITER = "tests/core/truncation/test_input_context_window_limiter.py"

COMPACTION_MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        row="K1",
        what="the first question is lost",
        file="holmes/core/truncation/plan.py",
        snippet="(*self.system, *self.task, *stand_in, *self.last_request, *self.tail)",
        replacement="(*self.system, *stand_in, *self.last_request, *self.tail)",
        test=f"{_TEST_COMPACTION}::test_the_shape_is_system_task_one_summary_last_question_tail",
    ),
    Mutation(
        row="K2",
        what="no recent messages stay",
        file="holmes/core/truncation/plan.py",
        snippet="        if _sum(weights, rounds[-1]) > left:",
        replacement="        if left > -1:",
        test=f"{_TEST_WINDOW_LIMITER}::test_a_compacted_history_is_system_prompt_task_summary_last_question_tail",
    ),
    Mutation(
        row="K5",
        what="the prompt does not state the cap",
        file=_SUMMARY,
        snippet='{job.context.prompt.rstrip()}\\n\\nWrite at most {cap_tokens:,} tokens."',
        replacement='{job.context.prompt.rstrip()}"',
        test=f"{_TEST_SUMMARY}::test_in_place_it_is_the_agents_request_plus_one_note_with_room_for_twice_the_cap",
    ),
    Mutation(
        row="K6",
        what="the prompt does not ask for hypotheses",
        file="prompts/compaction.jinja2",
        snippet="## Hypotheses\n",
        replacement="## Notes\n",
        test="tests/test_prompts.py::test_the_compaction_prompt_asks_for_what_an_investigation_needs",
    ),
    Mutation(
        row="K7",
        what="a truncation leaves no line",
        file="holmes/core/truncation/truncate.py",
        snippet='TRUNCATION_LINE = "[Earlier messages truncated]"',
        replacement='TRUNCATION_LINE = "-"',
        test="tests/core/truncation/test_truncate.py::test_the_line_of_the_document_stands_for_the_older_messages",
    ),
    Mutation(
        row="K8",
        what="no reminder of the tools",
        file="holmes/core/truncation/summary_message.py",
        snippet="    if not tools:",
        replacement="    if len(tools) >= 0:",
        test="tests/core/truncation/test_reminder.py::test_few_tools_are_named_and_many_are_counted_by_their_first_word",
    ),
    Mutation(
        row="K9",
        what="a call and its results are no unit",
        file="holmes/core/truncation/plan.py",
        snippet="        if isinstance(message, ToolMessage) and rounds and"
        " isinstance(messages[rounds[-1][0]], AssistantMessage):",
        replacement="        if isinstance(message, ToolMessage) and len(rounds) < 0:",
        test=f"{_TEST_OFFLOAD}::test_recent_messages_are_kept_in_whole_rounds",
    ),
    Mutation(
        row="K10",
        what="always one group",
        file="holmes/core/truncation/summary.py",
        snippet="    if not threshold_tokens:",
        replacement="    if threshold_tokens is None or threshold_tokens >= 0:",
        test="tests/core/truncation/test_groups.py::"
        "test_a_group_is_at_most_the_threshold_and_a_message_above_it_is_its_own_group",
    ),
    Mutation(
        row="K11",
        what="what is removed is not stored",
        file="holmes/core/truncation/summary_message.py",
        snippet="    if store is None or not messages:",
        replacement="    if store is None or messages:",
        test="tests/core/truncation/test_removed.py::"
        "test_every_removed_text_is_there_verbatim_and_stored_results_are_named",
    ),
    Mutation(
        row="K12",
        what="the summary model is not asked",
        file=_SUMMARY,
        snippet="    first = await (_from_summary_model(job) if job.context.summary_model else _in_place(job))",
        replacement="    first = await _in_place(job)",
        test=f"{_TEST_SUMMARY}::test_a_summary_model_gets_text_without_tools_in_pieces_that_fit_its_own_smaller_window",
    ),
    Mutation(
        row="K13",
        what="a compaction ends the run",
        file="holmes/core/tool_calling_llm.py",
        snippet="        await run.compact_if_necessary(step)\n",
        replacement="        before = len(run.history)\n"
        "        await run.compact_if_necessary(step)\n"
        "        if len(run.history) < before:\n"
        '            raise HolmesError("ask again to go on")\n',
        test=f"{_TEST_LOOP}::test_a_long_conversation_never_exceeds_the_window_and_ends_with_an_answer[8000]",
    ),
    Mutation(
        row="K14",
        what="pictures never leave a summary request",
        file=_SUMMARY,
        snippet="        yield tuple(map(_without_pictures, start))",
        replacement="        yield start",
        test=f"{_TEST_SUMMARY}::test_pictures_are_counted_instead_of_shown_when_they_do_not_fit",
    ),
    Mutation(
        row="K15",
        what="the library call moves nothing",
        file="holmes/core/truncation/offload.py",
        snippet='    if options.mode != "compress":',
        replacement='    if options.mode == "compress":',
        test=f"{_TEST_OFFLOAD}::test_compact_moves_large_results_and_tells_what_went_where",
    ),
    Mutation(
        row="K16",
        what="a summary that is no shorter is adopted",
        file=_COMPACTION,
        snippet="    if tokens >= history.tokens() or await",
        replacement="    if await",
        test=f"{_TEST_COMPACTION}::test_a_summary_that_is_not_shorter_than_what_it_stands_for_is_not_adopted",
    ),
)

SAFETY_MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        row="S1",
        what="no rest after a compaction",
        file="holmes/core/truncation/context.py",
        snippet="            return rounds < safety.cooldown_rounds or"
        " new_tokens < budget.usable_tokens * safety.cooldown_share",
        replacement="            return rounds + new_tokens < safety.cooldown_rounds * 0",
        test=f"{_TEST_GUARD}::test_a_conversation_rests_for_two_rounds_and_a_tenth_of_the_window",
    ),
    Mutation(
        row="S2",
        what="compactions in a row never end",
        file="holmes/core/truncation/context.py",
        snippet="        if self._attempts >= safety.max_attempts:",
        replacement="        if self._attempts < 0:",
        test=f"{_TEST_GUARD}::test_three_attempts_in_a_row_are_the_most_until_the_model_answers",
    ),
    Mutation(
        row="S3",
        what="an overflow is not answered",
        file="holmes/core/model_chain.py",
        snippet="        if self._overflows > 1:",
        replacement="        if self._overflows > 0:",
        test=f"{_TEST_LOOP}::test_an_overflow_shrinks_the_history_and_asks_once_more",
    ),
    Mutation(
        row="S4",
        what="a rate limit is taken for an overflow",
        file="holmes/llm/overflow.py",
        snippet="    if status == 429 or _RATE_LIMIT.search(message):\n"
        "        return _larger_than_allowance(message)\n",
        replacement="",
        test="tests/llm/test_overflow.py::test_other_errors_are_no_overflow",
    ),
    Mutation(
        row="S5",
        what="far too few tokens are learned as a factor",
        file="holmes/core/model_chain.py",
        snippet="        if ratio < _SUSPICIOUS_RATIO:",
        replacement="        if ratio < 0:",
        test="tests/core/test_calibration.py::test_far_fewer_tokens_than_were_sent_are_suspicious_and_no_factor",
    ),
    Mutation(
        row="S7",
        what="a compaction costs nothing",
        file=_COMPACTION,
        snippet="    stats = replace(written.stats, compaction_cost=written.stats.cost,"
        " compaction_tokens=written.stats.total_tokens)",
        replacement="    stats = RequestStats()",
        test=f"{_TEST_COMPACTION}::test_summary_retry_and_repair_are_the_cost_of_the_compaction",
    ),
    Mutation(
        row="S8",
        what="Claude's conversation is not cached",
        file="holmes/llm/request_arguments.py",
        snippet='        return "conversation"',
        replacement='        return "none"',
        test="tests/llm/test_prompt_cache.py::test_who_understands_marks",
    ),
    Mutation(
        row="S9",
        what="the summary request carries no tools",
        file=_SUMMARY,
        snippet='messages=(*messages, note), tools=context.tools, tool_choice="none"',
        replacement='messages=(*messages, note), tools=(), tool_choice="none"',
        test=f"{_TEST_WINDOW_LIMITER}::test_the_summary_request_is_the_agents_own_request_plus_one_note",
    ),
    Mutation(
        row="S11",
        what="four characters are a token, whatever the text",
        file="holmes/tokens/estimator.py",
        snippet="CHARACTERS_PER_TOKEN[_content_of(text)])",
        replacement='CHARACTERS_PER_TOKEN["prose"])',
        test="tests/tokens/test_tokens.py::test_the_estimator_knows_code_json_sql_prose_and_the_rest_by_their_beginning",
    ),
    Mutation(
        row="S12",
        what="nobody hears of a summary",
        file=_WINDOW_LIMITER,
        snippet='    await context.emit(_compacted("summarize", history, attempt, context))\n',
        replacement="",
        test=f"{_TEST_WINDOW_LIMITER}::test_what_it_cost_is_in_the_stats_and_the_events_add_up",
    ),
)

FURTHER_MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        row="N1",
        what="every text is plain text",
        file="holmes/previews/structured.py",
        snippet="    read = _reader(detect(text))",
        replacement='    read = _reader("text" if detect(text) else "binary")',
        test="tests/previews/test_structured.py::test_a_pattern_that_stops_midway_is_told",
    ),
    Mutation(
        row="N2",
        what="a search does not say how many more there are",
        file="holmes/toolsets/stored_results/lines.py",
        snippet='narrow the pattern or use skip_matches={last}" if left > 0 else ""',
        replacement='narrow the pattern or use skip_matches={last}" if left < 0 else ""',
        test="tests/toolsets/test_stored_results.py::test_a_search_with_too_many_matches_says_how_many_more_and_pages",
    ),
    Mutation(
        row="N3",
        what="no quota",
        file="holmes/stores/result_retention.py",
        snippet="        too_many = rules.quota_bytes is not None and total > rules.quota_bytes",
        replacement="        too_many = False",
        test="tests/stores/test_result_retention.py::test_above_the_quota_the_least_recently_used_go_first",
    ),
    Mutation(
        row="N4",
        what="a repeated call is answered in full",
        file="holmes/core/loop_run.py",
        snippet="        if not self.models.current.policy.evidence.unchanged_answers:",
        replacement="        if self.models.current.policy.evidence is not None:",
        test="tests/evidence/test_in_the_loop.py::test_a_poll_is_answered_in_a_line_and_goes_on_after_a_restart",
    ),
    Mutation(
        row="N6",
        what="citations are believed unread",
        file="holmes/evidence/verification.py",
        snippet="                found = await asyncio.to_thread(judge_cited, texts, markers, claim, deadline)",
        replacement="                found = markers if texts and deadline else ()",
        test="tests/evidence/test_in_the_loop.py::"
        "test_an_answer_streams_is_kept_and_is_given_with_the_same_checked_citations",
    ),
    Mutation(
        row="N7",
        what="what a summary left out is not asked for",
        file="holmes/core/truncation/summary_request.py",
        snippet="    if job.survey is None or summary.text is None:",
        replacement="    if job.survey is not None or summary.text is None:",
        test=f"{_TEST_SUMMARY}::test_what_was_left_out_costs_one_small_request_and_is_added",
    ),
    Mutation(
        row="N8",
        what="invented names are not marked",
        file=_COMPACTION,
        snippet="        summary=mark_invented(text, invented),",
        replacement="        summary=text,",
        test=f"{_TEST_COMPACTION}::test_invented_names_are_marked_and_reported_and_the_summary_is_used",
    ),
    Mutation(
        row="N9",
        what="after a compaction everything is counted again",
        file="holmes/tokens/history.py",
        snippet="            at = known.get(id(message))",
        replacement="            at = None",
        test="tests/tokens/test_history.py::test_a_replaced_history_knows_the_counts_of_what_stayed_without_counting",
    ),
    Mutation(
        row="N13",
        what="what tools return keeps its secrets",
        file="holmes/toolsets/wrappers.py",
        snippet="        data = await self._masked(result.data)",
        replacement="        data = result.data",
        test="tests/toolsets/test_redacted.py::test_data_error_and_invocation_are_masked_and_images_stay",
    ),
)

MUTATIONS: tuple[Mutation, ...] = (
    *RESULT_MUTATIONS,
    *MASKING_MUTATIONS,
    *TRIGGER_MUTATIONS,
    *COMPACTION_MUTATIONS,
    *SAFETY_MUTATIONS,
    *FURTHER_MUTATIONS,
)
