"""How a field of a settings group says where its value comes from."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict


@dataclass(frozen=True, slots=True)
class Setting:
    """The names of one setting.

    `env` is the variable, `key` the key in the config file (the variable's name in lower case without `HOLMES_` when
    left out), `option` the option of `holmes ask`. `adds` says that the option adds to the file's list instead of
    replacing it. `aliases` are other keys of the file that are accepted, because other systems document them.
    `shown_default` is what the table shows for a field that is None until somebody sets it.
    """

    env: str | None = None
    key: str | None = None
    option: str | None = None
    adds: bool = False
    aliases: tuple[str, ...] = ()
    shown_default: str | None = None

    @property
    def file_key(self) -> str | None:
        """The key in the config file."""
        return self.key or self.flat_key

    @property
    def flat_key(self) -> str | None:
        """The name of the variable in lower case, without `HOLMES_`."""
        return self.env.lower().removeprefix("holmes_") if self.env else None

    def below(self, section: str, field_name: str, *, flat_alias: bool) -> Setting:
        """The same setting as `section.field_name` of the file; with `flat_alias` the variable's own key too."""
        flat = (self.flat_key,) if self.flat_key and flat_alias else ()
        return replace(self, key=f"{section}.{field_name}", aliases=(*flat, *self.aliases))


class SettingsGroup(BaseModel):
    """The base of all groups: frozen, no unknown fields, described by the docstring under each field.

    The fields of a group with a `section` stand below this key in the file, each under its own name; with
    `flat_aliases` those with a variable also at the top level.
    """

    section: ClassVar[str] = ""
    flat_aliases: ClassVar[bool] = True

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)


def setting_of(group: type[SettingsGroup], field_name: str) -> Setting:
    """The names of a field. Raises `TypeError` when the field was declared without a `Setting`."""
    for item in group.model_fields[field_name].metadata:
        if isinstance(item, Setting):
            return item.below(group.section, field_name, flat_alias=group.flat_aliases) if group.section else item
    message = f"{group.__name__}.{field_name} has no Setting"
    raise TypeError(message)


def _split_list(value: object) -> object:
    """A variable holds a list as comma-separated text."""
    if isinstance(value, str):
        return tuple(item.strip() for item in value.split(",") if item.strip())
    return value


def _parse_json_object(value: object) -> object:
    """A variable holds an object as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except json.JSONDecodeError as error:
        message = f"not valid JSON ({error.msg} at character {error.pos + 1}); a JSON object is expected"
        raise ValueError(message) from None
    except RecursionError:
        message = "not a valid JSON object: nested too deeply"
        raise ValueError(message) from None


CommaSeparated: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_split_list)]
JsonText = BeforeValidator(_parse_json_object)
"""Accepts an object written as JSON text, as a variable holds it."""
