"""An import of seconds that nobody has to wait for: not the event loop, and not the end of the process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import pytest

from holmes.llm import litellm_loader
from holmes.llm.litellm_loader import BackgroundImport
from tests.support.deadlines import ends_before

ROOT = Path(__file__).parents[2]

# Ends with code 7 while a chain of modules is being imported, each of which takes a while.
END_EARLY = """
import asyncio, importlib, sys, threading, time
from holmes.llm.litellm_loader import BackgroundImport

begun = threading.Event()

def load():
    try:
        for number in range(100):
            importlib.import_module(f"slow_{number}")
            begun.set()
    finally:
        sys.stdout.write("unwound")
        sys.stdout.flush()

async def main():
    waiting = asyncio.create_task(asyncio.to_thread(begun.wait))
    importing = asyncio.wrap_future(BackgroundImport(load, name="test").future)
    await waiting
    importing.cancel()

asyncio.run(main())
sys.exit(7)
"""


def test_what_the_import_gives_or_raises_reaches_who_waits() -> None:
    assert BackgroundImport(lambda: "module", name="test").future.result(timeout=10) == "module"

    def fail() -> None:
        raise ImportError("no such library")

    failing = BackgroundImport(fail, name="test")
    with pytest.raises(ImportError, match="no such library"):
        failing.future.result(timeout=10)
    assert failing.result is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_nobody_waits_for_ever_for_a_library_that_breaks_in_its_own_way() -> None:
    def fail() -> None:
        raise AttributeError("written for another version")

    breaking = BackgroundImport(fail, name="test")
    with pytest.raises(AttributeError, match="written for another version"):
        breaking.future.result(timeout=10)
    breaking.give_up()


def test_an_event_loop_ends_without_waiting_and_the_import_goes_on_for_the_others() -> None:
    released = threading.Event()
    importing = BackgroundImport(lambda: released.wait(30), name="test")

    async def give_up_waiting() -> None:
        waiting = asyncio.create_task(_wait_for(importing.future))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    with ends_before(20):
        asyncio.run(give_up_waiting())
    assert importing.result is None
    released.set()
    assert importing.future.result(timeout=10) is True
    assert importing.result is True


async def _wait_for(future: Future[bool]) -> bool:
    return await asyncio.wrap_future(future)


def test_the_end_of_the_process_stops_the_import_at_the_next_module(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"slow_{number}.py").write_text("import time\ntime.sleep(0.2)\n")
    search_path = os.pathsep.join((str(ROOT), str(tmp_path)))
    done = subprocess.run(
        [sys.executable, "-c", END_EARLY],
        capture_output=True, text=True, timeout=15, check=False, env={**os.environ, "PYTHONPATH": search_path},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (7, "unwound", "")


def test_giving_up_refuses_modules_to_the_import_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("background_refused", "background_allowed"):
        (tmp_path / f"{name}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    given_up = threading.Event()

    def load() -> None:
        given_up.wait(10)
        __import__("background_refused")

    importing = BackgroundImport(load, name="test")
    stopping = threading.Thread(target=importing.give_up)
    stopping.start()
    __import__("background_allowed")
    given_up.set()
    stopping.join()
    assert importing.result is None
    assert "background_refused" not in sys.modules
    assert importing.future.exception(timeout=0) is not None


def test_an_import_that_cannot_be_stopped_does_not_hold_the_exit() -> None:
    released = threading.Event()
    importing = BackgroundImport(lambda: released.wait(60), name="test")
    started = time.monotonic()
    with ends_before(30):
        importing.give_up()
    assert time.monotonic() - started > 1.5
    released.set()


async def test_litellm_is_imported_once_however_many_ask() -> None:
    first, second = await asyncio.gather(litellm_loader.litellm_module(), litellm_loader.litellm_module())
    assert first is second is litellm_loader.load_litellm() is litellm_loader.preload().result()


def test_an_empty_key_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"OPENAI_API_KEY": "", "GEMINI_API_KEY": " \t", "ANTHROPIC_API_KEY": "k", "UNRELATED": ""}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    litellm_loader.prepare_environment()
    assert {name: os.environ.get(name) for name in given} == {
        "OPENAI_API_KEY": None,
        "GEMINI_API_KEY": None,
        "ANTHROPIC_API_KEY": "k",
        "UNRELATED": "",
    }
