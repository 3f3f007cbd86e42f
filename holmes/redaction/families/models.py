"""Keys of model providers."""

from __future__ import annotations

import re
from typing import Final

from holmes.redaction.kinds import EDGE, END, Kind, token

KINDS: Final = (
    token("anthropic-key", "sk-ant-", r"[A-Za-z0-9_\-]{24,}+"),
    Kind(
        name="openai-key",
        prefixed=True,
        literals=("sk-",),
        pattern=re.compile(
            rf"{EDGE}sk-(?!ant-)(?:(?:proj|svcacct|admin|or-v1|None)-[A-Za-z0-9_\-]{{20,}}+|[A-Za-z0-9]{{20,}}+){END}"
        ),
    ),
    token("hugging-face-token", "hf_", r"[A-Za-z0-9]{30,40}"),
    token("groq-key", "gsk_", r"[A-Za-z0-9]{40,60}"),
    token("xai-key", "xai-", r"[A-Za-z0-9]{60,100}"),
    token("replicate-token", "r8_", r"[A-Za-z0-9]{30,50}"),
    token("perplexity-key", "pplx-", r"[A-Za-z0-9]{40,60}"),
    token("langsmith-key", "lsv2_", r"(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
)
