"""The tools for containers of one machine, with a real Docker engine, and with crictl on the node of the test cluster.

Identifiers, times, sizes and counts of the machine are replaced before a result is compared with its file.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from holmes.assets import toolset_files
from holmes.redaction.redactor import Redactor
from holmes.toolsets.catalogue import CatalogueFiles, load_catalogue, read_catalogue
from holmes.toolsets.readiness import check_toolsets
from holmes.toolsets.registry import ToolsetContext
from holmes.values.environment import Environment
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.cluster.fixtures import create_namespace, wait_until
from tests.cluster.layout import Layout
from tests.services.containers import Engine, docker_engine, write_crictl
from tests.services.fixtures import needed_programs
from tests.toolsets.shipped.examples import Example, examples
from tests.toolsets.shipped.test_examples import PLANTED, check_result

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from holmes.values.tools import ToolResult, Toolset
    from tests.cluster.fixtures import Cluster

_IMAGE: Final = "registry.shop.example/web:4.2.0"
_SECRET: Final = f"--env=DB_PASSWORD={PLANTED[0]}"
_FAILS: Final = "echo connecting >&2; echo 'cannot open /data/orders.db' >&2; exit 3"
# The container outlives its greedy process for a moment, since the engine may miss what happens to the last process.
_GROWS: Final = "sh -c 'x=a; while :; do x=$x$x; done'; sleep 2; exit 137"
_UNHEALTHY: Final = ("--health-cmd=echo 'connection refused'; exit 1", "--health-interval=1s", "--health-retries=1")
_REPLACED: Final = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+Z|Z)?"), "2024-03-01T10:00:00"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"(sha256:)?\b[0-9a-f]{12,64}\b"), "<id>"),
    (re.compile(r"(?<!limit of )\b[\d.]+ ?([kMG])i?B\b"), r"2 \1B"),
    (re.compile(r"(kube-api-access)-\w+"), r"\1-x"),
    (re.compile(r"process \d+"), "process 100"),
    (re.compile(r"and \d+ inodes"), "and 100 inodes"),
    (re.compile(r"(holmes-test)-[0-9a-f]{8}"), r"\1"),
    (re.compile(r"(containers/fails)/\w+"), r"\1/x"),
    (re.compile(r"(containerd 1)\.\S+"), r"\1.6"),
    (re.compile(r"\d+ failed (in a row|checks)"), r"3 failed \1"),
)
# Other tests on the node load images, leave some of them unused, and give the image of the shop further names.
_SHARED: Final = (
    (re.compile(r"^(image file system .*:) 2 .B", re.MULTILINE), r"\1 2 MB"),
    (re.compile(r"^\d+ images, .*", re.MULTILINE), "N images, 2 MB; N unused, 2 MB"),
    (re.compile(r"^(  image:) \S+", re.MULTILINE), r"\1 registry.shop.example/busybox:1.0"),
    (re.compile(r"MB \S+ and ([7-9]|\d\d) more names"), "MB registry.shop.example/busybox:1.0 and 7 more names"),
)

# A docker and a crictl on a machine with more objects than a tool reads or shows.
_MANY: Final = """#!/bin/sh
cd "$(dirname "$0")"
case "${0##*/} $*" in
  docker\\ ps\\ *) seq 501 ;;
  crictl\\ ps\\ --all\\ --quiet) seq 201 ;;
  *) sed "s/@id/$2/g" "${0##*/}-$1.json" ;;
