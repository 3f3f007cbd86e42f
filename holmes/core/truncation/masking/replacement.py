"""The message that stands for a masked result, by the kind of the policy.

The fingerprint (P3) says what was called with which arguments, how much came back, how it began and where it is now;
the preview (P2) is a view of the result and where the whole of it lies; the path (P1) is where it lies, and how it
began.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from holmes.core.truncation.masking.facts import beginning_of_output, describe_result
from holmes.previews import structured_preview
from holmes.values.messages import Text
from holmes.values.texts import before_placeholder
from holmes.values.tools import output_text

if TYPE_CHECKING:
    from holmes.core.policy import ContextPolicy
    from holmes.core.truncation.masking.facts import ResultFacts
    from holmes.tokens import TokenCounter
    from holmes.values.messages import StoredResult, ToolCall, ToolMessage


def fingerprint_text(facts: ResultFacts, stored: tuple[StoredResult, ...]) -> str:
    """For example `[Tool output cleared — get(kind: pods) returned 2 lines, 1.2 KB — "NAME"; full output: 1f2e3d]`."""
    first_line = f' — "{facts.first_line}"' if facts.first_line else ""
    where = ", ".join(result.id for result in stored)
    return f"[Tool output cleared — {facts.call} returned {facts.amount}{first_line}; full output: {where}]"


_SMALLEST_PREVIEW_TOKENS = 16


def preview_text(
    facts: ResultFacts, stored: tuple[StoredResult, ...], text: str, cap_tokens: int, counter: TokenCounter
) -> str:
    """One line that says what was moved where, then a view of `text` of at most `cap_tokens`."""
    where = ", ".join(result.id if result.path is None else f"{result.id} (file {result.path})" for result in stored)
    line = f"[Tool output moved to the store — {facts.call} returned {facts.amount}; full output: {where}]"
    if not text.strip() or cap_tokens < _SMALLEST_PREVIEW_TOKENS:
        return line
    preview = structured_preview(text, cap_tokens, counter)
    return f"{line}\nPreview, {preview.shown}:\n{preview.text}" if preview.text else line


_SHOWN_CHARACTERS = 500


def path_text(facts: ResultFacts, stored: tuple[StoredResult, ...], output: str) -> str:
    """The paths, or the result ids when the store is no folder, and the first 500 characters of `output`.

    The tools over stored results take both.
    """
    where = ", ".join(result.path or result.id for result in stored)
    line = f"[Tool output moved to {where} — {facts.call} returned {facts.amount}"
    if not output.strip():
        return f"{line}]"
    rest = "[...]" if len(output) > _SHOWN_CHARACTERS else ""
    return f"{line}; it begins:]\n{output[: before_placeholder(output, _SHOWN_CHARACTERS)]}{rest}"


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
