"""The toolset `kubernetes/diagnosis` and its factory.

`kubernetes_first_look` answers a question by rules. `kubernetes_diagnose` returns the incidents of a scan as JSON, most
important first. `kubernetes_related` returns the objects related to one object. All three use the same scan.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.reports import IncidentFilter, masked_report
from holmes.kubernetes.credentials import ClusterLogin
from holmes.kubernetes.scope import objection, scope_of
from holmes.redaction.views import strip_escape_sequences
from holmes.tokens import EstimatingCounter
from holmes.toolsets.kubernetes_diagnosis.related import related_text
from holmes.toolsets.kubernetes_diagnosis.scans import Scans
from holmes.toolsets.old_sources import LOGS as LOG_SOURCES
from holmes.triage.looks import LookRequest, take_first_look, wanted_logs, wants_usage
from holmes.values.errors import ConfigError, ToolError
from holmes.values.findings_json import report_to_json
from holmes.values.first_look import FIRST_LOOK_TOOL, RELATED_TOOL, fitting_look
from holmes.values.texts import shortened
from holmes.values.tool_arguments import text_argument
from holmes.values.tools import Parameter, ParameterSchema, Tool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.diagnosis.scan import ReadStoredOf
    from holmes.redaction.redactor import Redactor
    from holmes.toolsets.registry import ToolsetContext
    from holmes.values.environment import Environment
    from holmes.values.findings import DiagnosisReport, Evidence, Finding, Incident
    from holmes.values.json_types import JsonObject
    from holmes.values.tools import ToolInvocation, Toolset

DIAGNOSE_TOOL: Final = "kubernetes_diagnose"
_DEFAULT_MAX_TOKENS: Final = 4_000
_LEAST_TOKENS, _MOST_TOKENS = 500, 100_000
_SHORT_CHARACTERS: Final = 200
_FEW_PIECES: Final = 4
_FEW_NAMES: Final = 5


def _text(name: str, description: str, *, required: bool = False) -> Parameter:
    return Parameter(name=name, schema=ParameterSchema(types=("string",), description=description), required=required)


_NAMESPACE: Final = _text(
    "namespace", "Default: the user's namespace, or the whole cluster if not set. `*` selects the whole cluster"
)
DIAGNOSE: Final = Tool(
    name=DIAGNOSE_TOOL,
    description=(
        "Find faults and their causes by rules that check all objects, events, and logs of crashed containers. Returns "
        "incidents as JSON, most important first, each with its culprit, cause, evidence, symptoms, recent changes and "
        "next check. `not_checked` lists everything that could not be read."
    ),
    parameters=(
        _NAMESPACE,
        _text("resource", "Only incidents that involve this object: kind/name or a name"),
        Parameter(
            name="max_tokens",
            schema=ParameterSchema(types=("integer",), description="Maximum size of the result, in tokens"),
            required=False,
            default=_DEFAULT_MAX_TOKENS,
        ),
    ),
)
_RELATED: Final = Tool(
    name=RELATED_TOOL,
    description=(
        "Find everything related to one object: its owners, dependents and pods, the Services and Ingresses that "
        "select it, the ConfigMaps, Secrets and volumes that it uses (even if they are missing), policies, recent "
        "events and changes."
    ),
    parameters=(_text("resource", "kind/name, e.g. deployment/web", required=True), _NAMESPACE),
)


FIRST_LOOK: Final = Tool(
    name=FIRST_LOOK_TOOL,
    description=(
        "Answer a question about the cluster by rules: the verdict, the cause with its evidence, the objects between "
        "the subject and the cause, and related objects by name. Also counts and lists objects. Returns YAML."
    ),
    parameters=(
        _text("question", "The question, with the names of objects and namespaces"),
        _NAMESPACE,
        _text("about", "Objects that words such as `it` refer to: Kind namespace/name, separated by commas"),
        _text("earlier", "The user's questions before, one per line, which `and in shop?` continues"),
        _text("alerts", "Labels of alerts, as a JSON list of objects"),
        _text("claim", "The sentence of an answer that names a cause: returns under `against` what speaks against it"),
        Parameter(
            name="max_tokens",
            schema=ParameterSchema(types=("integer",), description="Maximum size of the result, in tokens"),
            required=False,
            default=_DEFAULT_MAX_TOKENS,
        ),
    ),
)


class KubernetesDiagnosisToolset:
    def __init__(
        self, environment: Environment, redactor: Redactor | None = None, stored: ReadStoredOf | None = None
    ) -> None:
        self._environment = environment
        self._mask = strip_escape_sequences if redactor is None else redactor.redact
        self._scans = Scans(environment, self._mask, stored)

    @property
    def name(self) -> str:
        return "kubernetes/diagnosis"

    @property
    def instructions(self) -> str:
        return (
            "Start with kubernetes_diagnose, for the namespace in question or the whole cluster. It names the culprit "
            "of most faults, with the field or log line as evidence. Then verify the result: read that field, log or "
            "event with another tool, and check that it explains the symptom in the question. The rules do not cover "
            "every fault, so an empty result does not mean that the cluster is healthy. The state of everything under "
            "not_checked is unknown. kubernetes_related shows in one call what an object depends on and what depends "
            "on it."
        )

    @property
    def tools(self) -> tuple[Tool, ...]:
        return (FIRST_LOOK, DIAGNOSE, _RELATED)

    def describe(self, invocation: ToolInvocation) -> str:
        """Return one line for the user, for example `Diagnose deployment/web in namespace shop`."""
        given = {name: value for name, value in invocation.arguments.items() if isinstance(value, str) and value}
        namespace = given.get("namespace", "")
        place = "" if namespace in {"", "*"} else f" in namespace {namespace}"
        if invocation.tool.name == FIRST_LOOK_TOOL:
            return f"First look{place}"
        if invocation.tool.name == RELATED_TOOL:
            return f"Find objects related to {given.get('resource', '?')}{place}"
        if "resource" in given:
            return f"Diagnose {given['resource']}{place}"
        return f"Diagnose {f'namespace {namespace}' if place else 'the cluster'}"

    async def call(self, invocation: ToolInvocation) -> ToolResult:
        """Run a scan, or find the objects related to an object.

        Raises `ToolError` for invalid arguments, and `ClusterUnreachable` or `ConfigError` if the scan fails.
        """
        arguments = invocation.arguments
        namespaces = self._namespaces(arguments)
        if invocation.tool.name == FIRST_LOOK_TOOL:
            return await self._first_look(arguments, namespaces)
        result = await self._scans.current(namespaces)
        result = await asyncio.to_thread(result.within, namespaces)
        if invocation.tool.name == RELATED_TOOL:
            text = await asyncio.to_thread(related_text, result.state, text_argument(arguments, "resource"), namespaces)
            return ToolResult(status="success", data=text, invocation=None)
        report = result.about(IncidentFilter(resource=text_argument(arguments, "resource")))
        max_tokens = _max_tokens(arguments)
        # Mask before truncating, because masking recognises a secret by the field path next to its value.
        text = await asyncio.to_thread(lambda: fitting_json(masked_report(report, self._mask), max_tokens))
        place = " ".join(f"-n {namespace}" for namespace in namespaces) or "-A"
        return ToolResult(status="success", data=text, invocation=f"holmes scan {place} --severity info -o json")

    async def _first_look(self, arguments: JsonObject, namespaces: tuple[str, ...]) -> ToolResult:
        request = LookRequest.of(arguments, namespaces[0] if namespaces else "")
        result = await self._scans.current((*namespaces, *request.named_namespaces))
        result = await self._scans.with_logs(result, lambda found: wanted_logs(request, found))
        if await asyncio.to_thread(wants_usage, request, result):
            result = await self._scans.with_usage(result)
        masked = await asyncio.to_thread(self._scans.masked, result)
        look = await asyncio.to_thread(take_first_look, request, masked)
        fits = partial(EstimatingCounter().fits, limit_tokens=_max_tokens(arguments))
        text = await asyncio.to_thread(fitting_look, look, fits, self._mask)
        return ToolResult(status="success", data=text, invocation=None)

    def _namespaces(self, arguments: JsonObject) -> tuple[str, ...]:
        given = text_argument(arguments, "namespace") or self._environment.get("HOLMES_KUBE_NAMESPACE") or "*"
        outside = objection(given, scope_of(self._environment)) if given != "*" else None
        if outside is not None:
            raise ConfigError(outside)
        return () if given == "*" else (given,)


def _max_tokens(arguments: JsonObject) -> int:
    value = arguments.get("max_tokens", _DEFAULT_MAX_TOKENS)
    if not isinstance(value, int) or isinstance(value, bool) or not _LEAST_TOKENS <= value <= _MOST_TOKENS:
        message = f"max_tokens is {value!r}; expected a number between {_LEAST_TOKENS} and {_MOST_TOKENS}"
        raise ToolError(message)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesDiagnosisFactory:
    name: str = "kubernetes/diagnosis"
    description: str = "Finds faults and their causes with built-in rules, and lists the objects related to an object"
    tags: tuple[str, ...] = ("core",)
    enabled_by_default: bool = True

    async def check(self, context: ToolsetContext) -> str:
        """Check that a cluster is configured. The first tool call tests the connection."""
        if context.config:
            key = next(iter(context.config))
            raise ConfigError(f"config of toolset 'kubernetes/diagnosis': unknown key {key!r}; valid keys: none")
        await ClusterLogin.load(context.environment)
        return ""

    def create(self, context: ToolsetContext) -> Toolset:
        return KubernetesDiagnosisToolset(context.environment, context.redactor, _stored(context))


def _stored(context: ToolsetContext) -> ReadStoredOf | None:
    if LOG_SOURCES not in context.others:
        return None
    from holmes.toolsets.kubernetes_diagnosis.stored import StoredContainerLogs
    from holmes.toolsets.logs.config import configured_sources

    return StoredContainerLogs(configured_sources(context))


def fitting_json(report: DiagnosisReport, max_tokens: int) -> str:
    """Return the report as JSON with at most about `max_tokens` tokens.

    A report that is too large is shortened in steps. First the symptoms are reduced to names, and evidence is
    truncated. Then the last incidents are reduced to one sentence each or omitted. `omitted` is the number of omitted
    incidents. At least one incident remains. A result that is still too large is stored like any other result.
    """
    counter = EstimatingCounter()

    def fits(text: str) -> bool:
        return counter.fits(text, max_tokens)

    written = report_to_json(report)
    for fewer in (_brief_symptoms, _brief_evidence):
        if fits(written):
            return written
        report = replace(report, incidents=tuple(fewer(incident) for incident in report.incidents))
        written = report_to_json(report)
    if fits(written) or not report.incidents:
        return written
    count = len(report.incidents)
    whole = _largest(1, count, lambda number: fits(_shortened(report, number, count)))
    told = _largest(whole, count, lambda number: fits(_shortened(report, whole, number)))
    return _shortened(report, whole, told)


def _largest(least: int, most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number that fits, or `least` if no number fits."""
    return max(least, least - 1 + bisect_left(range(least, most + 1), x=True, key=lambda number: not fits(number)))


