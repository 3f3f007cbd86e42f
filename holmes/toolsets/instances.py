"""Monitoring systems as users configure them: one, or several with names, of which a call chooses one.

All toolsets that read monitoring systems share these keys.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Generic, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, model_validator

from holmes.kubernetes.scope import scope_of
from holmes.observability.access import SourceAccess
from holmes.toolsets.connection_keys import ConnectionKeys, like
from holmes.toolsets.login_keys import AwsKeys, OAuthKeys
from holmes.values.errors import ConfigError, ToolError
from holmes.values.tool_arguments import text_argument
from holmes.values.tools import Parameter, ParameterSchema

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from pydantic import BaseModel

    from holmes.observability.access import Login, SourceClient
    from holmes.toolsets.registry import ToolsetContext
    from holmes.values.json_types import JsonObject, JsonValue
    from holmes.values.tools import Tool, Toolset

Access = TypeVar("Access", bound=SourceAccess)
_NESTED: Final[Mapping[str, type[BaseModel]]] = {"oauth": OAuthKeys, "aws": AwsKeys}


class InstanceKeys(ConnectionKeys):
    """The keys of one source."""

    logins: ClassVar[tuple[str, ...]] = ("username", "bearer_token", "oauth", "aws")
    """The keys that each log in, so that a source has at most one of them. A user name in `url` logs in as well."""

    url: Annotated[str, like("http://host.monitoring:9090")]
    username: str | None = None
    password: str | None = None
    bearer_token: str | None = None
    oauth: OAuthKeys | None = None
    aws: AwsKeys | None = None
    timeout_seconds: float = Field(default=30, gt=0, le=600)
    cluster: str | None = None
    """The cluster that the source belongs to; see `holmes.toolsets.source_clusters`."""

    @model_validator(mode="after")
    def _has_one_login(self) -> InstanceKeys:
        given = [name for name in self.logins if getattr(self, name) is not None]
        if "@" in urlsplit(self.url).netloc:
            given.insert(0, "the user name in url")
        if len(given) > 1:
            message = f"{' and '.join(given)} are mutually exclusive"
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
            login=self._login(),
            tls=self.tls,
            proxy=self.proxy,
            timeout_seconds=self.timeout_seconds,
        )

    def _login(self) -> Login | None:
        if self.oauth is not None:
            return self.oauth.login(authority=self.ca_file, proxy=self.proxy, timeout_seconds=self.timeout_seconds)
        return None if self.aws is None else self.aws.login()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind(Generic[Access]):
    """The toolset that reads a kind of system, and the name of an instance that has no name.

    `old_names` maps keys of HolmesGPT to those here. `keys` are those of an instance, and make its access.
    """

    toolset: str
    single: str
    old_names: Mapping[str, str] = field(default_factory=dict)
    keys: type[InstanceKeys] = InstanceKeys


def instances_of(config: Mapping[str, JsonValue], kind: SourceKind[Access]) -> tuple[Access, ...]:
    """Read the sources in `config`: those below `instances`, or one source from the other keys.

    Raises `ConfigError` for the first key that is not valid.
    """
    named = config.get("instances")
    if named is None:
        own = {kind.old_names.get(key, key): value for key, value in config.items()}
        return (_instance(kind.single, own, kind),)
    others = config.keys() - {"instances"}
    if not isinstance(named, dict) or not named:
        raise ConfigError(f"config of toolset {kind.toolset!r}: instances must map at least one name to its keys")
    if others - kind.old_names.keys():
        raise ConfigError(
            f"config of toolset {kind.toolset!r}: unknown key {min(others)!r} beside 'instances'; move it below a name"
        )
    return tuple(_instance(name, keys, kind) for name, keys in named.items())


def _instance(name: str, keys: object, kind: SourceKind[Access]) -> Access:
    try:
        return cast("Access", kind.keys.model_validate(keys).access(name))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the instance"
        valid = _NESTED.get(str(first["loc"][0]), kind.keys) if len(first["loc"]) > 1 else kind.keys
        known = f"; valid keys: {', '.join(valid.model_fields)}" if first["type"] == "extra_forbidden" else ""
        message = str(first["msg"]).removeprefix("Value error, ")
        raise ConfigError(f"config of toolset {kind.toolset!r}, instance {name!r}: {place}: {message}{known}") from None


class Instances(Generic[Access]):
    """The configured instances of one kind."""

    def __init__(self, instances: Sequence[Access]) -> None:
        self._instances = {each.name: each for each in instances}

    def offered(self, tools: Sequence[Tool], *, searching: frozenset[str] = frozenset()) -> tuple[Tool, ...]:
        """Return the tools, with a parameter for the instance if there is a choice.

        Tools in `searching` search all instances without it.
        """
        if len(self._instances) < 2:
            return tuple(tools)
        names = tuple(self._instances)
        schema = ParameterSchema(types=("string",), enum=names, description="Source to query")
        return tuple(
            replace(
                tool,
                parameters=(
                    *tool.parameters,
                    Parameter(name="instance", schema=schema, required=tool.name not in searching),
                ),
            )
            for tool in tools
        )

    def searched(self, arguments: JsonObject) -> tuple[Access, ...]:
        """Return the instance of a call, or all of them if the call names none."""
        if not text_argument(arguments, "instance"):
            return tuple(self._instances.values())
        return (self.chosen(arguments),)

    def chosen(self, arguments: JsonObject) -> Access:
        """Return the instance of a call. Raises `ToolError` if its name is unknown."""
        wanted = text_argument(arguments, "instance")
        if wanted in self._instances:
            return self._instances[wanted]
        if wanted or len(self._instances) > 1:
            raise ToolError(f"unknown instance {wanted!r}; available instances: {', '.join(self._instances)}")
        return next(iter(self._instances.values()))

    async def check(self, version: Callable[[SourceClient], Awaitable[str]]) -> str:
        """Return the version and response time of each instance. Raises `ToolError` if none answers."""
        checked = await asyncio.gather(*(_checked(each, version) for each in self._instances.values()))
        failures = [each for each in checked if isinstance(each, ToolError)]
        if len(failures) == len(checked):
            raise ToolError(" ".join(map(str, failures)))
        return ", ".join(map(str, checked))


async def _checked(access: SourceAccess, version: Callable[[SourceClient], Awaitable[str]]) -> str | ToolError:
    """Return for example `eu: Prometheus 3.4.0, 5 ms`, or the error of an instance that does not answer."""
    from holmes.observability.access import open_source

    try:
        async with open_source(access) as client:
            started = time.monotonic()
            found = await version(client)
            return f"{access.name}: {found}, {(time.monotonic() - started) * 1000:.0f} ms"
    except ToolError as error:
        return error


class SourceFactory(ABC, Generic[Access]):
    """Makes the toolset that reads the instances of one kind. It is enabled by its configuration."""

    kind: SourceKind[Access]
    description: str
    tags: tuple[str, ...] = ("core",)
    enabled_by_default: bool = False
    reads_all: str = ""
    """The results that can show all namespaces, so that the toolset does not run inside a scope of namespaces."""

    @property
    def name(self) -> str:
        return self.kind.toolset

    @abstractmethod
    async def version(self, client: SourceClient) -> str:
        """Return the product and version of an instance. Raises `ToolError` if it does not answer."""

    @abstractmethod
    def toolset(self, instances: Sequence[Access]) -> Toolset: ...

    async def check(self, context: ToolsetContext) -> str:
        """Check all instances. Raises `ConfigError`, and `ToolError` if none answers."""
        if self.reads_all and scope_of(context.environment):
            raise ConfigError(f"{self.reads_all} can show all namespaces, which SCOPED_NAMESPACES forbids")
        return await Instances(instances_of(context.config, self.kind)).check(self.version)

    def create(self, context: ToolsetContext) -> Toolset:
        return self.toolset(instances_of(context.config, self.kind))
