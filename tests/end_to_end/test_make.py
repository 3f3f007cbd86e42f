"""`make ask` in this checkout: the question reaches the model as it was typed, and a failure is one line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holmes.stores.conversation_store import ConversationStore
from holmes.values.messages import UserMessage
from tests.support.command_line import Finished, Home

ROOT = Path(__file__).parents[2]
QUESTIONS = (
    "what is `id -u` and $(id -u)?",
    """why does "it's" break?""",
    "is $HOME set, or $$, or ${PATH}?",
    "$(shell touch made-by-make) # not a comment",
    "-n looks like an option",
    r"a \ backslash, 100% and; | & > all the rest",
)


pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def make_ask(home: Home, *arguments: str) -> Finished:
    """Run the recipe with the environment of these tests in place of `.venv`: installing is not what is tested here."""
    environment = home.path / "venv"
    environment.mkdir()
    (environment / "bin").symlink_to(Path(sys.executable).parent)
    (environment / ".installed").touch()
    done = subprocess.run(
        ["make", "--no-print-directory", "ask", f"VENV={environment}", *arguments],
        cwd=ROOT,
        env=home.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Finished(exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr)


def scripted(tmp_path: Path) -> str:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "The answer."}]))
    return f"scripted:{script}"


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_question_is_neither_expanded_nor_run(question: str, tmp_path: Path, kubeconfig: Path) -> None:
    home = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig), MODEL=scripted(tmp_path))
    done = make_ask(home, f"Q={question}")
    assert (done.exit_code, done.stdout) == (0, "The answer.\n"), done.stderr
    assert asked_in(home) == question
    assert not (ROOT / "made-by-make").exists()


def test_the_question_may_come_from_the_environment(tmp_path: Path, kubeconfig: Path) -> None:
    variables = {"KUBECONFIG": str(kubeconfig), "MODEL": scripted(tmp_path), "Q": "why $HOME?"}
    home = Home.make(tmp_path / "home", **variables)
    assert make_ask(home).exit_code == 0
    assert asked_in(home) == "why $HOME?"


def asked_in(home: Home) -> str:
    """The question of the only conversation that was kept."""
    conversation = ConversationStore(home.path / ".holmes/conversations", retention_days=1, limit=9).latest()
    assert conversation is not None
    with conversation:
        (question,) = [message.text for message in conversation.messages if isinstance(message, UserMessage)]
    return question


def test_no_cluster_is_one_line_and_the_code_of_a_failed_recipe(tmp_path: Path) -> None:
    home = Home.make(tmp_path / "home", MODEL=scripted(tmp_path))
    done = make_ask(home, "Q=why?")
    said, made = done.stderr.splitlines()
    assert said.startswith("holmes: No cluster is configured")
    assert "Error 3" in made
    assert (done.exit_code, done.stdout) == (2, "")
