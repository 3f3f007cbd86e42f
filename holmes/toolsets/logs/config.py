"""The keys of a source of logs."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

from holmes.observability.access import SourceAccess
from holmes.observability.logs.source import LogAccess, LogFields, LogProduct
from holmes.toolsets.instances import InstanceKeys, SourceKind, instances_of
from holmes.toolsets.old_sources import LOGS
from holmes.values.errors import ConfigError
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from holmes.toolsets.registry import ToolsetContext

_LABEL: Final = expression(r"[A-Za-z_]\w*")
_SEARCH_ENGINES: Final = ("elasticsearch", "opensearch")


class FieldKeys(BaseModel):
    """The names of fields in a source, where they differ from those of common collectors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    namespace: str = ""
    pod: str = ""
    container: str = ""
    message: str = ""
    time: str = ""


class LogKeys(InstanceKeys):
    """The keys of one source. `index` and `api_key` are for search engines. `labels` limit every query."""

    logins: ClassVar[tuple[str, ...]] = (*InstanceKeys.logins, "api_key")

    type: LogProduct
    index: str = ""
    api_key: str | None = None
    fields: FieldKeys = FieldKeys()
    labels: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits_the_type(self) -> LogKeys:
        if self.type not in _SEARCH_ENGINES and (self.index or self.api_key):
            message = "index and api_key are only for elasticsearch and opensearch"
            raise ValueError(message)
        if self.type == "loki" and (wrong := [name for name in self.labels if not _LABEL.fullmatch(name)]):
            message = f"labels: {wrong[0]!r} is not a valid label of Loki"
            raise ValueError(message)
        return self

    def access(self, name: str) -> LogAccess:
        plain = super().access(name)
        known = {each.name: getattr(plain, each.name) for each in fields(SourceAccess)}
        if self.api_key is not None:
            known["headers"] = {**self.headers, "Authorization": f"ApiKey {self.api_key}"}
        own = LogFields(**self.fields.model_dump())
        return LogAccess(**known, product=self.type, index=self.index, fields=own, labels=self.labels)


KIND: Final[SourceKind[LogAccess]] = SourceKind(toolset=LOGS, single="logs", keys=LogKeys)


def configured_sources(context: ToolsetContext) -> tuple[LogAccess, ...]:
    """Return the sources that another toolset may read. Their own toolset tells about errors in their keys."""
    config = context.others.get(LOGS)
    try:
        return instances_of(config, KIND) if config else ()
    except ConfigError:
        return ()
