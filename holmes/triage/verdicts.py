"""Reads the verdict of an answer.

The answer of the built-in rules has the verdict of their first look. A model states its verdict with the first words of
its answer, for example `Root cause:`, as the system prompt asks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.evidence import without_markers
from holmes.triage.conversation import read_conversation
from holmes.values.texts import shortened
from holmes.values.verdicts import VERDICT_WORDS, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.values.first_look import FirstLook
    from holmes.values.messages import Message
    from holmes.values.verdicts import VerdictKind

_MOST_CHARACTERS: Final = 400
_KINDS: Final[dict[str, VerdictKind]] = {words.lower(): kind for kind, words in VERDICT_WORDS.items()}
_WORDS: Final = "|".join(map(re.escape, sorted(_KINDS, key=len, reverse=True)))
_STATED: Final = re.compile(
    rf"(?P<words>{_WORDS})\b(?: \([^)]{{1,40}}\))?:\s*(?P<rest>.*)",
    re.IGNORECASE,
)
_UNKNOWN: Final = re.compile(
    r"(?:still |currently )?(?:unknown|unclear|not (?:yet )?(?:found|known|clear)|none\b|n/a|cannot|could not)",
    re.IGNORECASE,
)
_FIRST_LINES: Final = 3
_LEADING: Final = "#>*-0123456789. "


def judge_answer(text: str, messages: Sequence[Message], *, built_in: bool) -> Verdict:
    """Return the verdict of the answer `text`. `built_in` means that the built-in rules wrote it."""
    lines = [line for line in map(_plain, text.splitlines()) if line]
    if built_in:
        seen = read_conversation(messages).look
        if seen is not None:
            return verdict_of_look(seen.look)
        return Verdict(kind="inconclusive", by="rules", summary=_short(lines[0]) if lines else "")
    for index, line in enumerate(lines):
        match = _STATED.fullmatch(line)
        kind = _KINDS[match["words"].lower()] if match is not None else "answered"
        if match is not None and (index < _FIRST_LINES or kind == "cause_found"):
            said = match["rest"] or next(iter(lines[index + 1 :]), "")
            if kind == "cause_found" and _UNKNOWN.match(said):
                kind = "inconclusive"
            if said:
                return Verdict(kind=kind, by="model", summary=_short(said))
    return Verdict(kind="answered", by="model", summary=_short(lines[0]) if lines else "")


def verdict_of_look(look: FirstLook) -> Verdict:
    """Return the verdict of the built-in rules."""
    return Verdict(kind=look.verdict, by="rules", summary=_short(look.summary))


def _plain(line: str) -> str:
    """Return a line of Markdown without citations, emphasis and list marks."""
    return without_markers(line.strip()).lstrip(_LEADING).replace("**", "").rstrip("* ")


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), _MOST_CHARACTERS, mark="")
