"""The documented policy of FlowLLM's ContextOffloadOp: above 20,000 tokens, it writes previews, then summaries.

Compaction replaces each tool message above 2,000 tokens with a preview, except for the last message. If more than 75%
of the tokens remain, compression summarises all messages except system messages and the last two messages.
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
    name="flowllm",
    spill=SpillPolicy(round_factor=None),
    masking=MaskingPolicy(
        kind="preview",
        every_step=True,
        protected_tools=(),
        max_total_tokens=20_000,
        max_tool_message_tokens=2_000,
        keep_recent_messages=1,
    ),
    trigger=TriggerPolicy(threshold_pct=None, tokens=20_000),
    mode="auto",
    keep=KeepPolicy().counting(2),
    summary=SummaryPolicy(
        group_token_threshold=None, compress_above_tokens=20_000, reminder=False, verify_entities=False
    ),
    safety=SafetyPolicy(cooldown_rounds=0, cooldown_share=0.0, auto_ratio=0.75),
    evidence=EvidencePolicy(citations=False, unchanged_answers=False),
)
