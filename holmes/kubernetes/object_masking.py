"""Masks the secrets in objects and alerts, using their field names.

Many values are recognised as secrets only by their names, especially encoded values (`@base64`). Each text is therefore
checked three times. It is checked alone, because it may be a file or command line. It is checked with its own name,
which may be in a sibling field. It is also checked within the whole document.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holmes.redaction.names import strength_of
from holmes.redaction.views import strip_escape_sequences
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holmes.values.json_types import JsonObject, JsonValue

REMOVED: Final = "(REDACTED)"
_TORN: Final[dict[str, JsonValue]] = {}  # marks JSON that masking broke, and is compared by identity
# A text without these characters need not be masked alone, because masking the whole document has the same effect.
_SAYS_MORE_ALONE: Final = expression(r"[\s=\"'\\]|:(?![\d/])")
_SHORTEST_TOKEN: Final = 20
_LONGEST_REMEMBERED_CHARACTERS: Final = 400
_NAME_FIELDS: Final = ("name", "key", "field", "property", "option", "parameter")
_VALUE_FIELDS: Final = frozenset({"value", "values", "val", "default", "content", "stringValue", "plainValue"})
_OPTION: Final = expression(r"-{1,2}[A-Za-z][\w.-]*")


class ObjectMasker:
    """Masks objects with `mask`, which masks the secrets in one text. Caches all texts, so use one masker for each job.

    Field names are kept unless they are tokens. If `mask_names` is true, field names are masked like other texts. Set
    `mask_names` to true for data of unknown origin.
    """

    def __init__(self, mask: Callable[[str], str], *, mask_names: bool = False) -> None:
        self._mask = mask
        self._mask_names = mask_names
        self._known_texts: dict[str, str] = {}
        self._known_pairs: dict[tuple[str, str], JsonValue] = {}

    def masked(self, value: JsonValue) -> JsonValue:
        """Return a copy of `value` without secrets and with the same shape. CPU-bound: about 1 s for 10 MB."""
        named = self._within(value, "", every=False)
        whole = self._as_json(named)
        # If a placeholder breaks the JSON of the document, check each text with its own name instead.
        return self._within(named, "", every=True) if whole is _TORN else whole

    def masked_arguments(self, text: str) -> str:
        """Mask the values of options such as `--password` in a description with one argument per line."""
        lines = text.split("\n")
        for number, (option, line) in enumerate(pairwise(lines), start=1):
            indentation, name = option[: len(option) - len(option.lstrip())], _option_name(option.strip())
            value = line.removeprefix(indentation)
            if indentation and name and value != line and value[:1] not in {"", " ", "-"}:
                lines[number] = f"{indentation}{self._beside(name, value)}"
        return "\n".join(lines)

    def _within(self, value: JsonValue, name: str, *, every: bool) -> JsonValue:
        if isinstance(value, str):
            text = self._text(value)
            return self._beside(name, text) if every or _may_be_secret(name) else text
        if isinstance(value, dict):
            return self._fields(value, name, every=every)
        if isinstance(value, list):
            before = [None, *value]
            return [
                self._within(each, _option_name(option) or name, every=every)
                for option, each in zip(before, value, strict=False)
            ]
        if isinstance(value, int | float) and not isinstance(value, bool) and (every or _may_be_secret(name)):
            return self._beside(name, value)
        return value

    def _fields(self, fields: JsonObject, name: str, *, every: bool) -> JsonObject:
        beside = next((each for key in _NAME_FIELDS if isinstance(each := fields.get(key), str)), "")
        masked: dict[str, JsonValue] = {}
        for key, each in fields.items():
            if key not in _VALUE_FIELDS:
                masked[self._key(key)] = self._within(each, key, every=every)
            elif beside and beside != each:
                masked[key] = self._within(each, beside, every=True)
            else:
                masked[key] = self._within(each, name, every=every)
        return masked

    def _text(self, text: str) -> str:
        if _SAYS_MORE_ALONE.search(text) is None:
            return text
        return self._remembered(text)

    def _remembered(self, text: str) -> str:
        if len(text) > _LONGEST_REMEMBERED_CHARACTERS:
            return self._mask(text)
        if text not in self._known_texts:
            self._known_texts[text] = self._mask(text)
        return self._known_texts[text]

    def _key(self, key: str) -> str:
        """Mask a key that is a token. Keep any other key, because it describes the value."""
        if not self._mask_names and (len(key) < _SHORTEST_TOKEN or _SAYS_MORE_ALONE.search(key) is not None):
            return key
        masked = self._remembered(key)
        return key if masked == strip_escape_sequences(key) else masked

    def _beside(self, name: str, value: str | float) -> JsonValue:
        """Mask `value` together with its name. Remove the value if masking breaks the JSON that contains both."""
        known = (name, str(value))
        if known not in self._known_pairs:
            pair = self._as_json({name: value})
            self._known_pairs[known] = pair[name] if isinstance(pair, dict) and pair is not _TORN else REMOVED
        found = self._known_pairs[known]
        return value if found == str(value) else found

    def _as_json(self, value: JsonValue) -> JsonValue:
        """Mask `value` as one JSON text. Returns `_TORN` if masking breaks the JSON or changes its shape."""
        before = json.dumps(value, ensure_ascii=False)
        after = self._mask(before)
        if after is before or after == before:
            return value
        try:
            masked: JsonValue = json.loads(after)
        except (ValueError, RecursionError):
            return _TORN
        return masked if _same_shape(value, masked) else _TORN


def _may_be_secret(name: str) -> bool:
    return strength_of(name.rpartition("/")[2]) != "none"


def _option_name(option: JsonValue) -> str:
    """Return the name of the option without its dashes, or "" if the text is not an option such as `--password`."""
    return option.lstrip("-") if isinstance(option, str) and _OPTION.fullmatch(option) else ""


def _same_shape(one: JsonValue, other: JsonValue) -> bool:
    """Return whether both values have the same keys and lengths, and text in the same fields."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and _same_values(one, other)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(_same_shape, one, other))
    return isinstance(other, str) or not isinstance(other, dict | list)


def _same_values(one: Mapping[str, JsonValue], other: Mapping[str, JsonValue]) -> bool:
    return all(_same_shape(one[key], other[key]) for key in one)
