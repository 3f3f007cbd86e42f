"""Removes copies of Secrets from text: messages, annotations, the tables and descriptions that kubectl prints.

Called by the forms, and by `secrets` for every text inside of an object. Other tools write what
they apply into annotations, events and their own objects, as JSON, as YAML, as JSON within JSON, cut off anywhere; so
the rules look at words and indentation, and hide too much rather than too little.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.redaction.views import strip_escape_sequences
from holmes.toolsets.kubernetes_view.secret_names import sounds_secret

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HIDDEN = "(hidden)"
_LONGEST_SECRET_ANNOTATION = 256

# Also encoded in base64: `eyJ` is `{"`, and `H4sI` is how compressed text begins.
_STRUCTURE = re.compile(r"""[{\[\n]|^\s*["'\\]*[\w.-]+["'\\]*\s*:\s|^eyJ|^H4sI""")

# What the API server quotes when a value has the wrong type, as an unquoted password has: one value to a line.
# `.stringData.password: expected string, got &value.valueUnstructured{Value:12345}`, `error found in #9 byte of ...|…`
_QUOTED_VALUE = re.compile(r"&?value\.value[A-Z]\w*\{.*|(?<=byte of )\.\.\.\|.*")
# Quotes may be escaped, once or more often; a line end may be the two characters \n; Go prints maps without quotes.
_SECRET_KIND = re.compile(r"""[Kk]ind[\\"']*\s*[:=]\s*[\\"']*Secret(?:List)?\b""")
_DATA_KEY = re.compile(r"""(?:(?<![A-Za-z])|(?<=\\[nt]))(?:[Ss]tring ?)?[Dd]ata[\\"']*\s*:""")
_COPY_BEGINS = re.compile(r"""\{|map\[|\bapiVersion\b""")
_OWN_LINE = re.compile(r"""\s*(?:- +)*["']?""")
# An event in a description; no line of YAML or JSON looks like it.
_EVENT_ROW = re.compile(r"  (?:Normal|Warning) {2,}\w+ {2,}\S")

_ANNOTATIONS = re.compile(r" *Annotations: +")
# The only value of a Secret that kubectl describes; of the others it tells the size.
_TOKEN = re.compile(r"^token:[ \t].*", re.MULTILINE)


def holds_secret(text: str) -> bool:
    """Whether `text` names the kind Secret as an object does, whole or cut off."""
    return "Secret" in text and _SECRET_KIND.search(text) is not None


def may_be_copy(text: str) -> bool:
    """Whether an annotation of a Secret may carry its values: it is long, or looks like JSON, YAML or compressed."""
    return "data" in text.lower() or len(text) > _LONGEST_SECRET_ANNOTATION or _STRUCTURE.search(text) is not None


def masked_text(text: str) -> str:
    """`text` without escape sequences, the values that the API server quotes, and data of Secrets copied into it."""
    text = strip_escape_sequences(text)
    if "value.value" in text or "byte of ..." in text:
        text = _QUOTED_VALUE.sub(HIDDEN, text)
    # Only a Secret, or a template of one, has stringData.
    copied = holds_secret(text) or "stringData" in text or "String Data:" in text
    return "\n".join(_without_data(text.split("\n"))) if copied else text


def masked_description(text: str) -> str:
    """What `kubectl describe` or `kubectl rollout history` says, without tokens and copies of Secrets."""
    text = strip_escape_sequences(text)
    return masked_text(_TOKEN.sub(f"token:  {HIDDEN}", "\n".join(_masked_annotations(text.split("\n")))))


@dataclass(slots=True, kw_only=True)
class _HiddenBlock:
    """The lines below a hidden key: those indented deeper than `column`, and all until the brackets are closed."""

    column: int | None
    open_brackets: int

    def holds(self, line: str) -> bool:
        if _EVENT_ROW.match(line):
            return False
        indentation = len(line) - len(line.lstrip())
        within = self.open_brackets > 0 or (self.column is not None and indentation > self.column)
        self.open_brackets += _opened(line)
        return within


def _opened(text: str) -> int:
    return sum(text.count(bracket) for bracket in "{[") - sum(text.count(bracket) for bracket in "}]")


def _without_data(lines: Sequence[str]) -> Iterator[str]:
    """Lines of a text that names the kind Secret: every `data` and `stringData` is hidden with what is below it."""
    block: _HiddenBlock | None = None
    for line in lines:
        if block is not None and line.strip():
            if block.holds(line):
                continue
            block = None
        # Most lines hold no such word, and this is much faster than the pattern.
        found = _DATA_KEY.search(line) if "ata" in line else None
        if found is None:
            yield line
            continue
        before, value = line[: found.start()], line[found.end() :]
        own_line = _OWN_LINE.fullmatch(before) is not None
        opened = _opened(value)
        goes_on = opened > 0 or not value.strip()
        column = len(before.rstrip("\"'")) if own_line else 0 if goes_on else None
        block = _HiddenBlock(column=column, open_brackets=opened)
        shown = f"{line[: found.end()]} " if own_line else line[: _beginning_of_copy(line, found.start())]
        yield f"{shown}{HIDDEN}"


def _beginning_of_copy(line: str, data: int) -> int:
    """Where the object begins whose data is at the index `data`."""
    found = (_COPY_BEGINS.search(line), _SECRET_KIND.search(line))
    return min(data, *(match.start() if match is not None else data for match in found))


def _masked_annotations(lines: Sequence[str]) -> Iterator[str]:
    """Hides annotations in a description.

    kubectl writes `name: value`, or for a long value its lines below the name, two columns deeper and each cut off at
    138 characters, so that the kind may be missing from a copy.
    """
    position = 0
    while position < len(lines):
        found = _ANNOTATIONS.match(lines[position])
        if found is None:
            yield lines[position]
            position += 1
            continue
        margin = " " * found.end()
        end = position + 1
        while end < len(lines) and lines[end].startswith(margin):
            end += 1
        # Only the description of a Secret goes on like this.
        of_secret = [line[:5] for line in lines[end : end + 2]] == ["", "Type:"]
        title = found.group()
        for entry in _entries([line[found.end() :] for line in lines[position:end]]):
            for line in _shown_annotation(entry, of_secret=of_secret):
                yield title + line
                title = margin
        position = end


def _entries(lines: Sequence[str]) -> list[list[str]]:
    """The lines of each annotation."""
    entries: list[list[str]] = []
    for line in lines:
        if entries and line.startswith("  "):
            entries[-1].append(line)
        else:
            entries.append([line])
    return entries


def _shown_annotation(entry: Sequence[str], *, of_secret: bool) -> Sequence[str]:
    name, _, value = "\n".join(entry).partition(":")
    long = len(entry) > 1
    secret = (
        (long or may_be_copy(value.strip()) or sounds_secret(name))
        if of_secret
        else (long and _DATA_KEY.search(value) is not None)
    )
    return (f"{name}: {HIDDEN}",) if secret or holds_secret(value) else entry
