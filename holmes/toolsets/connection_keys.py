"""The keys of a server that a toolset reads over HTTP: its URL, headers and certificates, and the proxy to it."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  pydantic reads the annotation

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from holmes.observability.access import TlsFiles
from holmes.values.texts import refused_address


def like(example: str) -> AfterValidator:
    """Return the check of an address. Its error shows `example`."""

    def check(value: str) -> str:
        if message := refused_address(value, example=example):
            raise ValueError(message)
        return value

    return AfterValidator(check)


class ConnectionKeys(BaseModel):
    """The keys that all such servers have.

    Each kind of server checks `url` with an example of its own, see `like`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    headers: dict[str, str] = Field(default_factory=dict)
    verify_ssl: bool = True
    ca_file: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None
    proxy: str | None = None

    @model_validator(mode="after")
    def _has_both_files(self) -> ConnectionKeys:
        if (self.client_certificate is None) != (self.client_key is None):
            message = "client_certificate and client_key are required together"
            raise ValueError(message)
        return self

    @property
    def tls(self) -> TlsFiles:
        return TlsFiles(
            verify=self.verify_ssl,
            authority=self.ca_file,
            certificate=self.client_certificate,
            key=self.client_key,
        )
