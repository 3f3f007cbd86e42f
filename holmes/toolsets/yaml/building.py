"""Checks one toolset entry against the schema and builds its definition, with warnings about its commands.

Runs after overrides are merged. Raises `ConfigError` with a message that begins with `file:line`. The catalogue stores
the error as the status of that toolset. A warning never disables a toolset.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import ValidationError

from holmes.assets import prompt_directory
from holmes.toolsets.yaml.definition import (
    DEFAULT_TOOL_TIMEOUT_SECONDS,
    CommandPrerequisite,
    EnvironmentPrerequisite,
    KindPrerequisite,
    LintWarning,
    ObjectPrerequisite,
    ParameterRule,
    Prerequisite,
    ProgramPrerequisite,
    StaticPrerequisite,
    ViewTransformer,
    YamlTool,
    YamlToolsetDefinition,
)
from holmes.toolsets.yaml.loader import unknown_key, with_environment
from holmes.toolsets.yaml.schema import (
    CommandPrerequisiteKeys,
    EnvironmentPrerequisiteKeys,
    KindPrerequisiteKeys,
    ObjectPrerequisiteKeys,
    ParameterKeys,
    PrerequisiteKeys,
    ProgramPrerequisiteKeys,
    StaticPrerequisiteKeys,
    ToolKeys,
    ToolsetKeys,
    UpstreamTransformerKeys,
    ViewConfigKeys,
    ViewKeys,
)
from holmes.toolsets.yaml.shell import locate_marks, mark_of
from holmes.toolsets.yaml.templates import compile_command, inferred_parameters
from holmes.values.errors import ConfigError
from holmes.values.expressions import expression
from holmes.values.tools import Parameter, ParameterSchema, Tool

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    from holmes.toolsets.yaml.loader import WrittenToolset
    from holmes.toolsets.yaml.schema import TransformerKeys
    from holmes.values.json_types import JsonValue
    from holmes.yaml_documents import KeyPath

_JSON_SCHEMA_WORDS = frozenset(
    {
        "title", "examples", "example", "format", "minimum", "maximum", "minLength", "maxLength", "minItems",
        "maxItems", "uniqueItems", "deprecated", "readOnly",
    }
)  # fmt: skip

_Built: TypeAlias = tuple[YamlTool, tuple[LintWarning, ...]]
_EXPRESSION = expression(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_STATEMENT = expression(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_EVAL = expression(r"(^|[\s;&|(])eval\s")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedKeys:
    """An entry that matches the schema. `warnings` contains the ignored keys of its tools."""

    keys: ToolsetKeys
    warnings: tuple[str, ...] = ()


def checked_keys(written: WrittenToolset, variables: Mapping[str, str]) -> CheckedKeys:
    """Replace `{{ env.NAME }}` in an entry and validate it. Raises `ConfigError` with file and line.

    A complete tool may have unknown keys, because other programs may read the same file.
    """
    try:
        values = with_environment(written.values(), variables)
    except ConfigError as error:
        raise ConfigError(f"{written.source}: {error}") from error
    try:
        return CheckedKeys(keys=ToolsetKeys.model_validate(values))
    except ValidationError as error:
        ordered = _telling_first(error.errors())
        explained = ConfigError(_explained(ordered[0], written))
        unknown = tuple(details["loc"] for details in ordered if _is_ignored(details))
        if len(unknown) < len(ordered):
            raise explained from error
    try:
        keys = ToolsetKeys.model_validate(_without(values, frozenset(unknown)))
    except ValidationError as error:
        raise explained from error
    named = ", ".join(f"{place[-1]!r} of {keys.tools[int(place[1])].name!r}" for place in unknown)
    return CheckedKeys(
        keys=keys, warnings=(f"{written.place(unknown[0])}: unknown keys of tools are ignored: {named}",)
    )


def _telling_first(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Sort the errors by how helpful they are, because an unknown key usually explains a missing key."""
    lacking = {details["loc"][:2] for details in errors if details["type"] == "missing"}

    def rank(details: ErrorDetails) -> int:
        if _is_ignored(details):
            return 1 if details["loc"][:2] in lacking else 3
        return 0 if details["type"] == "extra_forbidden" else 2

    return sorted(errors, key=rank)


