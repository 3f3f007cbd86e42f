"""Converts frozen dataclasses to and from JSON, for all data that Holmes stores.

Type hints determine how a value is read. Values from other versions of Holmes are readable, because unknown fields are
ignored and missing fields are set to their defaults.
"""

from __future__ import annotations

import base64
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache, partial
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NewType,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    from holmes.values.json_types import JsonValue

T = TypeVar("T")
_Reader: TypeAlias = Callable[[object], Any]
_NAMES = {str: "text", bool: "true or false", int: "an integer", float: "a number"}
_PRIMITIVES = (str, bool, int, float)


@dataclass(frozen=True, kw_only=True, eq=False)
class Codec:
    """The rules of one stored format.

    `tags` maps a class to the key and value that identify the class in a union. `renamed` maps fields to their keys.
    `converters` read types that JSON does not have. `omits` returns true for a field that is not written. `mismatch`
    decides whether a value of the wrong type is an error or is read as empty. If `tagged` is true, every object and
    every `bytes` value has a tag, and type hints are not needed. If `keeps_unknown` is true, a string that is not in
    its `Literal` type is kept, because a newer version may have written it.
    """

    tags: Mapping[type, tuple[str, str]] = field(default_factory=dict)
    renamed: Mapping[tuple[type, str], str] = field(default_factory=dict)
    converters: Mapping[object, Callable[[Any], object]] = field(default_factory=dict)
    omits: Callable[[Field[Any], object], bool] = lambda _field, _value: False
    mismatch: Literal["error", "empty"] = "error"
    tagged: bool = False
    keeps_unknown: bool = False

    def encode(self, value: object) -> JsonValue:
        """Convert `value` to JSON. Raises `TypeError` for a type that this format does not support."""
        if value is None or isinstance(value, _PRIMITIVES):
            return value
        if isinstance(value, (tuple, list)):
            return [self.encode(item) for item in value]
        if isinstance(value, bytes):
            text = base64.b64encode(value).decode("ascii")
            return {"$bytes": text} if self.tagged else text
        kind = type(value)
        if not is_dataclass(value) or (self.tagged and kind not in self.tags):
            raise TypeError(f"{kind.__name__!r} values cannot be stored")
        shown = ((each, getattr(value, each.name)) for each in fields(value))
        tag = dict([self.tags[kind]]) if kind in self.tags else {}
        return tag | {self._key(kind, each): self.encode(item) for each, item in shown if not self.omits(each, item)}

    def decode(self, kind: type[T], raw: object) -> T:
        """Read a value of type `kind` from `raw`. Raises `ValueError`."""
        value: T = self._reader(cast("Any", kind))(raw)
        return value

    def decode_tagged(self, raw: object) -> Any:  # noqa: ANN401  the tag names the type
        """Read the value in `raw`. Every object in `raw` has a tag. Raises `ValueError`."""
        if isinstance(raw, list):
            return tuple(map(self.decode_tagged, raw))
        if not isinstance(raw, Mapping):
            return raw
        return _bytes(raw["$bytes"]) if "$bytes" in raw else self._read_union(tuple(self.tags), raw)

    def _key(self, kind: type, each: Field[Any]) -> str:
        return self.renamed.get((kind, each.name), each.name)

    @cache  # noqa: B019  few formats exist, and each lasts as long as the process
    def _reader(self, hint: Any) -> _Reader:  # noqa: ANN401  any type hint
        if hint in self.converters:
            return self.converters[hint]
        if isinstance(hint, NewType):
            return self._reader(hint.__supertype__)
        if hint is bytes:
            return _bytes
        if hint in _PRIMITIVES:
            return partial(_primitive, hint)
        return partial(self._read_object, hint) if is_dataclass(hint) else self._compound_reader(hint)

    def _compound_reader(self, hint: Any) -> _Reader:  # noqa: ANN401  any type hint
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Literal:
            return self._reader(str) if self.keeps_unknown else partial(_one_of, arguments)
        if origin is tuple:
            return partial(self._read_items, self._reader(arguments[0]))
        kinds = tuple(each for each in arguments if each is not types.NoneType)
        read = self._reader(kinds[0]) if len(kinds) == 1 else partial(self._read_union, kinds)
        return partial(_optional, read) if len(kinds) < len(arguments) else read

    @cache  # noqa: B019  few formats exist; see `_reader`
    def _plan(self, kind: type) -> tuple[tuple[Field[Any], str, object, _Reader], ...]:
        """Return the key, the type hint and the reader of each field of `kind`.

        The readers are created on first use, because a type may contain itself.
        """
        hints: Mapping[str, Any] = {} if self.tagged else get_type_hints(kind)
        return tuple(
            (each, self._key(kind, each), hint, self.decode_tagged if self.tagged else self._reader(hint))
            for each, hint in ((each, hints.get(each.name)) for each in fields(kind))
        )

    def _read_object(self, kind: Any, raw: object) -> object:  # noqa: ANN401  any dataclass
        if not isinstance(raw, Mapping):
            raise ValueError("expected an object")  # noqa: TRY004  callers catch only `ValueError`
        values: dict[str, object] = {}
        for each, key, hint, read in self._plan(kind):
            is_required = each.default is MISSING and each.default_factory is MISSING
            problem: object = "missing"
            try:
                if key in raw or not is_required:
                    values |= {each.name: read(raw[key])} if key in raw else {}
                    continue
            except (ValueError, OverflowError) as error:
                problem = error
            if self.mismatch != "empty":
                raise ValueError(f"{key!r}: {problem}")
            if is_required:
                values[each.name] = self._empty(hint)
        return kind(**values)

    def _read_union(self, kinds: tuple[type, ...], raw: object) -> object:
        if not isinstance(raw, Mapping):
            raise ValueError("expected an object")  # noqa: TRY004  callers catch only `ValueError`
        for kind in kinds:
            key, tag = self.tags[kind]
            if raw.get(key) == tag:
                return self._read_object(kind, raw)
        raise ValueError(f"unknown type; available types: {', '.join(self.tags[kind][1] for kind in kinds)}")

    def _read_items(self, read: _Reader, raw: object) -> tuple[object, ...]:
        if not isinstance(raw, (list, tuple)):
            raise ValueError("expected a list")  # noqa: TRY004  callers catch only `ValueError`
        items = []
        for each in raw:
            try:
                items.append(read(each))
            except ValueError:
                if self.mismatch != "empty":
                    raise
        return tuple(items)

    def _empty(self, hint: Any) -> object:  # noqa: ANN401  any type hint
        if is_dataclass(hint):
            return self._read_object(hint, {})
        return get_args(hint)[-1] if get_origin(hint) is Literal else (get_origin(hint) or hint)()


def _optional(read: _Reader, raw: object) -> object:
    return None if raw is None else read(raw)


def _one_of(allowed: tuple[object, ...], raw: object) -> object:
    if raw not in allowed:
        raise ValueError(f"unknown value {raw!r}; available values: {', '.join(map(str, allowed))}")
    return raw


def _primitive(hint: type, raw: object) -> object:
    if hint is float and type(raw) is int:
        return float(raw)
    if not isinstance(raw, hint) or (isinstance(raw, bool) and hint is not bool):
        raise ValueError(f"expected {_NAMES[hint]}")
    return raw


def _bytes(raw: object) -> bytes:
    return base64.b64decode(str(raw), validate=True)  # `b64decode` raises a subclass of `ValueError`
