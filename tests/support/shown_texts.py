"""Every text that a person or a model may read, and the patterns of `docs/words.md` that none of them may match.

`python -m tests.support.shown_texts [--pattern] PATH ...` prints the texts of files and folders: of Python files the
docstrings, comments and strings of three or more words, of all others the paragraphs. With `--pattern` it prints only
those that match.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
WORDS: Final = ROOT / "docs" / "words.md"
SUFFIXES: Final = {".py", ".md", ".yaml", ".yml", ".jinja2", ".txt", ".tpl", ".js", ".css", ".toml"}
# The English of the demo's applications and of what linters and tests read is data.
DATA: Final = (
    "holmes/snapshot/demo/",
    "holmes/evidence/lexicon.yaml",
    "holmes/triage/vocabulary.yaml",
    "docs/words.md",
)
# The table with the identifiers of the specification; its sentences are checked in the catalogue.
_ROWS: Final = re.compile(r"<!-- rows: begin.*?rows: end -->", re.DOTALL)
_FEWEST_WORDS: Final = 3
_MARKERS: Final = re.compile(r"^\s*(?:#|//|/?\*+/?|<!--|-->|[-*|>] )?\s*")
_PLACEHOLDERS: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|`[^`]*`|<[^>]*>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownText:
    """A text on one line, and where it begins."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    refused: re.Pattern[str]
    instead: str


@cache
def patterns() -> tuple[Pattern, ...]:
    """The regular expressions of `docs/words.md`, with what to write instead."""
    (block,) = re.findall(r"^```text\n(.*?)^```$", WORDS.read_text(), flags=re.MULTILINE | re.DOTALL)
    pairs = [re.split(r" {2,}", line, maxsplit=1) for line in block.splitlines()]
    return tuple(Pattern(refused=re.compile(refused), instead=instead) for refused, instead in pairs)


def texts_below(path: Path) -> Iterator[ShownText]:
    """The texts of a file, or of all files of a folder."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    for file in files:
        name = str(file.relative_to(ROOT))
        if name.startswith(DATA) or file.suffix not in SUFFIXES:
            continue
        source = file.read_text()
        source = _ROWS.sub("", source)
        found = _of_python(source) if file.suffix == ".py" else _of_prose(source, fences=file.suffix == ".md")
        for line, text in sorted(found):
            yield ShownText(path=file, line=line, text=" ".join(text.split()))


def _of_python(source: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(source)
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    pieces: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces.update(id(value) for value in node.values)
            text = "".join(str(value.value) if isinstance(value, ast.Constant) else "{…}" for value in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in pieces:
            text = node.value
        else:
            continue
        if id(node) in docstrings or len(text.split()) >= _FEWEST_WORDS:
            yield node.lineno, text
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def _of_prose(source: str, *, fences: bool) -> Iterator[tuple[int, str]]:
    """Paragraphs, list items and rows of tables, without code blocks, code, tags and placeholders."""
    start, lines, is_code = 0, list[str](), False
    for number, line in enumerate((*source.splitlines(), ""), start=1):
        if fences and line.lstrip().startswith("```"):
            is_code = not is_code
        text = "" if is_code else _MARKERS.sub("", line)
        begins = not text or (re.match(r"\s*(?:[-*|] |#+ |\|)", line) is not None and fences)
        if begins and lines:
            yield start, _PLACEHOLDERS.sub("…", " ".join(lines))
            lines = []
        if text:
            start = start if lines else number
            lines.append(text)


def refused(text: str) -> str | None:
    """What to write in place of the first pattern that the text matches, with the words that match."""
    for pattern in patterns():
        match = pattern.refused.search(text)
        if match is not None:
            return f"{match[0]!r}: {pattern.instead}"
    return None


def main(arguments: list[str]) -> None:
    """Print the texts of the paths."""
    only_refused = "--pattern" in arguments
    for argument in arguments:
        if argument.startswith("--"):
            continue
        for text in texts_below(Path(argument).resolve()):
            why = refused(text.text)
            if why is not None or not only_refused:
                sys.stdout.write(f"{text}  [{why}]\n" if why is not None else f"{text}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
