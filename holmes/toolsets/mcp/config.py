"""The entries under `mcp_servers:`, as users write them. An entry of HolmesGPT's configuration is valid unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from holmes.toolsets.connection_keys import ConnectionKeys, like
from holmes.toolsets.mcp.passed import default_headers, uses_request, why_wrong
from holmes.toolsets.mcp.servers import DEFAULT_CALL_SECONDS, HttpEndpoint, HttpMode, Login, McpServer, ProcessEndpoint
from holmes.toolsets.yaml.building import instructions_of
from holmes.toolsets.yaml.loader import unknown_key, with_environment
from holmes.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.toolsets.yaml.loader import WrittenToolset
    from holmes.yaml_documents import KeyPath

_Model = TypeVar("_Model", bound=BaseModel)


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LoginKeys(_Keys):
    """The keys of `oauth`."""

    enabled: bool = True
    grant_type: Literal["authorization_code", "client_credentials"] | None = None
    """Default: `client_credentials` if there is a secret and no `authorization_url`."""
    client_id: str | None = None
    client_secret: str | None = None
    scopes: list[str] = Field(default_factory=list)
    issuer: str | None = None
    authorization_url: str | None = None
    token_url: str | None = None
    registration_endpoint: str | None = None
    redirect_port: int | None = Field(default=None, ge=1, le=65_535)
    resource: str | None = None
    """A key of HolmesGPT. The server's own metadata, or else its URL, names the resource."""

    @model_validator(mode="after")
    def _is_complete(self) -> LoginKeys:
        if self.grant_type == "client_credentials" and not (self.client_id and self.client_secret):
            message = "client_credentials requires client_id and client_secret"
            raise ValueError(message)
        return self

    def login(self) -> Login | None:
        if not self.enabled:
            return None
        own = bool(self.client_id and self.client_secret and self.authorization_url is None)
        return Login(
            is_person=self.grant_type == "authorization_code" or (self.grant_type is None and not own),
            client_id=self.client_id,
            client_secret=self.client_secret,
            scopes=tuple(self.scopes),
            issuer=self.issuer,
            authorization_url=self.authorization_url,
            token_url=self.token_url,
            registration_url=self.registration_endpoint,
            redirect_port=self.redirect_port,
        )


class _CommonKeys(_Keys):
    health_check_tool: str | None = None
    timeout_seconds: float = Field(default=DEFAULT_CALL_SECONDS, gt=0, le=3_600)


class HttpKeys(_CommonKeys, ConnectionKeys):
    """The keys of `config` for a server at a URL."""

    url: Annotated[str, like("http://server.tools:8000/mcp")]
    mode: HttpMode = "sse"
    extra_headers: dict[str, str] = Field(default_factory=dict)
    oauth: LoginKeys | None = None

    @field_validator("extra_headers")
    @classmethod
    def _can_be_passed(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if uses_request(text) and (why := why_wrong(text)) is not None:
                message = f"{name!r} {why}"
                raise ValueError(message)
        return value

    def endpoint(self) -> HttpEndpoint:
        url = self.url
        if self.mode == "sse" and not url.rstrip("/").endswith("/sse"):
            url = f"{url.rstrip('/')}/sse"
        passed = {name: text for name, text in self.extra_headers.items() if uses_request(text)}
        fixed = {name: text for name, text in self.extra_headers.items() if name not in passed}
        return HttpEndpoint(
            mode=self.mode,
            url=url,
            headers={**self.headers, **fixed, **default_headers(passed)},
            passed=passed,
            tls=self.tls,
            proxy=self.proxy,
            login=self.oauth.login() if self.oauth is not None else None,
        )


class ProcessKeys(_CommonKeys):
    """The keys of `config` for a local process."""

    mode: Literal["stdio"]
    command: str = Field(min_length=1)
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)

    def endpoint(self) -> ProcessEndpoint:
        return ProcessEndpoint(command=self.command, arguments=tuple(self.args), variables=self.env)


class ServerKeys(_Keys):
    """The keys of one entry. `config` is checked by itself, because its keys depend on `mode`."""

    enabled: bool | None = None
    name: str | None = None
    description: str = ""
    llm_instructions: str | None = None
    tags: list[str] = Field(default_factory=list)
    config: dict[str, Any] = Field(default_factory=dict)
    read_only: bool | list[str] = False
    trust_annotations: bool = False
    approval_required_tools: list[str] = Field(default_factory=list)
    redaction: bool = True
    on_demand: bool = False
    cluster: str | None = None
    type: Literal["mcp"] = "mcp"
    docs_url: str | None = None
    icon_url: str | None = None
    expose_remotely: Any = None
    """Keys of HolmesGPT that have no effect."""


def server_of(written: WrittenToolset, variables: Mapping[str, str]) -> McpServer:
    """Check one entry. Raises `ConfigError` with file and line, for example for an unknown key."""
    try:
        values = with_environment(written.values(), variables)
    except ConfigError as error:
        raise ConfigError(f"{written.source}: {error}") from error
    keys = _checked(ServerKeys, values, written, ())
    read: HttpKeys | ProcessKeys
    if keys.config.get("mode") == "stdio":
        read = _checked(ProcessKeys, keys.config, written, ("config",))
    else:
        read = _checked(HttpKeys, keys.config, written, ("config",))
    globs = ["*"] if keys.read_only is True else keys.read_only or []
    return McpServer(
        name=written.name,
        source=written.source,
        endpoint=read.endpoint(),
        description=keys.description or f"Tools of the MCP server {written.name}",
        instructions=instructions_of(keys.llm_instructions or "", written, config=keys.config),
        health_check_tool=read.health_check_tool,
        call_seconds=read.timeout_seconds,
        read_only=tuple(globs),
        trusts_annotations=keys.trust_annotations,
        approval_patterns=tuple(keys.approval_required_tools),
        redaction=keys.redaction,
        on_demand=keys.on_demand,
        tags=tuple(keys.tags),
        cluster=keys.cluster,
    )


def _checked(model: type[_Model], values: object, written: WrittenToolset, below: KeyPath) -> _Model:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = min(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
    location = (*below, *first["loc"])
    place = written.place(location)
    if first["type"] == "extra_forbidden":
        valid = LoginKeys if location[-2:-1] == ("oauth",) else model
        raise ConfigError(f"{place}: {unknown_key(str(location[-1]), tuple(valid.model_fields))}")
    where = ".".join(map(str, location))
    raise ConfigError(f"{place}: {f'{where}: ' if where else ''}{first['msg'].removeprefix('Value error, ')}")
