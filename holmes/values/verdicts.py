"""The verdict of an answer: what it claims, and whether rules or a model claim it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

VerdictKind: TypeAlias = Literal[
    "cause_found",
    "healthy",
    "inconclusive",
    "not_found",
    "not_understood",
    "answered",
    "declined",
    "not_investigated",
]
"""The claim of an answer.

- `cause_found`: the cause of the subject's problem, with evidence.
- `healthy`: no fault was found in what was read about the subject.
- `inconclusive`: the cause cannot be determined from what was read.
- `not_found`: the subject does not exist.
- `not_understood`: the question is not about a cluster, or Holmes does not understand it.
- `answered`: the answer to a question of fact, for example a number or a list.
- `declined`: the request asks for a change or for a secret value. Holmes only reads.
- `not_investigated`: the alert needs no investigation, for example a watchdog.
"""
VerdictAuthor: TypeAlias = Literal["rules", "model"]

VERDICT_KINDS: Final[tuple[VerdictKind, ...]] = get_args(VerdictKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict of one answer. `summary` is the sentence that states it."""

    kind: VerdictKind
    by: VerdictAuthor
    summary: str = ""

    @property
    def root_cause(self) -> str | None:
        """The sentence that states the cause, or None if no cause was found."""
        return self.summary if self.kind == "cause_found" else None


VERDICT_WORDS: Final[Mapping[VerdictKind, str]] = {
    "cause_found": "Root cause",
    "healthy": "Healthy",
    "inconclusive": "Cause not found",
    "not_found": "Not found",
    "not_understood": "Not understood",
    "answered": "Answered",
    "declined": "Declined",
    "not_investigated": "Not investigated",
}
"""The words that begin an answer with this verdict."""
