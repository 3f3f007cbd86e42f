"""Every tool of the shipped toolsets answers the question of its example, on the real cluster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest
import yaml

from holmes.assets import toolset_files
from holmes.values.environment import Environment
from holmes.values.expressions import expression
from tests.support.long_form import cases
from tests.support.shipped import shipped_catalogue
from tests.toolsets.shipped.examples import Example, documented_systems, examples
from tests.toolsets.shipped.kinds import FOLDER
from tests.toolsets.shipped.table import pages

if TYPE_CHECKING:
    from holmes.values.tools import ToolResult
    from tests.toolsets.shipped.conftest import ShippedToolsets

# Written into every Secret of the objects, plain and encoded; no tool may show it.
PLANTED: Final = ("hunter2-planted", "aHVudGVyMi1wbGFudGVk")
# Have tests of their own.
OLDER: Final = {"helm", "kubernetes"}
_TEMPLATE: Final = expression(r"\{\{.*?\}\}|\{%.*?%\}|^ *#.*$")
_PIPE: Final = expression(r"\b(kubectl|oc|helm|docker|crictl) (?:[^|\n]|\|\|)*[^|\n]\|(?!\|)|(?:\bdone|\}) *\|(?!\|)")
# `auth can-i` fails for the answer "no", the help of helm decides which options it has, and a version is optional.
MAY_FAIL: Final = {"kubectl_auth_can_i", "helm_status", "crictl_runtime"}
EXAMPLES: Final = [each for system in documented_systems() for each in examples(system)]


@pytest.mark.cluster
@pytest.mark.parametrize(
    "example",
    cases([each for each in EXAMPLES if (FOLDER / each.system / "objects.yaml").is_file()], 3),
    ids=lambda each: f"{each.tool}-{each.number}",
)
async def test_a_tool_answers_the_question_of_its_example(shipped: ShippedToolsets, example: Example) -> None:
    check_result(example, await shipped.run(example))


def check_result(example: Example, result: ToolResult) -> None:
    """Compare a result with the example. Tests of toolsets that need no cluster call this, too."""
    assert result.status == "success", result
    if os.environ.get("HOLMES_UPDATE_GOLDEN") == "1":
        example.output.parent.mkdir(exist_ok=True)
        example.output.write_text(result.data)
    assert [text for text in example.shows if text not in result.data] == [], result.data
    assert [text for text in (*example.hides, *PLANTED) if text in result.data] == [], result.data
    assert result.data == example.output.read_text()


def test_every_tool_has_an_example_and_every_output_a_tool() -> None:
    environment = Environment()
    catalogue = shipped_catalogue(environment)
    tools = {
        tool.tool.name
        for each in catalogue.definitions
        if each.name.partition("/")[0] not in OLDER
        for tool in each.tools
    }
    assert tools == {each.tool for each in EXAMPLES}
    assert {each.output for each in EXAMPLES} == set(FOLDER.glob("*/outputs/*.txt"))


def test_a_program_in_front_of_a_pipe_cannot_fail_unnoticed() -> None:
    piped = {
        tool["name"]
        for path in toolset_files()
        for toolset in yaml.safe_load(path.read_text())["toolsets"].values()
        for tool in toolset["tools"]
        if _PIPE.search(_TEMPLATE.sub("", script := tool.get("script") or tool["command"])) and "pipefail" not in script
    }
    assert piped == MAY_FAIL


def test_the_pages_of_the_documentation_are_up_to_date() -> None:
    folder = FOLDER.parents[2] / "docs" / "toolsets"
    assert {path.name: path.read_text() for path in folder.glob("*.md")} == pages()
