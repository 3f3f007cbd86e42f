"""The transformer `kubernetes_view`: only whole output is shown, without secrets, within the limits of the tool."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from holmes.redaction.redactor import Redactor
from holmes.toolsets.yaml.definition import ViewTransformer
from holmes.values.errors import ConfigError
from tests.support.deadlines import ends_before
from tests.toolsets.yaml.support import definition_of, one_tool, run, toolset_of

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from holmes.toolsets.yaml.toolset import YamlToolset
    from holmes.values.json_types import JsonValue

REDACTOR = Redactor(b"a key of the tests")
PLANTED = "hunter2-planted"
ENCODED = base64.b64encode(PLANTED.encode()).decode()
SECRET: JsonValue = {"kind": "Secret", "metadata": {"name": "db"}, "data": {"password": ENCODED}}
CONFIG: JsonValue = {"kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"password": PLANTED, "mode": "fast"}}
OBJECTS = json.dumps({"kind": "List", "items": [SECRET, CONFIG]})
FORMS = ("text", "describe", "status", "yaml", "jq", "columns", "count", "manifest", "values", "table")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands of the processes that start during the test. An audit hook would stay and disturb later tests."""
    start, commands = asyncio.create_subprocess_exec, list[str]()

    def remembered(*command: str, **options: Any) -> Coroutine[Any, Any, asyncio.subprocess.Process]:  # noqa: ANN401
        commands.append(str(command))
        return start(*command, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", remembered)
    return commands


def viewed(command: str, form: str, argument: str = "", *, text: str = OBJECTS, more: str = "") -> YamlToolset:
    """A tool that runs `command`, which finds `text` in the variable TEXT."""
    config = {"form": form, "argument": argument, **({"objects": {}, "kinds": "x"} if form == "table" else {})}
    transformers = json.dumps([{"name": "kubernetes_view", "config": config}])
    toolset = toolset_of(one_tool(f"command: {command}\ntransformers: {transformers}\n{more}"), TEXT=text)
    return replace(toolset, redactor=REDACTOR)


@pytest.mark.parametrize(
    ("form", "argument", "shown"),
    [
        ("yaml", "", "dataKeys:\n  - password\n"),
        ("columns", "M:.data.mode", "M\n<none>\nfast\n"),
        ("count", "", "2\n"),
        ("count", ".kind", "COUNT  .kind\n1      Secret\n1      ConfigMap\ntotal 2\n"),
        ("jq", ".items[].data", '"mode": "fast"'),
        ("jq", "[.items[].dataKeys]", '[["password"], null]'),
    ],
)
async def test_a_form_shows_the_objects_without_their_secrets(form: str, argument: str, shown: str) -> None:
    result = await run(viewed('echo "$TEXT"', form, argument))
    assert (result.status, result.error, result.return_code) == ("success", None, 0)
    assert shown in result.data
    assert PLANTED not in result.data
    assert ENCODED not in result.data
    assert result.invocation == 'echo "$TEXT"'


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("end", ["{{ 'sleep 30' }}", "yes", "kill -9 $$"])
async def test_of_output_that_is_not_whole_nothing_is_shown(form: str, end: str) -> None:
    for text in (OBJECTS, OBJECTS[:-20], f"Name: db\n{PLANTED}\n"):
        toolset = viewed(f'echo "$TEXT"; {end}', form, ".", text=text, more="timeout: 0.3")
        result = await run(replace(toolset, output_limit_bytes=100_000))
        assert (result.status, result.data) == ("error", "")
        assert PLANTED not in str(result)
        assert ENCODED not in str(result)
        if end == "yes":
            assert "no output can be shown" in str(result.error)


@pytest.mark.parametrize("form", ["yaml", "jq", "columns", "count", "values", "table"])
async def test_what_a_failed_command_wrote_is_shown_only_when_it_can_be_read(form: str) -> None:
    for text in (f"password: {PLANTED}", OBJECTS[:-20]):
        result = await run(viewed('echo "$TEXT"; echo denied >&2; exit 3', form, ".", text=text))
        assert (result.status, result.return_code) == ("error", 3)
        assert str(result.error).startswith("exit code 3: denied")
        assert f"{result.data}{result.error}".count("denied") == 1, "an error appears once"
        assert PLANTED not in str(result)
        assert ENCODED not in str(result)


async def test_a_failed_command_keeps_its_exit_code_and_what_may_be_seen() -> None:
    result = await run(viewed('echo "$TEXT"; echo "pods x not found" >&2; exit 1', "columns", "N:.metadata.name"))
    assert (result.status, result.return_code, result.error) == ("error", 1, "exit code 1: pods x not found")
    assert result.data == "N\ndb\nweb\n"


async def test_a_wrong_argument_is_a_failure_like_that_of_a_program() -> None:
    for form, said in (("jq", "jq: "), ("columns", "invalid column"), ("count", "use jq")):
        result = await run(viewed('echo "$TEXT"', form, "a["))
        assert (result.status, result.return_code) == ("error", 1)
        assert said in str(result.error)
        assert "Traceback" not in result.data


@pytest.mark.parametrize("form", ["yaml", "columns", "jq"])
async def test_half_a_character_cannot_spoil_a_result(form: str) -> None:
    argument = {"columns": "N:.note", "jq": ".note"}.get(form, "")
    result = await run(viewed('echo "$TEXT"', form, argument, text='{"note": "a\\ud83d b"}'))
    assert (result.status, "a? b" in result.data) == ("success", True)


async def test_no_output_and_no_objects_are_no_data() -> None:
    assert (await run(viewed("'true'", "yaml"))).data == ""
    result = await run(viewed('echo "$TEXT"', "yaml", text='{"kind": "List", "items": []}'))
    assert (result.status, result.data) == ("no_data", "stderr:\nNo objects found.\n")


async def test_jq_is_stopped_at_the_time_limit_of_its_tool() -> None:
    with ends_before(30):
        result = await run(viewed('echo "$TEXT"', "jq", "last(range(1e15))", more="timeout: 1"))
    assert "stopped after 1 s" in str(result.error)
    assert result.data == ""
    running = (process.info["cmdline"] or () for process in psutil.process_iter(["cmdline"]))
    assert not [command for command in running if "holmes.toolsets.kubernetes_view" in command and "last" in command]


async def test_jq_is_stopped_at_the_memory_limit() -> None:
    toolset = replace(viewed('echo "$TEXT"', "jq", "[range(1e15)] | length"), memory_limit_mb=200)
    assert "memory limit of 200 MB" in str((await run(toolset)).error)


async def test_jq_sees_neither_the_key_nor_other_variables() -> None:
    result = await run(viewed('echo "$TEXT"', "jq", "env, $ENV"))
    assert result.data == "{}\n{}\n"


@pytest.mark.parametrize("form", ["yaml", "columns", "count", "describe", "manifest", "jq"])
async def test_only_jq_and_large_outputs_have_a_process_of_their_own(
    form: str, tmp_path: Path, started: list[str]
) -> None:
    file = tmp_path / "objects.json"
    argument = {"columns": "K:.kind,D:.data", "jq": ".items[] | {kind, data}", "count": ".data"}.get(form, "")
    toolset = viewed(f"cat {file}", form, argument)
    padding: JsonValue = {"kind": "X", "note": "words " * 100_000}
    shown: list[str] = []
    for items in ([SECRET, CONFIG], [SECRET, CONFIG, padding]):
        file.write_text(json.dumps({"kind": "List", "items": items}))
        started.clear()
        result = await run(toolset)
        assert (result.status, result.error) == ("success", None)
        processes = [each for each in started if "kubernetes_view" in each]
        assert len(processes) == (form == "jq" or padding in items)
        assert not [each for each in processes if REDACTOR.key.hex() in each]
        shown.append(result.data)
    placeholder = REDACTOR.redact(f"password={PLANTED}").removeprefix("password=")
    assert [placeholder in text for text in shown] == [form != "describe"] * 2
    assert PLANTED not in str(shown) or form == "describe"


def test_a_view_is_checked_when_its_file_is_read() -> None:
    for config, said in (
        ("{form: tabel}", "unknown form 'tabel'; available: text, describe"),
        ("{form: table}", "the form 'table' requires 'objects'"),
        ("{form: jq, argumet: .}", "unknown key 'argumet'; did you mean 'argument'"),
        ("{argument: .}", "config.form: Field required"),
        ("{form: jq}}, {name: kubernets_view", "unknown transformer 'kubernets_view'; did you mean 'kubernetes_view'?"),
        ("{form: jq}}, {nam: x", "unknown transformer None; available: kubernetes_view, llm_summarize"),
        ("{form: jq, argument: '{{ x'}", "tool 'run': line 1"),
    ):
        with pytest.raises(ConfigError, match=r"^test.yaml:\d+: ") as raised:
            definition_of(one_tool(f"command: x\ntransformers: [{{name: kubernetes_view, config: {config}}}]"))
        assert said in str(raised.value)


def test_transformers_of_a_toolset_are_those_of_its_tools_and_those_of_holmesgpt_do_nothing() -> None:
    text = """
toolsets:
  mine:
    description: d
    transformers: [{name: llm_summarize, config: {a: 1}}, {name: kubernetes_view, config: {form: text}}]
    tools:
      - {name: a, description: d, command: x}
      - name: b
        description: d
        command: x
        transformers: [{name: kubernetes_view, config: {form: jq, argument: "{{ e }}"}}]
      - {name: c, description: d, command: x, transformers: []}
      - {name: d, description: d, command: x, transformers: [{name: llm_summarize}]}
"""
    definition = definition_of(text)
    assert [tool.transformers for tool in definition.tools] == [
        (ViewTransformer(form="text"),), (ViewTransformer(form="jq", argument="{{ e }}"),), (), (),
    ]  # fmt: skip
    assert [parameter.name for parameter in definition.tools[1].tool.parameters] == ["e"]
    assert definition.lint_warnings == ()


async def test_an_argument_of_a_view_is_as_safe_as_one_of_a_command() -> None:
    toolset = viewed('echo "$TEXT"', "jq", "{{ e }}")
    assert (await run(toolset, e=".items[1].data.mode + \" $HOME `id` 'x'\"")).data == "fast $HOME `id` 'x'\n"
    refused = await run(toolset, e="--x")
    assert (refused.status, refused.invocation) == ("error", None)
    assert "read as an option" in str(refused.error)


async def test_parse_lays_out_what_the_view_shows() -> None:
    result = await run(viewed('echo "$TEXT"', "columns", "NAME:.metadata.name,KIND:.kind", more="parse: table"))
    assert result.data == "NAME  KIND\ndb  Secret\nweb  ConfigMap\n"


TABLE = """command: kubectl get -o {{ output }} {{ kind }}
parameters: {output: {}, kind: {}}
transformers:
  - name: kubernetes_view
    config: {form: table, kinds: "{{ kind }}", objects: {output: json}}"""
VAULT = json.dumps({"kind": "Vault", "spec": {"stringData": {"pin": PLANTED}}})


@pytest.mark.parametrize(
    ("kind", "json_does", "shown", "calls"),
    [
        ("pods", "exit 1", f"PIN\n{PLANTED}\n", ["wide"]),
        ("vaults", f"echo '{VAULT}'", "PIN\n(hidden)\n", ["wide", "json"]),
        ("vaults,pods", f"echo '{VAULT}'", "PIN\n(hidden)\n", ["wide", "json"]),
        ("vaults", "echo denied >&2; exit 1", "", ["wide", "json"]),
        ("vaults", f"echo '{VAULT}'; exit 1", "", ["wide", "json"]),
        ("vaults", "echo '{'", "", ["wide", "json"]),
        ("vaults", "true", "", ["wide", "json"]),
    ],
)
async def test_a_table_is_shown_after_a_look_at_its_objects(
    tmp_path: Path, kind: str, json_does: str, shown: str, calls: list[str], started: list[str]
) -> None:
    log = tmp_path / "log"
    program = tmp_path / "kubectl"
    table = f"printf 'PIN\\n{PLANTED}\\n'"
    program.write_text(f'#!/bin/bash\necho "$3" >>{log}\nif [ "$3" = json ]; then {json_does}; else {table}; fi\n')
    program.chmod(0o755)
    started.clear()
    result = await run(toolset_of(one_tool(TABLE), PATH=f"{tmp_path}:{os.environ['PATH']}"), kind=kind, output="wide")
    assert (result.status, result.data.partition("stderr:")[0].replace(" ", "")) == (
        "success" if shown else "error",
        shown,
    )
    assert log.read_text().split() == calls
    assert result.invocation == f"kubectl get -o wide {kind}"
    if not shown:
        assert "is not shown" in str(result.error)
    assert not [each for each in started if "kubernetes_view" in each]


@pytest.mark.parametrize("end", ["", "; exit 1"])
async def test_what_a_program_says_of_a_secret_on_the_other_stream_is_hidden_too(end: str) -> None:
    data = '"data":map[string]interface {}{"a":"cGxhbnRlZA=="}'
    said = f'object given to jsonpath engine was: map[string]interface {{}}{{"kind":"Secret", {data}}}'
    toolset = viewed('echo "{}"; echo "$TEXT" >&2' + end, "yaml", text=said)
    result = await run(replace(toolset, redactor=None))
    assert "cGxhbnRlZA" not in f"{result.data}{result.error}"


async def test_aliases_of_a_manifest_cannot_make_it_explode() -> None:
    levels = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 8))
    result = await run(viewed('echo "$TEXT"', "manifest", text=f"l0: &l0 [a, b]\n{levels}"))
    assert (result.status, result.data.partition("stderr:")[0].strip()) == ("error", "")


async def test_a_view_that_is_larger_than_the_limit_is_not_shown() -> None:
    text = json.dumps({"kind": "List", "items": [{"kind": "A", "a": "x" * 3_000}]})
    toolset = replace(viewed('echo "$TEXT"', "columns", "A:.a,B:.a,C:.a", text=text), output_limit_bytes=4_000)
    result = await run(toolset)
    assert (result.status, result.data) == ("error", "")
