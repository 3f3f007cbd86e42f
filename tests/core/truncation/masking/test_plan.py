"""Which old results are masked: by age, by size, by what would come free, and never twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holmes.core.policy import MaskingPolicy
from holmes.core.truncation.masks import MaskPlan, plan_masks
from holmes.values.messages import Image, Text, ToolMessage
from tests.core.truncation.masking.support import COUNTER, budget, conversation, history_of, result, unstored
from tests.support.conversations import png

WORDS_OF_1K_TOKENS = "pod " * 1_000
EAGER = MaskingPolicy(protect_rounds=0, protect_tokens=0, minimum_tokens=0)


def planned(policy: MaskingPolicy, *rounds: tuple[ToolMessage, ...], window_tokens: int = 400_000) -> list[str]:
    """The call ids that would be masked."""
    history = history_of(conversation(*rounds))
    plan = plan_masks(history, budget(policy, window_tokens=window_tokens))
    return [str(mask.masked.call_id) for mask in plan.masks]


def many(count: int, thousands: int = 1) -> list[tuple[ToolMessage, ...]]:
    """Rounds of one result of about `thousands` of tokens each."""
    return [(result(f"c{number}", f"{number} " + WORDS_OF_1K_TOKENS * thousands),) for number in range(count)]


@pytest.mark.row("P4")
@pytest.mark.parametrize(("rounds", "expected"), [(0, ["c0", "c1", "c2"]), (1, ["c0", "c1"]), (2, ["c0"]), (9, [])])
def test_the_most_recent_rounds_are_never_masked(rounds: int, expected: list[str]) -> None:
    assert planned(replace(EAGER, protect_rounds=rounds), *many(3)) == expected


@pytest.mark.row("P4")
def test_a_round_is_one_reply_with_all_its_results_and_not_one_message() -> None:
    parallel = tuple(result(f"p{number}", f"{number} " + WORDS_OF_1K_TOKENS) for number in range(4))
    assert planned(replace(EAGER, protect_rounds=1), parallel, parallel[:1]) == ["p0", "p1", "p2", "p3"]


@pytest.mark.row("P5")
@pytest.mark.parametrize(("tokens", "expected"), [(0, 5), (999, 4), (2_500, 2), (5_100, 0)])
def test_the_newest_tokens_of_tool_output_always_stay(tokens: int, expected: int) -> None:
    masked = planned(replace(EAGER, protect_tokens=tokens), *many(5))
    assert masked == [f"c{number}" for number in range(expected)]


@pytest.mark.row("P5", "P6")
def test_on_a_small_window_shares_of_it_take_the_place_of_the_tokens() -> None:
    documented = MaskingPolicy()
    # Usable: 20,000 tokens, so 4,000 stay and 2,000 must come free.
    assert planned(documented, *many(5), window_tokens=40_000) == []
    assert planned(documented, *many(7), window_tokens=40_000) == ["c0", "c1", "c2"]
    assert planned(documented, *many(7), window_tokens=400_000) == []


@pytest.mark.row("P6")
def test_nothing_is_masked_unless_enough_comes_free() -> None:
    history = history_of(conversation(*many(4)))
    freed = plan_masks(history, budget(EAGER)).freed_tokens
    assert len(plan_masks(history, budget(replace(EAGER, minimum_tokens=freed))).masks) == 4
    assert plan_masks(history, budget(replace(EAGER, minimum_tokens=freed + 1))).masks == ()


@pytest.mark.row("P6")
@pytest.mark.parametrize("kind", ["fingerprint", "path"])
def test_the_freed_tokens_of_a_plan_are_exact(kind: str) -> None:
    policy = replace(
        EAGER, kind="path" if kind == "path" else "fingerprint", older_than_messages=0, larger_than_characters=0
    )
    messages = conversation(*many(4), (result("pic", "", png(800, 600)),))
    plan = plan_masks(history_of(messages), budget(policy))
    after = list(messages)
    for mask in plan.masks:
        after[mask.position] = mask.masked
    assert len(plan.masks) == 5
    assert plan.freed_tokens == history_of(messages).tokens() - history_of(tuple(after)).tokens()


@pytest.mark.row("P7")
def test_protected_tools_are_never_masked_and_do_not_use_up_what_stays_of_the_others() -> None:
    skill = result("s", "skill " * 3_000, tool_name="skill")
    rounds = [(result("a", WORDS_OF_1K_TOKENS),), (result("b", WORDS_OF_1K_TOKENS + "b"),), (skill,)]
    assert planned(replace(EAGER, protect_tokens=900), *rounds) == ["a"]
    assert planned(replace(EAGER, protect_tokens=900, protected_tools=()), *rounds) == ["a", "b"]
    assert planned(replace(EAGER, protected_tools=("kubectl_get",)), *rounds) == ["s"]


@pytest.mark.row("P9")
def test_masking_can_be_switched_off() -> None:
    assert planned(EAGER, *many(3))
    assert planned(replace(EAGER, enabled=False), *many(3)) == []


@pytest.mark.row("P8")
def test_a_mask_is_not_masked_again() -> None:
    assert planned(EAGER, (replace(result("a", WORDS_OF_1K_TOKENS), masked=True),)) == []


def test_a_result_that_its_fingerprint_would_not_shorten_stays() -> None:
    assert planned(EAGER, (result("a", "ok"),), (result("b", WORDS_OF_1K_TOKENS),)) == ["b"]


def test_without_a_store_only_what_is_stored_already_is_planned() -> None:
    history = history_of(conversation((unstored(result("a", WORDS_OF_1K_TOKENS)),), *many(1)))
    assert [mask.position for mask in plan_masks(history, budget(EAGER)).masks] == [3, 5]
    assert [mask.position for mask in plan_masks(history, budget(EAGER), can_store=False).masks] == [5]


def test_the_notice_of_a_loss_stays_since_there_is_nothing_to_point_to() -> None:
    lost = replace(unstored(result("a", "Too large. The data was dropped. " * 50)), spilled=True, status="error")
    assert planned(EAGER, (lost,)) == []


def test_what_a_person_refused_stays_in_the_conversation() -> None:
    refused = replace(result("a", "Not run: the user said no. " * 100), status="approval_required")
    assert planned(EAGER, (refused,)) == []


@pytest.mark.row("P2")
def test_previews_begin_above_the_total_and_spare_small_and_recent_results() -> None:
    policy = MaskingPolicy(kind="preview", max_total_tokens=6_000, max_tool_message_tokens=2_000)
    assert planned(policy, *many(1, 3), *many(1, 2)) == []
    rounds = [(result("big", WORDS_OF_1K_TOKENS * 3),), *many(1), (result("new", WORDS_OF_1K_TOKENS * 3),)]
    assert planned(policy, *rounds) == ["big"]
    assert planned(replace(policy, keep_recent_messages=0), *rounds) == ["big", "new"]
    assert planned(replace(policy, keep_recent_messages=4), *rounds) == ["big"]
    assert planned(replace(policy, keep_recent_messages=5), *rounds) == []
    assert planned(replace(policy, max_total_tokens=8_000), *rounds) == []


@pytest.mark.row("P2")
def test_a_pointer_is_a_preview_with_a_file_already() -> None:
    policy = MaskingPolicy(kind="preview", max_total_tokens=1_000)
    big = result("big", WORDS_OF_1K_TOKENS * 3)
    assert planned(policy, (big,), *many(1)) == ["big"]
    assert planned(policy, (replace(big, spilled=True),), *many(1)) == []


@pytest.mark.row("P1")
def test_paths_replace_what_is_older_than_the_last_messages_and_larger_than_the_limit() -> None:
    policy = MaskingPolicy(kind="path")
    # Ten messages are five rounds of a reply and one result.
    assert planned(policy, *many(5)) == []
    assert planned(policy, *many(7)) == ["c0", "c1"]
    exact = [(result("at", "x" * 4_000),), (result("above", "x" * 4_001),)]
    assert planned(policy, *exact, *many(5)) == ["above"]
    assert planned(replace(policy, larger_than_characters=3_999), *exact, *many(5)) == ["at", "above"]
    assert planned(replace(policy, older_than_messages=12), *many(7)) == ["c0"]


@pytest.mark.row("P1")
def test_a_label_does_not_make_a_result_larger_and_a_picture_does() -> None:
    policy = MaskingPolicy(kind="path", older_than_messages=0)
    assert planned(policy, (result("a", "x" * 4_000, label=True),)) == []
    assert planned(policy, (result("a", "x", png(800, 600, padding=4_000)),)) == ["a"]


def test_every_kind_removes_the_pictures() -> None:
    for kind in ("fingerprint", "preview", "path"):
        policy = replace(
            EAGER, kind=kind, max_total_tokens=0, keep_recent_messages=0, max_tool_message_tokens=500,
            older_than_messages=0, larger_than_characters=100,
        )  # fmt: skip
        plan: MaskPlan = plan_masks(
            history_of(conversation((result("a", WORDS_OF_1K_TOKENS, png(800, 600)),))), budget(policy)
        )
        (mask,) = plan.masks
        assert plan.kind == kind
        assert mask.masked.masked
        assert not any(isinstance(part, Image) for part in mask.masked.parts)
        assert all(isinstance(part, Text) for part in mask.masked.parts)
        assert COUNTER.count_message(mask.masked) < 300
