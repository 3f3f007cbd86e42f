"""Removes the values of Secrets from objects, messages, annotations, tables and descriptions.

Other tools copy applied objects into annotations, events and their own objects: as JSON, as YAML, or as JSON in JSON,
possibly truncated. The rules for text therefore rely on words and indentation, and hide too much rather than too
little.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.kubernetes.fields import LAST_APPLIED
from holmes.redaction.views import strip_escape_sequences
from holmes.toolsets.kubernetes_view.secret_names import sounds_secret
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.toolsets.kubernetes_view import Json

HIDDEN = "(hidden)"
_LONGEST_SECRET_ANNOTATION = 256

# This pattern also matches base64 (`eyJ` encodes `{"`) and compressed text, which begins with `H4sI`.
_STRUCTURE = expression(r"""[{\[\n]|^\s*["'\\]*[\w.-]+["'\\]*\s*:\s|^eyJ|^H4sI""")

# The API server quotes a value of the wrong type, for example a password without quotes. Each value is on one line:
# `.stringData.password: expected string, got &value.valueUnstructured{Value:12345}`, `error found in #9 byte of ...|…`
_QUOTED_VALUE = expression(r"&?value\.value[A-Z]\w*\{.*|(?<=byte of )\.\.\.\|.*")
# Quotes may be escaped several times. A line end may be the two characters \n. Go prints maps without quotes.
_SECRET_KIND = expression(r"""[Kk]ind[\\"']*\s*[:=]\s*[\\"']*Secret(?:List)?\b""")
_DATA_KEY = expression(r"""(?:(?<![A-Za-z])|(?<=\\[nt]))(?:[Ss]tring ?)?[Dd]ata[\\"']*\s*:""")
_COPY_BEGINS = expression(r"""\{|map\[|\bapiVersion\b""")
_OWN_LINE = expression(r"""\s*(?:- +)*["']?""")
# Matches an event in a description. Lines of YAML or JSON never have this format.
_EVENT_ROW = expression(r"  (?:Normal|Warning) {2,}\w+ {2,}\S")

_ANNOTATIONS = expression(r" *Annotations: +")
# The only Secret value that `kubectl describe` prints. For other values, it prints the size.
_TOKEN = expression(r"^token:[ \t].*", re.MULTILINE)
# Kubernetes defines the columns of these kinds, and none of these columns shows a value of a Secret.
_HARMLESS_KINDS = expression(
    r"po|pods?|svc|services?|ep|endpoints|no|nodes?|ns|namespaces?|ev|events?|cm|configmaps?|secrets?|sa|serviceaccounts?"
    r"|pvc?|persistentvolume(claim)?s?|rc|replicationcontrollers?|quota|resourcequotas?|limits|limitranges?"
    r"|deploy|deployments?|rs|replicasets?|sts|statefulsets?|ds|daemonsets?|jobs?|cj|cronjobs?"
    r"|hpa|horizontalpodautoscalers?|ing|ingress(es)?|netpol|networkpolic(y|ies)|pdb|poddisruptionbudgets?"
    r"|sc|storageclass(es)?|(cluster)?role(binding)?s?|crds?|customresourcedefinitions?"
)
# In a table, a value shorter than this length is hidden only as a separate word.
_SHORT_VALUE = 6
_BEFORE_WORD = r"""(?<![^\s"':,\[{(])"""
_AFTER_WORD = r"""(?![^\s"',\]})])"""


def _holds_secret(text: str) -> bool:
    """Return whether `text` contains the kind Secret in the syntax of a complete or truncated object."""
    return "Secret" in text and _SECRET_KIND.search(text) is not None


def _may_be_copy(text: str) -> bool:
    """Return whether an annotation of a Secret may contain its values, because it is long, structured or compressed."""
    return "data" in text.lower() or len(text) > _LONGEST_SECRET_ANNOTATION or _STRUCTURE.search(text) is not None


def masked_text(text: str) -> str:
    """Remove escape sequences, values quoted by the API server, and copied Secret data from `text`."""
    text = strip_escape_sequences(text)
    if "value.value" in text or "byte of ..." in text:
        text = _QUOTED_VALUE.sub(HIDDEN, text)
    # Only a Secret or a Secret template has stringData.
    copied = _holds_secret(text) or "stringData" in text or "String Data:" in text
    return "\n".join(_without_data(text.split("\n"))) if copied else text


def masked_description(text: str) -> str:
    """Remove tokens and copies of Secrets from the output of `kubectl describe` or `kubectl rollout history`."""
    text = strip_escape_sequences(text)
    return masked_text(_TOKEN.sub(f"token:  {HIDDEN}", "\n".join(_masked_annotations(text.split("\n")))))


@dataclass(slots=True, kw_only=True)
class _HiddenBlock:
    """Recognises the lines below a hidden key: more deeply indented lines, or all lines up to the closing bracket."""

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
    """Hide each `data` and `stringData` field, with its value, in a text that contains the kind Secret."""
    block: _HiddenBlock | None = None
    for line in lines:
        if block is not None and line.strip():
            if block.holds(line):
                continue
            block = None
        # Search for this string first, because this is much faster than the pattern and few lines contain the string.
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
    """Return the start of the object that contains the `data` field at index `data`."""
    found = (_COPY_BEGINS.search(line), _SECRET_KIND.search(line))
    return min(data, *(match.start() if match is not None else data for match in found))


def _masked_annotations(lines: Sequence[str]) -> Iterator[str]:
    """In a description, hide the annotations of Secrets, and copies of Secrets in other annotations.

    kubectl writes `name: value`. It writes a long value below the name, indented by two columns, and truncates each
    line at 138 characters. A copied object may therefore lack its kind.
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
        # These lines appear only in the description of a Secret.
        of_secret = [line[:5] for line in lines[end : end + 2]] == ["", "Type:"]
        title = found.group()
        for entry in _entries([line[found.end() :] for line in lines[position:end]]):
            for line in _shown_annotation(entry, of_secret=of_secret):
                yield title + line
                title = margin
        position = end


def _entries(lines: Sequence[str]) -> list[list[str]]:
    """Group the lines by annotation."""
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
        (long or _may_be_copy(value.strip()) or sounds_secret(name))
        if of_secret
        else (long and _DATA_KEY.search(value) is not None)
    )
    return (f"{name}: {HIDDEN}",) if secret or _holds_secret(value) else entry


def without_secrets(value: Json, *, of_secret_list: bool = False) -> Json:
    """Return a copy of `value` without Secret values, `last-applied` copies and `managedFields`."""
    if isinstance(value, list):
        return [without_secrets(item, of_secret_list=of_secret_list) for item in value]
    if isinstance(value, str):
        return masked_text(value)
    if not isinstance(value, dict):
        return value
    # The API server omits the kind of list items. Only a Secret or a Secret template has `stringData`.
    items_are = value.get("kind") == "SecretList"
    kept = {key: without_secrets(item, of_secret_list=items_are and key == "items") for key, item in value.items()}
    secret = of_secret_list or value.get("kind") == "Secret" or isinstance(value.get("stringData"), dict)
    metadata = kept.get("metadata")
    if isinstance(metadata, dict):
        _clean_metadata(metadata, value["metadata"], secret=secret)
    if secret:
        names = sorted({name for field in ("data", "stringData") for name in _names(kept.pop(field, None))})
        if names:
            kept["dataKeys"] = list(names)
    return kept


def masked_status(text: str) -> str:
    """Remove the notes of the chart from the output of `helm status`, because they may contain a password."""
    kept, _, _ = f"\n{text}".partition("\nNOTES:")
    return masked_text(f"{kept.strip()}\n")


def _clean_metadata(metadata: dict[str, Json], original: Json, *, secret: bool) -> None:
    metadata.pop("managedFields", None)
    annotations = metadata.get("annotations")
    written = original.get("annotations") if isinstance(original, dict) else None
    if not isinstance(annotations, dict) or not isinstance(written, dict):
        if secret:
            metadata.pop("annotations", None)
        return
    annotations.pop(LAST_APPLIED, None)
    # Other tools keep copies of applied objects under other names.
    for name in annotations:
        text = written.get(name)
        copied = not isinstance(text, str) or _holds_secret(text) or (secret and _may_be_copy(text))
        if copied or (secret and sounds_secret(name)):
            annotations[name] = HIDDEN
    if not annotations:
        del metadata["annotations"]


def is_harmless_table(kinds: str) -> bool:
    """Return whether a table of `kinds` (kubectl syntax) can be shown without reading its objects."""
    return all(_HARMLESS_KINDS.fullmatch(kind.partition("/")[0]) for kind in kinds.split(","))


def masked_table(table: str, objects: Json, shown_objects: Json) -> str:
    """Hide the secret values of `objects` in `table`. The columns of a custom resource may show these values."""
    table = strip_escape_sequences(table)
    for value in sorted(_hidden_values(objects, shown_objects), key=len, reverse=True):
        if value not in table:
            continue
        shown = HIDDEN.ljust(len(value))
        if len(value) >= _SHORT_VALUE:
            table = table.replace(value, shown)
        else:
            table = re.sub(rf"{_BEFORE_WORD}{re.escape(value)}{_AFTER_WORD}", shown, table)
    return table


def _hidden_values(objects: Json, shown_objects: Json) -> set[str]:
    """Return the values of `objects` that are hidden in `shown_objects`, in the form that a table column prints."""
    hidden = {strip_escape_sequences(value) for value in _values(objects)} - set(_values(shown_objects))
    lines = {line.strip() for value in hidden for line in value.splitlines()}
    # For a column that contains an object, kubectl prints JSON in Go's format.
    as_json = {json.dumps(value, ensure_ascii=False)[1:-1] for value in hidden | lines}
    for character in "<>&":
        as_json |= {value.replace(character, f"\\u{ord(character):04x}") for value in as_json}
    return (hidden | lines | as_json) - {"", HIDDEN}


def _values(value: Json) -> Iterator[str]:
    """Yield the strings and numbers in `value`, except those in fields that are omitted only to save space."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in {"managedFields", LAST_APPLIED}:
                yield from _values(item)
    elif isinstance(value, list):
        for item in value:
            yield from _values(item)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)


def _names(data: Json) -> Iterator[str]:
    if isinstance(data, dict):
        yield from data
