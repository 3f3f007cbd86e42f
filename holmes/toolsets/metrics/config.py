"""The configuration of the toolset `prometheus/metrics`, as users write it."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  pydantic reads the annotation
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from holmes.observability.access import SourceAccess, TlsFiles
from holmes.values.errors import ConfigError
from holmes.values.texts import fault_of_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.values.json_types import JsonValue

TOOLSET: Final = "prometheus/metrics"
_SINGLE: Final = "prometheus"
_OLD_NAMES: Final = {
    "prometheus_url": "url",
    "additional_headers": "headers",
    "prometheus_ssl_enabled": "verify_ssl",
    "query_timeout_seconds_default": "timeout_seconds",
}
"""Keys of HolmesGPT, and their names here."""


class InstanceKeys(BaseModel):
    """The keys of one source."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    headers: dict[str, str] = Field(default_factory=dict)
    username: str | None = None
    password: str | None = None
    bearer_token: str | None = None
    verify_ssl: bool = True
    ca_file: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None
    proxy: str | None = None
    timeout_seconds: float = Field(default=30, gt=0, le=600)

    @field_validator("url")
    @classmethod
    def _is_address(cls, value: str) -> str:
        if fault := fault_of_address(value):
            message = f"{value!r} {fault}; expected for example http://prometheus.monitoring:9090"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _has_one_login(self) -> InstanceKeys:
        if self.username is not None and self.bearer_token is not None:
            message = "username and bearer_token are mutually exclusive"
            raise ValueError(message)
        if (self.client_certificate is None) != (self.client_key is None):
            message = "client_certificate and client_key are required together"
            raise ValueError(message)
        return self

    def access(self, name: str) -> SourceAccess:
        return SourceAccess(
            name=name,
            url=self.url,
            headers=self.headers,
            username=self.username,
            password=self.password,
            bearer_token=self.bearer_token,
            tls=TlsFiles(
                verify=self.verify_ssl,
                authority=self.ca_file,
                certificate=self.client_certificate,
                key=self.client_key,
            ),
            proxy=self.proxy,
            timeout_seconds=self.timeout_seconds,
        )


def instances_of(config: Mapping[str, JsonValue]) -> tuple[SourceAccess, ...]:
    """Read the sources in `config`: those below `instances`, or one source from the other keys.

    Raises `ConfigError` for the first key that is not valid.
    """
    named = config.get("instances")
    if named is None:
        return (_instance(_SINGLE, {_OLD_NAMES.get(key, key): value for key, value in config.items()}),)
    others = config.keys() - {"instances"}
    if not isinstance(named, dict) or not named:
        raise ConfigError(f"config of toolset {TOOLSET!r}: instances must map at least one name to its keys")
    if others - _OLD_NAMES.keys():
        raise ConfigError(
            f"config of toolset {TOOLSET!r}: unknown key {min(others)!r} beside 'instances'; move it below a name"
        )
    return tuple(_instance(name, keys) for name, keys in named.items())


def _instance(name: str, keys: object) -> SourceAccess:
    try:
        return InstanceKeys.model_validate(keys).access(name)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the instance"
        known = f"; valid keys: {', '.join(InstanceKeys.model_fields)}" if first["type"] == "extra_forbidden" else ""
        message = str(first["msg"]).removeprefix("Value error, ")
        raise ConfigError(f"config of toolset {TOOLSET!r}, instance {name!r}: {place}: {message}{known}") from None
