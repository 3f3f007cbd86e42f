"""Declares where the value of a settings field comes from."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict


@dataclass(frozen=True, slots=True)
class Setting:
    """The names of one setting.

    `env` is the environment variable, and `option` is the option of `holmes ask`. `key` is the key in the config file.
    By default, it is the name of the variable in lower case, without `HOLMES_`. If `adds` is true, the option adds to
    the list in the file. `aliases` are keys that other systems document. `shown_default` is the documented default of a
    field that is None if unset.
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
        """Return the setting with the key `section.field_name`.

        If `flat_alias` is true, the setting also accepts the key of its variable.
        """
        flat = (self.flat_key,) if self.flat_key and flat_alias else ()
        return replace(self, key=f"{section}.{field_name}", aliases=(*flat, *self.aliases))


class SettingsGroup(BaseModel):
    """Base class of all settings groups.

    A group is frozen and rejects unknown fields. The docstring of each field documents the setting. If a group has a
    `section`, its keys are under this section. If `flat_aliases` is true, settings with a variable are also accepted at
    the top level.
    """

    section: ClassVar[str] = ""
    flat_aliases: ClassVar[bool] = True

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


def setting_of(group: type[SettingsGroup], field_name: str) -> Setting:
    """Return the `Setting` of a field with its complete key. Raises `TypeError` for a field without a `Setting`."""
    for item in group.model_fields[field_name].metadata:
        if isinstance(item, Setting):
            return item.below(group.section, field_name, flat_alias=group.flat_aliases) if group.section else item
    message = f"{group.__name__}.{field_name} has no Setting"
    raise TypeError(message)


def _split_list(value: object) -> object:
    """Split a comma-separated variable into a list."""
    if isinstance(value, str):
        return tuple(item.strip() for item in value.split(",") if item.strip())
    return value


def _parse_json_object(value: object) -> object:
    """Parse a variable that contains a JSON object."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except json.JSONDecodeError as error:
        message = f"not valid JSON ({error.msg} at character {error.pos + 1}); expected a JSON object"
        raise ValueError(message) from None
    except RecursionError:
        message = "not a valid JSON object: nested too deeply"
        raise ValueError(message) from None


CommaSeparated: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_split_list)]
JsonText = BeforeValidator(_parse_json_object)
"""Accepts a JSON object in a string, because variables contain strings."""
