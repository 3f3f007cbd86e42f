"""The documented policy of Octo: cuts and masks large results, and summarises long histories.

The preview of a large result is its first 20,000 characters, or half of the context window if that is less. This limit
includes the path of the stored result. Before each request, a path replaces each result above 4,000 characters that is
older than the last 10 messages. Above 70% of the context window, 100,000 tokens or 100 messages, the model writes a
summary. The newest 20 messages stay, up to 20,000 tokens and half of the usable context window. If no summary is
written, the newest 40% of the history stays.
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
    name="octo",
    spill=SpillPolicy(
        max_pct=50.0,  # except in a small context window, `char_limit` is reached first
        char_limit=20_000,
        round_factor=None,
        preview_share=1.0,
        preview_max_tokens=20_000,  # a text has at most one token per character
        preview="head",
        user_message_char_limit=30_000,
    ),
    masking=MaskingPolicy(
        kind="path", every_step=True, protected_tools=(), older_than_messages=10, larger_than_characters=4_000
    ),
    trigger=TriggerPolicy(threshold_pct=None, tokens=100_000, fraction=0.70, messages=100),
    strategy="summarize",
    keep=KeepPolicy(tail_share=0.50, tail_tokens=20_000, messages=20, fraction=0.40),
    summary=SummaryPolicy(reminder=False, verify_entities=False),
    safety=SafetyPolicy(cooldown_rounds=0, cooldown_share=0.0),
    evidence=EvidencePolicy(citations=False, unchanged_answers=False),
)
