"""Finds the line of what is wrong below a key of a file, and says it in one line and in the words of a person.

What pydantic calls the place of a mistake contains names of its own (the kind of a condition, for example); here these
are left out, so that what remains is the path in the file.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holmes.settings.errors import SettingsError
from holmes.settings.hooks import hook_keys

if TYPE_CHECKING:
    from pydantic import ValidationError

    from holmes.settings.yaml_file import YamlFile
    from holmes.yaml_documents import KeyPath

_WORDS = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "missing": "is missing",
    "dict_type": "must be an object: keys and values",
    "model_type": "must be an object: keys and values",
    "model_attributes_type": "must be an object: keys and values",
    "tuple_type": "must be a list",
    "union_tag_not_found": "the key 'type' is missing",
}


def reason_of(error: ValidationError) -> str:
    """The first complaint as one clause, without the value: it may be a secret."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if words := _WORDS.get(first["type"]):
        return words
    if first["type"] == "too_short" and isinstance(error.errors()[0]["input"], str):  # pydantic counts "items"
        return f"needs at least {error.errors()[0]['ctx']['min_length']} characters"
    if first["type"] == "union_tag_invalid":  # "Input tag 'x' found using 'type' does not match ... expected tags: ..."
        return f"the type must be one of {first['msg'].rpartition(': ')[2]}"
    message = first["msg"].removeprefix("Value error, ")
    return f"must be {message.removeprefix('Input should be ')}" if message.startswith("Input should be ") else message


Location = tuple[str | int, ...]

_WRITTEN_AS: Mapping[str | int, tuple[KeyPath, ...]] = {
    "context_window_tokens": (("custom_args", "max_context_size"), ("context", "max_tokens")),
    "summary_model": (("summary_brain",),),
}
"""Fields of ours, and where else a file may have them."""


def mapping_at(file: YamlFile, path: KeyPath, value: object) -> dict[str, object]:
    """The keys and values at `path`; none when it is empty. Raises `SettingsError` when it holds something else."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        message = f"{file.place(*path)}: {spell(path)!r} must be an object: keys and values"
        raise SettingsError(message)
    return {str(key): item for key, item in value.items()}


def refuse_unknown_keys(file: YamlFile, path: KeyPath, keys: Mapping[str, object], valid: Sequence[str]) -> None:
    """Raises `SettingsError` for the first key below `path` that is not `valid`."""
    for key in keys:
        if key not in valid:
            message = f"{file.place(*path, key)}: unknown key {spell((*path, key))!r}; {nearest(key, valid)}"
            raise SettingsError(message)


def nearest(key: str, valid: Sequence[str]) -> str:
    """What to do about an unknown key."""
    near = difflib.get_close_matches(key, valid, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"valid keys: {', '.join(sorted(valid))}"


def complaint(file: YamlFile, path: KeyPath, raw: object, error: ValidationError) -> str:
    """The first mistake of what stands at `path`, with place and key and without the value, which may be a secret."""
    below = path_in_file(first_location(error), raw)
    return f"{file.place(*path, *below)}: {name_of(path, below, raw)}: {reason(error)}"


def first_location(error: ValidationError) -> Location:
    """Where pydantic found the first mistake."""
    return error.errors(include_url=False, include_input=False, include_context=False)[0]["loc"]


def reason(error: ValidationError) -> str:
    """The first mistake as one clause."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] == "extra_forbidden":  # only hooks have keys that nobody has looked at before
        key = str(first["loc"][-1])
        return f"unknown key; {nearest(key, hook_keys(first['loc'][:-1]))}"
    return reason_of(error)


def path_in_file(location: Location, raw: object) -> KeyPath:
    """The part of a location that is in the file; a key that is missing there is the last one."""
    path: list[str | int] = []
    value = raw
    for number, part in enumerate(location):
        written = next(
            (keys for keys in ((part,), *_WRITTEN_AS.get(part, ())) if value_at(value, keys) is not None), None
        )
        if written is not None:
            path.extend(written)
            value = value_at(value, written)
        elif isinstance(value, Mapping) and number == len(location) - 1 and not str(part).startswith("<"):
            path.append(part)
    return tuple(path)


def name_of(path: KeyPath, below: KeyPath, raw: object) -> str:
    """How a message names what stands at `below` of `raw`, which stands at `path`: a hook by its id."""
    whole = (*path, *below)
    hooks = next((number for number, part in enumerate(whole) if part == "hooks"), len(whole))
    if hooks + 1 >= len(whole):
        return repr(spell(whole))
    hook = value_at(raw, below[: hooks + 2 - len(path)])
    given = hook.get("id") if isinstance(hook, Mapping) else None
    named = repr(given) if isinstance(given, str) else f"number {int(whole[hooks + 1]) + 1}"
    rest = whole[hooks + 2 :]
    return f"hook {named}: {spell(rest)!r}" if rest else f"hook {named}"


def value_at(raw: object, path: KeyPath) -> object:
    """What stands at `path` of `raw`; None when nothing does."""
    for part in path:
        if isinstance(raw, Mapping):
            raw = raw.get(part)
        elif isinstance(raw, Sequence) and not isinstance(raw, str) and isinstance(part, int) and part < len(raw):
            raw = raw[part]
        else:
            return None
    return raw


def spell(path: KeyPath) -> str:
    """`path` as a user would say it."""
    return ".".join(str(part) for part in path)
