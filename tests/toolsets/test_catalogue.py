"""Files, overrides and entry points come together; what is broken costs its own toolset only."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from holmes.assets import toolset_files
from holmes.toolsets.catalogue import UPSTREAM_TOOLSETS, Catalogue, CatalogueFiles, load_catalogue, read_catalogue
from holmes.toolsets.readiness import CheckPolicy, Readiness, check_toolsets
from holmes.toolsets.registry import ToolsetContext
from holmes.toolsets.stored_results import TOOL_NAMES, TOOLSET_NAME
from holmes.values.environment import Environment
from holmes.values.errors import ConfigError, ToolError
from holmes.values.messages import ToolCallId
from holmes.values.tools import Tool, ToolInvocation, ToolResult, WrapperToolset
from tests.support.deadlines import ends_before
from tests.toolsets.yaml.support import toolset_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.toolsets.registry import ToolsetStatus
    from holmes.values.json_types import JsonValue
    from holmes.values.tools import Toolset

_ENVIRONMENT = Environment.of({"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
_SHOP = """\
toolsets:
  shop/core:
    description: Orders
    config: {url: http://shop, retry: {times: 3, wait: 1}}
    prerequisites: [{command: "true"}]
    tools:
      - {name: shop_order, description: One order, command: "echo {{ config.url }} {{ id }}"}
"""


class ClockFactory:
    """A Python toolset as another package could bring it."""

    name = "test/clock"
    description = "Knows the time"
    tags = ("core",)
    enabled_by_default = True

    async def check(self, context: ToolsetContext) -> str:
        """Follow the configuration."""
        behaviour = context.config.get("behaviour")
        if behaviour == "slow":
            await asyncio.sleep(60)
        if behaviour == "broken":
            raise RuntimeError("spring")
        if behaviour == "missing":
            raise ToolError("no clock: buy one")
        return "quartz 2.0"

    def create(self, context: ToolsetContext) -> Toolset:
        """Wrap a YAML toolset, which saves writing one."""
        tool = "clock_" + str(context.config.get("tool", "read"))
        return WrapperToolset(
            toolset_of(f"toolsets: {{c: {{tools: [{{name: {tool}, description: d, command: date}}]}}}}")
        )


class SleepingFactory(ClockFactory):
    """Is not offered unless somebody asks."""

    name = "test/sleeping"
    enabled_by_default = False


_CLOCK = EntryPoint(name="test/clock", value=f"{__name__}:ClockFactory", group="holmes.toolsets")
_SLEEPING = EntryPoint(name="test/sleeping", value=f"{__name__}:SleepingFactory", group="holmes.toolsets")
_BROKEN = EntryPoint(name="test/broken", value="no_such_module:Factory", group="holmes.toolsets")


def _file(folder: Path, text: str, name: str = "custom.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def _load(
    *files: Path,
    overrides: Mapping[str, object] | None = None,
    entry_points: tuple[EntryPoint, ...] = (),
    environment: Environment = _ENVIRONMENT,
) -> Catalogue:
    shipped, custom = files[:1], files[1:]
    sources = CatalogueFiles(shipped=shipped, custom=custom, overrides=overrides or {}, overrides_source="config.yaml")
    return load_catalogue(read_catalogue(sources, entry_points=entry_points), environment)


async def _check(catalogue: Catalogue, policy: CheckPolicy | None = None) -> Readiness:
    return await check_toolsets(catalogue, ToolsetContext(environment=_ENVIRONMENT), policy)


def _status(readiness: Readiness, name: str) -> ToolsetStatus:
    return next(status for status in readiness.statuses if status.name == name)


def test_every_shipped_toolset_loads_without_a_warning() -> None:
    written = read_catalogue(CatalogueFiles(shipped=toolset_files()), entry_points=())
    catalogue = load_catalogue(written, _ENVIRONMENT)
    assert (catalogue.warnings, catalogue.statuses, written.variable_names) == ((), (), frozenset())
    assert {definition.name for definition in catalogue.definitions} >= {"kubernetes/core", "helm/core"}
    assert [warning for definition in catalogue.definitions for warning in definition.lint_warnings] == []


def test_an_override_merges_and_needs_no_description_or_tools(tmp_path: Path) -> None:
    shipped = _file(tmp_path, _SHOP, "shipped.yaml")
    custom = _file(tmp_path, "toolsets: {shop/core: {config: {retry: {times: 5}}, approval_required_tools: ['*']}}")
    catalogue = _load(shipped, custom, overrides={"shop/core": {"enabled": True, "config": {"url": "http://other"}}})
    (definition,) = catalogue.definitions
    assert definition.description == "Orders"
    assert definition.config == {"url": "http://other", "retry": {"times": 5, "wait": 1}}
    assert definition.approval_patterns == ("*",)
    assert len(definition.tools) == 1


def test_a_toolset_can_be_disabled_or_defined_in_the_configuration(tmp_path: Path) -> None:
    shipped = _file(tmp_path, _SHOP, "shipped.yaml")
    mine = {"description": "d", "tools": [{"name": "t", "description": "d", "command": "echo"}]}
    catalogue = _load(shipped, overrides={"shop/core": {"enabled": False}, "mine": mine})
    assert [(each.name, each.source) for each in catalogue.definitions] == [("mine", "config.yaml")]
    assert [(each.name, each.state, each.reason) for each in catalogue.statuses] == [
        ("shop/core", "disabled", "disabled in the configuration")
    ]


def test_a_mistake_in_one_toolset_fails_that_one_only_with_the_place_of_the_override(tmp_path: Path) -> None:
    shipped = _file(tmp_path, _SHOP, "shipped.yaml")
    other = _SHOP.replace("shop/core", "other").replace("shop_order", "other_order")
    custom = _file(tmp_path, other + "  shop/core:\n    enabled: true\n    promt: x\n")
    catalogue = _load(shipped, custom)
    assert [definition.name for definition in catalogue.definitions] == ["other"]
    (status,) = catalogue.statuses
    assert status.state == "failed"
    assert status.reason is not None
    assert status.reason.startswith(f"{custom}:10: unknown key 'promt'")


_OF_ANOTHER_PROGRAM = """\
toolsets:
  mesh/core:
    expose_remotely: false
    description: Reads the mesh
    prerequisites: [{command: "true"}]
    tools:
      - name: mesh_status
        description: The state of the mesh
        command: mesh status
      - name: mesh_check
        description: Checks one namespace
        command: mesh check {{ namespace }}
        args: [namespace]
        cache_seconds: 5
  mesh/flows:
    description: Watches the mesh
    tools:
      - name: mesh_flows
        description: Flows of one pod
        args: {pod: {required: true}}
        parameters:
          pod: {type: string, examples: [web], format: name}
          labels: {type: array, required: false, items: {type: string, title: Label}}
        script: mesh flows --pod {{ pod }}
"""


def test_keys_that_only_another_program_knows_are_one_warning_per_toolset_and_no_failure(tmp_path: Path) -> None:
    custom = _file(tmp_path, _OF_ANOTHER_PROGRAM)
    catalogue = _load(custom)
    assert [definition.name for definition in catalogue.definitions] == ["mesh/core", "mesh/flows"]
    assert catalogue.statuses == ()
    keys = ("examples", "format", "title", "args")
    assert catalogue.warnings == (
        f"{custom}:13: unknown keys of tools are ignored: 'args' of 'mesh_check', 'cache_seconds' of 'mesh_check'",
        f"{custom}:22: unknown keys of tools are ignored: " + ", ".join(f"{key!r} of 'mesh_flows'" for key in keys),
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            ("        command: mesh check", "        comand: mesh check"),
            ":12: unknown key 'comand'; did you mean 'comm",
        ),
        (("    expose_remotely: false", "    expose_remotly: false"), ":3: unknown key 'expose_remotly'; did you mean"),
    ],
)
def test_an_unknown_key_of_a_toolset_or_of_a_tool_that_lacks_something_fails_that_toolset_only(
    tmp_path: Path, change: tuple[str, str], reason: str
) -> None:
    custom = _file(tmp_path, _OF_ANOTHER_PROGRAM.replace(*change))
    catalogue = _load(custom)
    assert [definition.name for definition in catalogue.definitions] == ["mesh/flows"]
    (status,) = catalogue.statuses
    assert (status.name, status.state) == ("mesh/core", "failed")
    assert str(status.reason).startswith(f"{custom}{reason}")


def test_unknown_names_are_an_error_with_the_nearest_unless_holmesgpt_knows_them(tmp_path: Path) -> None:
    shipped = _file(tmp_path, _SHOP, "shipped.yaml")
    with pytest.raises(ConfigError, match=r"config.yaml: unknown toolset 'shop/cores'; did you mean 'shop/core'\?"):
        _load(shipped, overrides={"shop/cores": {"enabled": True}})
    catalogue = _load(shipped, overrides={"robusta": {"enabled": False}, "datadog/metrics": {"config": {"u": "v"}}})
    assert (catalogue.warnings, catalogue.ignored_names) == ((), ("datadog/metrics", "robusta"))


def test_no_toolset_that_exists_is_among_the_names_that_only_holmesgpt_knows() -> None:
    written = read_catalogue(CatalogueFiles(shipped=toolset_files()))
    names = {entry.name for entry in written.entries} | {factory.name for factory in written.factories}
    assert names >= {"kubernetes/core", "kubernetes/logs", "helm/core"}
    assert not names & UPSTREAM_TOOLSETS


def test_what_is_not_supported_yet_is_told_and_never_an_error(tmp_path: Path) -> None:
    text = _SHOP + "    transformers: [{name: llm_summarize}]\n"
    catalogue = _load(_file(tmp_path, text), overrides={"remote": {"type": "http", "config": {"mode": "sse"}}})
    assert [warning.split(": ", 1)[-1] for warning in catalogue.warnings] == ["'shop/core'"]
    assert [(status.name, status.state, status.reason) for status in catalogue.statuses] == [
        ("remote", "failed", "type 'http' is not supported yet")
    ]
    assert len(catalogue.definitions) == 1


def test_declared_variables_are_known_before_anything_is_allowed(tmp_path: Path) -> None:
    text = _SHOP.replace("http://shop,", "'{{ env.SHOP_URL }}',").replace(
        '[{command: "true"}]', "[{env: [SHOP_TOKEN]}]"
    )
    written = read_catalogue(CatalogueFiles(shipped=(_file(tmp_path, text),)), entry_points=())
    assert written.variable_names == {"SHOP_URL", "SHOP_TOKEN"}
    (status,) = load_catalogue(written, _ENVIRONMENT).statuses
    assert status.reason is not None
    assert "the environment variable 'SHOP_URL' is not set" in status.reason


async def test_prerequisites_stop_at_the_first_that_fails_in_their_fixed_order(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    kinds = {
        "command": f"{{command: 'touch {canary}'}}",
        "env": "{env: [NO_SUCH_VARIABLE]}",
        "static": "{enabled: false, disabled_reason: not today}",
    }
    for names, state, reason in (
        (("command", "env", "static"), "disabled", "not today"),
        (("command", "env"), "failed", "the environment variable 'NO_SUCH_VARIABLE' is not set"),
    ):
        listed = ", ".join(kinds[name] for name in names)
        catalogue = _load(_file(tmp_path, _SHOP.replace('[{command: "true"}]', f"[{listed}]")))
        status = _status(await _check(catalogue), "shop/core")
        assert (status.state, status.reason) == (state, reason)
    assert not await asyncio.to_thread(canary.exists)


async def test_a_prerequisite_command_may_use_the_configuration_and_variables(tmp_path: Path) -> None:
    command = "{command: 'echo {{ config.url }} {{ env.HOME }}', expected_output: http://shop /nonexistent}"
    catalogue = _load(_file(tmp_path, _SHOP.replace('{command: "true"}', command)))
    assert _status(await _check(catalogue), "shop/core").state == "enabled"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("{command: 'echo oh no >&2; exit 3'}", "oh no; get it from the shop"),
        ("{command: exit 3}", "exit code 3; get it from the shop"),
        ("{command: no-such-program --version}", "'no-such-program' is not installed; get it from the shop"),
        ("{command: 'test {{ config.url }} = {{ env.HOME }}'}", "exit code 1; get it from the shop"),
        ("{command: echo v2, expected_output: v3}", "'echo v2' did not print 'v3'; get it from the shop"),
    ],
)
async def test_a_failed_command_names_its_reason_and_the_help(tmp_path: Path, command: str, reason: str) -> None:
    text = _SHOP.replace('[{command: "true"}]', f"[{command}]\n    installation_instructions: get it from the shop")
    status = _status(await _check(_load(_file(tmp_path, text))), "shop/core")
    assert (status.state, status.reason, status.tool_count) == ("failed", reason, 1)


async def test_all_checks_share_one_deadline_and_leave_no_process(tmp_path: Path) -> None:
    marker = f"64{os.getpid()}.5"
    text = "toolsets:\n" + "".join(
        f"  slow{number}: {{description: d, prerequisites: [{{command: 'sleep {marker}'}}], "
        f"tools: [{{name: t{number}, description: d, command: echo}}]}}\n"
        for number in range(4)
    )
    text += _SHOP.removeprefix("toolsets:\n")
    catalogue = _load(
        _file(tmp_path, text), entry_points=(_CLOCK,), overrides={"test/clock": {"config": {"behaviour": "slow"}}}
    )
    with ends_before(30):
        readiness = await _check(catalogue, CheckPolicy(deadline_seconds=1))
    late = [status for status in readiness.statuses if "took longer than 1 s" in (status.reason or "")]
    assert [status.name for status in late] == ["slow0", "slow1", "slow2", "slow3", "test/clock"]
    assert [each.toolset.name for each in readiness.ready] == ["shop/core"]
    assert not any(process.info["cmdline"] == ["sleep", marker] for process in psutil.process_iter(["cmdline"]))


async def test_successes_are_remembered_and_failures_are_not(tmp_path: Path) -> None:
    log = tmp_path / "log"
    switch = tmp_path / "switch"
    text = _SHOP.replace('{command: "true"}', f'{{command: "echo x >> {log}; test -e {switch}"}}')
    catalogue = _load(_file(tmp_path, text))
    policy = CheckPolicy(cache_directory=tmp_path / "cache")

    async def checks_and_state(policy: CheckPolicy) -> tuple[int, str]:
        state = _status(await _check(catalogue, policy), "shop/core").state
        return log.read_text().count("x"), state

    assert await checks_and_state(policy) == (1, "failed")
    assert await checks_and_state(policy) == (2, "failed")
    switch.write_text("")
    assert await checks_and_state(policy) == (3, "enabled")
    assert await checks_and_state(policy) == (3, "enabled")
    assert await checks_and_state(replace(policy, refresh=True)) == (4, "enabled")
    (file,) = (tmp_path / "cache").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    changed = json.loads(file.read_text())
    changed["succeeded"]["shop/core"]["checked_at_seconds"] -= 3700
    file.write_text(json.dumps(changed))
    assert await checks_and_state(policy) == (5, "enabled")
    for broken in (
        "",
        "{",
        "[]",
        '{"format": 1}',
        '{"format": 2, "succeeded": {}}',
        '{"format": 1, "succeeded": {"a": 1}}',
    ):
        file.write_text(broken)
        assert (await checks_and_state(policy))[1] == "enabled"
    assert log.read_text().count("x") == 11


async def test_a_cache_folder_that_cannot_be_written_costs_nothing_but_the_checks(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    policy = CheckPolicy(cache_directory=tmp_path / "file" / "cache")
    assert _status(await _check(_load(_file(tmp_path, _SHOP)), policy), "shop/core").state == "enabled"


async def test_python_toolsets_are_found_configured_and_switched(tmp_path: Path) -> None:
    shipped = _file(tmp_path, _SHOP)
    entry_points = (_SLEEPING, _CLOCK, _BROKEN)
    readiness = await _check(_load(shipped, entry_points=entry_points))
    assert [each.toolset.tools[0].name for each in readiness.ready] == ["shop_order", "clock_read"]
    assert [(status.name, status.state) for status in readiness.statuses] == [
        ("shop/core", "enabled"),
        ("test/broken", "failed"),
        ("test/clock", "enabled"),
        ("test/sleeping", "disabled"),
    ]
    assert "no_such_module" in (_status(readiness, "test/broken").reason or "")
    overrides = {
        "test/clock": {"enabled": False},
        "test/sleeping": {"enabled": True, "config": {"tool": "write"}, "approval_required_tools": ["clock_*"]},
    }
    readiness = await _check(_load(shipped, entry_points=entry_points, overrides=overrides))
    assert [each.toolset.tools[0].name for each in readiness.ready] == ["shop_order", "clock_write"]
    assert readiness.ready[1].approval_patterns == ("clock_*",)


@pytest.mark.parametrize(
    ("behaviour", "reason"), [("missing", "no clock: buy one"), ("broken", "the check failed: RuntimeError: spring")]
)
async def test_a_python_toolset_that_cannot_work_names_its_reason(tmp_path: Path, behaviour: str, reason: str) -> None:
    overrides = {"test/clock": {"config": {"behaviour": behaviour}}}
    readiness = await _check(_load(_file(tmp_path, _SHOP), entry_points=(_CLOCK,), overrides=overrides))
    assert (_status(readiness, "test/clock").state, _status(readiness, "test/clock").reason) == ("failed", reason)


async def test_a_second_tool_of_the_same_name_fails_the_later_toolset_naming_both(tmp_path: Path) -> None:
    second = _file(tmp_path, _SHOP.replace("shop/core", "other"), "other.yaml")
    readiness = await _check(_load(_file(tmp_path, _SHOP), second))
    assert [each.toolset.name for each in readiness.ready] == ["shop/core"]
    assert _status(readiness, "other").reason == (
        "the toolset 'shop/core' already has a tool 'shop_order'; rename the tool, or disable 'shop/core'"
    )


@pytest.mark.parametrize("name", TOOL_NAMES)
async def test_a_tool_named_like_one_that_reads_results_fails_its_toolset_naming_both(
    tmp_path: Path, name: str
) -> None:
    mine = _file(tmp_path, _SHOP.replace("shop/core", "mine").replace("shop_order", name), "mine.yaml")
    policy = CheckPolicy(reserved_tools=dict.fromkeys(TOOL_NAMES, TOOLSET_NAME))
    readiness = await _check(_load(_file(tmp_path, _SHOP), mine), policy)
    assert [each.toolset.name for each in readiness.ready] == ["shop/core"]
    status = _status(readiness, "mine")
    reason = f"the toolset 'holmes/results' already has a tool {name!r}; rename the tool"
    assert (status.state, status.reason) == ("failed", reason)


async def test_settings_configure_a_python_toolset_and_what_is_written_wins(tmp_path: Path) -> None:
    shipped = _file(tmp_path, _SHOP)
    defaults: dict[str, dict[str, JsonValue]] = {"test/clock": {"tool": "wind"}}
    for overrides, tool in (
        ({}, "clock_wind"),
        ({"test/clock": {"enabled": True}}, "clock_wind"),
        ({"test/clock": {"config": {"tool": "set"}}}, "clock_set"),
    ):
        files = CatalogueFiles(shipped=(shipped,), overrides=overrides)
        catalogue = load_catalogue(read_catalogue(files, entry_points=(_CLOCK,)), _ENVIRONMENT, defaults)
        assert [each.toolset.tools[0].name for each in (await _check(catalogue)).ready] == ["shop_order", tool]


async def test_the_chosen_cluster_and_namespace_reach_the_commands(tmp_path: Path) -> None:
    text = _SHOP.replace("echo {{ config.url }} {{ id }}", "echo $HOLMES_KUBE_CONTEXT $HOLMES_KUBE_NAMESPACE")
    chosen = {"HOLMES_KUBE_CONTEXT": "prod", "HOLMES_KUBE_NAMESPACE": "shop"}
    context = ToolsetContext(environment=_ENVIRONMENT.with_variables(chosen))
    readiness = await check_toolsets(_load(_file(tmp_path, text)), context)
    toolset = readiness.ready[0].toolset
    call = ToolInvocation(call_id=ToolCallId("c"), tool=toolset.tools[0], arguments={})
    assert (await toolset.call(call)).data == "prod shop\n"


def _call(toolset: Toolset, name: str, arguments: Mapping[str, str]) -> ToolInvocation:
    tool: Tool = next(tool for tool in toolset.tools if tool.name == name)
    return ToolInvocation(call_id=ToolCallId("c"), tool=tool, arguments=arguments)


async def test_a_wrapped_result_keeps_its_type(tmp_path: Path) -> None:
    readiness = await _check(_load(_file(tmp_path, _SHOP)))
    toolset = readiness.ready[0].toolset
    result = await toolset.call(_call(toolset, "shop_order", {"id": "7"}))
    assert result == ToolResult(
        status="success", data="http://shop 7\n", invocation="echo http://shop 7", return_code=0
    )


@pytest.mark.parametrize(
    ("own", "used"),
    [
        ({"timeout_seconds": 5}, {"url": "http://a", "password": "secret", "timeout_seconds": 5}),
        ({"url": "http://b"}, {"url": "http://b"}),
        ({"instances": {"x": {}}}, {"instances": {"x": {}}}),
    ],
)
def test_the_defaults_of_one_address_are_not_used_for_another(own: dict[str, object], used: dict[str, object]) -> None:
    sources = CatalogueFiles(shipped=(), overrides={"test/clock": {"config": own}}, overrides_source="config.yaml")
    defaults = {"test/clock": {"url": "http://a", "password": "secret"}}
    catalogue = load_catalogue(read_catalogue(sources, entry_points=(_CLOCK,)), _ENVIRONMENT, defaults)
    (python,) = catalogue.python
    assert python.config == used