def _is_ignored(error: ErrorDetails) -> bool:
    """Return whether the error is ignored because it reports an unknown tool key or an unsupported schema keyword."""
    where = error["loc"]
    known = len(where) == 3 or (len(where) > 4 and where[2] == "parameters" and where[-1] in _JSON_SCHEMA_WORDS)
    return error["type"] == "extra_forbidden" and where[0] == "tools" and known


def _without(value: object, unknown: frozenset[KeyPath], path: KeyPath = ()) -> object:
    if isinstance(value, Mapping):
        kept = {key: item for key, item in value.items() if (*path, key) not in unknown}
        return {key: _without(item, unknown, (*path, key)) for key, item in kept.items()}
    if isinstance(value, list | tuple):
        return [_without(item, unknown, (*path, index)) for index, item in enumerate(value)]
    return value


def build_definition(written: WrittenToolset, keys: ToolsetKeys) -> YamlToolsetDefinition:
    """Build the definition of a checked entry. Raises `ConfigError` with file and line."""
    built = tuple(_tool(_with_defaults(tool, keys), written, index) for index, tool in enumerate(keys.tools))
    tools = tuple(tool for tool, _ in built)
    _refuse_repeated_names(tools, written)
    names = tuple(tool.tool.name for tool in tools)
    instructions = instructions_of(keys.llm_instructions or "", written, tool_names=names, config=keys.config or {})
    return replace(
        outline_of(written, keys),
        tools=tools,
        instructions=instructions,
        lint_warnings=tuple(warning for _, warnings in built for warning in warnings),
    )


def outline_of(written: WrittenToolset, keys: ToolsetKeys) -> YamlToolsetDefinition:
    """Return the definition of a checked entry without tools and instructions, which are slow to build."""
    return YamlToolsetDefinition(
        name=written.name,
        source=written.source,
        description=keys.description,
        docs_url=keys.docs_url,
        installation_instructions=keys.installation_instructions,
        prerequisites=tuple(_prerequisite(prerequisite) for prerequisite in keys.prerequisites),
        tags=tuple(keys.tags),
        config=keys.config or {},
        approval_patterns=tuple(keys.approval_required_tools),
        redaction=keys.redaction,
        chosen_cluster=keys.chosen_cluster,
        on_demand=keys.on_demand,
    )


def has_ignored_transformers(keys: ToolsetKeys) -> bool:
    """Return whether the entry has HolmesGPT transformers, which are ignored."""
    wanted = [*(keys.transformers or ()), *(each for tool in keys.tools for each in tool.transformers or ())]
    return any(isinstance(each, UpstreamTransformerKeys) for each in wanted)


def _with_defaults(tool: ToolKeys, keys: ToolsetKeys) -> ToolKeys:
    return tool if tool.transformers is not None else tool.model_copy(update={"transformers": keys.transformers})


def _transformers(wanted: Sequence[TransformerKeys] | None) -> tuple[ViewTransformer, ...]:
    configs = [each.config for each in wanted or () if isinstance(each, ViewKeys)]
    return tuple(
        ViewTransformer(form=config.form, argument=config.argument, kinds=config.kinds, objects=config.objects)
        for config in configs
    )


def _explained(error: ErrorDetails, written: WrittenToolset) -> str:
    location = error["loc"]
    place = written.place(location)
    if error["type"] == "extra_forbidden":
        return f"{place}: {unknown_key(str(location[-1]), tuple(_keys_at(location).model_fields))}"
    where = ".".join(str(step) for step in location)
    return f"{place}: {where}: {error['msg'].removeprefix('Value error, ')}"


