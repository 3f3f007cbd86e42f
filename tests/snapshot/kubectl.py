"""Runs kubectl beside other things, and compares what it prints of a live cluster and of a recording."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_SECONDS = 20
_AGE = re.compile(r"(?<![\w.\"'-])(?=\d)(?:(\d+)y)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?![\w\"'])")
_UNITS = (365 * 86400, 86400, 3600, 60, 1)
# Of a node: the pods of all namespaces, of which a recording of one cannot know, and a lease that ticks.
_OF_THE_CLUSTER = re.compile(r"^Non-terminated Pods:.*?^Events:|^ *RenewTime: .*?$", re.MULTILINE | re.DOTALL)
_ADDRESS = re.compile(r"https?://127\.0\.0\.1:\d+(?:/recording-[0-9a-f]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """What a run of kubectl left behind."""

    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubectl:
    """kubectl for one cluster."""

    program: Path
    kubeconfig: Path
    namespace: str
    cache: Path

    async def run(self, *arguments: str, stdin: str = "") -> Printed:
        environment: Mapping[str, str] = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.cache),
            "KUBECONFIG": str(self.kubeconfig),
            "TZ": "UTC",
        }
        process = await asyncio.create_subprocess_exec(
            self.program,
            f"--namespace={self.namespace}",
            *arguments,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                out, err = await process.communicate(stdin.encode())
        except TimeoutError:
            process.kill()
            await process.wait()
            return Printed(exit_code=-9, stdout="", stderr=f"{arguments} did not end")
        return Printed(exit_code=process.returncode or 0, stdout=out.decode(), stderr=err.decode())


def difference(live: Printed, recorded: Printed, *, ages: bool) -> str:
    """Where two runs differ, empty when they say the same.

    With `ages`, durations may differ by what the runs are apart, and by the width of the columns that follows from it.
    """
    if live.exit_code != recorded.exit_code:
        return f"exit code {live.exit_code} and {recorded.exit_code}: {live.stderr}{recorded.stderr}"
    for stream in ("stdout", "stderr"):
        one, other = (_comparable(getattr(run, stream)) for run in (live, recorded))
        if one == other or _same_json(one, other) or (ages and _same_but_for_ages(one, other)):
            continue
        return first_difference(one, other)
    return ""


def _comparable(text: str) -> str:
    return _OF_THE_CLUSTER.sub("<of the cluster>", _ADDRESS.sub("<address>", text))


def first_difference(one: str, other: str) -> str:
    """The first line that is not the same in both texts."""
    left, right = one.splitlines(), other.splitlines()
    for index in range(max(len(left), len(right))):
        pair = [lines[index] if index < len(lines) else "(no line)" for lines in (left, right)]
        if pair[0] != pair[1] and not _same_but_for_ages(*pair):
            return f"line {index + 1}: live {pair[0]!r}, recorded {pair[1]!r}"
    return f"ages or line ends: live {one[:400]!r}, recorded {other[:400]!r}"


def _same_json(one: str, other: str) -> bool:
    """Whether both are the same document: `get --raw` prints the bytes, whose order and breaks mean nothing."""
    try:
        return bool(one) and json.loads(one) == json.loads(other)
    except ValueError:
        return False


def _same_but_for_ages(one: str, other: str) -> bool:
    ours, theirs = _ages(one), _ages(other)
    return (
        _without_ages(one) == _without_ages(other)
        and len(ours) == len(theirs)
        and all(_close(left, right) for left, right in zip(ours, theirs, strict=True))
    )


def _close(left: int, right: int) -> bool:
    """Whether two ages are those of the same thing, seen a few seconds apart; large ones are shown coarsely."""
    return abs(left - right) <= max(25, 0.05 * max(left, right))


def _ages(text: str) -> Sequence[int]:
    return [
        sum(int(count) * unit for count, unit in zip(found.groups(default="0"), _UNITS, strict=True))
        for found in _AGE.finditer(text)
        if any(found.groups())
    ]


def _without_ages(text: str) -> Sequence[str]:
    masked = _AGE.sub(lambda found: "<age>" if any(found.groups()) else found[0], text)
    return [" ".join(line.split()) for line in masked.splitlines()]
