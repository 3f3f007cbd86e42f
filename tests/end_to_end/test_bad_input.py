"""Everything that can go wrong for a user: one clear line, the right exit code, no process and no half file left."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from tests.cluster.fixtures import Cluster
from tests.support.command_line import Finished, Home, provider_config, read_report
from tests.support.deadlines import ends_before
from tests.support.kubernetes_api import write_kubeconfig
from tests.support.openai_server import OpenAIServer

# The first 64 MiB are kept, and are in memory up to four times while they are stored; the gigabyte never is.
KEYLESS = {"OPENAI_API_KEY": ""}


@pytest.fixture
def home(tmp_path: Path, kubeconfig: Path) -> Home:
    """A home whose cluster answers the probe."""
    return Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig))


def only_line(done: Finished) -> str:
    """What the user reads: one line on standard error, nothing on standard output."""
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("holmes: ")
    assert len(line) < 400
    return line


def write_config(home: Home, text: str) -> Path:
    path = home.path / ".holmes/config.yaml"
    path.write_text(text)
    return path


def write_script(tmp_path: Path, *replies: object) -> str:
    """A script for `--model`."""
    path = tmp_path / "script.yaml"
    path.write_text(yaml.safe_dump(list(replies)))
    return f"scripted:{path}"


def write_toolset(tmp_path: Path, *, timeout_seconds: int = 60, **scripts: str) -> str:
    """A custom toolset with a tool for each script."""
    tools = [
        {"name": name, "description": name, "script": script, "timeout": timeout_seconds}
        for name, script in scripts.items()
    ]
    path = tmp_path / "toolset.yaml"
    path.write_text(yaml.safe_dump({"toolsets": {"test/tools": {"description": "tools of the test", "tools": tools}}}))
    return str(path)


def run_tool(
    home: Home, tmp_path: Path, script: str, *, timeout_seconds: int = 60
) -> tuple[Finished, dict[str, object]]:
    """Let the model call one tool that runs `script`; gives the run and the report of the call."""
    done = home.run(*asking_one_tool(tmp_path, script, timeout_seconds=timeout_seconds))
    (call,) = read_report(tmp_path / "report.json")["tool_calls"]
    return done, call


def asking_one_tool(
    tmp_path: Path, script: str, *, timeout_seconds: int = 60, report: Path | None = None
) -> tuple[str, ...]:
    """The arguments with which the model calls one tool that runs `script`, then answers."""
    model = write_script(tmp_path, {"tool_calls": [{"name": "look"}]}, {"text": "The answer."})
    toolset = write_toolset(tmp_path, timeout_seconds=timeout_seconds, look=script)
    report = report or tmp_path / "report.json"
    return ("ask", "-n", "why?", "--model", model, "-t", toolset, "--json-output-file", str(report))


def processes_with(marker: str) -> list[psutil.Process]:
    processes = psutil.process_iter(["cmdline"])
    return [process for process in processes if marker in " ".join(process.info["cmdline"] or ())]


def test_an_unknown_config_key_names_file_line_and_the_nearest_key(home: Home) -> None:
    path = write_config(home, "model: gpt-4o\nmax_stpes: 5\n")
    done = home.run("ask", "-n", "why?")
    assert done.exit_code == 2
    assert only_line(done) == f"holmes: {path}:2: unknown key 'max_stpes'; did you mean 'max_steps'?"


def test_broken_yaml_names_file_and_line(home: Home) -> None:
    path = write_config(home, "model: gpt-4o\ntoolsets: [unclosed\n")
    done = home.run("ask", "-n", "why?")
    assert done.exit_code == 2
    assert f"{path}:" in only_line(done)
    path.unlink()
    toolset = home.path / "broken.yaml"
    toolset.write_text("toolsets:\n  a: {b: [}\n")
    done = home.run("ask", "-n", "why?", "-t", str(toolset))
    assert done.exit_code == 2
    assert f"{toolset}:2" in only_line(done)


def test_an_unknown_model_names_the_nearest(home: Home) -> None:
    done = home.run("ask", "-n", "why?", "--model", "gtp-4o", "--api-key", "x")
    assert done.exit_code == 2
    assert only_line(done) == "holmes: Unknown model 'gtp-4o': did you mean 'gpt-4o'?"


@pytest.mark.parametrize("variables", [{}, KEYLESS], ids=["unset", "empty"])
def test_a_missing_key_names_the_variable_to_set(variables: dict[str, str], tmp_path: Path, kubeconfig: Path) -> None:
    home = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig), **variables)
    done = home.run("ask", "-n", "why?", "--model", "gpt-4o")
    assert done.exit_code == 2
    assert only_line(done) == "holmes: No API key for model 'gpt-4o': set OPENAI_API_KEY or pass --api-key."


def test_no_cluster_exits_with_3_and_says_what_was_tried(tmp_path: Path) -> None:
    done = Home.make(tmp_path / "home").run("ask", "-n", "why?", "--model", "gpt-4o")
    assert done.exit_code == 3
    assert "No cluster is configured" in only_line(done)
    assert "KUBECONFIG" in only_line(done)


def test_an_unreachable_cluster_exits_with_3_and_names_the_server(tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path, "https://127.0.0.1:1")
    done = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig)).run("ask", "-n", "why?", "--api-key", "x")
    assert done.exit_code == 3
    assert "https://127.0.0.1:1" in only_line(done)


def test_without_kubectl_the_toolset_says_so_and_the_rest_still_works(tmp_path: Path, kubeconfig: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in ("bash", "sed", "env"):
        (folder / program).symlink_to(Path("/usr/bin") / program)
    home = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig))
    environment = {**home.environment(), "PATH": str(folder)}
    interpreter = tmp_path / "venv/bin/python"
    _isolated_interpreter(interpreter)
    listed = subprocess.run(
        [interpreter, "-m", "holmes", "toolset", "list"], env=environment, capture_output=True, text=True, check=True
    )
    assert "'kubectl' is not installed" in listed.stdout
    model = write_script(
        tmp_path, {"tool_calls": [{"name": "kubectl_get", "arguments": {"kind": "pods"}}]}, {"text": "A."}
    )
    asked = subprocess.run(
        [interpreter, "-m", "holmes", "ask", "-n", "why?", "--model", model],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (asked.returncode, asked.stdout) == (0, "A.\n")


def _isolated_interpreter(path: Path) -> None:
    """An interpreter that sees our packages but has no kubectl beside it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(path.parent.parent)], check=True)
    (site,) = path.parent.parent.glob("lib/python*/site-packages")
    root = Path(__file__).parent.parent.parent
    (site / "beside.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n{root}\n")


