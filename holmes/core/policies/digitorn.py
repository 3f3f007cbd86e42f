"""The documented policy of Digitorn: a hook compacts above 75% of the available tokens, then adds a reminder.

A result takes at most half of the free context window. A larger JSON array keeps its first items, and larger text keeps
its first characters. A summary has at most 1,024 tokens, and the last 10 messages stay. The next compaction waits for 2
turns. Token counts are estimates. An overflow cuts the history to half of the context window.
"""

from __future__ import annotations

from holmes.core.hooks import auto_compact_hook
from holmes.core.policy import (
    ContextPolicy,
    EvidencePolicy,
    KeepPolicy,
    MaskingPolicy,
    SafetyPolicy,
    SpillPolicy,
    SummaryPolicy,
    TriggerPolicy,
)

_PRESSURE = 0.75

POLICY = ContextPolicy(
    name="digitorn",
    spill=SpillPolicy(
        max_pct=50.0,
        max_tokens=1_000_000,  # disables this limit, so that only the share applies
        available_share=0.50,
        round_factor=None,
        preview_share=1.0,
        preview_max_tokens=1_000_000,
        preview="head",
    ),
    masking=MaskingPolicy(enabled=False),
    trigger=TriggerPolicy(threshold_pct=None, pressure=_PRESSURE, output_reserved=4_096),
    strategy="summarize",
    keep=KeepPolicy().counting(10),
    summary=SummaryPolicy(max_tokens=1_024, reminder=True, verify_entities=False),
    safety=SafetyPolicy(cooldown_rounds=2, cooldown_share=0.0, emergency_share=0.50),
    evidence=EvidencePolicy(citations=False, unchanged_answers=False),
    hooks=(auto_compact_hook(_PRESSURE),),
    counting="estimate",
)
