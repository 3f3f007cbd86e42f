"""The toolset `alertmanager/alerts` and its factory. Each call opens its own connection."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holmes.observability.access import SourceAccess
from holmes.toolsets.instances import Instances, SourceFactory, SourceKind
from holmes.values.errors import ToolError
from holmes.values.tool_arguments import text_argument
from holmes.values.tools import Parameter, ParameterSchema, Tool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from holmes.observability.access import SourceClient
    from holmes.observability.alerts.source import AlertSource
    from holmes.values.json_types import JsonObject
    from holmes.values.tools import ToolInvocation, Toolset

KIND: Final[SourceKind[SourceAccess]] = SourceKind(toolset="alertmanager/alerts", single="alertmanager")
_MATCHER: Final = re.compile(r"""\s*([A-Za-z_]\w*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|[^\s,"]+)\s*(?:,|\Z)""")
_LABELS: Final = Parameter(
    name="labels",
    schema=ParameterSchema(
        types=("string",), description='Only those that match, e.g. namespace="shop", pod=~"web-.*"'
    ),
    required=False,
)
ALERTS: Final = Tool(
    name="list_alerts",
    description="List firing alerts with labels, start and receivers. Silenced and inhibited alerts say by what.",
    parameters=(
        _LABELS,
        Parameter(
            name="state",
            schema=ParameterSchema(
                types=("string",), enum=("active", "silenced", "inhibited"), description="Default: all"
            ),
            required=False,
        ),
    ),
)
SILENCES: Final = Tool(
    name="list_silences",
    description="List active and pending silences with their matchers, author, comment and end.",
    parameters=(_LABELS,),
)
RECEIVERS: Final = Tool(
    name="list_receivers", description="List the receivers of notifications with the number of their alerts."
)


class AlertmanagerToolset:
    def __init__(self, instances: Sequence[SourceAccess]) -> None:
        self._instances = Instances(instances)

    @property
    def name(self) -> str:
        return KIND.toolset

    @property
    def instructions(self) -> str:
        return ""

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self._instances.offered((ALERTS, SILENCES, RECEIVERS))

    def describe(self, invocation: ToolInvocation) -> str:
        """Return one line for the user, for example `List alerts with namespace="shop"`."""
        labels = text_argument(invocation.arguments, "labels")
        words = {ALERTS.name: "List alerts", SILENCES.name: "List silences", RECEIVERS.name: "List receivers"}
        return f"{words[invocation.tool.name]}{f' with {labels}' if labels else ''}"

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Read Alertmanager. Raises `ToolError` with the source, the reason and the next step."""
        from holmes.observability.access import open_source
        from holmes.observability.alerts.alertmanager import AlertmanagerSource

        access = self._instances.chosen(invocation.arguments)
        runs: dict[str, Callable[[AlertSource, JsonObject], Awaitable[str]]] = {
            ALERTS.name: _alerts,
            SILENCES.name: _silences,
            RECEIVERS.name: _receivers,
        }
        async with open_source(access) as client:
            text = await runs[invocation.tool.name](AlertmanagerSource(client), invocation.arguments)
        described = f"{access.name}: {self.describe(invocation)}"
        return ToolResult(status="success" if text else "no_data", data=text, invocation=described)


async def _alerts(source: AlertSource, arguments: JsonObject) -> str:
    from holmes.toolsets.alertmanager.texts import alerts_text

    state = text_argument(arguments, "state")
    found = await source.alerts(_matchers(arguments))
    return alerts_text([each for each in found if not state or each.state == state])


async def _silences(source: AlertSource, arguments: JsonObject) -> str:
    from holmes.toolsets.alertmanager.texts import silences_text

    found = await source.silences(_matchers(arguments))
    return silences_text([each for each in found if each.state != "expired"])


async def _receivers(source: AlertSource, _: JsonObject) -> str:
    from holmes.toolsets.alertmanager.texts import receivers_text

    return receivers_text(await source.receivers(), await source.alerts())


def _matchers(arguments: JsonObject) -> list[str]:
    """Parse the labels of a call. Raises `ToolError` for text that is not a list of matchers."""
    written = text_argument(arguments, "labels").removeprefix("{").removesuffix("}")
    matchers, position = list[str](), 0
    while position < len(written):
        found = _MATCHER.match(written, position)
        if found is None:
            raise ToolError(f'labels {written!r} are not valid; expected for example namespace="shop", pod=~"web-.*"')
        value = found[3] if found[3].startswith('"') else f'"{found[3]}"'
        matchers.append(f"{found[1]}{found[2]}{value}")
        position = found.end()
    return matchers


class AlertmanagerFactory(SourceFactory[SourceAccess]):
    kind = KIND
    description = "Lists alerts, silences and receivers of Alertmanager"
    reads_all = "alerts"

    async def version(self, client: SourceClient) -> str:
        from holmes.observability.alerts.alertmanager import AlertmanagerSource

        return await AlertmanagerSource(client).version()

    def toolset(self, instances: Sequence[SourceAccess]) -> Toolset:
        return AlertmanagerToolset(instances)
