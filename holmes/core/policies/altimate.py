"""The documented policy of altimate: fingerprints replace old results, then one summary replaces the history.

The 2 newest turns, the newest 40,000 tokens of results, and skills are not masked. Masking runs only if it frees at
least 20,000 tokens. If fewer than max(20,000, output limit of the model) tokens are free, a summary replaces the
history. The run ends after three compactions in a row. Token counts are estimates.
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
    name="altimate",
    spill=SpillPolicy(round_factor=None),
    masking=MaskingPolicy(
        kind="fingerprint",
        every_step=True,
        protect_rounds=2,
        protect_tokens=40_000,
        protect_share=1.0,
        minimum_tokens=20_000,
        minimum_share=1.0,
    ),
    trigger=TriggerPolicy(threshold_pct=None, reserved=20_000),
    strategy="summarize",
    keep=KeepPolicy(tail_share=0.0, tail_tokens=0, newest_round=False),
    summary=SummaryPolicy(reminder=False, verify_entities=False),
    safety=SafetyPolicy(cooldown_rounds=0, cooldown_share=0.0, max_attempts=3),
    evidence=EvidencePolicy(citations=False, unchanged_answers=False),
    counting="estimate",
)
