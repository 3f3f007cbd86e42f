r"""Finds the position of each value in a bash script, so that no value becomes code or an option.

Each value in the script is a mark (`\x00number\x00`). The scanner follows quotes, substitutions, arithmetic, comments
and heredocs of bash. It need not be perfect, because unsafe values are stored in variables. A wrong position can
corrupt a word, but bash never runs the value as code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from holmes.values.expressions import expression

MARK = "\x00"
_MARK = expression(r"\x00(\d+)\x00")
_HEREDOC = expression(r"<<(-?)[ \t]*(\\?)(?:'([^'\n]*)'|\"([^\"\n]*)\"|([\w.+-]+))")
_NOTHING_OR_ASSIGNMENT = expression(r"(\w+\+?=)?")
_WORD_END = frozenset(" \t\n;|&()<>")
_COMMAND_END = frozenset("\n;|&()")

Place: TypeAlias = Literal["word", "double", "single", "ansi", "arithmetic", "comment", "heredoc", "literal_heredoc"]

_Frame: TypeAlias = Literal["word", "double", "single", "ansi", "arithmetic", "braces", "backtick", "comment"]

_EXPANSIONS: tuple[tuple[str, _Frame], ...] = (
    ("$((", "arithmetic"),
    ("$(", "word"),
    ("${", "braces"),
    ("<(", "word"),
    (">(", "word"),
)
# Each opening sign, the frame that it opens, and whether it opens the frame only at the beginning of a word.
_OPENINGS: tuple[tuple[str, _Frame, bool], ...] = (
    ("'", "single", False),
    ('"', "double", False),
    ("$'", "ansi", False),
    ("`", "backtick", False),
    ("#", "comment", True),
    ("((", "arithmetic", True),
)
_CLOSINGS: dict[_Frame, str] = {"single": "'", "ansi": "'", "double": '"', "arithmetic": "))", "braces": "}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The position of a value in the script.

    `may_become_option` means that the value begins a word of a command without a preceding `--`.
    """

    number: int
    place: Place
    may_become_option: bool


def locate_marks(script: str) -> dict[int, Mark]:
    """Return the position of every mark in `script`, by the number of the mark."""
    return _Scanner(script).scan()


def mark_of(number: int) -> str:
    """Return the mark of value `number`, which rendering replaces."""
    return f"{MARK}{number}{MARK}"


def replace_marks(script: str, values: dict[int, str]) -> str:
    return _MARK.sub(lambda found: values[int(found.group(1))], script)


