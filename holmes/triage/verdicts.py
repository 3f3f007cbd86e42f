"""Reads the verdict of an answer.

The answer of the built-in rules has the verdict of their first look. A model states its verdict with the first words of
its answer, for example `Root cause:`, as the system prompt asks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.evidence import scan_markers, without_markers
from holmes.triage.conversation import read_conversation
from holmes.values.expressions import expression
from holmes.values.texts import shortened
from holmes.values.verdicts import VERDICT_WORDS, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.values.first_look import FirstLook
    from holmes.values.messages import Message
    from holmes.values.verdicts import VerdictKind

_MOST_CHARACTERS: Final = 400
_TRANSLATED: Final[dict[str, VerdictKind]] = {
    **dict.fromkeys(("cause", "ursache", "hauptursache", "grundursache", "causa raíz", "causa"), "cause_found"),
    **dict.fromkeys(("cause racine", "cause première", "cause profonde"), "cause_found"),
    **dict.fromkeys(
        ("ursache nicht gefunden", "causa no encontrada", "cause non trouvée", "inconclusive", "not known"),
        "inconclusive",
    ),
    **dict.fromkeys(("gesund", "sano", "sana", "sain", "saine"), "healthy"),
    **dict.fromkeys(("nicht gefunden", "no encontrado", "no encontrada", "introuvable", "non trouvé"), "not_found"),
    **dict.fromkeys(("abgelehnt", "rechazado", "refusé"), "declined"),
}
"""The words of `VERDICT_WORDS` as models translate them."""
_VAGUE: Final = frozenset({"cause", "ursache", "causa"})
"""Words that are a verdict only at the beginning of an answer."""
_KINDS: Final = {**_TRANSLATED, **{words.lower(): kind for kind, words in VERDICT_WORDS.items()}}
_WORDS: Final = "|".join(map(re.escape, sorted(_KINDS, key=len, reverse=True)))
_BEFORE: Final = (
    "the a most more likely probable possible main actual real second another other further additional underlying "
    "die eine wahrscheinliche zweite weitere eigentliche la una otra segunda une autre seconde"
)
_STATED: Final = expression(
    rf"(?:(?:{_BEFORE.replace(' ', '|')}) ){{0,3}}(?P<words>{_WORDS})\b(?: \([^)]{{1,40}}\))?"
    r"(?:\s?:|(?P<verb> (?:is|was|ist|war|es|est|était)\b(?: that\b|, dass\b| que\b)?)|(?P<heading>$))\s*(?P<rest>.*)",
    re.IGNORECASE,
)
_UNKNOWN: Final = expression(
    r"(?:still |currently )?(?:unknown|unclear|not (?:yet )?(?:found|known|clear)|none\b|n/a|cannot|could not|unbekannt"
    r"|unklar|desconocida|inconnue)",
    re.IGNORECASE,
)
_FIRST_LINES: Final = 3
_LEADING: Final = "#>*-0123456789. "
_ENDS_STATEMENT: Final = expression(r"\s*(?:$|#|[-*+] |\d+[.)] |\||```)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    """A verdict in an answer. `text` is its paragraph without the words of the verdict."""

    kind: VerdictKind
    text: str


def judge_answer(text: str, messages: Sequence[Message], *, built_in: bool) -> Verdict:
    """Return the verdict of the answer `text`. `built_in` means that the built-in rules wrote it."""
    lines = [line for line in map(_plain, text.splitlines()) if line]
    first = _short(lines[0]) if lines else ""
    if built_in:
        seen = read_conversation(messages).look
        return (
            verdict_of_look(seen.look) if seen is not None else Verdict(kind="inconclusive", by="rules", summary=first)
        )
    stated = next(_statements(text), None)
    if stated is None:
        return Verdict(kind="answered", by="model", summary=first)
    return Verdict(kind=stated.kind, by="model", summary=_short(stated.text.partition("\n")[0]))


def causes_in(text: str) -> str:
    """Return the paragraphs in which an answer states causes, or the whole answer if no words mark a cause."""
    plain = "".join(each for each in scan_markers(text) if isinstance(each, str))
    found = [each.text for each in _statements(plain) if each.kind == "cause_found"]
    return "\n".join(found) or plain


def _statements(text: str) -> Iterator[_Statement]:
    """Yield the verdict of an answer, and each cause that it states."""
    lines = text.splitlines()
    position = 0
    for index, line in enumerate(lines):
        plain = _plain(line)
        position += bool(plain)
        match = _STATED.fullmatch(plain)
        if match is None or (match["heading"] is not None and not line.lstrip().startswith(("#", "**"))):
            continue
        kind = _KINDS[match["words"].lower()]
        is_clear = kind == "cause_found" and (match["words"].lower() not in _VAGUE or match.start("words"))
        if not is_clear and (position > _FIRST_LINES or match["verb"]):
            continue
        said = _paragraph(match["rest"], lines[index + 1 :])
        if kind == "cause_found" and _UNKNOWN.match(said):
            kind = "inconclusive"
        if said:
            yield _Statement(kind=kind, text=said)


def _paragraph(first: str, following: Sequence[str]) -> str:
    """Return the paragraph that begins with `first`, or the next paragraph if `first` is empty."""
    lines = [first] if first else []
    for line in following:
        if not _ENDS_STATEMENT.match(line):
            lines.append(_plain(line))
        elif lines:
            break
        elif line.strip():
            return _plain(line)
    return "\n".join(lines)


def verdict_of_look(look: FirstLook) -> Verdict:
    """Return the verdict of the built-in rules."""
    return Verdict(kind=look.verdict, by="rules", summary=_short(look.summary))


def _plain(line: str) -> str:
    """Return a line of Markdown without citations, emphasis and list marks."""
    return without_markers(line.strip()).lstrip(_LEADING).replace("**", "").rstrip("* ")


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), _MOST_CHARACTERS, mark="")