esac
"""
_CUT: Final = (
    ("docker_problems", ("(only the newest 500 of 501 containers were read)", "(40 of 500 problems are shown)")),
    ("docker_disk", ("(10 of 11 images are shown)", "(10 of 12 containers that wrote", "(10 of 13 volumes are shown)")),
    ("docker_events", ("(only the last 5000 events are counted)", "(40 of 50 kinds of events are shown)")),
    ("crictl_problems", ("(only 200 of 201 containers were read, the newest)", "(40 of 200 problems are shown)")),
    ("crictl_pods", ("(50 of 51 problems are shown)",)),
    ("crictl_disk", ("(15 of 16 images are shown)",)),
)


@pytest.mark.parametrize(("tool", "shows"), _CUT)
async def test_a_list_that_is_cut_says_so(tool: str, shows: tuple[str, ...], tmp_path: Path) -> None:
    for name in ("docker", "dockerd", "crictl"):
        (tmp_path / name).write_text(_MANY)
        (tmp_path / name).chmod(0o755)
    for name, content in _many_objects().items():
        (tmp_path / f"{name}.json").write_text(content)
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    toolset = await toolset_of(f"{tool.partition('_')[0]}/core", variables, {})
    example = Example(system="", tool=tool, question="", arguments={}, shows=shows)
    result = await called(toolset, example)
    assert result.status == "success", result
    assert [text for text in shows if text not in result.data] == [], result.data


def _many_objects() -> dict[str, str]:
    """Return what the programs print, by program and verb."""
    at = "2024-03-01T10:00:00Z"
    state = {"Status": "exited", "ExitCode": 1, "Running": False, "StartedAt": at, "FinishedAt": at}
    ended = {"Name": "/c", "Config": {"Image": "i"}, "State": state, "HostConfig": {"RestartPolicy": {"Name": ""}}}
    die = [{"Action": "die", "time": 1, "Actor": {"Attributes": {"name": f"c{n % 50}"}}} for n in range(5001)]
    disk = {
        "Images": [{"ID": f"i{n}", "UniqueSize": "1MB", "Containers": "0"} for n in range(11)],
        "Containers": [{"Names": "c", "Size": "1MB"}] * 12,
        "Volumes": [{"Name": "v", "Size": "1MB", "Links": "0"}] * 13,
    }
    created = {"id": "@id", "metadata": {"name": "c", "attempt": 0}, "state": "CONTAINER_CREATED", "createdAt": at}
    pods = [{"id": f"p{n}", "state": "SANDBOX_READY", "metadata": {"uid": f"p{n}", "attempt": 0}} for n in range(51)]
    images = [{"id": f"i{n}", "size": "1"} for n in range(16)]
    return {
        "docker-inspect": json.dumps([ended | {"RestartCount": 0}] * 500),
        "docker-system": json.dumps(disk),
        "docker-events": "\n".join(json.dumps(each) for each in die),
        "crictl-inspect": json.dumps({"status": created | {"labels": {"io.kubernetes.pod.uid": "@id"}}}),
        "crictl-pods": json.dumps({"items": pods}),
        "crictl-ps": json.dumps({"containers": []}),
        "crictl-images": json.dumps({"images": images}),
        "crictl-imagefsinfo": json.dumps({"status": {"imageFilesystems": []}}),
    }


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """Yield an engine with a healthy container, and one for each way to fail."""
    with needed_programs(), docker_engine(Layout.from_environment()) as engine:
        engine.run("run", "--detach", "--name=web", "--network=none", _SECRET, _IMAGE, "sleep", "1000000")
        engine.run("run", "--detach", "--name=sick", "--network=none", *_UNHEALTHY, _IMAGE, "sleep", "1000000")
        engine.run("run", "--detach", "--name=failing", "--network=none", _SECRET, _IMAGE, "sh", "-c", _FAILS)
        engine.run("run", "--detach", "--name=greedy", "--network=none", "--memory=16m", _IMAGE, "sh", "-c", _GROWS)

        def states() -> str:
            return engine.run("ps", "--all", "--format={{.Names}} {{.Status}}")

        wanted = ("sick Up [^\n]*unhealthy", r"failing Exited \(3\)", r"greedy Exited \(137\)")
        wait_until("the containers", states, lambda seen: all(re.search(each, seen) for each in wanted))
        yield engine


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("example", examples("docker"), ids=lambda each: f"{each.tool}-{each.number}")
async def test_a_docker_tool_answers_the_question_of_its_example(
    engine: Engine, example: Example, tmp_path: Path
) -> None:
    # An engine that is already there need not be started, so its program is not run.
    (tmp_path / "dockerd").symlink_to("/bin/false")
    path = f"{engine.programs}:{tmp_path}:{os.environ['PATH']}"
    toolset = await toolset_of("docker/core", {"PATH": path, "HOME": str(tmp_path)}, {"config": {"host": engine.host}})
    check_result(example, _without_identities(await called(toolset, example)))


@pytest.fixture(scope="module")
def node(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, str]]:
    """Yield the folder of crictl, the id of a container that failed, and the namespace of its pod.

    A pod without its image is there, too.
    """
    folder = tmp_path_factory.mktemp("crictl")
    with needed_programs():
        program = write_crictl(Layout.from_environment(), folder)
    namespace = create_namespace(cluster, "crictl-shop")
    (folder / "pods.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": _pods()}))
    cluster.run("apply", f"--namespace={namespace}", f"--filename={folder / 'pods.json'}")

    def failed() -> str:
        path = "{.status.containerStatuses[?(@.name=='fails')].state.terminated.containerID}"
        return cluster.run("get", "pod", "worker", f"--namespace={namespace}", f"--output=jsonpath={path}")

    def without_image() -> str:
        path = "--output=jsonpath={.status.containerStatuses[0].state.waiting.reason}"
        return cluster.run("get", "pod", "no-image", f"--namespace={namespace}", path)

    container = wait_until("the failed container", failed, lambda seen: "://" in seen).partition("://")[2]
    wait_until("the missing image", without_image, lambda seen: "Pull" in seen)
    yield str(program.parent), container, namespace
    cluster.run("delete", "namespace", namespace, "--wait=false")


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.parametrize("example", examples("crictl"), ids=lambda each: f"{each.tool}-{each.number}")
async def test_a_crictl_tool_answers_the_question_of_its_example(
    node: tuple[str, str, str], example: Example, tmp_path: Path
) -> None:
    folder, container, namespace = node
    variables = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    toolset = await toolset_of("crictl/core", variables, {})
    arguments = {name: container if name == "id" else value for name, value in example.arguments.items()}
    result = _without_identities(await called(toolset, replace(example, arguments=arguments)))
    check_result(example, replace(result, data=_of_the_test(result.data, namespace)))


async def toolset_of(name: str, variables: Mapping[str, str], override: Mapping[str, object]) -> Toolset:
    environment = Environment.of(dict(variables))
    files = CatalogueFiles(shipped=toolset_files(), overrides={name: override} if override else {})
    catalogue = load_catalogue(read_catalogue(files, entry_points=()), environment)
    readiness = await check_toolsets(catalogue, ToolsetContext(environment=environment, redactor=Redactor(b"k" * 32)))
    return next(each.toolset for each in readiness.ready if each.toolset.name == name)


async def called(toolset: Toolset, example: Example) -> ToolResult:
    tool = next(tool for tool in toolset.tools if tool.name == example.tool)
    return await toolset.call(ToolInvocation(call_id=ToolCallId("c"), tool=tool, arguments=example.arguments))


def _without_identities(result: ToolResult) -> ToolResult:
    data = result.data.replace(str(Layout.from_environment().run), "/node")
    for pattern, replacement in _REPLACED:
        data = pattern.sub(replacement, data)
    return replace(result, data=data)


def _of_the_test(data: str, namespace: str) -> str:
    """Leave out the pods of other tests and of earlier runs, which are on the same node, and the counts of them."""
    data = "".join(line for line in data.splitlines(keepends=True) if not _of_others(line, namespace))
    data = data.replace(namespace, "crictl-shop")
    data = re.sub(r"^\d+ (of \d+ containers|problems in \d+ pods)", r"N \1", data)
    data = re.sub(r"^N of \d+|^N problems in \d+", lambda found: re.sub(r"\d+", "N", found[0]), data)
    for pattern, replacement in _SHARED:
        data = pattern.sub(replacement, data)
    return data


def _of_others(line: str, namespace: str) -> bool:
    if line.startswith("  2 "):
        return not re.search(r" and ([7-9]|\d\d) more names|registry\.shop\.example/pause:", line)
    return line.startswith("(") or (bool(re.match(r"\S+/\S+[:,]", line)) and not line.startswith(f"{namespace}/"))


def _pods() -> list[object]:
    def pod(name: str, *containers: object) -> object:
        spec = {"terminationGracePeriodSeconds": 0, "restartPolicy": "Never", "containers": containers}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}

    environment = [{"name": "DB_PASSWORD", "value": PLANTED[0]}]
    fails = {"name": "fails", "image": _IMAGE, "command": ["sh", "-c", _FAILS], "env": environment}
    works = {"name": "works", "image": _IMAGE, "command": ["sleep", "1000000"]}
    missing = {"name": "app", "image": "registry.shop.example/not-there:1"}
    return [pod("worker", fails, works), pod("no-image", missing)]
