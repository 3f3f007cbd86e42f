"""The message that stands for a masked result, by the kind of the policy. Called by planning, masking and the tail."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from holmes.core.truncation.masking.facts import beginning_of_output, describe_result
from holmes.core.truncation.masking.fingerprint import fingerprint_text
from holmes.core.truncation.masking.path import path_text
from holmes.core.truncation.masking.preview import preview_text
from holmes.values.messages import Text
from holmes.values.tools import output_text

if TYPE_CHECKING:
    from holmes.core.policy import ContextPolicy
    from holmes.tokens import TokenCounter
    from holmes.values.messages import StoredResult, ToolCall, ToolMessage

_MASK = re.compile(r"\[Tool output (?:cleared — |moved to )[^\n]{1,4000}")


def masked_message(
    message: ToolMessage,
    call: ToolCall | None,
    stored: tuple[StoredResult, ...],
    policy: ContextPolicy,
    counter: TokenCounter,
) -> ToolMessage:
    """`message` with the mask of the policy in place of text and pictures; `stored` is where the output lies."""
    text = _mask_text(message, call, stored, policy, counter)
    return replace(message, parts=(Text(text=text),), stored=stored, masked=True)


def fingerprinted(message: ToolMessage, call: ToolCall | None) -> ToolMessage:
    """`message`, which is stored, as a fingerprint whatever the policy says."""
    text = fingerprint_text(describe_result(message, call), message.stored)
    return replace(message, parts=(Text(text=text),), masked=True)


def looks_masked(text: str) -> bool:
    """Whether `text` is a mask, for conversations that come from a format without a field that says so."""
    return _MASK.match(text) is not None


def preview_cap_tokens(policy: ContextPolicy) -> int:
    """The largest view of a masked result: the share and the limit of a spilled one, of what masking lets stay."""
    share = int(policy.masking.max_tool_message_tokens * policy.spill.preview_share)
    return min(share, policy.spill.preview_max_tokens)


def _mask_text(
    message: ToolMessage,
    call: ToolCall | None,
    stored: tuple[StoredResult, ...],
    policy: ContextPolicy,
    counter: TokenCounter,
) -> str:
    facts = describe_result(message, call)
    match policy.masking.kind:
        case "fingerprint":
            return fingerprint_text(facts, stored)
        case "path":
            return path_text(facts, stored, beginning_of_output(message))
        case "preview":
            return preview_text(facts, stored, output_text(message), preview_cap_tokens(policy), counter)
        case _:
            assert_never(policy.masking.kind)
