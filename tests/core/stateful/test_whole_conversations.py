"""Whole conversations with everything that can go wrong: they stay valid, no byte gets lost, the costs add up."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

from holmes.core.policies import POLICY_NAMES
from tests.core.stateful.conversation import PlayedConversation
from tests.core.stateful.provider import SUMMARISERS
from tests.core.stateful.scenarios import Interlude, Trouble, scenario_of
from tests.support.long_form import cases

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = range(1, 12)


@pytest.mark.slow
@pytest.mark.row("I1", "I2", "I6", "I8", "I9", "I12", "S3", "S7", "K11", "K13", "T10")
@pytest.mark.parametrize("seed", cases(SEEDS, every=4))
@pytest.mark.parametrize("policy", POLICY_NAMES)
async def test_a_whole_conversation_stays_valid_loses_nothing_and_ends_with_a_clear_word(
    policy: str, seed: int, tmp_path: Path
) -> None:
    played = PlayedConversation(scenario_of(policy, seed), tmp_path)
    await played.play()
    assert played.ends.total() == len(played.scenario.chapters)


def test_the_seeds_meet_every_interlude_trouble_and_way_a_summary_fails() -> None:
    chapters = [chapter for policy in POLICY_NAMES for seed in SEEDS for chapter in scenario_of(policy, seed).chapters]
    assert {chapter.interlude for chapter in chapters} == set(get_args(Interlude))
    assert {chapter.trouble for chapter in chapters} == set(get_args(Trouble))
    assert {chapter.summariser for chapter in chapters} == set(SUMMARISERS)
    assert sum(chapter.cancel_after is not None for chapter in chapters) >= 20
