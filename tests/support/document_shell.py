"""A shell that lives as long as a document: commands of its `console` blocks, typed one after the other.

Used by `tests/test_docs_deploy.py` and `tests/test_docs_readme.py`. A command that ends in `&` continues in the
background and may print later; all of it ends with the shell. In what a document expects, `…` stands for anything.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PATIENCE_SECONDS = 60
_PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What is typed and what it prints."""

    text: str
    expected: str

    @property
    def is_look(self) -> bool:
        """Whether it only looks, so that it may be repeated until it sees what shall come."""
        return self.text.startswith("curl ") and " -d " not in self.text and " -X " not in self.text


class Shell:
    """One bash. `folder` is where it starts and where its output is kept."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._output = folder / "shell.out"
        self._errors = folder / "shell.err"
        self._count = 0
        with self._output.open("w") as output, self._errors.open("w") as errors:
            self._bash = subprocess.Popen(
                ["bash", "--noprofile", "--norc"],
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def run(self, command: Command) -> None:
        """Run it to its end; AssertionError when it prints something else, or fails although nobody expects a `no`."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            printed, status = self._once(command, deadline)
            if matches(command.expected, printed):
                break
            if not command.is_look or time.monotonic() > deadline:
                raise AssertionError(f"$ {command.text}\n{printed}\n--- expected:\n{command.expected}\n{self.errors()}")
            time.sleep(_PAUSE_SECONDS * 4)
        # That is how kubectl says no.
        assert status == 0 or command.expected == "no\n", f"$ {command.text}\n{status}\n{self.errors()}"

    def errors(self) -> str:
        """The end of standard error."""
        return self._errors.read_text(errors="replace")[-3000:]

    def close(self) -> None:
        """End the shell and everything that it has started."""
        os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.wait()
        if self._bash.stdin:
            self._bash.stdin.close()

    def _once(self, command: Command, deadline: float) -> tuple[str, int]:
        """What one run printed, and its exit code. Waits for what a background command shall print."""
        self._count += 1
        done = self._folder / f"shell.done-{self._count}"
        start = self._output.stat().st_size
        assert self._bash.stdin is not None
        # The commands of this shell come from its standard input, which no command may read.
        self._bash.stdin.write(f"{{ {command.text}\n}} < /dev/null\necho $? > {done}.new; mv {done}.new {done}\n")
        self._bash.stdin.flush()
        while not done.exists():
            assert self._bash.poll() is None, f"the shell has ended: {self.errors()}"
            assert time.monotonic() < deadline, f"$ {command.text}: not finished in {PATIENCE_SECONDS} s"
            time.sleep(_PAUSE_SECONDS)
        while True:
            printed = self._output.read_bytes()[start:].decode(errors="replace")
            in_background = command.text.endswith("&")
            if not in_background or matches(command.expected, printed) or time.monotonic() > deadline:
                return printed, int(done.read_text())
            time.sleep(_PAUSE_SECONDS)


@contextmanager
def shell(folder: Path, environment: Mapping[str, str]) -> Iterator[Shell]:
    """Yield a shell that is ended with all that it has started."""
    opened = Shell(folder, environment)
    try:
        yield opened
    finally:
        opened.close()


def commands_of(text: str) -> list[Command]:
    """The commands of a `console` block: `$ ` begins one, `> ` goes on with it, everything else is what it prints."""
    commands: list[Command] = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        first, *rest = part.splitlines()
        typed = 0
        while typed < len(rest) and rest[typed].startswith("> "):
            typed += 1
        continued = [line.removeprefix("> ") for line in rest[:typed]]
        printed = "".join(f"{line}\n" for line in rest[typed:])
        commands.append(Command(text="\n".join((first, *continued)), expected=printed))
    return commands


def matches(expected: str, printed: str) -> bool:
    """Whether this is what was expected."""
    pattern = ".*?".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), flags=re.DOTALL) is not None
