"""Runs `holmes` in processes that have imported everything already, since most of a short run is imports.

`python -m tests.support.preloaded SOCKET` is the process that imports. It forks for each command that it is sent, and
the new process gets the arguments, environment, folder and streams of the command. It ends when its standard input is
closed.
Tests of the start itself run `python -m holmes`.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

_LARGEST_COMMAND: Final = 1 << 20
_START_SECONDS: Final = 60
_READ_AT_START: Final = ("PYTHON", "LC_", "LD_")
"""Beginnings of the names of variables that only a new Python reads."""
_IMPORTED_LATE: Final = (
    "litellm", "mcp.client.client", "openai.resources.chat.completions", "promql_parser", "prompt_toolkit", "tiktoken",
)  # fmt: skip


def can_run(environment: Mapping[str, str]) -> bool:
    """Whether a process that is running already can get this environment."""
    return environment.get("LANG") == "C.UTF-8" and not any(name.startswith(_READ_AT_START) for name in environment)


def run(
    arguments: Sequence[str], *, environment: Mapping[str, str], streams: tuple[int, int, int], seconds: float
) -> int:
    """Run `holmes` with these arguments and streams, and return its exit code, negative for a signal.

    Raises `subprocess.TimeoutExpired` after `seconds`, when the process was killed.
    """
    command = json.dumps({"arguments": list(arguments), "environment": dict(environment), "folder": str(Path.cwd())})
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(seconds)
        connection.connect(str(_server()))
        socket.send_fds(connection, [command.encode()], list(streams))
        process = int(connection.recv(32))
        try:
            return os.waitstatus_to_exitcode(int(connection.recv(32)))
        except TimeoutError:
            os.kill(process, signal.SIGKILL)
            raise subprocess.TimeoutExpired(["holmes", *arguments], seconds) from None


@cache
def _server() -> Path:
    """The socket of the process that imports, which is started once and ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="holmes-preloaded-")
    path = Path(folder.name) / "socket"
    importer = subprocess.Popen(
        [sys.executable, "-m", __name__, str(path)], stdin=subprocess.PIPE, start_new_session=True
    )

    def end() -> None:
        assert importer.stdin is not None
        importer.stdin.close()
        importer.wait()
        folder.cleanup()

    atexit.register(end)
    deadline = time.monotonic() + _START_SECONDS
    while not path.exists():
        assert importer.poll() is None, "the process that imports Holmes has ended"
        assert time.monotonic() < deadline, "the process that imports Holmes did not start in time"
        time.sleep(0.02)
    return path


def _import_everything() -> None:
    """Import and load all that a command may need. Each command configures litellm itself."""
    from importlib import import_module
    from pkgutil import walk_packages

    import holmes
    from holmes.llm.litellm_loader import prepare_environment

    prepare_environment()
    for module in walk_packages(holmes.__path__, "holmes."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    for name in _IMPORTED_LATE:
        import_module(name)
    from holmes.tokens.counter import load_encoding

    load_encoding("o200k_base")


def _next_command(path: str) -> list[str] | None:
    """Return in a new process for each command, with its arguments, and at the end of the tests with None."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"{path}.new")
    listener.listen(64)
    Path(f"{path}.new").rename(path)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    selector.register(0, selectors.EVENT_READ)
    while True:
        if any(key.fileobj == 0 for key, _ in selector.select()):
            return None
        connection, _ = listener.accept()
        if os.fork() == 0:
            selector.close()
            listener.close()
            return _fork(connection)
        connection.close()
        with suppress(ChildProcessError):  # none is left
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _fork(connection: socket.socket) -> list[str]:
    """Return the arguments in a new process; tell its number and its end from this one."""
    message, streams, _, _ = socket.recv_fds(connection, _LARGEST_COMMAND, 3)
    process = os.fork()
    if process:
        for stream in streams:
            os.close(stream)
        with suppress(BrokenPipeError):  # the test gave up
            connection.send(str(process).encode())
            connection.send(str(os.waitpid(process, 0)[1]).encode())
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    command = json.loads(message)
    os.environ.clear()
    os.environ.update(command["environment"])
    os.chdir(command["folder"])
    return list(command["arguments"])


def _run_to_the_end(arguments: list[str]) -> None:
    """End as Python does, except that no module is torn down, which would copy all memory of the imports."""
    from holmes.cli.main import main

    sys.argv = ["holmes", *arguments]
    code = 1
    try:
        main()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0
    finally:
        for thread in threading.enumerate():
            if thread is not threading.main_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    _import_everything()
    gc.freeze()
    if (command := _next_command(sys.argv[1])) is not None:
        _run_to_the_end(command)
