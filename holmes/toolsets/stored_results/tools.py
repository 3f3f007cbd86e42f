"""What the model is told about the tools over stored results. Every word here is in every request, so there are few."""

from __future__ import annotations

from typing import Final

from holmes.values.tools import (
    IMAGE_TOOL,
    LINES_TOOL,
    QUERY_TOOL,
    SEARCH_TOOL,
    STATS_TOOL,
    Parameter,
    ParameterSchema,
    Tool,
)

TOOLSET_NAME: Final = "holmes/results"

_RESULT_ID = Parameter(name="result_id", schema=ParameterSchema(types=("string",), description="Id in the pointer"))


def _text(name: str, description: str) -> Parameter:
    return Parameter(name=name, schema=ParameterSchema(types=("string",), description=description))


def _integer(name: str, description: str, default: int) -> Parameter:
    schema = ParameterSchema(types=("integer",), description=description)
    return Parameter(name=name, schema=schema, required=False, default=default)


TEXT_TOOLS: Final = (
    Tool(
        name=SEARCH_TOOL,
        description="Find lines of a stored result by regular expression, with line numbers and context.",
        parameters=(
            _RESULT_ID,
            _text("pattern", "Regular expression, matched line by line"),
            Parameter(name="ignore_case", schema=ParameterSchema(types=("boolean",)), required=False, default=False),
            _integer("context_lines", "Lines shown before and after each match", 2),
            _integer("skip_matches", "Leave out the first matches, to see the next", 0),
        ),
    ),
    Tool(
        name=LINES_TOOL,
        description="Read a range of lines of a stored result. Long lines are clipped; start_column pages through one.",
        parameters=(
            _RESULT_ID,
            _integer("first_line", "Counts from 1", 1),
            Parameter(
                name="last_line",
                schema=ParameterSchema(types=("integer",), description="Included; 200 lines when left out"),
                required=False,
            ),
            _integer("start_column", "First character of each line, counts from 1", 1),
        ),
    ),
    Tool(
        name=QUERY_TOOL,
        description="Run a jq expression over a stored JSON or JSON Lines result. Texts come without quotes.",
        parameters=(_RESULT_ID, _text("expression", 'For example .items[] | select(.status.phase != "Running")')),
    ),
    Tool(
        name=STATS_TOOL,
        description="Statistics of a stored result: patterns and levels of logs, columns of tables, keys of JSON.",
        parameters=(_RESULT_ID,),
    ),
)
IMAGE_TOOLS: Final = (
    Tool(
        name=IMAGE_TOOL,
        description="Look at a stored picture.",
        parameters=(_text("result", "Id or path in the pointer"),),
    ),
)
TOOL_NAMES: Final = tuple(tool.name for tool in (*TEXT_TOOLS, *IMAGE_TOOLS))