def _keys_at(location: KeyPath) -> type[BaseModel]:
    """Return the pydantic model that defines the valid keys at `location`."""
    if location[0] == "prerequisites" and len(location) > 2:
        kinds: dict[str, type[BaseModel]] = {
            "enabled": StaticPrerequisiteKeys,
            "env": EnvironmentPrerequisiteKeys,
            "program": ProgramPrerequisiteKeys,
            "kind": KindPrerequisiteKeys,
            "object": ObjectPrerequisiteKeys,
        }
        return kinds.get(str(location[2]), CommandPrerequisiteKeys)
    if "parameters" in location[:-1]:
        return ParameterKeys
    if "transformers" in location[:-1]:
        return ViewConfigKeys if location[-2] == "config" else ViewKeys
    return ToolKeys if location[0] == "tools" else ToolsetKeys


def _tool(keys: ToolKeys, written: WrittenToolset, index: int) -> _Built:
    kind = "command" if keys.command is not None else "script"
    place = written.place(("tools", index, kind))
    template = keys.command if keys.command is not None else keys.script or ""
    transformers = _transformers(keys.transformers)
    texts = (template, *(text for each in transformers for text in each.templates))
    try:
        for text in (*texts, keys.user_description or ""):
            compile_command(text)
        inferred = _inferred(texts)
    except ConfigError as error:
        raise ConfigError(f"{place}: tool {keys.name!r}: {error}") from error
    declared = {name: parameter or ParameterKeys() for name, parameter in keys.parameters.items()}
    unlisted = {name: ParameterKeys(required=needed) for name, needed in inferred.items() if name not in declared}
    everything = {**declared, **unlisted}
    used = {*inferred, *dict(inferred_parameters(keys.user_description or ""))}
    tool = YamlTool(
        tool=Tool(
            name=keys.name,
            description=keys.description.strip(),
            parameters=tuple(_parameter(name, parameter) for name, parameter in everything.items()),
        ),
        template=template,
        rules=tuple(_rule(name, parameter) for name, parameter in everything.items()),
        user_description=keys.user_description,
        timeout_seconds=keys.timeout or DEFAULT_TOOL_TIMEOUT_SECONDS,
        variables=tuple(sorted(keys.env.items())),
        transformers=transformers,
        parse=keys.parse,
    )
    warnings = _lint_command(template, tool=keys.name, place=place, declared=tuple(declared), used=used)
    return tool, warnings


def _inferred(texts: Sequence[str]) -> dict[str, bool]:
    """Return the parameters in `texts`. A parameter is mapped to true if at least one text requires it."""
    inferred: dict[str, bool] = {}
    for text in texts:
        for name, needed in inferred_parameters(text):
            inferred[name] = inferred.get(name, False) or needed
    return inferred


def _is_required(keys: ParameterKeys) -> bool:
    return keys.required if keys.required is not None else keys.default is None


def _rule(name: str, keys: ParameterKeys) -> ParameterRule:
    return ParameterRule(
        name=name,
        required=_is_required(keys),
        pattern=keys.pattern,
        allow_leading_dash=keys.allow_leading_dash,
    )


def _parameter(name: str, keys: ParameterKeys) -> Parameter:
    return Parameter(name=name, schema=_schema(keys, outermost=True), required=_is_required(keys), default=keys.default)


def _schema(keys: ParameterKeys, *, outermost: bool = False) -> ParameterSchema:
    types = tuple(keys.type)
    if outermost and not types and not keys.any_of:
        types = ("string",)
    additional = keys.additional_properties
    return ParameterSchema(
        types=types,
        description=keys.description.strip(),
        enum=tuple(keys.enum or ()),
        items=_schema(keys.items) if keys.items is not None else None,
        properties=tuple(
            Parameter(name=name, schema=_schema(inner), required=_is_required(inner), default=inner.default)
            for name, inner in (keys.properties or {}).items()
        ),
        additional_properties=_schema(additional) if isinstance(additional, ParameterKeys) else additional,
        any_of=tuple(_schema(option) for option in keys.any_of or ()),
    )