def _shortened(report: DiagnosisReport, whole: int, told: int) -> str:
    """Keep the first `whole` incidents, reduce the next `told - whole` to one sentence each, and omit the rest."""
    incidents = (*report.incidents[:whole], *(_sentence(incident) for incident in report.incidents[whole:told]))
    omitted = report.omitted + len(report.incidents) - told
    return report_to_json(replace(report, incidents=incidents, omitted=omitted))


def _brief_symptoms(incident: Incident) -> Incident:
    symptoms = tuple(replace(symptom, evidence=(), because=(), next_check="") for symptom in incident.symptoms)
    return replace(incident, symptoms=symptoms)


def _brief_evidence(incident: Incident) -> Incident:
    findings = tuple(_brief(finding) for finding in incident.findings[:_FEW_PIECES])
    symptoms = tuple(replace(symptom, cause="") for symptom in incident.symptoms[:_FEW_NAMES])
    return replace(incident, findings=findings, symptoms=symptoms, affected=incident.affected[:_FEW_NAMES])


def _brief(finding: Finding) -> Finding:
    return replace(finding, evidence=tuple(_cut(each) for each in finding.evidence[:_FEW_PIECES]), because=())


def _cut(evidence: Evidence) -> Evidence:
    return replace(evidence, value=shortened(evidence.value, _SHORT_CHARACTERS + 1))


def _sentence(incident: Incident) -> Incident:
    return replace(incident, findings=(), symptoms=(), affected=(), changed_before=())
