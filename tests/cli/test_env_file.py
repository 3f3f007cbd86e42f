"""`--env-file`: opt-in, weaker than the environment, read before the settings, and clear when it is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holmes.app.context_policies import context_policy
from holmes.settings.load import load_settings
from holmes.settings.process import add_env_file, process_environment, tool_environment
from tests.support.command_line import Home

ANSWER = [{"text": "All is well."}]
# The variables of Octo's document, in the ways in which values are written.
OCTO = """\
TOOL_RESULT_LIMIT=20001
SUMMARIZATION_TRIGGER_FRACTION=0.6     # 0.0-1.0
SUMMARIZATION_TRIGGER_TOKENS=90000

export SUMMARIZATION_KEEP_TOKENS='10001'
SUPERVISOR_MSG_CHAR_LIMIT="30001"      # per-message safety net
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(ANSWER), encoding="utf-8")
    made = Home.make(tmp_path / "home")
    (made.path / "model.env").write_text(f"MODEL=scripted:{script}\n", encoding="utf-8")
    return made


def written(home: Home, text: str | bytes) -> str:
    path = home.path / "test.env"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


@pytest.mark.parametrize("first", [True, False], ids=["before the command", "after the command"])
def test_a_file_is_read_before_the_settings_on_either_side_of_the_command(home: Home, first: bool) -> None:
    option = ("--env-file", str(home.path / "model.env"))
    rest = ("ask", "-n", "--demo", "why?")
    done = home.run(*option, *rest) if first else home.run(*rest, *option)
    assert (done.exit_code, done.stdout) == (0, "All is well.\n")


def test_no_file_is_read_that_nobody_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home.path)
    (home.path / ".env").write_text("MODEL=scripted:/nowhere.json\n")
    (home.path / ".holmes" / ".env").write_text("MODEL=scripted:/nowhere.json\n")
    assert home.run("ask", "-n", "--demo", "why?", "--env-file", "model.env").stdout == "All is well.\n"


def test_what_is_in_the_environment_already_wins(home: Home) -> None:
    wrong = Home(path=home.path, variables={"MODEL": "scripted:/nowhere.json"})
    done = wrong.run("ask", "-n", "--demo", "why?", "--env-file", str(home.path / "model.env"))
    assert done.exit_code == 2
    assert "/nowhere.json" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("scan", "--demo"),
        ("context", "offload", "no.json"),
        ("snapshot", "create", "x"),
        ("investigate", "alertmanager"),
        ("toolset", "list"),
        ("serve",),
    ],
    ids=" ".join,
)
def test_every_command_that_reads_settings_takes_a_file(home: Home, command: tuple[str, ...]) -> None:
    broken = written(home, "MAX_STEPS=10\nnonsense\n")
    done = home.run(*command, "--env-file", broken)
    assert done.exit_code == 2
    assert (
        done.stderr == f"holmes: {broken}:2: not a valid NAME=value line; "
        "write one variable per line, and start comments with '#'\n"
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("A=1\nB\n", 2),
        ("\n\n# comment\n  1A=2\n", 4),
        ("A=1\nB='never closed\n", 2),
        ("A=1\r\n\r\nB-C=2\r\n", 3),
        ("=x\n", 1),
        ("A=b\0c\n", 1),
    ],
)
def test_a_bad_line_is_named_and_its_value_is_not_shown(home: Home, text: str, line: int) -> None:
    path = written(home, text.replace("never closed", "hidden-value"))
    done = home.run("ask", "-n", "--demo", "why?", "--env-file", path)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"holmes: {path}:{line}: not a valid NAME=value line")
    assert "hidden-value" not in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (Path.exists, "cannot be read: No such file or directory"),
        (Path.mkdir, "cannot be read: Is a directory"),
        (lambda path: path.write_bytes(b"A=\xff\xfe"), "is not UTF-8 text"),
        (lambda path: path.write_bytes(b"A=" + b"x" * 1_000_000), "is larger than 1,000,000 bytes"),
    ],
    ids=["missing", "folder", "binary", "huge"],
)
def test_a_file_that_cannot_be_used_is_one_clear_line(home: Home, make: Callable[[Path], object], reason: str) -> None:
    path = home.path / "unusable.env"
    make(path)
    done = home.run("ask", "-n", "--demo", "why?", "--env-file", str(path))
    assert done.exit_code == 2
    assert reason in done.stderr
    assert done.stderr.startswith(f"holmes: the env file '{path}' ")
    assert done.stderr.count("\n") == 1


@pytest.fixture
def no_variables(tmp_path: Path) -> Iterator[None]:
    """A process that has a home and nothing else, and gets its variables back."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ["HOME"] = str(tmp_path)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.usefixtures("no_variables")
@pytest.mark.row("C9")
def test_the_variables_of_octos_document_reach_the_policy(tmp_path: Path) -> None:
    (tmp_path / "octo.env").write_text(OCTO, encoding="utf-8-sig")
    add_env_file(tmp_path / "octo.env")
    settings = load_settings(process_environment())
    policy = context_policy(settings, settings.model_chain()[0])
    assert (policy.spill.char_limit, policy.spill.user_message_char_limit) == (20_001, 30_001)
    assert (policy.trigger.fraction, policy.trigger.tokens, policy.keep.tail_tokens) == (0.6, 90_000, 10_001)


@pytest.mark.usefixtures("no_variables")
def test_what_tools_may_see_is_the_same_list_for_a_variable_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "x.env").write_text("OPENAI_API_KEY=k\nHOLMES_API_KEY=k\nMINE=1\nAWS_REGION=eu\nHOME=/other\n")
    add_env_file(tmp_path / "x.env")
    assert process_environment()["MINE"] == "1"
    assert tool_environment(process_environment()) == {"HOME": str(tmp_path), "AWS_REGION": "eu"}


def test_no_library_reads_a_file_of_its_own(home: Home) -> None:
    script = (
        "import dotenv, sys\n"
        "dotenv.load_dotenv = lambda **_: sys.exit('read')\n"
        "from holmes.llm.litellm_loader import preload\n"
        "preload().result()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=home.environment(), capture_output=True, text=True, check=False, timeout=90
    )
    assert (done.returncode, done.stderr) == (0, "")
