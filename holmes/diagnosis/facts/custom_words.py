"""Judges how much the words of an operator say about the cause of a failure.

Operators repeat a failure on several levels: `Ready is False: Launched=Unknown` only sums up what another condition,
field or event says in full.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.line_kinds import kind_of
from holmes.values.expressions import expression
from holmes.values.texts import excerpt

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject

_REASONS: Final = expression(
    r"denied|forbidden|unauthori[sz]ed|not authori[sz]ed|not[ _]?found|\bno such\b|n[o']t exist|refused|\btime[d ]*out"
    r"|\binvalid|\bexceed|\bquota|\binsufficient|\bcannot\b|\bunable to\b|\bcould not\b|\bmissing\b|\brequired\b"
    r"|\bexpired\b|conflict|already (?:exists|in use)|\bno space\b|unsupported|not supported|immutable|\bmust be\b"
    r"|not allowed|x509|\bno available\b|reject|unreachable|\btoo (?:many|low|high|large|small)\b|mismatch"
    r"|does not match|\bwrong\b|\bunexpected\b|\bcorrupt|\blost\b",
    re.IGNORECASE,
)
"""Words that say why something failed."""
_FAILURES: Final = expression(r"\bfail(?:ed|ure|ing)?\b|error|exit(?:ed)? (?:code|status|with)", re.IGNORECASE)
"""Words that only say that something failed."""
_SUMMARIES: Final = expression(
    r"=(?:Unknown|True|False)\b|\bsee\b.*\b(?:details?|logs?)\b|\battempts?\b|attempt\(s\)|\bretr(?:y|ies|ied)\b"
    r"|\bcompleted\b|\b(?:not|to be|be(?:come)?|un) ?ready\b|^waiting\b|\bnot working\b|unsuccessful",
    re.IGNORECASE,
)
"""Words that only sum up other words."""
_DETAILS: Final = expression(r"\"[^\"]+\"|'[^']+'|`[^`]+`|\b[45]\d\d\b|\b\w+(?:[./_]\w+)+|\b[A-Z][a-z]+[A-Z]\w+")
_MOST_DETAILS: Final = 3
_CAUSED: Final = expression(r"^\s*(?:Caused by:|--->)\s*", re.MULTILINE)
_FRAME: Final = expression(r"^\s*(?:at |File \"|\.{3} \d+ more)")
_GIST_CHARACTERS: Final = 500
SAYS_WHY: Final = 3
"""The least specificity of words that say why something failed."""


def specificity(words: str, each: ClusterObject) -> int:
    """Return how much the words say about the cause. Words that only sum up are negative, and no words are lowest.

    The names of the object itself are not details.
    """
    if not words:
        return -_MOST_DETAILS - SAYS_WHY
    why = _REASONS.search(words) is not None or kind_of(words) is not None
    details = {found[0].strip("\"'`") for found in _DETAILS.finditer(words)} - {each.name, each.namespace, each.kind}
    summed = not why and _SUMMARIES.search(words) is not None
    return SAYS_WHY * why + min(len(details), _MOST_DETAILS) + (_FAILURES.search(words) is not None) - SAYS_WHY * summed


def gist(words: str) -> str:
    """Return a message on one line. Of a stack trace, only the last cause is returned."""
    last = _CAUSED.split(words)[-1]
    lines = [line for line in last.split("\n") if line.strip()]
    if any(map(_FRAME.match, lines)):
        first = next((index for index, line in enumerate(lines) if _FRAME.match(line)), len(lines))
        lines = lines[:first] or lines[:1]
    return excerpt(" ".join(" ".join(lines).split()), _GIST_CHARACTERS)
