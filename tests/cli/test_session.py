"""A run from the outside: real processes, real signals, real files, scripted events."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holmes.app.requests import Attachment
from holmes.cli.commands.inputs import Question
from holmes.cli.commands.interrupts import Interrupts
from holmes.cli.commands.session import Compact, Session, SessionParts, question_mask
from holmes.cli.render.event_lines import Detail
from holmes.cli.render.rendering import PlainRenderer
from holmes.stores.conversation_store import ConversationStore
from holmes.values.errors import HolmesError
from holmes.values.events import AgentEvent, CompactionFailed, HistoryReplaced, RunFailed, ToolResultsMasked
from holmes.values.messages import Message, Text, UserMessage, user_text
from holmes.values.stats import RequestStats
from tests.cli.events import ANSWER, CONVERSATION
from tests.cli.play import compact, measure
from tests.cli.terminal import Terminal

ROOT = Path(__file__).parents[2]


def start(mode: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.cli.play", mode, str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def run(mode: str, folder: Path) -> tuple[int, str, str]:
    with start(mode, folder) as process:
        out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def report(folder: Path) -> dict[str, Any]:
    loaded = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def kept_messages(folder: Path) -> tuple[object, ...]:
    conversation = ConversationStore(folder / "conversations", retention_days=1, limit=9).latest()
    assert conversation is not None
    with conversation:
        return conversation.messages


def wait_for_file(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def terminal(mode: str, folder: Path, **variables: str) -> Terminal:
    return Terminal(["-m", "tests.cli.play", mode, str(folder)], cwd=ROOT, environment=variables)


def test_the_report_holds_the_whole_run(tmp_path: Path) -> None:
    assert run("answer", tmp_path)[:2] == (0, f"{ANSWER}\n")
    content = report(tmp_path)
    assert (content["version"], content["question"], content["answer"], content["error"]) == (1, "why?", ANSWER, None)
    assert (content["exit_code"], content["model"], content["steps"]) == (0, "claude", 2)
    assert content["stats"]["cached_tokens"] == 18_000
    first, second = content["tool_calls"]
    assert first["arguments"] == {"kind": "pods", "namespace": "shop"}
    assert (first["tool_call_id"], first["tool_name"], first["status"]) == ("call-1", "kubectl_get", "success")
    assert (first["invocation"], first["result"]) == ("kubectl call-1", "NAME READY\ncheckout 0/1\n")
    assert (second["status"], second["error"]) == ("error", "pod 'checkout' not found")
    assert second["stored_results"][0]["path"] == "/results/res-1.txt"
    assert [message["role"] for message in content["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert stat.S_IMODE((tmp_path / "report.json").stat().st_mode) == 0o600


def test_the_conversation_is_kept_as_the_loop_left_it(tmp_path: Path) -> None:
    run("answer", tmp_path)
    assert kept_messages(tmp_path) == CONVERSATION


def test_a_failed_run_is_reported_and_kept_too(tmp_path: Path) -> None:
    code, out, _ = run("fail", tmp_path)
    assert (code, out) == (1, "")
    content = report(tmp_path)
    assert (content["answer"], content["error"], content["exit_code"]) == (None, "The provider failed.", 1)
    assert kept_messages(tmp_path) == CONVERSATION[:2]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_closes_the_stream_and_keeps_what_was_found(number: signal.Signals, code: int, tmp_path: Path) -> None:
    with start("hang", tmp_path) as process:
        wait_for_file(tmp_path / "hanging")
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
    assert process.returncode == code
    assert (tmp_path / "closed").exists()
    assert "Traceback" not in err
    assert (report(tmp_path)["error"], report(tmp_path)["exit_code"]) == ("interrupted", code)
    assert (report(tmp_path)["stats"]["cost"], report(tmp_path)["stats"]["calls"]) == (0.002, 1)
    assert kept_messages(tmp_path) == (user_text("why?"), CONVERSATION[2])


async def test_of_an_attachment_only_as_much_is_kept_as_the_loop_would_let_in(tmp_path: Path) -> None:
    async def fails_at_once(_question: Question, _earlier: tuple[Message, ...]) -> AsyncGenerator[AgentEvent, None]:
        yield RunFailed(error="no", exit_code=1, messages=(), stats=RequestStats())

    async def mask(question: Question) -> Question:
        return replace(question, text=question.text.replace("hunter2", "[masked]"))

    store = ConversationStore(tmp_path, retention_days=1, limit=9)
    with Interrupts() as interrupts, store.start() as conversation:
        parts = SessionParts(
            ask=fails_at_once,
            compact=compact,
            measure=measure,
            mask=mask,
            renderer=PlainRenderer(Detail(), pretty_answer=False),
            interrupts=interrupts,
            store=store,
            kept_attachment_characters=5,
        )
        log = Attachment(name="a.log", text="123456789")
        await Session(parts, conversation).ask(Question(text="why hunter2?", attachments=(log,)))
        (kept,) = conversation.messages
    assert isinstance(kept, UserMessage)
    assert [part.text for part in kept.parts if isinstance(part, Text)] == ["why [masked]?", "a.log:\n12345"]


def compaction_that_ends_in(*events: AgentEvent) -> Compact:
    async def play(messages: tuple[Message, ...]) -> AsyncGenerator[AgentEvent, None]:
        for event in events:
            yield event
        yield HistoryReplaced(messages=messages, stats=SUMMARY_STATS)

    return play


FAILED_SUMMARY = CompactionFailed(reason="the summary was empty; nothing was removed", stats=RequestStats())
MASKED = ToolResultsMasked(count=1, policy="path", tokens_before=9, tokens_after=3)
SUMMARY_STATS = RequestStats(calls=1, cost=0.5)


@pytest.mark.row("C10")
@pytest.mark.parametrize(
    ("events", "error", "shown"),
    [
        ((), "not compacted: the conversation cannot become shorter", ""),
        (
            (FAILED_SUMMARY,),
            "not compacted: the summary was empty; nothing was removed",
            "",
        ),
        ((MASKED, FAILED_SUMMARY), None, "  no summary: the summary was empty; nothing was removed\n"),
    ],
)
async def test_compact_says_why_it_did_nothing_and_what_it_cost(
    events: tuple[AgentEvent, ...],
    error: str | None,
    shown: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def never(_question: Question, _earlier: tuple[Message, ...]) -> AsyncGenerator[AgentEvent, None]:
        yield RunFailed(error="no", exit_code=1, messages=(), stats=RequestStats())

    store = ConversationStore(tmp_path, retention_days=1, limit=9)
    with Interrupts() as interrupts, store.start() as conversation:
        conversation.append(user_text("why?"))
        parts = SessionParts(
            ask=never,
            compact=compaction_that_ends_in(*events),
            measure=measure,
            mask=question_mask(None),
            renderer=PlainRenderer(Detail(), pretty_answer=False),
            interrupts=interrupts,
            store=store,
            kept_attachment_characters=5,
        )
        session = Session(parts, conversation)
        if error is None:
            await session.compact()
        else:
            with pytest.raises(HolmesError, match=re.escape(error)):
                await session.compact()
        assert session.stats == SUMMARY_STATS
    assert capsys.readouterr().err.endswith(shown)


def test_the_second_signal_does_not_wait_for_what_does_not_end(tmp_path: Path) -> None:
    with start("stubborn", tmp_path) as process:
        wait_for_file(tmp_path / "hanging")
        process.send_signal(signal.SIGINT)
        wait_for_file(tmp_path / "closed")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
    assert process.returncode == 130


def test_a_full_disk_is_a_warning_and_the_answer_is_shown(tmp_path: Path) -> None:
    (tmp_path / "conversations").touch()
    code, out, err = run("answer", tmp_path)
    assert (code, out) == (0, f"{ANSWER}\n")
    assert err.count("warning: the conversation could not be saved") == 1


def test_a_reader_that_goes_away_ends_the_run_without_a_trace_of_the_stream(tmp_path: Path) -> None:
    with start("hostile", tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stderr.read()
        process.wait(timeout=20)
    assert (tmp_path / "closed").exists()


def test_on_a_terminal_the_answer_is_drawn_once_and_the_cursor_comes_back(tmp_path: Path) -> None:
    with terminal("answer", tmp_path) as screen:
        assert screen.exit_code() == 0
    assert screen.text.count("The ConfigMap checkout is missing.") >= 1
    final = screen.text[screen.text.rindex("continuing with claude") :]
    assert "• restart the pod" in final
    assert "✓ kubectl_get call-1" in screen.text
    assert "claude · 2 steps · 2 tool calls · 23.4k tokens (18k cached) · $0.012" in final
    assert "the text above is incomplete" in screen.text
    assert screen.output.rindex("\x1b[?25h") > screen.output.rindex("\x1b[?25l")


def test_an_answer_that_was_not_streamed_is_shown_once_with_what_the_loop_added(tmp_path: Path) -> None:
    with terminal("whole", tmp_path) as screen:
        assert screen.exit_code() == 0
    assert screen.text.count("The ConfigMap checkout is missing.") == 1
    assert screen.text.count("(cut off)") == 1


def test_a_redirected_answer_stays_off_the_terminal_and_progress_stays_on_it(tmp_path: Path) -> None:
    arguments = f"[sys.executable, '-m', 'tests.cli.play', 'answer', {str(tmp_path)!r}]"
    command = f"import subprocess, sys; subprocess.run({arguments}, stdout=open({str(tmp_path / 'out')!r}, 'w'))"
    with Terminal(["-c", command], cwd=ROOT) as screen:
        assert screen.exit_code() == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == f"{ANSWER}\n"
    assert "✓ kubectl_get call-1" in screen.text
    assert "I look at the pods." in screen.text
    assert "ConfigMap" not in screen.text


def test_no_color_is_respected(tmp_path: Path) -> None:
    with terminal("answer", tmp_path, NO_COLOR="1") as screen:
        assert screen.exit_code() == 0
    assert "\x1b[32m" not in screen.output
    assert "\x1b[31m" not in screen.output


def test_a_dumb_terminal_gets_plain_lines(tmp_path: Path) -> None:
    with terminal("answer", tmp_path, TERM="dumb") as screen:
        assert screen.exit_code() == 0
    assert "\x1b" not in screen.output
    assert "✓ kubectl_get call-1" in screen.output


def test_sequences_of_tools_and_models_do_not_reach_the_terminal(tmp_path: Path) -> None:
    with terminal("hostile", tmp_path, SHOW_OUTPUT="1") as screen:
        assert screen.exit_code() == 0
    for sequence in ("\x1b]0;", "\x1b[2J", "\x9b", "\u202e", "owned"):
        assert sequence not in screen.output
    assert "red abc" in screen.text


def test_ctrl_c_on_a_terminal_gives_the_cursor_back(tmp_path: Path) -> None:
    with terminal("hang", tmp_path) as screen:
        screen.wait_for("kubernetes_logs call-2")
        screen.press("\x03")
        assert screen.exit_code() == 130
    assert (tmp_path / "closed").exists()
    assert screen.output.rindex("\x1b[?25h") > screen.output.rindex("\x1b[?25l")


@pytest.mark.parametrize(("keys", "outcome"), [("y\n", "ALLOWED"), ("\n", "REFUSED"), ("nonsense\n", "REFUSED")])
def test_a_person_is_asked_and_only_yes_is_a_yes(keys: str, outcome: str, tmp_path: Path) -> None:
    with terminal("approve", tmp_path, SHOW_OUTPUT="1") as screen:
        screen.wait_for("Allow it? [y/N]")
        assert "rm(a=1)" in screen.text
        screen.press(keys)
        assert screen.exit_code() == 0
    assert outcome in screen.text


def asked_again(screen: Terminal, number: int) -> None:
    screen.wait_for(f"Holmes wants to run ({number} of 20)")
    screen.wait_until(lambda text: text.count("Allow it? [y/N]") >= number, f"question {number}")


def test_what_was_typed_before_the_question_never_answers_it(tmp_path: Path) -> None:
    with terminal("approve", tmp_path, SHOW_OUTPUT="1") as screen:
        screen.press("y\nyes\ny")
        screen.wait_for("Allow it? [y/N]")
        time.sleep(0.5)
        screen.wait_until(lambda _: True, "anything")
        assert "ALLOWED" not in screen.text
        screen.press("\n")
        assert screen.exit_code() == 0
    assert "REFUSED" in screen.text


def test_what_was_typed_for_one_question_does_not_answer_the_next(tmp_path: Path) -> None:
    with terminal("flood", tmp_path) as screen:
        asked_again(screen, 1)
        screen.press("y\ny\ny\n")
        asked_again(screen, 2)
        time.sleep(0.3)
        screen.press("none\n")
        assert screen.exit_code() == 0
    assert screen.text.count("✓ rm(") == 1
    assert screen.text.count("· not run") == 19


@pytest.mark.parametrize("dumb", [False, True])
def test_all_waiting_calls_are_shown_before_the_first_question(dumb: bool, tmp_path: Path) -> None:
    variables = {"TERM": "dumb"} if dumb else {}
    with terminal("flood", tmp_path, **variables) as screen:
        asked_again(screen, 1)
        shown = screen.text[: screen.text.index("Holmes wants to run")]
        assert [f"requires approval: rm(/data/{number})" in shown for number in range(20)] == [True] * 20
        screen.press("\n")
        asked_again(screen, 2)
        screen.press("all\n")
        assert screen.exit_code() == 0
    assert screen.text.count("✓ rm(") == 19
    assert screen.text.count("rm(/data/0) · not run") == 1


def test_of_a_single_call_all_is_no_answer(tmp_path: Path) -> None:
    with terminal("approve", tmp_path, SHOW_OUTPUT="1") as screen:
        screen.wait_for("Allow it? [y/N]")
        assert "1 of" not in screen.text
        screen.press("all\n")
        assert screen.exit_code() == 0
    assert "REFUSED" in screen.text


def test_ctrl_c_ends_a_question_and_all_that_wait(tmp_path: Path) -> None:
    with terminal("flood", tmp_path) as screen:
        asked_again(screen, 1)
        screen.press("\x03")
        assert screen.exit_code() == 130


def leave(screen: Terminal) -> int:
    """Press Ctrl-D until it is taken: between two prompts the terminal swallows it. Returns the exit code."""
    for _ in range(20):
        screen.press("\x04")
        time.sleep(0.5)
        if screen.process.poll() is not None:
            break
    return screen.exit_code()


def test_the_interactive_loop_answers_obeys_and_survives_ctrl_c(tmp_path: Path) -> None:
    with terminal("loop", tmp_path, PROMPT_TOOLKIT_NO_CPR="1") as screen:
        screen.wait_for("holmes>")
        screen.press("hang\r")
        screen.wait_for("kubernetes_logs call-2")
        screen.press("\x03")
        screen.wait_for("holmes: interrupted")
        screen.press("why?\r")
        screen.wait_for("claude · 2 steps")
        screen.press("/tools\r")
        screen.wait_for("TOOLS")
        screen.press("/context\r")
        screen.wait_for("50% GOOD")
        screen.wait_for("next compaction in 6.4k tokens")
        screen.press("/compact\r")
        screen.wait_for("older messages summarised: 9k → 1k tokens")
        screen.press("/cost\r")
        screen.wait_for("$0.034")
        screen.press("/clear\r")
        screen.wait_for("new conversation")
        screen.press("/compact\r")
        screen.wait_for("nothing to compact yet")
        screen.press("/clear\r")
        screen.wait_for("new conversation")
        screen.press("/nonsense\r")
        screen.wait_for("unknown command '/nonsense'")
        screen.press("\x03")
        assert leave(screen) == 0
    history = tmp_path / "history"
    assert "+why?" in history.read_text(encoding="utf-8")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


async def test_ctrl_c_between_two_prompts_ends_nothing() -> None:
    with Interrupts() as interrupts, interrupts.staying():
        for _ in range(3):
            await interrupts.run(asyncio.sleep(0))
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.01)


async def test_ctrl_c_after_the_last_prompt_ends_the_program() -> None:
    with Interrupts() as interrupts:
        with interrupts.staying():
            pass
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(1)
    assert interrupts.exit_code == 130


def test_a_history_file_that_broke_meanwhile_does_not_end_the_loop(tmp_path: Path) -> None:
    with terminal("loop", tmp_path, PROMPT_TOOLKIT_NO_CPR="1") as screen:
        screen.wait_for("holmes>")
        (tmp_path / "history").unlink()
        (tmp_path / "history").mkdir()
        time.sleep(0.5)  # the prompt draws itself before it takes keys
        screen.press("/cost\r")
        screen.wait_for("$0")
        time.sleep(0.5)
        screen.press("why?\r")
        screen.wait_for("claude · 2 steps")
        assert leave(screen) == 0
    assert "Traceback" not in screen.text
    assert "Errno" not in screen.text


def test_the_interactive_loop_works_on_a_dumb_terminal(tmp_path: Path) -> None:
    with terminal("loop", tmp_path, TERM="dumb") as screen:
        screen.wait_for("holmes>")
        screen.press("why?\n")
        screen.wait_for("claude · 2 steps")
        screen.press("/exit\n")
        assert screen.exit_code() == 0
