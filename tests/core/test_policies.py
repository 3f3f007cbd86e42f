"""The named policies against the numbers of the documents, which stand here a second time on purpose."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import pytest

from holmes.core.hooks import CompactContext, ContextPressure, Hook
from holmes.core.policies import POLICY_NAMES, named_policy
from holmes.core.policy import ContextPolicy
from holmes.values.errors import ConfigError

SEEDS = ("altimate", "digitorn", "flowllm", "holmesgpt", "octo")

NO_COOLDOWN: dict[str, object] = {"safety.cooldown_rounds": 0, "safety.cooldown_share": 0.0}
NO_TAIL: dict[str, object] = {"keep.tail_share": 0.0, "keep.tail_tokens": 0, "keep.newest_round": False}
NO_EXTRAS: dict[str, object] = {
    "spill.round_factor": None,
    "summary.verify_entities": False,
    "evidence.citations": False,
    "evidence.unchanged_answers": False,
}

DOCUMENTED: dict[str, dict[str, object]] = {
    "holmesgpt": {
        **NO_EXTRAS,
        **NO_COOLDOWN,
        **NO_TAIL,
        "spill.max_pct": 15.0,
        "spill.max_tokens": 25_000,
        "masking.enabled": False,
        "trigger.enabled": True,
        "trigger.threshold_pct": 95.0,
        "strategy": "summarize",
        "summary.reminder": False,
        "counting": "exact",
    },
    "octo": {
        **NO_EXTRAS,
        **NO_COOLDOWN,
        "spill.max_pct": 50.0,
        "spill.char_limit": 20_000,
        "spill.preview_share": 1.0,
        "spill.preview_max_tokens": 20_000,
        "spill.preview": "head",
        "spill.user_message_char_limit": 30_000,
        "masking.kind": "path",
        "masking.every_step": True,
        "masking.protected_tools": (),
        "masking.older_than_messages": 10,
        "masking.larger_than_characters": 4_000,
        "trigger.threshold_pct": None,
        "trigger.fraction": 0.70,
        "trigger.tokens": 100_000,
        "trigger.messages": 100,
        "strategy": "summarize",
        "keep.messages": 20,
        "keep.tail_tokens": 20_000,
        "keep.tail_share": 0.50,
        "keep.fraction": 0.40,
        "summary.reminder": False,
    },
    "flowllm": {
        **NO_EXTRAS,
        **NO_COOLDOWN,
        "mode": "auto",
        "masking.kind": "preview",
        "masking.every_step": True,
        "masking.protected_tools": (),
        "masking.max_total_tokens": 20_000,
        "masking.max_tool_message_tokens": 2_000,
        "masking.keep_recent_messages": 1,
        "trigger.threshold_pct": None,
        "trigger.tokens": 20_000,
        "keep.messages": 2,
        "keep.fraction": None,
        "keep.tail_share": 1.0,
        "keep.tail_tokens": 1_000_000,
        "summary.group_token_threshold": None,
        "summary.compress_above_tokens": 20_000,
        "summary.chat_id": None,
        "summary.reminder": False,
        "safety.auto_ratio": 0.75,
    },
    "digitorn": {
        **NO_EXTRAS,
        "spill.max_pct": 50.0,
        "spill.max_tokens": 1_000_000,
        "spill.available_share": 0.50,
        "spill.preview_share": 1.0,
        "spill.preview_max_tokens": 1_000_000,
        "spill.preview": "head",
        "masking.enabled": False,
        "trigger.threshold_pct": None,
        "trigger.pressure": 0.75,
        "trigger.output_reserved": 4_096,
        "strategy": "summarize",
        "keep.messages": 10,
        "keep.fraction": None,
        "keep.tail_share": 1.0,
        "keep.tail_tokens": 1_000_000,
        "summary.max_tokens": 1_024,
        "summary.reminder": True,
        "safety.cooldown_rounds": 2,
        "safety.cooldown_share": 0.0,
        "safety.emergency_share": 0.50,
        "hooks": (
            Hook(
                id="_auto_compact",
                on="turn_start",
                condition=ContextPressure(threshold=0.75),
                action=CompactContext(),
                cooldown=30.0,
            ),
        ),
        "counting": "estimate",
    },
    "altimate": {
        **NO_EXTRAS,
        **NO_COOLDOWN,
        **NO_TAIL,
        "masking.enabled": True,
        "masking.kind": "fingerprint",
        "masking.every_step": True,
        "masking.protected_tools": ("skill", "fetch_skill"),
        "masking.protect_rounds": 2,
        "masking.protect_tokens": 40_000,
        "masking.protect_share": 1.0,
        "masking.minimum_tokens": 20_000,
        "masking.minimum_share": 1.0,
        "trigger.enabled": True,
        "trigger.threshold_pct": None,
        "trigger.reserved": 20_000,
        "strategy": "summarize",
        "summary.reminder": False,
        "safety.max_attempts": 3,
        "counting": "estimate",
    },
    "balanced": {
        "spill.max_pct": 15.0,
        "spill.max_tokens": 25_000,
        "spill.round_factor": 2.0,
        "masking.enabled": True,
        "masking.kind": "fingerprint",
        "masking.every_step": False,
        "masking.protect_rounds": 2,
        "masking.protect_tokens": 40_000,
        "masking.minimum_tokens": 20_000,
        "trigger.enabled": True,
        "trigger.threshold_pct": 95.0,
        "trigger.tokens": None,
        "trigger.messages": None,
        "strategy": "summarize",
        "mode": "auto",
        "safety.max_attempts": 3,
        "evidence.citations": True,
        "evidence.unchanged_answers": True,
        "hooks": (),
        "counting": "exact",
    },
}


def flat(value: object, path: str = "") -> dict[str, object]:
    """The values of a policy by dotted path."""
    if not is_dataclass(value) or path == "hooks":
        return {path: value}
    return {
        key: below
        for field in fields(value)
        for key, below in flat(getattr(value, field.name), f"{path}.{field.name}".strip(".")).items()
    }


def test_every_system_has_a_policy_and_every_policy_its_file() -> None:
    assert tuple(sorted((*SEEDS, "balanced"))) == POLICY_NAMES
    assert [named_policy(name).name for name in POLICY_NAMES] == list(POLICY_NAMES)


@pytest.mark.row("C2", "C5", "P9", "K5", "S1", "T2", "T3", "P1", "P2", "P4", "P10")
@pytest.mark.parametrize("name", POLICY_NAMES)
def test_a_named_policy_says_what_its_document_says_and_leaves_the_rest_alone(name: str) -> None:
    documented = {"name": name, **DOCUMENTED[name]}
    assert flat(named_policy(name)) == {**flat(ContextPolicy()), **documented}


def test_a_name_without_a_file_is_refused_with_the_names_that_there_are() -> None:
    with pytest.raises(ConfigError, match=r"unknown context policy 'octopus'; available policies: altimate, balanced"):
        named_policy("octopus")
