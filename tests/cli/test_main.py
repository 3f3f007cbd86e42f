"""The `holmes` command as a process: what it prints, what it exits with, how fast it is there."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from holmes import __version__
from holmes.stores.conversation_store import ConversationStore
from tests.cli.terminal import Terminal
from tests.support.command_line import Finished, Home
from tests.support.kubernetes_api import Answer, document, kubernetes_api, write_kubeconfig

SCRIPT: list[dict[str, Any]] = [
    {"text": "I read the log.", "tool_calls": [{"name": "no_such_tool", "arguments": {"pod": "checkout"}}]},
    {"text": "The **database** is down."},
]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home with a reachable cluster and a scripted model; nothing of this machine."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    with kubernetes_api() as api:
        api.on("/version", document({"gitVersion": "v1.34.0"}))
        kubeconfig = write_kubeconfig(tmp_path, api.url)
        yield Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig), MODEL=f"scripted:{script}")


@pytest.fixture
def bare(tmp_path: Path) -> Home:
    """A home with nothing."""
    return Home.make(tmp_path / "home", MODEL="gpt-4.1")


def conversation_texts(home: Home) -> list[str]:
    conversation = ConversationStore(home.path / ".holmes/conversations", retention_days=1, limit=9).latest()
    assert conversation is not None
    with conversation:
        return [message.text for message in conversation.messages]


def only_line(finished: Finished) -> str:
    (line,) = finished.stderr.splitlines()
    return line


def test_help_lists_every_command(bare: Home) -> None:
    done = bare.run("--help")
    assert done.exit_code == 0
    for name in ("ask", "completion", "toolset", "version"):
        assert f"\n  {name} " in done.stdout


@pytest.mark.parametrize("arguments", [["ask", "--help"], ["toolset", "--help"], ["toolset", "list", "-h"]])
def test_every_command_has_help(arguments: list[str], bare: Home) -> None:
    done = bare.run(*arguments)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "Usage: holmes" in done.stdout


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version(arguments: list[str], bare: Home) -> None:
    assert bare.run(*arguments).stdout == f"holmes {__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["version"]])
def test_help_and_version_import_nothing_heavy(arguments: list[str], bare: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "holmes", *arguments],
        env=bare.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "click" in imported
    assert not imported & {"asyncio", "pydantic", "rich", "yaml", "litellm", "prompt_toolkit", "holmes.app", "jinja2"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, bare: Home) -> None:
    assert "_HOLMES_COMPLETE" in bare.run("completion", shell).stdout


def test_completion_knows_the_commands(bare: Home) -> None:
    variables = {"_HOLMES_COMPLETE": "bash_complete", "COMP_WORDS": "holmes tool", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "holmes"],
        env={**bare.environment(), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "toolset" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["frobnicate"], "holmes: No such command 'frobnicate' (see 'holmes --help')"),
        (["ask", "--frobnicate"], "holmes: No such option '--frobnicate' (see 'holmes ask --help')"),
        (["ask"], "holmes: no question: give one as an argument, with --prompt-file, or on standard input "),
        (["ask", "-i", "why"], "holmes: --interactive requires a terminal"),
        (["ask", "why", "--max-steps", "0"], "holmes: --max-steps=0: must be greater than or equal to 1"),
        (["ask", "why", "--config", "/nowhere.yaml"], "holmes: /nowhere.yaml: file not found"),
        (["ask", "why", "-t", "/nowhere.yaml"], "holmes: custom toolset file '/nowhere.yaml': file not found"),
        (["ask", "why", "-f", "/nowhere.log"], "holmes: the file '/nowhere.log' cannot be read: No such file"),
        (["ask", "-pf", "/nowhere.txt"], "holmes: the file '/nowhere.txt' cannot be read: No such file"),
        (
            ["ask", "why", "--json-output-file", "/nowhere/x"],
            "holmes: --json-output-file '/nowhere/x' cannot be written",
        ),
        (["ask", "why", "--json-output-file", "/tmp"], "holmes: --json-output-file '/tmp' is a folder"),
        (["ask", "why", "--continue"], "holmes: no conversation to continue"),
        (["ask", "why", "--model", "scripted:/nowhere.json"], "holmes: "),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: list[str], line: str, bare: Home) -> None:
    done = bare.run(*arguments)
    assert only_line(done).startswith(line)
    assert (done.exit_code, done.stdout) == (2, "")


def test_a_mistake_with_v_shows_where_it_comes_from(bare: Home) -> None:
    done = bare.run("ask", "why", "-v", "--config", "/nowhere.yaml")
    assert "Traceback" in done.stderr
    assert done.exit_code == 2


def test_no_cluster_is_exit_code_3_and_the_report_says_so(bare: Home, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    done = bare.run("ask", "why", "--model", f"scripted:{script}", "--json-output-file", str(tmp_path / "out.json"))
    assert only_line(done).startswith("holmes: No cluster")
    assert done.exit_code == 3
    report = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert (report["exit_code"], report["answer"], report["question"]) == (3, None, "why")
    assert report["error"].startswith("No cluster")


def test_an_answer_is_alone_on_standard_output(home: Home) -> None:
    done = home.run("ask", "why?")
    assert (done.exit_code, done.stdout) == (0, "The **database** is down.\n")
    assert "✗ " in done.stderr
    assert "2 steps · 1 tool call · " in done.stderr
    assert "\x1b" not in done.stderr


def test_the_report_states_the_verdict_and_details_omit_nothing(bare: Home, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    asked = ("ask", "-n", "--demo", "why does checkout crash?", "--model=builtin/triage")
    short = bare.run(*asked, "--json-output-file", str(file))
    whole = bare.run(*asked, "--details")
    report = json.loads(file.read_text(encoding="utf-8"))
    assert (report["verdict"], report["verdict_by"]) == ("cause_found", "rules")
    assert report["root_cause"] == report["summary"]
    assert "payments-config" in report["summary"]
    assert "**Related**" not in short.stdout
    assert "\n\n**Related**\n" in whole.stdout


def test_the_report_is_written_and_the_file_it_replaces_is_not_missed(home: Home, tmp_path: Path) -> None:
    (tmp_path / "out.json").write_text("old", encoding="utf-8")
    assert home.run("ask", "why?", "--json-output-file", str(tmp_path / "out.json")).exit_code == 0
    report = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert report["answer"] == "The **database** is down."
    assert [call["tool_name"] for call in report["tool_calls"]] == ["no_such_tool"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".holmes-")] == []


def test_the_report_can_go_to_a_device(home: Home) -> None:
    done = home.run("ask", "why?", "--json-output-file", "/dev/stdout")
    assert '"version": 1' in done.stdout
    assert Path("/dev/stdout").exists()


def test_files_and_piped_text_reach_the_model(home: Home, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("FROM THE FILE", encoding="utf-8")
    assert home.run("ask", "why?", "-f", str(tmp_path / "a.log"), stdin="FROM THE PIPE").exit_code == 0
    texts = "\n".join(conversation_texts(home))
    assert "FROM THE FILE" in texts
    assert "FROM THE PIPE" in texts


def test_a_question_may_be_piped_in(home: Home) -> None:
    assert home.run("ask", stdin="why is it down?\n").exit_code == 0
    assert "why is it down?" in conversation_texts(home)


def test_an_idle_pipe_does_not_hang(home: Home) -> None:
    reading, writing = os.pipe()
    environment = {**home.environment(), "HOLMES_STDIN_TIMEOUT_SECONDS": "0.2"}
    done = subprocess.run(
        [sys.executable, "-m", "holmes", "ask", "why?"],
        env=environment,
        stdin=reading,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    os.close(reading)
    os.close(writing)
    assert done.returncode == 0
    assert "is treated as empty" in done.stderr


def test_without_any_standard_stream_it_still_ends_well(home: Home) -> None:
    command = f"exec {sys.executable} -m holmes ask 'why?' <&- >&- 2>&-"
    assert subprocess.run(["bash", "-c", command], env=home.environment(), timeout=30, check=False).returncode == 0


def test_a_reader_that_goes_away_leaves_no_trace(home: Home) -> None:
    command = f"{sys.executable} -m holmes ask 'why?' | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], env=home.environment(), capture_output=True, text=True, timeout=30, check=False
    )
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert done.returncode == 141


@pytest.mark.parametrize("arguments", ["--help", "version", "toolset list", "ask 'why?'"])
def test_a_full_disk_behind_standard_output_is_one_line(home: Home, arguments: str) -> None:
    command = f"exec {sys.executable} -m holmes {arguments} > /dev/full"
    done = subprocess.run(
        ["bash", "-c", command], env=home.environment(), capture_output=True, text=True, timeout=30, check=False
    )
    assert "Traceback" not in done.stderr
    assert done.stderr.endswith("holmes: the output cannot be written: No space left on device\n")
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "exit_code", "says"),
    [
        ("scan --demo", 0, "5 incidents"),
        ("scan --demo --fail-on critical", 1, "5 incidents"),
        ("scan --rule P99", 2, ""),
        ("ask -n --demo --model builtin/triage 'what is broken?'", 0, "payments-config"),
    ],
)
def test_a_full_disk_behind_standard_error_costs_neither_the_result_nor_the_code(
    home: Home, arguments: str, exit_code: int, says: str
) -> None:
    command = f"exec {sys.executable} -m holmes {arguments} 2> /dev/full"
    done = subprocess.run(
        ["bash", "-c", command], env=home.environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == exit_code
    assert says in done.stdout


def test_an_answer_that_needs_more_steps_is_a_failure_that_names_the_option(home: Home) -> None:
    done = home.run("ask", "-n", "--demo", "--model", "builtin/triage", "--max-steps", "1", "what is broken?")

    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.endswith("holmes: No answer within 1 step: increase --max-steps or ask a narrower question.\n")


def test_the_last_conversation_is_continued(home: Home) -> None:
    home.run("ask", "first question")
    home.run("ask", "second question", "--continue")
    texts = conversation_texts(home)
    assert texts.index("first question") < texts.index("second question")
    assert len(list((home.path / ".holmes/conversations").iterdir())) == 1


def test_a_full_disk_does_not_cost_the_answer(home: Home) -> None:
    def no_space() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    done = subprocess.run(
        [sys.executable, "-m", "holmes", "ask", "why?"],
        env=home.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=no_space,
    )
    assert done.stdout == "The **database** is down.\n"
    assert "could not be saved" in done.stderr
    assert done.returncode == 0


def test_a_setting_that_does_nothing_yet_is_one_warning(home: Home) -> None:
    (home.path / ".holmes/config.yaml").write_text("opsgenie_query: x\njira_url: y\n", encoding="utf-8")
    done = home.run("ask", "why?")
    warning = "warning: Holmes does not support these settings and ignores them: opsgenie_query, jira_url"
    assert done.stderr.count(warning) == 1


def test_toolsets_are_listed_with_their_state(bare: Home) -> None:
    done = bare.run("toolset", "list")
    assert done.exit_code == 0
    assert any(line.split()[0] == "kubernetes/core" for line in done.stdout.splitlines())
    assert bare.run("toolset", "refresh").exit_code == 0


def test_toolsets_for_absent_software_are_listed_only_on_demand(bare: Home, kubeconfig: Path) -> None:
    home = Home(path=bare.path, variables={**bare.variables, "KUBECONFIG": str(kubeconfig)})
    short, long = home.run("toolset", "list"), home.run("toolset", "list", "--all")
    states = [line.split()[:2] for line in long.stdout.splitlines()]
    hidden = [name for name, state in states if state == "absent"]
    assert "argocd/core" in hidden
    shown = [line.split()[:2] for line in short.stdout.splitlines()]
    assert shown == [each for each in states if each[0] not in hidden]
    assert f"{len(hidden)} toolsets for software that is not here: holmes toolset list --all" in short.stderr
    assert "not here" not in long.stderr


def test_a_terminal_gets_the_interactive_loop(home: Home) -> None:
    variables = {**home.environment(), "PROMPT_TOOLKIT_NO_CPR": "1"}
    with Terminal(["-m", "holmes", "ask", "why?"], cwd=Path.cwd(), environment=variables) as screen:
        screen.wait_for("The database is down.")
        screen.wait_for("holmes>")
        time.sleep(0.5)  # the prompt draws itself before it takes keys
        screen.press("\x04")
        assert screen.exit_code() == 0


@pytest.fixture
def slow_home(home: Home) -> tuple[Home, Path]:
    """A home with a toolset whose check does not end before the file is there."""
    open_now = home.path / "open-now"
    command = f"until [ -e {open_now} ]; do sleep 0.05; done"
    tool = {"name": "slow_tool", "description": "Slow.", "command": "true"}
    slow = {"description": "Slow.", "prerequisites": [{"command": command}], "tools": [tool]}
    (home.path / ".holmes/config.yaml").write_text(json.dumps({"toolsets": {"slow": slow}}), encoding="utf-8")
    variables = {"HOLMES_TOOLSET_PREREQ_TIMEOUT_SECONDS": "60", "PROMPT_TOOLKIT_NO_CPR": "1"}
    return Home(path=home.path, variables={**home.variables, **variables}), open_now


def close_again(home: Home, open_now: Path) -> None:
    """Let the next check of the slow toolset hang."""
    open_now.unlink()
    shutil.rmtree(home.path / ".holmes/cache", ignore_errors=True)


def test_the_prompt_comes_after_everything_is_open(slow_home: tuple[Home, Path]) -> None:
    home, open_now = slow_home
    with Terminal(["-m", "holmes", "ask"], cwd=Path.cwd(), environment=home.environment()) as screen:
        screen.wait_for("starting")
        time.sleep(0.5)
        assert "holmes>" not in screen.text
        open_now.touch()
        screen.wait_for("holmes>")
        time.sleep(0.5)  # the prompt draws itself before it takes keys
        screen.press("second?\r")
        screen.wait_for("The database is down.")
        screen.wait_for("2 steps")
        time.sleep(0.5)
        screen.press("\x04")
        assert screen.exit_code() == 0
    assert "Traceback" not in screen.text
    assert "second?" in conversation_texts(home)


def typed(screen: Terminal, command: str, answer: str) -> None:
    """Type a command at a prompt that takes keys; wait for what it says and for the next prompt."""
    time.sleep(0.5)
    before = len(screen.text)

    def says(text: str) -> bool:
        return "holmes>" in " ".join(text[before:].split()).partition(answer)[2]  # wherever the terminal wraps it

    screen.press(f"{command}\r")
    screen.wait_until(says, f"{answer!r} and a prompt after {command}")


def test_no_command_ends_the_session(slow_home: tuple[Home, Path]) -> None:
    home, open_now = slow_home
    open_now.touch()
    with Terminal(["-m", "holmes", "ask"], cwd=Path.cwd(), environment=home.environment()) as screen:
        screen.wait_for("holmes>")
        typed(screen, "/compact", "nothing to compact yet")
        typed(screen, "/cost", "$0")
        typed(screen, "/clear", "new conversation")
        typed(screen, "/nonsense", "unknown command")
        close_again(home, open_now)
        time.sleep(0.5)
        screen.press("/tools\r")  # waits for the check that hangs
        time.sleep(1)
        screen.press("\x03")
        screen.wait_for("holmes: interrupted")
        open_now.touch()
        typed(screen, "/details", "The database is down.")  # a question to the model
        typed(screen, "/context", "scripted")
        typed(screen, "/tools", "kubernetes/core")
        time.sleep(0.5)
        screen.press("/exit\r")
        assert screen.exit_code() == 0
    assert "Traceback" not in screen.text


def test_no_command_ends_the_session_when_a_file_broke_meanwhile(home: Home, tmp_path: Path) -> None:
    variables = {**home.environment(), "PROMPT_TOOLKIT_NO_CPR": "1"}
    toolsets = tmp_path / "own.yaml"
    toolsets.write_text("toolsets: {}\n", encoding="utf-8")
    arguments = ["-m", "holmes", "ask", "why?", "-i", "-t", str(toolsets)]
    with Terminal(arguments, cwd=Path.cwd(), environment=variables) as screen:
        screen.wait_for("The database is down.")
        screen.wait_for("holmes>")
        for content in (b"toolsets: [", b"\xff\xfe", b"toolsets: {no_such: {}}", b"{a: " * 200):
            toolsets.write_bytes(content)
            typed(screen, "/tools", "holmes: ")
        typed(screen, "/context", "scripted")
        toolsets.unlink()
        typed(screen, "/tools", "file not found")
        toolsets.mkdir()
        typed(screen, "/tools", "cannot be read")
        typed(screen, "/compact", "holmes: ")
        typed(screen, "/cost", "$0")
        screen.press("/exit\r")
        assert screen.exit_code() == 0
    assert "Traceback" not in screen.text


def test_a_signal_that_ends_everything_ends_a_command_too(slow_home: tuple[Home, Path]) -> None:
    home, open_now = slow_home
    open_now.touch()
    with Terminal(["-m", "holmes", "ask"], cwd=Path.cwd(), environment=home.environment()) as screen:
        screen.wait_for("holmes>")
        close_again(home, open_now)
        time.sleep(0.5)
        screen.press("/tools\r")
        time.sleep(1)
        screen.process.send_signal(signal.SIGTERM)
        assert screen.exit_code() == 143


@pytest.mark.parametrize(("leave", "code"), [("\x04", 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_the_prompt_can_be_left(leave: str | signal.Signals, code: int, slow_home: tuple[Home, Path]) -> None:
    home, open_now = slow_home
    open_now.touch()
    with Terminal(["-m", "holmes", "ask"], cwd=Path.cwd(), environment=home.environment()) as screen:
        screen.wait_for("holmes>")
        time.sleep(0.5)
        if isinstance(leave, str):
            screen.press(leave)
        else:
            screen.process.send_signal(leave)
        assert screen.exit_code() == code
    assert "Traceback" not in screen.text


@pytest.mark.parametrize(("leave", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_start(leave: signal.Signals, code: int, slow_home: tuple[Home, Path]) -> None:
    home, _ = slow_home
    with Terminal(["-m", "holmes", "ask"], cwd=Path.cwd(), environment=home.environment()) as screen:
        screen.wait_for("starting")
        time.sleep(0.5)
        screen.process.send_signal(leave)
        assert screen.exit_code() == code
    assert "holmes>" not in screen.text
    assert "Traceback" not in screen.text


def test_what_makes_the_start_fail_comes_before_the_prompt(bare: Home, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    variables = {**bare.environment(), "PROMPT_TOOLKIT_NO_CPR": "1", "MODEL": f"scripted:{script}"}
    with Terminal(["-m", "holmes", "ask"], cwd=Path.cwd(), environment=variables) as screen:
        assert screen.exit_code() == 3
    assert "holmes: No cluster is configured" in screen.text
    assert "holmes>" not in screen.text
    assert "Traceback" not in screen.text


def test_ctrl_c_while_it_starts_is_exit_code_130(home: Home) -> None:
    with kubernetes_api() as api:
        api.on("/version", Answer(delay_seconds=5))
        kubeconfig = write_kubeconfig(home.path, api.url)
        with Home(path=home.path, variables={**home.variables, "KUBECONFIG": str(kubeconfig)}).start("ask", "x") as run:
            deadline = time.monotonic() + 20
            while not api.asked("/version"):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            run.send_signal(signal.SIGINT)
            _, err = run.communicate(timeout=20)
    assert run.returncode == 130
    assert "Traceback" not in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_the_middle_of_a_tool_leaves_no_process_behind(
    number: signal.Signals, code: int, home: Home, tmp_path: Path
) -> None:
    started, toolset, script = tmp_path / "started", tmp_path / "slow.yaml", tmp_path / "slow.json"
    command = f"sleep 4242 & echo $! > {started}.tmp && mv {started}.tmp {started} && sleep 4242"
    tool = {"name": "slow_tool", "description": "Takes long.", "command": command}
    toolset.write_text(json.dumps({"toolsets": {"slow": {"description": "Slow.", "tools": [tool]}}}), encoding="utf-8")
    script.write_text(json.dumps([{"tool_calls": [{"name": "slow_tool", "arguments": {}}]}]), encoding="utf-8")
    with home.start("ask", "why?", "--model", f"scripted:{script}", "-t", str(toolset)) as run:
        deadline = time.monotonic() + 30
        while not started.exists():
            assert time.monotonic() < deadline
            assert run.poll() is None, run.communicate()
            time.sleep(0.02)
        sleeper = psutil.Process(int(started.read_text(encoding="utf-8")))
        run.send_signal(number)
        _, err = run.communicate(timeout=20)
    assert run.returncode == code
    assert "Traceback" not in err
    assert not sleeper.is_running() or sleeper.status() == psutil.STATUS_ZOMBIE
    assert "why?" in conversation_texts(home)
