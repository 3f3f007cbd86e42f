"""What a mask says: golden texts, and what is left of unusual calls and outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holmes.core.policies import named_policy
from holmes.core.policy import ContextPolicy, MaskingPolicy
from holmes.core.tools_utils.tool_context_window_limiter import spill_oversized_tool_result
from holmes.core.truncation.mask_texts import (
    calls_of_results,
    describe_result,
    fingerprinted,
    looks_masked,
    masked_message,
    preview_cap_tokens,
    size_text,
)
from holmes.stores.result_store import FileResultStore
from holmes.values.messages import AssistantMessage, ResultId, StoredResult, Text, ToolMessage, user_text
from tests.core.truncation.masking.support import COUNTER, result, unstored
from tests.support.conversations import png
from tests.support.counting_model import tool_call

if TYPE_CHECKING:
    from pathlib import Path

PODS = "NAME            READY   STATUS\n" + "".join(f"checkout-{n:<6} 0/1     CrashLoopBackOff\n" for n in range(41))
CALL = tool_call("c1", arguments='{"kind": "pods", "namespace": "shop"}')


def fingerprint(message: ToolMessage, arguments: str = '{"kind": "pods", "namespace": "shop"}') -> str:
    return fingerprinted(message, tool_call(message.call_id, message.tool_name, arguments)).text


@pytest.mark.row("P3")
def test_the_fingerprint_names_call_amount_first_line_and_where_the_output_is() -> None:
    assert fingerprint(result("c1", PODS)) == (
        "[Tool output cleared — kubectl_get(kind: pods, namespace: shop) returned 42 lines, 1.7 KB"
        ' — "NAME READY STATUS"; full output: ea4a969d9112]'
    )


@pytest.mark.row("P3")
def test_arguments_and_first_line_are_cut_at_80_characters() -> None:
    text = fingerprint(result("c1", "y" * 500), '{"selector": "' + "x" * 500 + '"}')
    assert f"(selector: {'x' * 69}…) returned 1 line, 500 B" in text
    assert f'"{"y" * 79}…"' in text
    assert f'"{"z" * 80}"' in fingerprint(result("c1", "z" * 80))


@pytest.mark.row("P3")
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("{}", "kubectl_get()"),
        ('{"tail": 5, "names": ["a", "ü"], "x": null}', 'kubectl_get(tail: 5, names: ["a", "ü"], x: null)'),
        ('{"query": "two\\nlines"}', "kubectl_get(query: two lines)"),
        ("not json", "kubectl_get(not json)"),
        ("[1]", "kubectl_get([1])"),
    ],
)  # fmt: skip
def test_arguments_are_written_as_people_would(arguments: str, shown: str) -> None:
    assert f"— {shown} returned" in fingerprint(result("c1", PODS), arguments)


@pytest.mark.row("P3")
@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_024, "1.0 KB"),
        (1_229, "1.2 KB"),
        (1_048_524, "1023.9 KB"),
        (1_048_575, "1.0 MB"),
        (25_690_112, "24.5 MB"),
    ],
)
def test_sizes_have_one_decimal(size_bytes: int, shown: str) -> None:
    assert size_text(size_bytes) == shown


def test_pictures_are_counted_and_empty_outputs_have_no_first_line() -> None:
    stored = StoredResult(id=ResultId("1" * 12), path=None, size_bytes=2_048, media_type="image/png")
    picture = ToolMessage(
        call_id=CALL.id, tool_name="read_image_file", status="success", parts=(png(1, 1),), stored=(stored,)
    )
    assert fingerprint(picture, '{"result": "a"}') == (
        "[Tool output cleared — read_image_file(result: a) returned 1 image, 2.0 KB; full output: 111111111111]"
    )
    assert (
        describe_result(unstored(result("c1", "a\nb", png(1, 1), png(1, 1))), None).amount == "2 lines, 2 images, 61 B"
    )
    assert describe_result(unstored(result("c1", "")), None).amount == "0 lines, 0 B"


def test_the_label_of_a_citation_is_no_line_of_the_output() -> None:
    plain, labelled = result("c1", PODS), result("c1", PODS, label=True)
    assert labelled.text != plain.text
    assert describe_result(labelled, CALL) == describe_result(plain, CALL)


@pytest.mark.row("P3")
@pytest.mark.parametrize(
    ("text", "first_line"),
    [
        ("connecting to the database\nrefused by the peer\n" * 400, "connecting to the database"),
        (
            "".join(f"2026-11-21T10:00:{n % 60:02d}Z ERROR checkout 10.0.0.7:5432 refused\n" for n in range(400)),
            "2026-11-21T10:00:00Z ERROR checkout 10.0.0.7:5432 refused",
        ),
    ],
)
async def test_a_spilled_result_is_described_as_it_was_returned(text: str, first_line: str, tmp_path: Path) -> None:
    store = FileResultStore(tmp_path / "results")
    original = unstored(result("c1", text))
    outcome = await spill_oversized_tool_result(original, cap_tokens=1_000, counter=COUNTER, store=store)
    assert outcome.spilled
    facts = describe_result(outcome.message, CALL)
    assert (facts.lines, facts.size_bytes) == (text.count("\n"), len(text))
    assert facts.first_line == first_line


@pytest.mark.row("P3")
async def test_a_spilled_error_still_begins_with_what_went_wrong(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path / "results")
    failed = replace(unstored(result("c1", "Error: timed out\n" + PODS * 30)), status="error")
    outcome = await spill_oversized_tool_result(failed, cap_tokens=1_500, counter=COUNTER, store=store)
    assert outcome.spilled
    facts = describe_result(outcome.message, CALL)
    assert (facts.lines, facts.first_line) == (42 * 30 + 1, "Error: timed out")


async def test_the_shortest_pointer_still_tells_the_size(tmp_path: Path) -> None:
    store = FileResultStore(tmp_path / "results")
    outcome = await spill_oversized_tool_result(
        unstored(result("c1", PODS * 30)), cap_tokens=30, counter=COUNTER, store=store
    )
    facts = describe_result(outcome.message, CALL)
    assert (facts.lines, facts.first_line) == (None, "")
    assert facts.amount == size_text(len(PODS) * 30)


def test_a_result_that_was_cut_has_no_line_count_and_its_full_size() -> None:
    whole = result("c1", PODS)
    shortened = replace(whole, parts=(Text(text=PODS[:100] + "\n[Cut to fit the context window.]"),))
    facts = describe_result(shortened, CALL)
    assert (facts.amount, facts.first_line) == (f"{len(PODS) / 1024:.1f} KB", "NAME READY STATUS")


@pytest.mark.row("P1")
def test_the_path_mask_leaves_the_path_or_the_id_when_there_is_none_and_the_beginning() -> None:
    policy = ContextPolicy(masking=MaskingPolicy(kind="path"))
    with_path = result("c1", PODS * 3, path="/results/kubectl_get_c1.txt")
    assert masked_message(with_path, CALL, with_path.stored, policy, COUNTER).text == (
        "[Tool output moved to /results/kubectl_get_c1.txt"
        f" — kubectl_get(kind: pods, namespace: shop) returned 126 lines, 5.0 KB; it begins:]\n{PODS[:500]}[...]"
    )
    without = result("c1", PODS)
    assert f"moved to {without.stored[0].id} —" in masked_message(without, CALL, without.stored, policy, COUNTER).text
    picture = result("c1", "", png(1, 1), path="/results/a.png")
    assert masked_message(picture, None, picture.stored, policy, COUNTER).text.endswith("]")
    short = result("c1", "ok", png(800, 600))
    assert masked_message(short, None, short.stored, policy, COUNTER).text.endswith("; it begins:]\nok")


@pytest.mark.row("P1")
async def test_the_path_mask_of_a_pointer_shows_how_the_output_began(tmp_path: Path) -> None:
    octo = named_policy("octo")
    store = FileResultStore(tmp_path / "results")
    outcome = await spill_oversized_tool_result(
        unstored(result("c1", PODS * 40)), cap_tokens=9_000, counter=COUNTER, store=store, policy=octo.spill
    )
    assert outcome.spilled
    text = masked_message(outcome.message, CALL, outcome.message.stored, octo, COUNTER).text
    assert text.split("\n", 1)[1] == f"{PODS[:500]}[...]"
    assert str(tmp_path) in text.split("\n", 1)[0]


@pytest.mark.row("P2")
def test_the_preview_mask_shows_a_bounded_view_and_both_id_and_file() -> None:
    policy = ContextPolicy(masking=MaskingPolicy(kind="preview", max_tool_message_tokens=800))
    message = result("c1", PODS * 20, path="/results/a.txt")
    text = masked_message(message, CALL, message.stored, policy, COUNTER).text
    first, heading, *view = text.split("\n")
    assert first == (
        "[Tool output moved to the store — kubectl_get(kind: pods, namespace: shop) returned 840 lines, 33.4 KB; "
        f"full output: {message.stored[0].id} (file /results/a.txt)]"
    )
    assert heading.startswith("Preview, ")
    assert "CrashLoopBackOff" in "\n".join(view)
    assert preview_cap_tokens(policy) == 200
    assert COUNTER.count_text("\n".join(view)) <= 200


@pytest.mark.parametrize("kind", ["fingerprint", "preview", "path"])
def test_a_mask_can_be_told_from_an_output(kind: str) -> None:
    masking = replace(
        MaskingPolicy(), kind="path" if kind == "path" else "preview" if kind == "preview" else "fingerprint"
    )
    message = result("c1", PODS)
    masked = masked_message(message, CALL, message.stored, ContextPolicy(masking=masking), COUNTER)
    assert looks_masked(masked.text)
    assert not looks_masked(PODS)
    assert not looks_masked("the log said [Tool output cleared — x]")


def test_a_result_belongs_to_the_call_of_its_own_round() -> None:
    old, new = tool_call("same", arguments='{"a": 1}'), tool_call("same", arguments='{"a": 2}')
    answer = result("same", "x")
    messages = (
        AssistantMessage(text="", tool_calls=(old,)),
        answer,
        user_text("again"),
        AssistantMessage(text="", tool_calls=(new,)),
        answer,
        result("nobody", "y"),
    )
    assert calls_of_results(messages) == {1: old, 4: new}
