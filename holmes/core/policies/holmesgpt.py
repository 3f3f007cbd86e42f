"""The documented policy of HolmesGPT: stores large results, and summarises the history above 95% of the context window.

The system prompt, the summary and the last user message remain. The policy has no tail, masking, reminder or cooldown.
The loop also limits compaction attempts, and truncates the history after an overflow.
"""

from __future__ import annotations

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

POLICY = ContextPolicy(
    name="holmesgpt",
    spill=SpillPolicy(max_pct=15.0, max_tokens=25_000, round_factor=None),
    masking=MaskingPolicy(enabled=False),
    trigger=TriggerPolicy(enabled=True, threshold_pct=95.0),
    strategy="summarize",
    keep=KeepPolicy(tail_share=0.0, tail_tokens=0, newest_round=False),
    summary=SummaryPolicy(reminder=False, verify_entities=False),
    safety=SafetyPolicy(cooldown_rounds=0, cooldown_share=0.0),
    evidence=EvidencePolicy(citations=False, unchanged_answers=False),
)