@pytest.mark.cluster
def test_a_forbidden_resource_is_a_finding_for_the_model_and_not_the_end(cluster: Cluster, tmp_path: Path) -> None:
    home = Home.make(tmp_path / "home", KUBECONFIG=str(cluster.nobody))
    calls = [
        {"name": "kubectl_get", "arguments": {"kind": "pods", "namespace": "default"}},
        {"name": "kubernetes_logs", "arguments": {"name": "web", "kind": "Deployment", "namespace": "default"}},
    ]
    report = tmp_path / "report.json"
    model = write_script(tmp_path, {"tool_calls": calls}, {"text": "You may not look."})
    done = home.run("ask", "-n", "why?", "--model", model, "--json-output-file", str(report))
    assert (done.exit_code, done.stdout) == (0, "You may not look.\n")
    for call in read_report(report)["tool_calls"]:
        assert call["status"] == "error"
        assert "forbidden" in call["error"].lower()
        assert len(call["error"].splitlines()) == 1


def test_a_tool_that_hangs_is_ended_with_everything_it_started(home: Home, tmp_path: Path) -> None:
    marker = f"31{uuid.uuid4().int % 10**9}"
    with ends_before(60):
        done, call = run_tool(home, tmp_path, f"sleep {marker} & sleep {marker}; echo never", timeout_seconds=1)
    assert (done.exit_code, done.stdout) == (0, "The answer.\n")
    assert "stopped after 1 s" in str(call["error"])
    assert processes_with(marker) == []


def test_a_tool_that_floods_a_gigabyte_is_stopped(home: Home, tmp_path: Path) -> None:
    _, call = run_tool(home, tmp_path, "head -c 1000000000 /dev/zero | tr '\\0' 'x'")
    assert "stopped because its output exceeds" in str(call["error"])
    assert len(str(call["result"])) < 200_000
    assert call["stored_results"]


def test_a_tool_killed_by_the_memory_limit_says_so(home: Home, tmp_path: Path) -> None:
    write_config(home, "tool_memory_limit_mb: 100\n")
    done, call = run_tool(home, tmp_path, "python3 -c 'x = bytearray(400_000_000); print(len(x))'")
    assert done.exit_code == 0
    assert "memory limit of 100 MB" in str(call["error"])


