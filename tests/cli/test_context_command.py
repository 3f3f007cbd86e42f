"""`holmes context offload` as a process: files in, files out, one line for people, one line for every mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from holmes.stores.conversation_store import ConversationStore
from tests.core.truncation.masking.support import conversation, result, unstored
from tests.support.command_line import Home

if TYPE_CHECKING:
    from pathlib import Path

BIG = "pod checkout-7f9c OOMKilled\n" * 200


def chat(rounds: int) -> list[dict[str, Any]]:
    """A conversation in the format of OpenAI."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "s"}, {"role": "user", "content": "why?"}]
    for number in range(rounds):
        function = {"name": "kubectl_logs", "arguments": json.dumps({"pod": f"checkout-{number}"})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"{number} {BIG}"},
        ]
    return messages


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home without key and cluster."""
    return Home.make(tmp_path / "home", MODEL="gpt-4.1")


@pytest.fixture
def chat_file(tmp_path: Path) -> Path:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(chat(5)))
    return path


LIMITS = ("--max-total-tokens", "2000", "--max-tool-message-tokens", "500")


@pytest.mark.row("K15")
def test_results_move_without_a_key_and_without_a_cluster(home: Home, chat_file: Path, tmp_path: Path) -> None:
    done = home.run("context", "offload", str(chat_file), "--store-dir", str(tmp_path / "moved"), *LIMITS)
    assert (done.exit_code, done.stderr.count("\n")) == (0, 1)
    assert "→ 12 messages, " in done.stderr
    assert done.stderr.rstrip().endswith(f"tokens; 4 results in {tmp_path / 'moved'}")
    written = json.loads(done.stdout)
    given = chat(5)
    moved = written["metadata"]["moved"]
    assert [entry["position"] for entry in moved] == [3, 5, 7, 9]
    for entry in moved:
        content = given[entry["position"]]["content"]
        (stored,) = entry["stored"]
        with open(stored["path"]) as file:  # noqa: PTH123  the path as a user would paste it
            assert file.read() == content
        message = written["messages"][entry["position"]]
        assert (message["role"], message["tool_call_id"]) == ("tool", given[entry["position"]]["tool_call_id"])
        assert stored["id"] in message["content"]
        assert len(message["content"]) < len(content) / 2
        given[entry["position"]] = message
    assert written["messages"] == given


@pytest.mark.row("K15", "P8")
def test_offloading_what_was_offloaded_changes_nothing(home: Home, chat_file: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    # So small that a mask itself is above the limit.
    small = ("--mode", "compact", "--max-total-tokens", "100", "--max-tool-message-tokens", "20")
    first = home.run("context", "offload", str(chat_file), *small, "--output", str(output))
    assert (first.exit_code, first.stdout) == (0, "")
    assert output.stat().st_mode & 0o777 == 0o600
    again = home.run("context", "offload", "-", *small, stdin=output.read_text())
    assert again.exit_code == 0
    assert again.stderr.rstrip().endswith("tokens: nothing was moved")
    assert json.loads(again.stdout)["messages"] == json.loads(output.read_text())["messages"]


@pytest.mark.row("K15")
def test_a_kept_conversation_is_taken_as_it_lies_on_the_disk(home: Home, tmp_path: Path) -> None:
    store = ConversationStore(tmp_path / "conversations", retention_days=1, limit=9)
    with store.start() as kept:
        for message in conversation(*((unstored(result(f"c{n}", f"{n} {BIG}")),) for n in range(3))):
            kept.append(message)
    (path,) = (tmp_path / "conversations").iterdir()
    for arguments, stdin in (((str(path),), ""), (("-",), path.read_text())):
        done = home.run("context", "offload", *arguments, *LIMITS, "--mode", "compact", stdin=stdin)
        assert done.exit_code == 0
        masked = json.loads(done.stdout)["messages"][3]
        assert (masked["masked"], masked["call_id"], len(masked["stored"])) == (True, "c0", 1)
    assert (home.path / ".holmes/results/manifest.jsonl").is_file()


@pytest.mark.row("N13", "K15")
def test_no_secret_is_moved_into_a_file(home: Home, tmp_path: Path) -> None:
    secret = "AKIA" + "Q7RZ3XW2" * 2
    messages = chat(2)
    messages[1]["content"] = f"my key is {secret}"
    messages[3]["content"] += f"\naws_access_key_id={secret}\n"
    done = home.run("context", "offload", "-", *LIMITS, "--store-dir", str(tmp_path / "s"), stdin=json.dumps(messages))
    assert done.exit_code == 0
    assert done.stderr.rstrip().endswith("; secrets masked in 2 messages")
    assert json.loads(done.stdout)["metadata"]["redacted_messages"] == 2
    assert secret not in done.stdout
    files = [path.read_bytes() for path in (tmp_path / "s").rglob("*") if path.is_file()]
    assert any(b"aws_access_key_id=" in content for content in files)
    assert not any(secret.encode() in content for content in files)


@pytest.mark.row("K10", "K15")
def test_old_messages_are_summarised_by_the_model_of_the_settings(home: Home, chat_file: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "checkout was OOMKilled."}]))
    options = ("--mode", "compress", *LIMITS, "--model", f"scripted:{script}", "--chat-id", "incident-7")
    done = home.run("context", "offload", str(chat_file), *options)
    assert done.exit_code == 0, done.stderr
    written = json.loads(done.stdout)
    assert [message["role"] for message in written["messages"]] == ["system", "user", "assistant", "tool"]
    assert "checkout was OOMKilled." in written["messages"][1]["content"]
    assert written["messages"][2:] == chat(5)[-2:]
    (group,) = written["metadata"]["groups"]
    assert "incident-7" in group["stored"][0]["path"]
    assert "; 1 group in " in done.stderr
    script.write_text("[]")
    done = home.run("context", "offload", str(chat_file), *options)
    assert done.exit_code == 1
    assert json.loads(done.stdout)["messages"] == chat(5)
    assert "holmes: no summary was written: " in done.stderr


def test_a_model_is_looked_for_before_anything_is_done(home: Home, chat_file: Path, tmp_path: Path) -> None:
    done = home.run(
        "context", "offload", str(chat_file), "--mode", "compress", *LIMITS, "--model", f"scripted:{tmp_path / 'none'}"
    )
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        ('[{"role": "user", "content": 3}]', (), "message 1: 'content' must be a string or a list of parts"),
        ("[]", ("--keep-recent-count", "-1"), "-1"),
        ("[]", ("--output", "/"), "--output '/' is a folder"),
        (None, (), "cannot be read: No such file or directory"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    content: str | None, options: tuple[str, ...], said: str, home: Home, tmp_path: Path
) -> None:
    path = tmp_path / "chat.json"
    if content is not None:
        path.write_text(content)
    done = home.run("context", "offload", str(path), *options)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert said in line


def test_storage_that_is_switched_off_asks_for_a_folder(home: Home, chat_file: Path) -> None:
    off = Home(path=home.path, variables={**home.variables, "HOLMES_TOOL_RESULT_STORAGE_ENABLED": "false"})
    done = off.run("context", "offload", str(chat_file), *LIMITS)
    assert done.exit_code == 2
    assert "--store-dir" in done.stderr


def test_compacting_imports_no_model_library(home: Home, chat_file: Path) -> None:
    code = (
        "import sys; from holmes.cli.main import cli\n"
        f"cli.main(['context', 'offload', {str(chat_file)!r}, '--mode', 'compact'], standalone_mode=False)\n"
        "heavy = {'litellm', 'kubernetes', 'rich', 'prompt_toolkit', 'jinja2', 'httpx'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=home.environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
