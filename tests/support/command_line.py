"""Runs the `holmes` command as users do: a process of its own, its own home, nothing inherited."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from tests.support import preloaded

TIMEOUT_SECONDS = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a run ended."""

    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A home directory for the command, with a config file that names a provider."""

    path: Path
    variables: Mapping[str, str]

    @classmethod
    def make(cls, path: Path, *, config: str = "", **variables: str) -> Home:
        """An empty home with `config` as its `~/.holmes/config.yaml`."""
        folder = path / ".holmes"
        folder.mkdir(parents=True)
        if config:
            (folder / "config.yaml").write_text(config)
        return cls(path=path, variables=variables)

    def environment(self) -> dict[str, str]:
        """What the process gets: the search path and the home, and what the test names.

        The answers of scripted models are shown as they are, unless the test asks for the review.
        """
        path = os.pathsep.join((str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"))
        alone = {"HOLMES_FIRST_LOOK": "false", "HOLMES_ANSWER_REVIEW": "false"}
        return {"PATH": path, "HOME": str(self.path), "LANG": "C.UTF-8", **alone, **self.variables}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `holmes` with these arguments, standard input empty."""
        return subprocess.Popen(
            [sys.executable, "-m", "holmes", *arguments],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, stdin: str | None = None, timeout_seconds: float = TIMEOUT_SECONDS) -> Finished:
        """Run `holmes` to its end, in a process that need not import it where this makes no difference."""
        if stdin is None and preloaded.can_run(self.environment()):
            return self._run_preloaded(arguments, timeout_seconds)
        done = subprocess.run(
            [sys.executable, "-m", "holmes", *arguments],
            env=self.environment(),
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
        return Finished(exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def _run_preloaded(self, arguments: Sequence[str], seconds: float) -> Finished:
        with TemporaryFile("w+") as stdout, TemporaryFile("w+") as stderr, Path(os.devnull).open() as stdin:
            code = preloaded.run(
                arguments,
                environment=self.environment(),
                streams=(stdin.fileno(), stdout.fileno(), stderr.fileno()),
                seconds=seconds,
            )
            stdout.seek(0)
            stderr.seek(0)
            return Finished(exit_code=code, stdout=stdout.read(), stderr=stderr.read())


FOR_RECORDINGS = "toolsets: {prometheus/metrics: {config: {cluster: recording}}}"
"""A line of a config file: a recording and the demo cluster read the Prometheus at PROMETHEUS_URL as well."""


def provider_config(base_url: str, *lines: str) -> str:
    """A config file for a provider at `base_url` that speaks OpenAI's protocol; its failures are failures."""
    own = ("model: openai/scripted", f"api_base: {base_url}", "api_key: not-a-secret", "builtin_fallback: false")
    return "\n".join((*own, *lines, ""))


def read_report(path: Path) -> dict[str, Any]:
    """The JSON of `--json-output-file`."""
    report = json.loads(path.read_text())
    assert isinstance(report, dict)
    return report


def tool_results(body: Mapping[str, Any]) -> Sequence[str]:
    """The texts of all tool results in a request that a provider got."""
    return [str(message["content"]) for message in body["messages"] if message["role"] == "tool"]