def _prerequisite(keys: PrerequisiteKeys) -> Prerequisite:
    match keys:
        case StaticPrerequisiteKeys():
            return StaticPrerequisite(enabled=keys.enabled, disabled_reason=keys.disabled_reason)
        case EnvironmentPrerequisiteKeys():
            return EnvironmentPrerequisite(names=tuple(keys.env))
        case CommandPrerequisiteKeys():
            return CommandPrerequisite(command=keys.command, expected_output=keys.expected_output)
        case ProgramPrerequisiteKeys():
            return ProgramPrerequisite(program=keys.program)
        case KindPrerequisiteKeys():
            return KindPrerequisite(kinds=tuple(keys.kind))
        case ObjectPrerequisiteKeys():
            return ObjectPrerequisite(path=keys.object)


def _refuse_repeated_names(tools: tuple[YamlTool, ...], written: WrittenToolset) -> None:
    names: set[str] = set()
    for index, tool in enumerate(tools):
        if tool.tool.name in names:
            raise ConfigError(f"{written.place(('tools', index))}: duplicate tool {tool.tool.name!r}")
        names.add(tool.tool.name)


def instructions_of(
    text: str, written: WrittenToolset, *, tool_names: tuple[str, ...] = (), config: Mapping[str, JsonValue]
) -> str:
    """Read and render `llm_instructions`. Raises `ConfigError` with file and line."""
    try:
        return _instructions(text, written, tool_names, config).strip()
    except (OSError, TemplateError, UnicodeDecodeError) as error:
        place = written.place(("llm_instructions",))
        raise ConfigError(f"{place}: the instructions of {written.name!r} cannot be used: {error}") from error


def _instructions(
    text: str, written: WrittenToolset, tool_names: tuple[str, ...], config: Mapping[str, JsonValue]
) -> str:
    if text.startswith("file://"):
        folder = Path(written.keys["llm_instructions"].document.source).parent
        text = (folder / Path(text.removeprefix("file://")).expanduser()).read_text(encoding="utf-8")
    elif text.startswith("builtin://"):
        text = _built_in(text.removeprefix("builtin://")).read_text(encoding="utf-8")
    if "{" not in text:
        return text
    environment = ImmutableSandboxedEnvironment(autoescape=False)
    return environment.from_string(text).render(tool_names=tool_names, config=config, request_context={})


def _built_in(name: str) -> Path:
    folder = prompt_directory().resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(folder):
        raise FileNotFoundError(f"{name!r} is outside the built-in prompts")
    return path


def _lint_command(
    template: str, *, tool: str, place: str, declared: Collection[str], used: Collection[str]
) -> tuple[LintWarning, ...]:
    """Return the warnings for one command. `declared` are its parameters, and `used` are the names in the command."""
    messages = [*_quoted_expressions(template)]
    if _EVAL.search(template):
        messages.append("'eval' parses its arguments twice, so values may contain only letters, digits and _@%+=:,./-")
    messages += [f"the parameter {name!r} is declared but never used" for name in declared if name not in used]
    return tuple(LintWarning(place=place, tool=tool, message=message) for message in messages)


def _quoted_expressions(template: str) -> Iterator[str]:
    expressions: dict[int, str] = {}
    numbers = count()

    def remember(found: re.Match[str]) -> str:
        number = next(numbers)
        expressions[number] = found.group(1)
        return mark_of(number)

    script = _EXPRESSION.sub(remember, _STATEMENT.sub("", template))
    for number, mark in locate_marks(script).items():
        if mark.place in {"double", "single", "ansi"} and not expressions[number].startswith("env."):
            yield (
                f"{{{{ {expressions[number]} }}}} is inside quotes: remove the quotes; "
                "values are already quoted for the shell"
            )
