"""Servers and command lines of the tests that are built from Go modules.

`pins/NAME/go.mod` and `go.sum` pin the versions and hashes of one program. `build` makes what is missing; everything
else only looks.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.cluster.errors import CannotRunHereError, ClusterError
from tests.cluster.programs import appearing_at, building, run

if TYPE_CHECKING:
    from tests.cluster.layout import Layout

PINS: Final = Path(__file__).with_name("pins")
FLAGS: Final = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoProgram:
    """A program, its module, and the variable to which a release assigns its version after `prefix`."""

    name: str
    module: str
    variable: str
    prefix: str = ""

    @property
    def version(self) -> str:
        """The pinned version, for example `v1.76.0`."""
        pinned = (PINS / self.name / "go.mod").read_text()
        found = re.search(rf"^.*\b{re.escape(self.module)} (v\S+)", pinned, re.MULTILINE)
        if found is None:
            raise ClusterError(f"pins/{self.name}/go.mod pins no version of {self.module}")
        return found[1]

    def path(self, layout: Layout) -> Path:
        """Where the program is, once it is built."""
        pins = [(PINS / self.name / file).read_bytes() for file in ("go.mod", "go.sum")]
        digest = hashlib.sha256(b"\0".join([*pins, " ".join(FLAGS).encode()])).hexdigest()[:12]
        return layout.cache / f"{self.name}-{self.version}-{digest}" / self.name


VICTORIA_LOGS: Final = GoProgram(
    name="victoria-logs",
    module="github.com/VictoriaMetrics/VictoriaLogs",
    variable="github.com/VictoriaMetrics/VictoriaMetrics/lib/buildinfo.Version",
    prefix="victoria-logs-",
)
JAEGER: Final = GoProgram(
    name="jaeger",
    module="github.com/jaegertracing/jaeger",
    variable="github.com/jaegertracing/jaeger/internal/version.latestVersion",
)
HUBBLE: Final = GoProgram(
    name="hubble",
    module="github.com/cilium/cilium",
    variable="github.com/cilium/cilium/hubble/pkg.Version",
)


def installed(program: GoProgram, layout: Layout) -> Path:
    """Return where the program is; raise CannotRunHereError if it is not built."""
    path = program.path(layout)
    if not path.is_file():
        raise CannotRunHereError(f"{program.name} is not built: run `python -m tests.services build` once")
    return path


def build(program: GoProgram, layout: Layout) -> None:
    """Build the program if the cache lacks it (minutes when cold)."""
    path = program.path(layout)
    if path.is_file():
        return
    if shutil.which("go") is None:
        raise CannotRunHereError(f"{program.name} is not built yet and there is no Go to build it with")
    with building(layout):
        if not path.is_file():
            _build(program, layout, path)


def _build(program: GoProgram, layout: Layout, path: Path) -> None:
    with appearing_at(path.parent) as unfinished, tempfile.TemporaryDirectory() as module:
        for pin in ("go.mod", "go.sum"):
            shutil.copy(PINS / program.name / pin, module)
        flags = f"-ldflags=-s -w -X={program.variable}={program.prefix}{program.version}"
        environment = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": ""}
        command = ["go", "build", *FLAGS, flags, f"-o={unfinished}/", "tool"]
        run(command, layout.cache / f"build-{program.name}.log", cwd=Path(module), environment=environment)
        (made,) = unfinished.iterdir()
        made.rename(unfinished / path.name)
