"""Toolset files as users have them: what is accepted, what is refused, and where the message points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holmes.toolsets.yaml.building import build_definition, checked_keys
from holmes.toolsets.yaml.definition import (
    CommandPrerequisite,
    EnvironmentPrerequisite,
    StaticPrerequisite,
)
from holmes.toolsets.yaml.loader import read_toolsets, toolsets_of, with_current_names
from holmes.values.errors import ConfigError
from holmes.values.tools import Parameter, ParameterSchema
from holmes.yaml_documents import parse_document
from tests.toolsets.yaml.support import definition_of, one_tool

if TYPE_CHECKING:
    from pathlib import Path

_EVERYTHING = """\
toolsets:
  shop/core:
    enabled: true
    name: shop/core
    description: All keys
    docs_url: https://example.org
    icon_url: https://example.org/icon.png
    installation_instructions: install it
    prerequisites:
      - enabled: true
        disabled_reason: no reason
      - env: [SHOP_TOKEN]
      - command: shop --version
        expected_output: "1."
    tags: [core, cli]
    config: {url: "{{ env.SHOP_URL }}/x", nested: [{a: "{{env.SHOP_URL}}"}]}
    llm_instructions: |
      Use {{ tool_names | join(", ") }} on {{ config.url }}.
    transformers: [{name: llm_summarize, config: {input_threshold: 10}}]
    approval_required_tools: ["shop_*"]
    tools:
      - name: shop_order
        description: One order
        user_description: order {{ id }}
        transformers: [{name: llm_summarize}]
        timeout: 5
        env: {TOKEN: "{{ env.SHOP_TOKEN }}"}
        parse: json
        parameters:
          id: {description: number, type: integer}
          mode: {type: [string, "null"], default: full, enum: [full, short]}
          filters:
            type: object
            required: false
            properties: {state: {type: string}}
            additional_properties: false
          tags: {type: array, required: false, items: {type: string}}
          either: {required: false, any_of: [{type: string}, {type: integer}]}
          bare:
        command: shop order {{ id }} {{ mode }} {{ filters }} {{ tags }} {{ either }} {{ bare }} {{ inferred }}