class _Scanner:
    def __init__(self, script: str) -> None:
        self._script = script
        self._position = 0
        self._frames: list[_Frame] = ["word"]
        # For each nested command: the current word so far, and whether `--` has occurred.
        self._words: list[str] = [""]
        self._after_dashes: list[bool] = [False]
        self._heredocs: list[tuple[str, bool, bool]] = []
        self._marks: dict[int, Mark] = {}

    def scan(self) -> dict[int, Mark]:
        while self._position < len(self._script):
            found = _MARK.match(self._script, self._position)
            if found is not None:
                self._meet_mark(int(found.group(1)))
                self._position = found.end()
                continue
            frame = self._frames[-1]
            if frame in {"word", "backtick"}:
                self._scan_code()
            elif frame == "comment":
                self._scan_comment()
            else:
                self._scan_quoted(frame)
        return self._marks

    def _meet_mark(self, number: int) -> None:
        frame = self._frames[-1]
        place: Place = "word"
        if frame == "braces":
            place = "arithmetic"
        elif frame != "backtick":
            place = frame
        prefix = re.sub(r"[\"']", "", self._words[-1])
        begins_word = place in {"word", "double", "single", "ansi"} and _NOTHING_OR_ASSIGNMENT.fullmatch(prefix)
        option = bool(begins_word) and not self._after_dashes[-1]
        self._marks[number] = Mark(number=number, place=place, may_become_option=option)
        # The word does not change here. The value may be empty, and the next value would then begin the word.

    def _scan_code(self) -> None:
        if self._scan_opening() or self._scan_expansion():
            return
        character = self._script[self._position]
        if character == "\\":
            self._take(2)
        elif self._starts("<<") and not self._starts("<<<"):
            self._begin_heredoc()
        elif character == ")" and len(self._frames) > 1 and self._frames[-1] == "word":
            self._pop(1)
        elif character in _WORD_END:
            self._end_word(character)
        else:
            self._take(1)

    def _scan_opening(self) -> bool:
        """Enter or leave the frame (such as quotes) that a sign in a command opens or closes."""
        begins_word = not self._words[-1]
        if self._starts("`") and self._frames[-1] == "backtick":
            self._pop(1)
            return True
        for opening, frame, only_at_word_start in _OPENINGS:
            if self._starts(opening) and (begins_word or not only_at_word_start):
                self._push(frame, len(opening))
                return True
        return False

    def _scan_quoted(self, frame: _Frame) -> None:
        closing = _CLOSINGS[frame]
        character = self._script[self._position]
        if self._starts(closing):
            self._pop(len(closing))
        elif character == "\\" and frame != "single":
            self._take(2)
        elif frame in {"single", "ansi"}:
            self._take(1)
        elif self._scan_expansion():
            pass
        elif character == "`":
            self._push("backtick", 1)
        elif frame == "braces" and character in "'\"":
            self._push("single" if character == "'" else "double", 1)
        else:
            self._take(1)

    def _scan_comment(self) -> None:
        if self._script[self._position] == "\n":
            self._frames.pop()
        else:
            self._position += 1

    def _scan_expansion(self) -> bool:
        quoted = self._frames[-1] not in {"word", "backtick"}
        for opening, frame in _EXPANSIONS:
            if self._starts(opening) and not (quoted and opening[0] != "$"):
                self._push(frame, len(opening))
                return True
        return False

    def _end_word(self, character: str) -> None:
        if self._words[-1] == "--":
            self._after_dashes[-1] = True
        self._words[-1] = ""
        if character in _COMMAND_END:
            self._after_dashes[-1] = False
        self._position += 1
        if character == "(":
            self._frames.append("word")
            self._words.append("")
            self._after_dashes.append(False)
        if character == "\n" and self._heredocs:
            self._scan_heredocs()

    def _begin_heredoc(self) -> None:
        found = _HEREDOC.match(self._script, self._position)
        if found is None:
            self._take(2)
            return
        single, double, bare = found.group(3), found.group(4), found.group(5)
        literal = bool(found.group(2)) or bare is None
        delimiter = next(word for word in (single, double, bare) if word is not None)
        self._heredocs.append((delimiter, bool(found.group(1)), literal))
        self._position = found.end()

    def _scan_heredocs(self) -> None:
        for delimiter, strips_tabs, literal in self._heredocs:
            while self._position < len(self._script):
                end = self._script.find("\n", self._position)
                end = len(self._script) if end < 0 else end
                line = self._script[self._position : end]
                self._position = end + 1
                if (line.lstrip("\t") if strips_tabs else line) == delimiter:
                    break
                for found in _MARK.finditer(line):
                    number = int(found.group(1))
                    place: Place = "literal_heredoc" if literal else "heredoc"
                    self._marks[number] = Mark(number=number, place=place, may_become_option=False)
        self._heredocs.clear()

    def _push(self, frame: _Frame, length: int) -> None:
        self._take(length)
        self._frames.append(frame)
        if frame in {"word", "backtick"}:
            self._words.append("")
            self._after_dashes.append(False)

    def _pop(self, length: int) -> None:
        if self._frames.pop() in {"word", "backtick"}:
            self._words.pop()
            self._after_dashes.pop()
        self._take(length)

    def _take(self, length: int) -> None:
        self._words[-1] += self._script[self._position : self._position + length]
        self._position += length

    def _starts(self, text: str) -> bool:
        return self._script.startswith(text, self._position)
