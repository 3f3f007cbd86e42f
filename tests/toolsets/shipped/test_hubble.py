"""The tools of Hubble, with its real command line, which reads the flows of a file in place of a relay."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from tests.cluster.layout import Layout
from tests.services.fixtures import needed_programs
from tests.services.go_programs import HUBBLE, installed
from tests.toolsets.shipped.examples import Example, examples
from tests.toolsets.shipped.kinds import FOLDER
from tests.toolsets.shipped.test_containers import called, toolset_of
from tests.toolsets.shipped.test_examples import check_result

if TYPE_CHECKING:
    from pathlib import Path

_RECORDED: Final = "2024-03-01T10:00"
_AGE_SECONDS: Final = 300
"""A test asks for the flows of the last half hour."""
_WITHOUT_CILIUM: Final = {"prerequisites": [{"program": "hubble"}]}
_LIMIT: Final = 5000
_NOTICES: Final = (
    ("hubble_drops", "(only the last 5000 were read)", "so there can be more drops"),
    ("hubble_dns_failures", "Only the last 5000 flows were read", "so there can be more failures"),
    ("hubble_http_errors", "Only the last 5000 flows were read", "so there can be more errors"),
    ("hubble_peers", "Only the last 5000 flows were read", "so there can be more flows"),
)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("example", examples("hubble"), ids=lambda each: f"{each.tool}-{each.number}")
async def test_a_hubble_tool_answers_the_question_of_its_example(example: Example, tmp_path: Path) -> None:
    with needed_programs():
        program = installed(HUBBLE, Layout.from_environment())
    now = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(time.time() - _AGE_SECONDS))
    flows, script = tmp_path / "flows.jsonl", tmp_path / "hubble"
    flows.write_text((FOLDER / "hubble" / "flows.jsonl").read_text().replace(_RECORDED, now))
    script.write_text(f'#!/bin/sh\nexec "{program}" "$@" --input-file="{flows}"\n')
    script.chmod(0o700)
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    toolset = await toolset_of("hubble/core", variables, _WITHOUT_CILIUM)
    result = await called(toolset, example)
    check_result(example, replace(result, data=result.data.replace(now, _RECORDED)))


@pytest.mark.parametrize(("tool", "cut", "lost"), _NOTICES)
@pytest.mark.parametrize("count", [_LIMIT, _LIMIT - 1])
async def test_a_view_says_when_flows_are_missing(tool: str, cut: str, lost: str, count: int, tmp_path: Path) -> None:
    """The real program filters lost events out of a file, so a stand-in prints what a relay sends."""
    flow = {"flow": {"verdict": "DROPPED", "is_reply": True, "time": "2024-03-01T10:00:00Z"}}
    events = [{"lost_events": {"source": "HUBBLE_RING_BUFFER", "num_events_lost": "12"}}, {"lost_events": {}}]
    reached = count == _LIMIT
    lines = [json.dumps(each) for each in [flow] * count + (events if reached else [])]
    (tmp_path / "flows.jsonl").write_text("\n".join(lines))
    script = tmp_path / "hubble"
    script.write_text(f'#!/bin/sh\nexec cat "{tmp_path / "flows.jsonl"}"\n')
    script.chmod(0o700)
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    toolset = await toolset_of("hubble/core", variables, _WITHOUT_CILIUM)
    example = Example(system="", tool=tool, question="", arguments={"namespace": "shop"}, shows=())
    result = await called(toolset, example)
    assert result.status == "success", result
    assert (cut in result.data, f"Hubble lost 12 events, {lost}" in result.data) == (reached, reached), result.data