"""


def test_every_key_of_the_format_is_understood() -> None:
    definition = definition_of(_EVERYTHING, SHOP_URL="http://shop", SHOP_TOKEN="t")
    assert definition.source == "test.yaml:2"
    assert definition.prerequisites == (
        StaticPrerequisite(enabled=True, disabled_reason="no reason"),
        EnvironmentPrerequisite(names=("SHOP_TOKEN",)),
        CommandPrerequisite(command="shop --version", expected_output="1."),
    )
    assert definition.config == {"url": "http://shop/x", "nested": [{"a": "http://shop"}]}
    assert definition.instructions == "Use shop_order on http://shop/x."
    assert (definition.tags, definition.approval_patterns) == (("core", "cli"), ("shop_*",))
    (tool,) = definition.tools
    assert (tool.timeout_seconds, tool.parse, tool.variables) == (5, "json", (("TOKEN", "t"),))
    string = ParameterSchema(types=("string",))
    assert tool.tool.parameters == (
        Parameter(name="id", schema=ParameterSchema(types=("integer",), description="number")),
        Parameter(
            name="mode",
            schema=ParameterSchema(types=("string", "null"), enum=("full", "short")),
            required=False,
            default="full",
        ),
        Parameter(
            name="filters",
            required=False,
            schema=ParameterSchema(
                types=("object",), properties=(Parameter(name="state", schema=string),), additional_properties=False
            ),
        ),
        Parameter(name="tags", required=False, schema=ParameterSchema(types=("array",), items=string)),
        Parameter(
            name="either",
            required=False,
            schema=ParameterSchema(any_of=(ParameterSchema(types=("string",)), ParameterSchema(types=("integer",)))),
        ),
        Parameter(name="bare", schema=string),
        Parameter(name="inferred", schema=string),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("    enabled: true", "    enabld: true"), "test.yaml:3: unknown key 'enabld'; did you mean 'enabled'?"),
        (
            ("id: {description: number, type", "id: {descripton: number, type"),
            "test.yaml:30: unknown key 'descripton'; did you mean 'description'?",
        ),
        (
            ("        expected_output:", "        expected_outputs:"),
            "test.yaml:14: unknown key 'expected_outputs'; did you mean 'expected_output'?",
        ),
        (("type: integer}", "type: int}"), "test.yaml:30: tools.0.parameters.id.type.0: Input should be 'string'"),
        (
            ("        timeout: 5", "        timeout: -5"),
            "test.yaml:26: tools.0.timeout: Input should be greater than 0",
        ),
        (("        command: shop", "        comand: shop"), "test.yaml:40: unknown key 'comand'"),
        (
            ("      - env: [SHOP_TOKEN]", "      - envs: [X]"),
            "test.yaml:12: prerequisites.1: a prerequisite requires exactly one of",
        ),
        (("{{ inferred }}", "{% if %}"), "test.yaml:40: tool 'shop_order': line 1 of the command"),
        (("{{ tool_names | join", "{{ tool_names | jion"), "test.yaml:17: the instructions of 'shop/core'"),
        (("      - name: shop_order", "      - name: shop order"), "test.yaml:22: tools.0.name: String should match"),
    ],
)
def test_a_mistake_names_file_line_and_the_nearest_key(change: tuple[str, str], message: str) -> None:
    assert change[0] in _EVERYTHING
    with pytest.raises(ConfigError) as caught:
        definition_of(_EVERYTHING.replace(*change), SHOP_URL="u", SHOP_TOKEN="t")
    assert message in str(caught.value)


def test_a_missing_variable_names_itself_and_the_toolset_place() -> None:
    with pytest.raises(ConfigError, match=r"test.yaml:2: the environment variable 'SHOP_URL' is not set"):
        definition_of(_EVERYTHING, SHOP_TOKEN="t")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("toolsets:\n  a: [1\n", "test.yaml:3: the file is not valid YAML"),
        ("toolsets:\n\ta: 1\n", "test.yaml:2: the file is not valid YAML"),
        ("toolsets: {}\ntoolset: {}\n", "test.yaml:2: unknown key 'toolset'; did you mean 'toolsets'?"),
        ("- a\n", "test.yaml:1: a toolset file must be a mapping"),
        ("toolsets: 5\n", "test.yaml:1: 'toolsets' must be a mapping from name to toolset"),
        ("toolsets:\n  a: 5\n", "test.yaml:2: the toolset 'a' must be a mapping"),
        ("toolsets:\n  - tools: []\n", "test.yaml:2: a toolset in a list requires a 'name'"),
        ("toolsets:\n  a: {}\n  b: {}\n  a: {}\n", "test.yaml:4: duplicate key 'a'; first defined in line 2"),
        ("toolsets: !!python/object/apply:os.system ['true']\n", "the file is not valid YAML"),
        ("a: &a [*a]\n", "too many values"),
    ],
)
def test_a_broken_file_names_file_and_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "test.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_toolsets(path)
    assert message in str(caught.value)


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="file not found"):
        read_toolsets(tmp_path / "missing.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_toolsets(tmp_path / "binary.yaml")


def test_the_old_list_form_and_old_names_are_read_with_a_warning() -> None:
    text = (
        "toolsets:\n  - name: a\n    description: d\n    additional_instructions: hint\n    restricted_tools: ['x*']\n"
    )
    file = toolsets_of(parse_document(text, source="test.yaml"))
    assert file.warnings == ("test.yaml:1: 'toolsets' as a list is deprecated; use a mapping from name to toolset",)
    written, warnings = with_current_names(file.toolsets[0])
    assert warnings == (
        "test.yaml:4: 'additional_instructions' of toolset 'a' is deprecated; use 'llm_instructions'",
        "test.yaml:5: 'restricted_tools' of toolset 'a' is deprecated; use 'approval_required_tools'",
    )
    definition = build_definition(written, checked_keys(written, {}).keys)
    assert (definition.instructions, definition.approval_patterns) == ("hint", ("x*",))


def test_instructions_can_be_a_file_beside_the_toolset(tmp_path: Path) -> None:
    (tmp_path / "hints.md").write_text("hint for {{ config.name }}")
    (tmp_path / "a.yaml").write_text(
        "toolsets: {a: {description: d, config: {name: shop}, llm_instructions: 'file://hints.md'}}"
    )
    written = read_toolsets(tmp_path / "a.yaml").toolsets[0]
    assert build_definition(written, checked_keys(written, {}).keys).instructions == "hint for shop"


def test_built_in_instructions_cannot_leave_their_folder() -> None:
    with pytest.raises(ConfigError, match="outside the built-in prompts"):
        definition_of("toolsets: {a: {description: d, llm_instructions: 'builtin://../pyproject.toml'}}")


def test_the_same_tool_twice_in_a_toolset_is_refused() -> None:
    body = one_tool("command: a") + "      - {name: run, description: d, command: b}\n"
    with pytest.raises(ConfigError, match=r"test.yaml:9: duplicate tool 'run'"):
        definition_of(body)


def test_commands_keep_references_to_variables_instead_of_values() -> None:
    definition = definition_of(one_tool('command: "curl -H {{ env.TOKEN }}"'), TOKEN="planted")
    assert "planted" not in repr(definition)


@pytest.mark.parametrize(
    ("command", "fragment"),
    [
        ('echo "{{ x }}"', "{{ x }} is inside quotes"),
        ("echo '{{ x | upper }}'", "{{ x | upper }} is inside quotes"),
        ("eval echo {{ x }}", "'eval' parses its arguments twice"),
    ],
)
def test_questionable_commands_have_a_lint_warning(command: str, fragment: str) -> None:
    warnings = definition_of(one_tool(f"command: |-\n  {command}")).lint_warnings
    assert [fragment in warning.message for warning in warnings] == [True]
    assert (warnings[0].place, warnings[0].tool) == ("test.yaml:8", "run")


def test_good_commands_have_no_lint_warning_and_unused_parameters_do() -> None:
    good = 'echo {{ x }} --y={{ x }} "$(cat {{ x }})" "{{ env.TOKEN }}" # "{{ x }}"'
    assert definition_of(one_tool(f"command: |-\n  {good}")).lint_warnings == ()
    (warning,) = definition_of(one_tool("command: echo\nparameters: {unused: {}}")).lint_warnings
    assert "'unused' is declared but never used" in warning.message
