"""A YAML tool from call to result, with real bash."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.support.deadlines import ends_before
from tests.toolsets.yaml.support import one_tool, run, run_command, toolset_of


async def test_output_is_a_success_with_the_command_that_ran() -> None:
    result = await run_command("printf '%s\\n' {{ x }}", x="a b")
    assert (result.status, result.data, result.error, result.return_code) == ("success", "a b\n", None, 0)
    assert result.invocation == "printf '%s\\n' 'a b'"


async def test_no_output_is_no_data_even_when_something_was_said_aside() -> None:
    assert (await run_command("true")).status == "no_data"
    result = await run_command("echo 'nothing found' >&2")
    assert (result.status, result.data) == ("no_data", "stderr:\nnothing found\n")


async def test_an_exit_code_is_an_error_that_says_once_what_the_program_wrote() -> None:
    result = await run_command("echo out; echo 'Error: Forbidden' >&2; exit 4")
    assert (result.status, result.return_code) == ("error", 4)
    assert result.data == "out\n"
    assert result.error == "exit code 4: Error: Forbidden"
    assert (await run_command("exit 1")).error == "exit code 1, no output"


async def test_the_error_line_is_short_and_leaves_out_the_log_of_go_programs() -> None:
    log = "E1121 22:50:44.171516    3161 memcache.go:265] Unhandled Error"
    result = await run_command(f"echo '{log}' >&2; printf 'x%.0s' {{1..3000}} >&2; echo ' the reason' >&2; exit 1")
    assert result.error is not None
    assert len(result.error) < 530
    assert result.error.endswith("x the reason")
    short = await run_command(f"echo '{log}' >&2; echo 'the reason' >&2; exit 1")
    assert short.error == "exit code 1: the reason"


async def test_without_pipefail_the_last_command_of_a_pipe_decides() -> None:
    assert (await run_command("false | echo a")).status == "success"
    assert (await run_command("set -o pipefail; false | echo a")).status == "error"


async def test_a_refused_argument_is_an_error_result_and_nothing_runs(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    result = await run_command(f"touch {canary}; ls {{{{ x }}}}", x="--all")
    assert result.status == "error"
    assert (
        result.error == "the parameter 'x' cannot be '--all': a value that begins with '-' would be read as an option"
    )
    assert not await asyncio.to_thread(canary.exists)


async def test_a_tool_that_hangs_is_stopped_at_its_own_time_limit() -> None:
    with ends_before(30):
        result = await run(toolset_of(one_tool("command: echo begun; sleep 60\ntimeout: 0.5")))
    assert (result.status, result.data) == ("error", "begun\n")
    assert result.error is not None
    assert "stopped after 0.5 s" in result.error


async def test_a_tool_that_floods_is_stopped_and_keeps_what_it_wrote_first() -> None:
    toolset = replace(toolset_of(one_tool("command: yes | cat")), output_limit_bytes=1024 * 1024)
    result = await run(toolset)
    assert result.status == "error"
    assert len(result.data) == 1024 * 1024
    assert result.error is not None
    assert "output exceeds 1 MiB" in result.error


async def test_a_tool_over_the_memory_limit_says_so() -> None:
    toolset = toolset_of(one_tool(f'command: \'"{sys.executable}" -c "x = bytearray(400_000_000)"\''))
    result = await run(replace(toolset, memory_limit_mb=200))
    assert result.status == "error"
    assert result.error is not None
    assert result.error.startswith("killed at the memory limit of 200 MB")


async def test_cancelling_a_call_leaves_no_process_behind() -> None:
    marker = f"63{os.getpid()}.5"
    task = asyncio.create_task(run_command(f"sleep {marker} | sleep {marker} & wait"))
    await asyncio.sleep(0.3)
    assert _running(marker) == 2
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert _running(marker) == 0


def _running(marker: str) -> int:
    return sum(
        process.info["cmdline"] == ["sleep", marker] and process.info["status"] != psutil.STATUS_ZOMBIE
        for process in psutil.process_iter(["cmdline", "status"])
    )


async def test_variables_come_from_the_allowed_environment_and_from_env_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOT_ALLOWED", "planted")
    command = 'command: echo "[${NOT_ALLOWED}] [${ALLOWED}] [$OWN] [{{ env.ALLOWED }}] [{{ env.NOT_ALLOWED }}]"'
    result = await run(toolset_of(one_tool(f"{command}\nenv: {{OWN: mine}}"), ALLOWED="yes"))
    assert result.data == "[] [yes] [mine] [yes] []\n"


async def test_scripts_keep_their_heredocs_arrays_and_arithmetic() -> None:
    script = """\
# a comment about {{ nothing }}
X=(one "two words")
for item in "${X[@]}"; do echo "$item"; done
echo $((1 + 2)) ${#X[@]} ${X[0]:-none} {{ name }}
cat <<EOF | tr a-z A-Z
hello {{ name }}
EOF
"""
    block = "\n".join(f"  {line}" for line in script.splitlines())
    toolset = toolset_of(one_tool(f"script: |\n{block}"))
    assert [parameter.name for parameter in toolset.tools[0].parameters] == ["name"]
    result = await run(toolset, name="it's")
    assert result.data == "one\ntwo words\n3 2 one it's\nHELLO IT'S\n"


@pytest.mark.parametrize(
    ("parse", "written", "shown"),
    [
        ("json", '{"b": [1, "ü"], "a": null}', '{\n "b": [\n  1,\n  "ü"\n ],\n "a": null\n}\n'),
        ("json", "not json {", "not json {"),
        ("yaml", "b:   {x: 1}\na:   [ 2 ]", "b:\n  x: 1\na:\n- 2\n"),
        ("yaml", "a: b: c", "a: b: c"),
        ("table", "NAME       READY   \nweb         1/1", "NAME  READY\nweb  1/1\n"),
        ("text", "a      b", "a      b"),
    ],
)
async def test_output_is_laid_out_as_promised_or_left_alone(parse: str, written: str, shown: str) -> None:
    body = f'command: printf %s "$TEXT"\nparse: {parse}'
    assert (await run(toolset_of(one_tool(body), TEXT=written))).data == shown


async def test_programs_beside_the_interpreter_are_found_last() -> None:
    path = (await run_command('echo "$PATH"')).data.strip()
    folder = str(Path(sys.executable).parent)
    assert path == os.environ["PATH"] if folder in os.environ["PATH"].split(":") else path.endswith(f":{folder}")


async def test_kubectl_is_told_to_ignore_the_preferences_of_the_user() -> None:
    assert (await run_command('echo "$KUBECTL_KUBERC $KUBERC"')).data == "false off\n"


def test_a_call_is_described_for_people_by_its_own_words_or_its_arguments() -> None:
    described = toolset_of(one_tool('command: x {{ a }} {{ b }}\nuser_description: "look at {{ a }}{{ b }}  twice"'))
    plain = toolset_of(one_tool("command: x {{ a }} {{ b }}"))
    arguments = {"a": "it's $HOME", "b": None}
    for toolset, line in ((described, "look at it's $HOME twice"), (plain, "run a=it's $HOME")):
        call = ToolInvocation(call_id=ToolCallId("c"), tool=toolset.tools[0], arguments=arguments)
        assert toolset.describe(call) == line
