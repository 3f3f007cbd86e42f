"""How one model is reached: what an entry of the model list and the model of a summary have in common.

Every key that is not known here is an argument for litellm, so what is refused is a missing `model`, a value of the
wrong kind, and what would get lost: other `custom_args` and the names of our own fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue, SecretStr, model_validator

from holmes.settings.errors import SettingsError

if TYPE_CHECKING:
    from holmes.settings.yaml_file import YamlFile
    from holmes.yaml_documents import KeyPath

Price = Annotated[float | None, Field(ge=0)]

_WINDOW_KEY = "max_context_size"
_OWN_FIELDS = {
    "name": "the name of a model is the key above it",
    "context_window_tokens": f"the window goes into custom_args: {{{_WINDOW_KEY}: …}}",
    "extra": "arguments for litellm stand beside 'model'",
}
"""Fields that the file may not set, and what to do instead."""


class ModelAccess(BaseModel):
    """One way to reach one model. Prices are US dollars per token."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str = ""
    """What users call it; empty for the model of a summary that has no entry of its own."""

    model: str = Field(min_length=1)
    """What litellm calls it."""

    api_key: SecretStr | None = None
    """The provider's key; None leaves it to the provider's own variable."""

    api_base: str | None = Field(default=None, validation_alias=AliasChoices("api_base", "base_url"))
    """The provider's address."""

    api_version: str | None = None
    """The version of the provider's interface."""

    context_window_tokens: int | None = Field(default=None, ge=0)
    """`custom_args.max_context_size`: the real window. 0 asks the provider."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    """Overrides the general one."""

    thinking: dict[str, JsonValue] | None = None
    """Overrides the general one."""

    reasoning_effort: str | None = None
    """Overrides the general one."""

    input_cost_per_token: Price = None
    """A fresh prompt token."""

    output_cost_per_token: Price = None
    """A completion token."""

    cache_read_input_token_cost: Price = None
    """A cached prompt token."""

    cache_creation_input_token_cost: Price = None
    """A prompt token that is written to the cache."""

    extra: dict[str, JsonValue] = Field(default_factory=dict, repr=False)
    """More arguments for litellm; may hold secrets, so it is never shown."""

    @model_validator(mode="before")
    @classmethod
    def _sort_keys(cls, raw: object) -> object:
        """Split what the file says into known fields and arguments for litellm."""
        if not isinstance(raw, Mapping):
            message = "a mapping with at least the key 'model' is expected"
            raise ValueError(message)  # noqa: TRY004  pydantic turns ValueErrors into its own
        entry = _from_brain({str(key): value for key, value in raw.items()})
        custom = entry.pop("custom_args", None)
        if isinstance(custom, Mapping) and _WINDOW_KEY in custom:
            entry["context_window_tokens"] = custom[_WINDOW_KEY]
        known = {*cls.model_fields, "base_url"}
        extra = {key: value for key, value in entry.items() if key not in known}
        fields = {key: value for key, value in entry.items() if key in known}
        return {**fields, "extra": extra} if extra else fields


def refuse_lost_keys(file: YamlFile, path: KeyPath, raw: Mapping[object, object]) -> None:
    """Raises `SettingsError` for a key below `path` that would do nothing, or something else than it says."""
    shown = ".".join(str(part) for part in path)
    for field, advice in _OWN_FIELDS.items():
        if field in raw:
            message = f"{file.place(*path, field)}: '{shown}.{field}' is not a key of a model: {advice}"
            raise SettingsError(message)
    custom = raw.get("custom_args")
    if custom is None:
        return
    if not isinstance(custom, Mapping):
        message = f"{file.place(*path, 'custom_args')}: '{shown}.custom_args' must be a mapping with {_WINDOW_KEY!r}"
        raise SettingsError(message)
    for key in custom:
        if key != _WINDOW_KEY:
            place = file.place(*path, "custom_args", str(key))
            message = f"{place}: unknown key '{shown}.custom_args.{key}'; the only one is {_WINDOW_KEY!r}"
            raise SettingsError(message)


def _from_brain(raw: dict[str, object]) -> dict[str, object]:
    """A model as Digitorn writes it: the provider apart from the model, key and address below `config`."""
    if "provider" not in raw:
        return raw
    below = raw.get("config")
    config = {str(key): value for key, value in below.items()} if isinstance(below, Mapping) else {}
    rest = {key: value for key, value in raw.items() if key not in {"provider", "backend", "config"}}
    model = {"model": f"{raw['provider']}/{raw['model']}"} if "model" in raw else {}
    return {**config, **rest, **model}