def test_invalid_utf_8_is_shown_with_replacements(home: Home, tmp_path: Path) -> None:
    done, call = run_tool(home, tmp_path, "printf 'caf\\351 \\xff\\xfe ok'")
    assert done.exit_code == 0
    assert call["status"] == "success"
    assert str(call["result"]).splitlines()[0] == "caf\ufffd \ufffd\ufffd ok"


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_in_the_middle_of_a_tool_ends_everything_and_keeps_the_conversation(
    number: signal.Signals, exit_code: int, home: Home, tmp_path: Path
) -> None:
    marker = f"32{uuid.uuid4().int % 10**9}"
    model = write_script(tmp_path, {"text": "I look.", "tool_calls": [{"name": "look"}]}, {"text": "never"})
    toolset = write_toolset(tmp_path, look=f"sleep {marker} & exec sleep {marker}")
    report = tmp_path / "report.json"
    process = home.start("ask", "-n", "why?", "--model", model, "-t", toolset, "--json-output-file", str(report))
    deadline = time.monotonic() + 30
    while len(processes_with(f"sleep {marker}")) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == exit_code
    assert stdout == ""
    assert "Traceback" not in stderr
    assert processes_with(marker) == []
    assert read_report(report)["exit_code"] == exit_code
    (conversation,) = (home.path / ".holmes/conversations").glob("*.jsonl")
    kept = [json.loads(line) for line in conversation.read_text().splitlines()]
    assert "why?" in json.dumps(kept)
    assert "I look." in json.dumps(kept)
    answered = home.run("ask", "-n", "and now?", "--continue", "--model", write_script(tmp_path, {"text": "Going on."}))
    assert (answered.exit_code, answered.stdout) == (0, "Going on.\n")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 64 KB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=False)
    if mounted.returncode != 0:
        pytest.skip("this machine does not let root mount a tmpfs")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.fixture
def full_disk(small_disk: Path) -> Path:
    """A real file system with no space left."""
    filler = os.open(small_disk / "filler", os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(filler, bytes(4096)):
            pass
    os.close(filler)
    assert shutil.disk_usage(small_disk).free == 0
    return small_disk


def left_on(disk: Path) -> list[str]:
    """The names of all files on a disk but the one that fills it."""
    return [path.name for path in disk.rglob("*") if path.is_file() and path.name != "filler"]


def test_a_full_disk_costs_a_warning_and_the_large_result_but_not_the_answer(
    full_disk: Path, kubeconfig: Path, tmp_path: Path
) -> None:
    home = Home.make(
        tmp_path / "home",
        KUBECONFIG=str(kubeconfig),
        HOLMES_TOOL_RESULT_STORAGE_PATH=str(full_disk / "results"),
        HOLMES_CONVERSATIONS_PATH=str(full_disk / "conversations"),
    )
    done, call = run_tool(home, tmp_path, "seq 1 200000")
    assert (done.exit_code, done.stdout) == (0, "The answer.\n")
    assert call["status"] == "error"
    assert "narrow" in str(call["result"]).lower()
    assert done.stderr.count("warning: ") == 1
    assert "No space left on device" in done.stderr
    left = [path for path in full_disk.rglob("*") if path.is_file() and path.name != "filler" and path.stat().st_size]
    assert left == []


def assert_refused_before_anything_is_paid(report: Path, reason: str, kubeconfig: Path, tmp_path: Path) -> None:
    with OpenAIServer([]) as server:
        config = provider_config(server.base_url)
        home = Home.make(tmp_path / "home", config=config, KUBECONFIG=str(kubeconfig))
        done = home.run("ask", "-n", "why?", "--json-output-file", str(report))
        assert list(server.requests) == []
    assert done.exit_code == 2
    assert only_line(done) == f"holmes: --json-output-file {str(report)!r} cannot be written: {reason}"


def test_a_report_in_a_folder_that_is_missing_is_refused_before_anything_is_paid(
    kubeconfig: Path, tmp_path: Path
) -> None:
    report = tmp_path / "missing/report.json"
    assert_refused_before_anything_is_paid(report, "No such file or directory", kubeconfig, tmp_path)


def test_a_report_on_a_full_disk_is_refused_before_anything_is_paid(
    full_disk: Path, kubeconfig: Path, tmp_path: Path
) -> None:
    report = full_disk / "report.json"
    assert_refused_before_anything_is_paid(report, "No space left on device", kubeconfig, tmp_path)
    assert left_on(full_disk) == []


def test_a_disk_that_fills_up_during_the_run_costs_the_report_but_neither_the_answer_nor_the_old_report(
    small_disk: Path, home: Home, tmp_path: Path
) -> None:
    report = small_disk / "report.json"
    report.write_text("the old report")
    fill = f"cat /dev/zero > {small_disk / 'filler'}; echo full"
    done = home.run(*asking_one_tool(tmp_path, fill, report=report))
    assert shutil.disk_usage(small_disk).free == 0
    assert (done.exit_code, done.stdout) == (1, "The answer.\n")
    last_line = done.stderr.splitlines()[-1]
    assert last_line == f"holmes: the report cannot be written to {str(report)!r}: No space left on device"
    assert "Traceback" not in done.stderr
    assert left_on(small_disk) == ["report.json"]
    assert report.read_text() == "the old report"
