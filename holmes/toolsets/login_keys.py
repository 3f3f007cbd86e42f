"""The keys `oauth` and `aws` of a source: logins other than a password or a fixed token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from holmes.toolsets.connection_keys import like

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.observability.access import Login


class OAuthKeys(BaseModel):
    """A client of an OAuth 2 token server."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    token_url: Annotated[str, like("https://login.example.com/oauth2/token")]
    client_id: str = Field(min_length=1)
    client_secret: str = Field(min_length=1, repr=False)
    scope: str | None = None
    audience: str | None = None

    def login(self, *, authority: Path | None, proxy: str | None, timeout_seconds: float) -> Login:
        from holmes.observability.token_login import ClientCredentials, token_login

        return token_login(
            ClientCredentials(**self.model_dump(), authority=authority, proxy=proxy, timeout_seconds=timeout_seconds)
        )


class AwsKeys(BaseModel):
    """The region and service for which AWS credentials sign requests. The default is Amazon's Prometheus."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    region: str = Field(pattern=r"^[a-z0-9-]+$")
    service: str = Field(default="aps", pattern=r"^[a-z0-9-]+$")
    profile: str | None = None

    def login(self) -> Login:
        from holmes.observability.aws_signature import AwsScope, aws_signature

        return aws_signature(AwsScope(**self.model_dump()))
